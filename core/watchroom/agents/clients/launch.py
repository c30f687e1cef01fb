"""Starts a client for `watchroom CLIENT`. Command line options pass the hooks and the server, so no file of
the client or of the repository is written.

Files for these options are in the runtime folder. Their names come from the workspace and their content, so
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
    format_mark,
)

FOLDER: Final = "clients"
"""The folder of the files in the runtime folder."""


class Launch(NamedTuple):
    """The start of a client.

    - ``arguments``: its arguments, the person's arguments last
    - ``environment``: additional environment variables
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
    agents: Sequence[str] = (),
) -> Launch:
    """Return the start of the client ``name`` that supervises it in the workspace at ``root``.

    - ``support``: the client's launch support
    - ``hook``: the programs that run its hooks
    - ``runtime``: the runtime folder
    - ``given``, ``environment``: the person's arguments and environment
    - ``agents``: it works as one of these agents, default: as an agent named by the service. If ``support``
      has ``trusts_texts``, the agent must be reserved (`AgentClaims.reserve`)

    Raise ValueError with an argument or variable that would turn the hooks off.
    """
    entries = build_entries(name, hook, AttachedAs(root, () if support.trusts_texts else (*agents,)))
    files: dict[str, str] = {}

    def keep(text: str, suffix: str) -> str:
        path = _path_of(runtime, root, name, text, suffix)
        files[path] = text
        return path

    parts = LaunchParts(
        {SERVER: entries.server}, {AGENT_VARIABLE: format_mark(agents, name)}, entries.hooks, keep
    )
    words = support.describe(parts, given, environment)
    return Launch(words.arguments, words.environment, files)


def _path_of(runtime: str, root: str, name: str, text: str, suffix: str) -> str:
    content = hashlib.sha256(text.encode()).hexdigest()[:16]
    return os.path.join(runtime, FOLDER, f"{_workspace_key(root)}-{name}-{content}{suffix}")


def _workspace_key(root: str) -> str:
    return hashlib.sha256(os.fsencode(root)).hexdigest()[:16]


def write_files(files: Mapping[str, str]) -> None:
    """Write the ``files`` that do not exist yet, readable only by this user. Raise OSError."""
    for path, text in files.items():
        if os.path.exists(path):
            continue
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        new = f"{path}.{os.getpid()}"
        with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(new, path)


def remove_files(runtime: str, root: str) -> None:
    """Remove the files of clients that worked in the workspace at ``root``. Raise OSError."""
    folder, key = os.path.join(runtime, FOLDER), _workspace_key(root)
    with suppress(FileNotFoundError, NotADirectoryError):
        for name in os.listdir(folder):
            if name.startswith(f"{key}-"):
                os.unlink(os.path.join(folder, name))
