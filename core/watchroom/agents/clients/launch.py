"""How `watchroom CLIENT` starts a client: its own switches bring hooks and server, so that no file of the
client or of the repository is written.

The files that switches name are in the runtime folder, named by the workspace and by their content, so that
equal starts share them.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from watchroom.agents.clients.adapter import LaunchParts, LaunchSupport
from watchroom.agents.clients.configuration import (
    AGENT_VARIABLE,
    SERVER,
    AttachedAs,
    HookProgram,
    build_entries,
)

FOLDER: Final = "clients"
"""The folder of the files in the runtime folder."""


class Launch(NamedTuple):
    """How a client is started.

    - ``arguments``: its arguments, those of the person last
    - ``environment``: further environment variables
    - ``files``: the texts of the files that it reads, by their paths
    """

    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    files: Mapping[str, str]


def build_launch(
    name: str,
    support: LaunchSupport,
    hook: HookProgram,
    root: str,
    runtime: str,
    given: Sequence[str],
    environment: Mapping[str, str],
) -> Launch:
    """Return how the client ``name`` is started so that it is supervised in the workspace at ``root``.

    - ``support``: how the client is started
    - ``hook``: how its hooks are run
    - ``runtime``: the runtime folder
    - ``given``, ``environment``: the person's arguments and environment

    Raises ValueError with the argument or variable that would switch the hooks off.
    """
    entries = build_entries(name, hook, AttachedAs(root, ()))
    files: dict[str, str] = {}

    def keep(text: str, suffix: str) -> str:
        path = _path_of(runtime, root, name, text, suffix)
        files[path] = text
        return path

    parts = LaunchParts({SERVER: entries.server}, {AGENT_VARIABLE: entries.mark}, entries.hooks, keep)
    words = support.describe(parts, given, environment)
    return Launch(words.arguments, words.environment, files)


def _path_of(runtime: str, root: str, name: str, text: str, suffix: str) -> str:
    content = hashlib.sha256(text.encode()).hexdigest()[:16]
    return os.path.join(runtime, FOLDER, f"{_workspace_key(root)}-{name}-{content}{suffix}")


def _workspace_key(root: str) -> str:
    return hashlib.sha256(os.fsencode(root)).hexdigest()[:16]


def write_files(files: Mapping[str, str]) -> None:
    """Write the ``files`` that do not exist yet, readable for this user alone. Raises OSError."""
    for path, text in files.items():
        if os.path.exists(path):
            continue
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        new = f"{path}.{os.getpid()}"
        with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(new, path)


def remove_files(runtime: str, root: str) -> None:
    """Remove the files of clients that worked in the workspace at ``root``. Raises OSError."""
    folder, key = os.path.join(runtime, FOLDER), _workspace_key(root)
    with suppress(FileNotFoundError, NotADirectoryError):
        for name in os.listdir(folder):
            if name.startswith(f"{key}-"):
                os.unlink(os.path.join(folder, name))
