"""Helpers of commands that add working trees: show the progress, and print the result."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

from watchroom.agents.clients.processes import find_parent_agent
from watchroom.features.trees.own_trees import AddedTree, Listeners, Step
from watchroom.kernel.call_context import CallContext
from watchroom.kernel.checkout.location import is_workspace
from watchroom.texts import Catalogue, Language
from watchroom.workspace import Workspace
from watchroom_tui.presentation.sanitize import sanitize, sanitize_lines
from watchroom_tui.presentation.usage import WrongUsage

from watchroom_cli.acting_person import name_of_this_person
from watchroom_cli.output.progress import progress_bar
from watchroom_cli.start.repository import find_start, make_workspace

_MAX_LINES: Final = 20
"""Max output lines of a failed setup command to print."""
_MAX_NAMES: Final = 10
"""Max names to print in one line."""


@contextmanager
def open_repository(folder: str, language: Language, texts: Catalogue) -> Iterator[Workspace]:
    """Open the workspace of the repository around ``folder``. Create it if it does not exist. Raise
    `WrongUsage`, `WatchroomError`, OSError."""
    start = find_start(folder)
    if start is None or start.place is None:
        raise WrongUsage(texts("cli.tree.no_repository"))
    if not is_workspace(start.root):
        make_workspace(start.root, language)
    with Workspace.open(start.root, create=False, scan=False) as workspace:
        yield workspace


def caller_of(workspace: Workspace) -> CallContext:
    """Return the caller of this command: an agent, or the person at this machine."""
    agent = find_parent_agent(workspace.root, os.environ)
    return CallContext(agent or f"human:{name_of_this_person()}")


@contextmanager
def shown_progress(command: str, texts: Catalogue) -> Iterator[Listeners]:
    """Show the progress, and the output of the setup ``command``, on standard error. Show nothing unless it
    is a terminal."""
    is_terminal = sys.__stderr__ is not None and sys.__stderr__.isatty()
    with ExitStack() as stack:
        bars: dict[Step, Callable[[int, int], None]] = {}
        rest = bytearray()

        def on_step(step: Step, done: int, of: int) -> None:
            if step == "setup":
                stack.close()
                print(texts("cli.tree.step.setup", command=sanitize(command)), file=sys.stderr)
                return
            if step not in bars:
                stack.close()
                bars[step] = stack.enter_context(progress_bar(texts(f"cli.tree.step.{step}")))
            if of:
                bars[step](done, of)

        def on_output(piece: bytes) -> None:
            rest.extend(piece)
            lines, _, left = rest.rpartition(b"\n")
            rest[:] = left
            for line in sanitize_lines(lines.decode("utf-8", "replace")) if lines else ():
                print(line, file=sys.stderr)

        if is_terminal:
            yield Listeners(on_step, on_output)
        else:
            yield Listeners()


def print_added(added: AddedTree, command: str, texts: Catalogue) -> None:
    """Print the added and omitted files of a new tree, and a failure of its setup ``command``, on standard
    error."""
    included = added.included
    for key, names in (
        ("copied", included.copied),
        ("linked", included.linked),
        ("restored", added.restored),
    ):
        if names:
            print(texts(f"cli.tree.{key}", names=join_names(names, texts)), file=sys.stderr)
    if included.left_out:
        left_out = join_names(included.left_out, texts)
        print(texts("cli.tree.left_out", names=left_out), file=sys.stderr)
    if is_failed(added) and added.setup is not None:
        values = {"command": sanitize(command), "status": added.setup.status}
        print(texts("cli.tree.setup_failed", **values), file=sys.stderr)
        for line in sanitize_lines(added.setup.output.rstrip("\n"))[-_MAX_LINES:]:
            print(f"  {line}", file=sys.stderr)


def is_failed(added: AddedTree) -> bool:
    """Return whether the setup command of the tree failed."""
    return added.setup is not None and added.setup.status != 0


def join_names(names: tuple[str, ...], texts: Catalogue) -> str:
    """Return at most `_MAX_NAMES` of ``names`` in one line, safe to print."""
    shown = ", ".join(sanitize(each) for each in names[:_MAX_NAMES])
    more = len(names) - _MAX_NAMES
    return shown if more <= 0 else texts("cli.tree.more", names=shown, count=more)
