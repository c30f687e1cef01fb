"""The vocabulary of sessions: the content and the detail of their rows. Pure.

The runtime and the sessions of clients write the same rows. The content of the first row is a whole state.
The content of each later row has only the changes, so that a row does not grow with its session. The detail
has the data for lists and counts, because the content can have megabytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final, Literal, NamedTuple, TypeAlias, cast, get_args

from watchroom.features.budgets.rows import UsageTotal
from watchroom.features.policy.rules import policy_subject
from watchroom.features.requests.rows import PendingCall, call_subject, parse_arguments
from watchroom.kernel.rules.details import StepDetail, get_count, get_ints, get_list, get_object, get_text
from watchroom.model import CLIENT_CALLS, CONTINUE, PRESENCE, RESUME, Json, Row, parse_detail
from watchroom.validation import escape_unstorable

ATTACHMENT: Final = "attachment"
"""The key in the first step of a session that marks a client which a person started."""


def encode_first_record(session_id: str, began: str, metadata: Mapping[str, Json]) -> str:
    """Return the content of the first row of the session ``session_id``, before its first step.

    - ``began``: the time in ISO 8601
    - ``metadata``: kept unchanged
    """
    state: dict[str, Json] = {
        "session_id": session_id,
        "status": "idle",
        "created_at": began,
        "last_modified": began,
        "metadata": dict(metadata),
    }
    return json.dumps(state, ensure_ascii=False, separators=(",", ":"))


def encode_record(
    events: Sequence[Mapping[str, Json]],
    messages: Sequence[Mapping[str, Json]],
    changed: Mapping[str, Json],
    *,
    kept: int | None = None,
) -> str:
    """Return the content of a step's row.

    - ``events``, ``messages``: the events and messages that the step adds to the session
    - ``changed``: the other fields of the state that the step changed
    - ``kept``: the number of earlier messages that remain, None for all
    """
    record: dict[str, Json] = {"events": [*events], "messages": [*messages], "state": changed}
    if kept is not None:
        record["keep"] = kept
    return json.dumps(record, ensure_ascii=False, separators=(",", ":"))


def has_prompt(content: str) -> bool:
    """Whether the step with this ``content`` begins with a prompt."""
    record = parse_detail(content)
    messages = [each for each in get_list(record, "messages") if isinstance(each, Mapping)]
    return any(each.get("role") == "user" for each in messages)


def format_step_detail(
    step: StepDetail, *, last_processed: int | None = None, waiting: Sequence[int] = ()
) -> dict[str, Json]:
    """Return ``step`` as the detail of a row: the inverse of `StepDetail.of`.

    ``last_processed``: the newest row that the session has processed, except for the messages in ``waiting``.
    """
    detail: dict[str, Json] = {
        "status": step.status,
        "step": step.steps,
        "tokens": [step.input_tokens, step.output_tokens],
        "calls": step.calls,
        "seconds": round(step.seconds, 3),
    }
    if step.cache_read or step.cache_write:
        detail["cached"] = [step.cache_read, step.cache_write]
    optional: dict[str, Json] = {
        "cost": step.cost,
        "unpriced": step.unpriced,
        "estimated": step.estimated_tokens,
        "error": step.error,
    }
    detail.update((name, value) for name, value in optional.items() if value)
    if step.read is not None:
        detail["mail"] = step.read
    if last_processed is not None:
        detail["heard"] = last_processed
    if waiting:
        detail["waiting"] = list(waiting)
    return detail


def add_usage(step: StepDetail, used: UsageTotal) -> StepDetail:
    """Return ``step`` with ``used`` added to its session's usage."""
    return step._replace(
        input_tokens=step.input_tokens + used.input,
        output_tokens=step.output_tokens + used.output,
        cache_read=step.cache_read + used.cache_read,
        cache_write=step.cache_write + used.cache_write,
        cost=round(step.cost + used.cost, 9),
        unpriced=step.unpriced + used.unpriced,
    )


def spent_record(step: StepDetail) -> dict[str, Json]:
    """Return the usage of the session of ``step``, as the field ``spent`` of its state."""
    return {
        "input_tokens": step.input_tokens,
        "output_tokens": step.output_tokens,
        "cache_read_tokens": step.cache_read,
        "cache_write_tokens": step.cache_write,
        "estimated_tokens": step.estimated_tokens,
        "cost": step.cost,
        "unpriced_tokens": step.unpriced,
        "tool_calls": step.calls,
        "seconds": step.seconds,
    }


UNSUPERVISED: Final = "unsupervised"
"""A flag in the detail of a step: no hook reports the client's current work."""
_UNSUPERVISED_MARK: Final = f'"{UNSUPERVISED}": true'
_MARK: Final = f'"{PRESENCE}": "'
_PARKED_MARK: Final = '"status": "parked"'
HELD: Final = ("client", "budget")
_MAX_WORDS: Final = 400
_OPEN: Final = tuple(
    f'"status": "{each}"' for each in ("idle", "running", "waiting_for_human_input", "paused", "parked")
)
"""Statuses of an unfinished session as text in the detail of a step, because parsing many steps is slow."""


def presence_of(row: Row) -> str:
    """Return the presence lease of the process that runs the session of ``row``; empty if the row has none.

    The text of the detail is searched, because parsing the JSON of many steps is slow.
    """
    detail = row.detail_json
    start = detail.find(_MARK)
    if start < 0:
        return ""
    start += len(_MARK)
    return detail[start : detail.find('"', start)]


def takes_over(row: Row) -> bool:
    """Whether ``row`` is a note of a process that takes over the session. For a step, the lease identifies
    the process."""
    return row.version is None and row.tool == CONTINUE


