"""What clients ask before and after their own tools (the hooks that Claude Code and Codex share).

A client's own tools write files directly. Into a place that is written through Watchroom they may not: the
agent is told why, and which tool to use instead. After a tool it is told what has come for it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Final, Protocol

from watchroom import validation
from watchroom.checkout.layout import CONTROL, ROOTS, path_at
from watchroom.disk import Parts
from watchroom.journal import Journal
from watchroom.model import MESSAGE, Json, Row, Zone
from watchroom.rules.handoffs import split_handoff
from watchroom.texts import Language, catalogue
from watchroom.zones.notifications import Notifications

BEFORE: Final = "PreToolUse"
AFTER: Final = "PostToolUse"
_PATHS: Final = ("file_path", "notebook_path", "path", "filename")
"""The arguments by which tools that write name a file."""
_WRITERS: Final = re.compile(r"write|edit|create|delete|move|patch|insert|replace", re.IGNORECASE)
_PATCHED: Final = re.compile(
    r"^[ \t]*\*\*\* (?:(?:Add|Update|Delete) File|Move to):[ \t]*(.+?)\s*$", re.MULTILINE
)
"""The files of a patch as Codex reads it, which makes little of blanks."""
_MOST_TOLD: Final = 10
_LONGEST: Final = 500
_OURS: Final = frozenset({CONTROL, *(parts[0] for parts in ROOTS.values()), "realtime", "whiteboard-history"})


class Place(Protocol):
    """A `Workspace`, as far as hooks need it."""

    @property
    def root(self) -> str: ...

    @property
    def journal(self) -> Journal: ...

    @property
    def notifications(self) -> Notifications: ...


def answer(place: Place, agent: str, event: Mapping[str, Json], language: Language) -> dict[str, Json] | None:
    """The answer to one event of a client's, as JSON; None where there is nothing to say. Raises
    `UnknownAgent`."""
    name = event.get("hook_event_name")
    if name == BEFORE:
        reason = denied(place.root, agent, event, language)
        decision = {"permissionDecision": "deny", "permissionDecisionReason": reason}
        return _output(BEFORE, decision) if reason else None
    if name == AFTER:
        told = news_of(place, agent, language)
        return _output(AFTER, {"additionalContext": told}) if told else None
    return None


def denied(root: str, agent: str, event: Mapping[str, Json], language: Language) -> str:
    """Why a call of a client's own tool may not be made, empty if it may."""
    for written in _written(event):
        cwd = event.get("cwd")
        # What no file can be called, clients replace in ways of their own; where it would lie is the same.
        given = validation.replace_lone_surrogates(written).replace("\0", "\ufffd")
        path = os.path.join(cwd if isinstance(cwd, str) else os.getcwd(), os.path.expanduser(given))
        # Clients differ in whether they take ".." out of a path before they follow its links.
        for meant in (path, os.path.normpath(path)):
            # As far as the path is there, symlinks count for what they lead to.
            relative = os.path.relpath(os.path.realpath(meant), os.path.realpath(root))
            parts = tuple(relative.split(os.sep))
            if parts[0] not in (os.pardir, os.curdir) and (reason := _reason(parts, agent, language)):
                return reason
    return ""


def news_of(place: Place, agent: str, language: Language) -> str:
    """What has come for the agent since it was last told, empty if nothing."""
    rows = place.notifications.fetch(agent)
    texts = catalogue(language)
    lines = [_told(row, language) for row in rows[-_MOST_TOLD:]]
    if len(rows) > _MOST_TOLD:
        lines.insert(0, texts("hook.more", count=len(rows) - _MOST_TOLD))
    return "\n".join([texts("hook.news"), *lines]) if lines else ""


def _written(event: Mapping[str, Json]) -> Iterator[str]:
    """The files that a call would write."""
    tool, given = event.get("tool_name"), event.get("tool_input")
    if not isinstance(tool, str) or not isinstance(given, Mapping) or tool.startswith("mcp__"):
        return
    for value in given.values():
        for text in value if isinstance(value, list) else [value]:
            if isinstance(text, str) and "*** Begin Patch" in text:
                yield from _PATCHED.findall(text)
    if _WRITERS.search(tool):
        for argument in _PATHS:
            path = given.get(argument)
            if isinstance(path, str) and path:
                yield path


def _reason(parts: Parts, agent: str, language: Language) -> str:
    """Why nobody's own tools may write there, or not this agent's."""
    if parts[0] not in _OURS and parts != ("global-whiteboard.md",):
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


def _told(row: Row, language: Language) -> str:
    texts = catalogue(language)
    # Each piece of news begins a line, and nothing that somebody wrote does.
    message = "\n  ".join(row.message[:_LONGEST].splitlines())
    if row.zone == "handoff":
        sender, _, filename = split_handoff(row.path)
        return texts("hook.handed", sender=sender, filename=filename, message=message)
    if row.tool == MESSAGE:
        return texts("hook.message", sender=row.actor, text=message)
    kind = "resolved" if row.version else "dismissed"
    said = texts("conflict.saying", message=message) if message else ""
    version = row.version or row.base
    return "- " + texts(f"conflict.{kind}", who=row.actor, path=row.path, version=version, message=said)


def _output(event: str, more: Mapping[str, Json]) -> dict[str, Json]:
    return {"hookSpecificOutput": {"hookEventName": event, **more}}
