"""The hooks that clients call before and after their own tools (Claude Code and Codex share them).

A client's own tools write files directly. A file that is written through Watchroom they may not write: the
agent is told why, and which tool to use instead. After a tool it is told what has come for it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from watchroom import validation
from watchroom.checkout.layout import CONTROL, ROOTS, path_at
from watchroom.disk import Parts
from watchroom.model import Json, Row, Zone
from watchroom.rules.client_calls import WRITING_TOOL
from watchroom.rules.handoffs import split_handoff
from watchroom.rules.policy_subject import patched_files
from watchroom.texts import Language, catalogue

if TYPE_CHECKING:
    from watchroom.workspace import Workspace

_PATH_ARGUMENTS: Final = ("file_path", "notebook_path", "path", "filename")
"""The arguments by which tools that write name a file."""
_MAX_NOTIFICATIONS: Final = 10
_MAX_MESSAGE_CHARACTERS: Final = 500
_OWN_FOLDERS: Final = frozenset(
    {CONTROL, *(parts[0] for parts in ROOTS.values()), "realtime", "whiteboard-history"}
)


def denial_reason(root: str, agent: str, event: Mapping[str, Json], language: Language) -> str:
    """Why the call of a client's own tool in ``event`` may not be made by ``agent``, in ``language``; empty
    if it may. ``root`` is the workspace's folder."""
    for written in _written_paths(event):
        cwd = event.get("cwd")
        # Clients replace characters that no file name can have, each in its own way; the folder is the same.
        folder, given = map(
            validation.replace_non_path_characters,
            (cwd if isinstance(cwd, str) else os.getcwd(), written),
        )
        path = os.path.join(folder, os.path.expanduser(given))
        # Clients differ in whether they take ".." out of a path before they follow its links.
        for meant in (path, os.path.normpath(path)):
            # As far as the path is there, symlinks count for what they lead to.
            relative = os.path.relpath(os.path.realpath(meant), os.path.realpath(root))
            parts = tuple(relative.split(os.sep))
            if parts[0] not in (os.pardir, os.curdir) and (reason := _path_denial(parts, agent, language)):
                return reason
    return ""


def fetch_notifications(workspace: Workspace, agent: str, language: Language) -> str:
    """What has come for ``agent`` in ``workspace`` since the last call, as text in ``language``; empty if
    nothing has. It counts as delivered."""
    rows = workspace.notifications.fetch(agent)
    texts = catalogue(language)
    lines = [_describe(row, language) for row in rows[-_MAX_NOTIFICATIONS:]]
    if len(rows) > _MAX_NOTIFICATIONS:
        lines.insert(0, texts("hook.more", count=len(rows) - _MAX_NOTIFICATIONS))
    return "\n".join([texts("hook.news"), *lines]) if lines else ""


def _written_paths(event: Mapping[str, Json]) -> Iterator[str]:
    """The paths of the files that a call would write."""
    tool, given = event.get("tool_name"), event.get("tool_input")
    if not isinstance(tool, str) or not isinstance(given, Mapping) or tool.startswith("mcp__"):
        return
    for value in given.values():
        for text in value if isinstance(value, list) else [value]:
            if isinstance(text, str) and "*** Begin Patch" in text:
                yield from patched_files(text)
    if WRITING_TOOL.search(tool):
        for argument in _PATH_ARGUMENTS:
            path = given.get(argument)
            if isinstance(path, str) and path:
                yield path


def _path_denial(parts: Parts, agent: str, language: Language) -> str:
    """Why no client's own tools may write there, or not this agent's."""
    if parts[0] not in _OWN_FOLDERS and parts != ("global-whiteboard.md",):
        return ""
    texts = catalogue(language)
    found: tuple[Zone, str] | None = path_at(parts)
    zone, path = found if found is not None else ("workspace", "/".join(parts))
    owner, _, filename = path.partition("/")
    if zone == "private":
        return "" if owner == agent else texts("hook.private", owner=owner, filename=filename)
    if zone in ("collab", "board", "handoff"):
        return texts(f"hook.{zone}", path=path)
    return texts("hook.ours", path="/".join(parts))


def _describe(row: Row, language: Language) -> str:
    texts = catalogue(language)
    # Each notification begins a line, and nothing that somebody wrote does.
    message = "\n  ".join(row.message[:_MAX_MESSAGE_CHARACTERS].splitlines())
    if row.zone == "handoff":
        sender, _, filename = split_handoff(row.path)
        return texts("hook.handed", sender=sender, filename=filename, message=message)
    kind = "resolved" if row.version else "dismissed"
    suffix = texts("conflict.saying", message=message) if message else ""
    version = row.version or row.base
    return "- " + texts(f"conflict.{kind}", who=row.actor, path=row.path, version=version, message=suffix)
