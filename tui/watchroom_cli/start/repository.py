"""Start supervising a repository: ask the person, and create the repository's workspace."""

from __future__ import annotations

import os
import select
import shutil
import sys
from typing import Final, NamedTuple

from watchroom.features.trees.place import RepositoryPlace, repository_at, workspace_root
from watchroom.kernel.checkout.location import is_workspace
from watchroom.texts import Catalogue, Language
from watchroom_tui.formatters.columns import wrap
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.terminal.session import has_terminal

from watchroom_cli.arguments.workspace_argument import find_working_repository

_STANDARD_INPUT: Final = 0
_CHECK_SECONDS: Final = 0.3
"""Seconds between checks whether another process has created the workspace."""


class StartPlace(NamedTuple):
    """The place where a started client works.

    - ``root``: the workspace's folder.
    - ``place``: the workspace's repository, None for a workspace without one.
    """

    root: str
    place: RepositoryPlace | None


def find_start(folder: str) -> StartPlace | None:
    """Return the nearest workspace or repository around ``folder``, None if not found. A workspace precedes a
    repository in the same folder."""
    while True:
        if is_workspace(folder):
            return StartPlace(folder, None)
        place = repository_at(folder)
        if place is not None:
            return StartPlace(os.path.realpath(workspace_root(place.common)), place)
        above = os.path.dirname(folder)
        if above == folder:
            return None
        folder = above


def make_workspace(root: str, language: Language) -> None:
    """Create the workspace of a repository at ``root``. Raise `WatchroomError`, OSError."""
    # Slow to load, and needed only once per repository.
    from watchroom.workspace import Workspace

    Workspace.open(root, language=language).close()


def offer_workspace(texts: Catalogue, language: Language) -> str | None:
    """Ask whether to supervise the repository of the working directory, and create its workspace.

    If another process creates the workspace meanwhile, the question ends, and any answer means this
    workspace. Return the workspace. None without a repository or a terminal, or if the person declines. Raise
    `WatchroomError`, OSError.
    """
    place = find_working_repository()
    if place is None:
        print(texts("cli.begin"), file=sys.stderr)
        return None
    root = os.path.realpath(workspace_root(place.common))
    folder = sanitize(place.main)
    if not has_terminal():
        print(texts("cli.repository.begin", folder=folder), file=sys.stderr)
        return None
    print(_wrap_words(texts("cli.repository.about", folder=folder, root=sanitize(root))))
    print(_wrap_words(texts("cli.repository.question")), end=" ", flush=True)
    is_agreed = _wait_for_answer(root) and _read_agreement()
    if is_workspace(root):
        print(_wrap_words(texts("cli.repository.elsewhere")))
        return root
    if not is_agreed:
        print(texts("cli.repository.declined"), file=sys.stderr)
        return None
    make_workspace(root, language)
    return root


def ask(question: str) -> bool:
    """Return whether the person at the terminal answers yes to ``question``."""
    return _read_agreement(f"{_wrap_words(question)} ")


def _read_agreement(prompt: str = "") -> bool:
    try:
        return input(prompt).strip().lower() in ("y", "yes", "是")
    except EOFError:
        return False


def _wait_for_answer(root: str) -> bool:
    """Wait until the person has typed a line. Return False if the workspace at ``root`` exists before, and
    end the line of the question."""
    while not select.select([_STANDARD_INPUT], [], [], _CHECK_SECONDS)[0]:
        if is_workspace(root):
            print()
            return False
    return True


def _wrap_words(text: str) -> str:
    """Return ``text`` with line breaks between words, so that each line fits the terminal. Without them, the
    terminal would break lines within words."""
    columns = shutil.get_terminal_size().columns - 1
    return "\n".join(piece.rstrip() for line in text.split("\n") for piece in wrap(line, columns))