def is_unfinished(step: Row) -> bool:
    """Whether the session whose newest step is ``step`` needs a process. A paused session also needs a
    process, because only a process can resume it."""
    return any(status in step.detail_json for status in _OPEN)


def is_unsupervised(step: Row) -> bool:
    """Whether ``step`` records that no hook reports its client's current work."""
    return _UNSUPERVISED_MARK in step.detail_json


PARKED: Final = "parked"
"""The key in the detail of a parked session's steps for its `Parking`."""
WHEN: Final = "when"
"""The key in the detail of a resume for its time: ``reset`` if the limit must have reset, else absent."""
AT_RESET: Final = "reset"


class Parking(NamedTuple):
    """The limit that a parked session waits for.

    - ``since``: the version of the step that parked the session.
    - ``resets``: the reset time in nanoseconds since the epoch, None if it is unknown.
    - ``text``: the client's words about the limit.
    - ``held``: why the session was not resumed after the reset, empty if the reset has not come. ``client``:
      its client cannot be woken. ``budget``: a budget is used up.
    """

    since: int
    resets: int | None = None
    text: str = ""
    held: str = ""


def parking_detail(parking: Parking) -> dict[str, Json]:
    """Return ``parking`` as the value of `PARKED` in a row's detail, without empty fields."""
    return {name: value for name, value in parking._asdict().items() if value not in ("", None)}


def parking_of(step: Row) -> Parking | None:
    """Return the limit that the session of ``step`` waits for; None if the session is not parked."""
    if _PARKED_MARK not in step.detail_json:
        return None
    fields = get_object(step.detail, PARKED)
    resets = get_count(fields, "resets") or None
    held = get_text(fields, "held")
    return Parking(
        get_count(fields, "since"),
        resets,
        get_text(fields, "text")[:_MAX_WORDS],
        held if held in HELD else "",
    )


def is_leave(row: Row) -> bool:
    """Whether ``row`` permits to resume a parked session once, when its limit resets."""
    return row.tool == RESUME and row.detail.get(WHEN) == AT_RESET


FORK_SESSION: Final = "fork_session"
"""The tool of a person's note that a client continues a copy of the session. See `fork_detail`."""


def fork_detail(agent: str, tree: str, row: int) -> dict[str, Json]:
    """Return the detail of the note that ``agent`` continues a copy of a session.

    - ``tree``: the id of its working tree
    - ``row``: the newest row of the session that was copied
    """
    return {"agent": agent, "tree": tree, "row": row}


HANDED_OVER: Final = "tell_news"
"""The tool of a note that messages were handed over. Its path is the receiver: an agent or a session."""
MESSAGES: Final = "messages"
"""The key in the note's detail for the rows of the messages."""


def messages_of(note: Row) -> list[int]:
    """Return the row numbers of the messages that ``note`` records as handed over; empty for any other
    row."""
    return get_ints(note.detail, MESSAGES) if note.tool == HANDED_OVER else []


CallKind: TypeAlias = Literal["edit", "command", "read", "other"]
"""The kind of a call. An ``edit`` writes files that its arguments name."""
CallOutcome: TypeAlias = Literal["ok", "failed", "denied"]

CALL: Final = "call"
"""The key in a row's detail of the call that ends with the row."""
WRITING_TOOL: Final = re.compile(r"write|edit|create|delete|move|patch|insert|replace", re.IGNORECASE)
"""Matches the names of tools that write files."""
OWN_TOOLS: Final = "mcp__watchroom__"
"""The prefix of Watchroom's own tools, whose calls have their own rows."""
_READING_TOOL: Final = re.compile(r"read|grep|glob|ls$|list|search|find|view|fetch|think", re.IGNORECASE)
PATCH: Final = "*** Begin Patch"
"""The beginning of a patch in the format of Codex."""
_MAX_NAME: Final = 100
_MAX_ABOUT: Final = 200
_MAX_REASON: Final = 200
_MAX_FOLDER: Final = 4096
_MAX_PATH_CHARACTERS: Final = 8000
"""Maximum total characters of the paths in a row's detail. At least one path is always kept."""


class ClientCall(NamedTuple):
    """A finished call of a client's own tool. The row that ends it is a step of the agent's session.

    - ``tool``: the client's name of the tool.
    - ``about``: one line, for example a path or a command.
    - ``paths``: the files that it wrote or would have written, relative to ``folder`` if they are in it.
    - ``left_out``: the number of further files, at least.
    - ``folder``: the folder in which the session began, empty if unknown.
    - ``error``, ``reason``: the code and text of the refusal, empty if the call was not refused.
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
    """Describe a call of a client's tool. None if the tool is Watchroom's or has no name.

    - ``arguments``: JSON text.
    - ``folder``: the folder in which the session began.
    - ``cwd``: the client's current folder, default ``folder``.
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
    subject_line = next(iter(about), "") or call_subject(PendingCall("", tool, arguments))
    return ClientCall(
        escape_unstorable(tool, _MAX_NAME),
        kind,
        escape_unstorable(subject_line.strip().split("\n", 1)[0], _MAX_ABOUT),
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
    """Return ``call`` as the value of `CALL` in a row's detail, without empty fields."""
    fields: dict[str, Json] = {**call._asdict(), "paths": list(call.paths)}
    return {name: value for name, value in fields.items() if value not in ("", 0, [])}


def client_call(row: Row) -> ClientCall | None:
    """Return the call of a client's own tool that ends with ``row``; None for any other row."""
    if row.zone != "session" or row.tool not in CLIENT_CALLS or row.version is None:
        return None
    return _parse(row.detail_json)


@lru_cache(maxsize=1024)
def _parse(detail_json: str) -> ClientCall:
    # The dashboard parses each row several times for each frame.
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
