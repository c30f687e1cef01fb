"""Calls of a client's own tools, by the row with which each ends. Pure.

Such a row is a step of the agent's session and an operation of the agent. Its detail has all that lists and
counts need, because its content can have megabytes.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, Literal, NamedTuple, TypeAlias, cast, get_args

from watchroom.model import CLIENT_CALLS, Json, Row, parse_detail
from watchroom.rules.details import get_count, get_list, get_object, get_text
from watchroom.rules.policy_subject import policy_subject
from watchroom.rules.requests import PendingCall, call_subject, parse_arguments
from watchroom.validation import escape_unstorable

CallKind: TypeAlias = Literal["edit", "command", "read", "other"]
"""What a call does. ``edit``: it writes files that it names."""
CallOutcome: TypeAlias = Literal["ok", "failed", "denied"]

CALL: Final = "call"
"""The name in a row's detail: the call that ends with the row."""
WRITING_TOOL: Final = re.compile(r"write|edit|create|delete|move|patch|insert|replace", re.IGNORECASE)
"""Matches the names of tools that write files."""
OWN_TOOLS: Final = "mcp__watchroom__"
"""Before the names of Watchroom's own tools, whose calls have rows of their own."""
_READING_TOOL: Final = re.compile(r"read|grep|glob|ls$|list|search|find|view|fetch|think", re.IGNORECASE)
PATCH: Final = "*** Begin Patch"
"""Begins a patch as Codex writes it."""
_MAX_NAME: Final = 100
_MAX_ABOUT: Final = 200
_MAX_REASON: Final = 200
_MAX_FOLDER: Final = 4096
_MAX_PATH_CHARACTERS: Final = 8000
"""Characters of all paths together that a row's detail has. At least one path is always there."""


class ClientCall(NamedTuple):
    """A call of a client's own tool that has ended.

    - ``tool``: its name as the client says it
    - ``about``: a path, a command or another short text, one line
    - ``paths``: the files that it wrote or would have written, relative to ``folder`` where they are in it
    - ``left_out``: how many more files there are, at least
    - ``folder``: the folder in which the session began, empty if it is not known
    - ``error``: the code of why it was refused, empty if it was not; ``reason``: the same as a text
    """

    tool: str
    kind: CallKind = "other"
    about: str = ""
    paths: tuple[str, ...] = ()
    left_out: int = 0
    folder: str = ""
    outcome: CallOutcome = "ok"
    error: str = ""
    reason: str = ""

    @property
    def is_edit(self) -> bool:
        """Whether the call may have changed files."""
        return self.kind == "edit" and self.outcome == "ok"


def describe_client_call(
    tool: str,
    arguments: str,
    *,
    folder: str = "",
    cwd: str = "",
    outcome: CallOutcome = "ok",
    error: str = "",
    reason: str = "",
) -> ClientCall | None:
    """Return the call of ``tool`` with ``arguments`` (JSON); None for a tool of Watchroom, or without a name.

    ``folder`` is the one in which the session began, ``cwd`` the one that the client is in, default
    ``folder``.
    """
    if not tool or tool.startswith(OWN_TOOLS):
        return None
    given = parse_arguments(arguments)
    subject = policy_subject(given, folder=folder, cwd=cwd)
    command = subject.command
    kind: CallKind = "other"
    if subject.paths and (WRITING_TOOL.search(tool) or PATCH in command):
        kind = "edit"
    elif command:
        kind = "command"
    elif _READING_TOOL.search(tool):
        kind = "read"
    paths = _bounded_paths(subject.paths) if kind == "edit" else ()
    about = (*paths, *subject.paths)[:1] if kind in ("edit", "read") else (command,)
    told = next(iter(about), "") or call_subject(PendingCall("", tool, arguments))
    return ClientCall(
        escape_unstorable(tool, _MAX_NAME),
        kind,
        escape_unstorable(told.strip().split("\n", 1)[0], _MAX_ABOUT),
        paths,
        len(subject.paths) - len(paths) + subject.is_cut if kind == "edit" else 0,
        escape_unstorable(folder, _MAX_FOLDER) if paths else "",
        outcome,
        error,
        escape_unstorable(reason.strip().split("\n", 1)[0], _MAX_REASON),
    )


def _bounded_paths(paths: tuple[str, ...]) -> tuple[str, ...]:
    kept: list[str] = []
    length = 0
    for path in paths:
        length += len(path)
        if kept and length > _MAX_PATH_CHARACTERS:
            break
        kept.append(escape_unstorable(path, _MAX_PATH_CHARACTERS))
    return tuple(kept)


def call_detail(call: ClientCall) -> dict[str, Json]:
    """Return ``call`` as a row's detail has it under `CALL`, without empty fields."""
    fields: dict[str, Json] = {**call._asdict(), "paths": list(call.paths)}
    return {name: value for name, value in fields.items() if value not in ("", 0, [])}


def client_call(row: Row) -> ClientCall | None:
    """Return the call of a client's own tool that ends with ``row``; None for any other row, or one that came
    too late."""
    if row.zone != "session" or row.tool not in CLIENT_CALLS or row.version is None:
        return None
    return _parse(row.detail_json)


@lru_cache(maxsize=1024)
def _parse(detail_json: str) -> ClientCall:
    # The dashboard asks several times for each row in each frame.
    fields = get_object(parse_detail(detail_json), CALL)
    kind, outcome = fields.get("kind"), fields.get("outcome")
    return ClientCall(
        get_text(fields, "tool")[:_MAX_NAME] or "?",
        cast("CallKind", kind) if kind in get_args(CallKind) else "other",
        get_text(fields, "about")[:_MAX_ABOUT],
        tuple(path for path in get_list(fields, "paths") if isinstance(path, str) and path),
        get_count(fields, "left_out"),
        get_text(fields, "folder"),
        cast("CallOutcome", outcome) if outcome in get_args(CallOutcome) else "ok",
        get_text(fields, "error")[:_MAX_NAME],
        get_text(fields, "reason")[:_MAX_REASON],
    )
