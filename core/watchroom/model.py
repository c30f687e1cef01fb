"""The vocabulary: a row of the journal, and the drafts that become rows.

Hundreds of thousands of rows are read before the first paint, so rows are named tuples: immutable, typed, and
cheap. Input from outside is validated before it gets here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, Literal, NamedTuple, NoReturn, TypeAlias

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"


def _refuse(self: object, *given: object, **named: object) -> NoReturn:
    raise TypeError(f"{type(self).__name__} cannot be changed: it is part of a session's state")


class FrozenDict(dict[str, Json]):
    """A JSON object that cannot be changed. An attempt raises TypeError."""

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __copy__(self) -> FrozenDict:
        return self

    def __deepcopy__(self, memo: object) -> FrozenDict:
        return self

    def __reduce__(self) -> tuple[type[FrozenDict], tuple[dict[str, Json]]]:
        return FrozenDict, (dict(self),)


class FrozenList(list[Json]):
    """A JSON array that cannot be changed. An attempt raises TypeError."""

    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse

    def __copy__(self) -> FrozenList:
        return self

    def __deepcopy__(self, memo: object) -> FrozenList:
        return self

    def __reduce__(self) -> tuple[type[FrozenList], tuple[list[Json]]]:
        return FrozenList, (list(self),)


def frozen_json(value: Json) -> Json:
    """Return a copy of ``value`` that is immutable at every depth. It is still a dict, a list or a plain
    value."""
    if isinstance(value, Mapping):
        return FrozenDict({key: frozen_json(each) for key, each in value.items()})
    if isinstance(value, Sequence) and not isinstance(value, str):
        return FrozenList(frozen_json(each) for each in value)
    return value


Zone: TypeAlias = Literal[
    "private",
    "handoff",
    "collab",
    "board",
    "lease",
    "config",
    "workspace",
    "session",
    "request",
    "realtime",
    "task",
    "file",
    "command",
    "agent",
    "buffer",
    "token",
    "revert",
    "person",
    "settings",
    "tree",
    "repo",
    "grant",
]
"""The kinds of paths. `watchroom.kernel.zones.ZONES` has a record for each."""


Outcome: TypeAlias = Literal["ok", "conflict", "denied", "failed"]
ActorKind: TypeAlias = Literal["agent", "human", "outside", "system"]

SessionStatus: TypeAlias = Literal[
    "idle", "running", "waiting_for_human_input", "paused", "parked", "done", "error", "cancelled"
]
"""The status of an agent's session (RUN). ``parked``: it waits until a rate or usage limit resets."""
ENDED: Final[frozenset[SessionStatus]] = frozenset({"done", "error", "cancelled"})
"""The statuses in which a session takes no further step by itself."""

OUTCOMES: Final[tuple[Outcome, ...]] = ("ok", "conflict", "denied", "failed")
UNCHECKED: Final = -1
"""An expected version that means: write, whatever the current version is."""

OUTSIDE: Final = "outside"
"""The actor of an external edit."""
SYSTEM: Final = "system"
"""The actor of rows that Watchroom itself records."""
HUMAN_PREFIX: Final = "human:"

RESOLVE: Final = "resolve_conflict"
DISMISS: Final = "dismiss_conflict"
REVERT: Final = "revert_outside_edit"
REVERT_WORK: Final = "revert_work"
"""The tool with which people revert agents' work. The detail of a version of a path has the ``revert``, the
versions that it ``took`` and ``gave``, and the path's checksum ``before`` (null: no file)."""
LOST: Final = "process_lost"
"""The tool of rows about processes that ended without releasing their lease. The path is the lease's id."""
CALL: Final = "call"
"""The field of a row's detail with the id of the tool call that made the row."""
OPERATION: Final = "operation"
"""The field of a row's detail with the id of the operation on a buffer that made the row."""
PRESENCE: Final = "presence"
"""The field of a row's detail with the presence lease of the process that runs the row's session, task or
command."""
NOTICES: Final = "notices"
"""The field of a row's detail with the notices of changes by others in the result of its call."""
CHECKOUT: Final = "checkout"
"""The field in the detail of an external edit with the checkout in which it was made."""
MACHINE: Final = "machine"
"""The field with the name of the checkout's machine."""
SETTLING_TOOLS: Final = (RESOLVE, DISMISS, REVERT)
"""The tools with which people settle conflicts."""
SETTLING_NOTES: Final = (DISMISS, REVERT)
"""The tools with which people settle conflicts without a new version."""
SEEN: Final = "mark_as_seen"
"""The tool with which a person marks a need as seen."""

SET_BUDGET: Final = "set_budget"
BUDGET_WARNING: Final = "budget_warning"
"""The tool of rows about budgets that are almost used up."""
BUDGET_REACHED: Final = "budget_reached"
"""The tool of rows about budgets that are used up. They name the request to people."""

CHECKPOINT: Final = "journal_checkpoint"
"""The tool of a journal seal: the tree over all earlier rows."""
PEOPLE_LOST: Final = "people_lost"
"""The tool of a row that reports deleted enrolment rows."""
PEOPLE_FORGOTTEN: Final = "forget_people"
"""The tool with which a person confirms that the deletion of enrolments was intended."""
IDENTIFY: Final = "identify_workspace"
"""The tool of the row that gives a workspace its id."""
OF_JOURNAL: Final = (CHECKPOINT, IDENTIFY)
"""The tools of Watchroom's rows about the journal itself. Nobody needs to see them."""

BEGIN_CHECK: Final = "begin_check"
END_CHECK: Final = "end_check"
"""The tools of Watchroom's notes about checks of agents that say that they are done. The path is the agent's
id; see `watchroom.features.checks.rows`."""

SEND_ALERT: Final = "send_alert"
"""The tool of rows about alerts, sent or failed. The path is the target's name."""

RequestKind: TypeAlias = Literal["approve", "prompt", "select"]
"""The kind of a request to a person: to approve calls, to write an answer, or to choose."""
ASK: Final = "ask_person"
"""The tool of a request's first row: an agent asks a person."""
ANSWER: Final = "answer_request"
WITHDRAW: Final = "withdraw_request"
"""The tool of a row that ends a request without an answer."""
GRANT: Final = "grant_calls"
"""The tool with which a person allows calls like one that was shown."""
USE_GRANT: Final = "use_grant"
"""The tool of Watchroom's row for a call that a grant allows. The answer to the request names the row."""
REVOKE_GRANT: Final = "revoke_grant"
STREAM: Final = "llm_stream"
"""The tool of a note within a session's step: a piece of the answer that a model is streaming."""
CONTINUE: Final = "continue_session"
"""The tool of a session's row that is not a step: another process continues the session.

It is a version, which increases the session's version number. If the session has ended or is run by a client,
it is a note.
"""
PRINTED: Final = "command_output"
"""The tool of a note with a piece of the output of a running command."""
CLIENT_CALL: Final = "client_call"
"""The tool of a session's row that ends a call of a client's own tool. The detail has the call; see
`watchroom.features.sessions.rows`."""
CLIENT_DENIED: Final = "client_call_denied"
"""The tool of a session's row that ends a call of a client's own tool if a rule or a person refused the
call."""
CLIENT_CALLS: Final = (CLIENT_CALL, CLIENT_DENIED)
PAUSE: Final = "pause_agent"
RESUME: Final = "resume_agent"
CANCEL: Final = "cancel_agent"
STOP_AGENTS: Final = "stop_agents"
RELEASE_AGENTS: Final = "release_agents"
"""The tools with which a person pauses agents together, and resumes them."""
MESSAGE: Final = "send_message"
SPAWN: Final = "spawn_agent"
TERMINATE: Final = "terminate_agent"
END_TASK: Final = "end_task"
WRITE_FILE: Final = "write_file"
USER: Final = "user"
"""The receiver of agents' messages to people."""
CONTROLS: Final = (PAUSE, RESUME, CANCEL, MESSAGE)
"""The tools with which people steer an agent's sessions."""

MAX_ROW: Final = 2**63 - 1
"""The largest possible row number."""
MAX_TEXT_BYTES: Final = 10 * 1024 * 1024
_FIRST_SECOND: Final = -62_135_596_800
_LAST_SECOND: Final = 253_402_300_799


MAX_STORED_NESTING: Final = 200
"""Maximum depth of arrays and objects in the detail or the content of a row. Twice the maximum for a call's
arguments, because rows contain such arguments."""


def parse_object(text: str) -> Mapping[str, Json] | None:
    """Return the JSON object in ``text``. Return None if the text is damaged, is not an object, or is nested
    deeper than `MAX_STORED_NESTING`.

    Lone halves of surrogate pairs become U+FFFD, because they can be neither stored nor printed.
    """
    try:
        found: Json = json.loads(text)
        if not isinstance(found, dict) or _is_too_deep(text, found):
            return None
        if "\\ud" in text or "\\uD" in text:
            plain = json.dumps(found, ensure_ascii=False).encode("utf-16", "surrogatepass")
            found = json.loads(plain.decode("utf-16", "replace"))
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _is_too_deep(text: str, value: Json) -> bool:
    # Most texts are shorter than this number of brackets, and counting brackets is faster than walking the
    # value.
    if len(text) <= 2 * MAX_STORED_NESTING or text.count("{") + text.count("[") <= MAX_STORED_NESTING:
        return False
    return is_nested_deeper(value, MAX_STORED_NESTING)


def is_nested_deeper(value: object, most: int) -> bool:
    """Whether arrays and objects in ``value`` are nested deeper than ``most`` levels."""
    level = [value]
    for _ in range(most):
        level = [inner for each in level for inner in _members_of(each)]
        if not level:
            return False
    return True


def _members_of(value: object) -> Iterable[object]:
    if isinstance(value, Mapping):
        return value.values()
    return value if isinstance(value, list) else ()


def parse_detail(text: str) -> Mapping[str, Json]:
    """Return the object in ``text``, a row's `Row.detail_json`; empty if it is damaged."""
    return (parse_object(text) or {}) if text else {}


class Row(NamedTuple):
    """One operation, as recorded in the journal. `Journal.content` returns its content separately.

    - ``time``: nanoseconds since the epoch, UTC.
    - ``version``: the version that the row made. Only rows that changed a path have one.
    - ``base``: the version that the actor read or started from; -1 if unknown.
    - ``sha256``, ``size``: the checksum and the size (bytes of UTF-8) of the content, accepted or refused.
      None without content.
    """

    seq: int
    time: int
    actor: str
    tool: str
    zone: Zone
    path: str
    version: int | None
    base: int | None
    outcome: Outcome
    error: str
    message: str
    sha256: str | None
    size: int | None
    detail_json: str

    @property
    def detail(self) -> Mapping[str, Json]:
        """Additional data of the operation; empty if its text is damaged. Read single values with
        `watchroom.kernel.rules.details`, because any of them can be missing or of another type."""
        return parse_detail(self.detail_json)

    @property
    def kind(self) -> ActorKind:
        return actor_kind(self.actor)

    @property
    def deleted(self) -> bool:
        """Whether this version deletes the path."""
        return self.version is not None and self.sha256 is None

    @property
    def timestamp(self) -> str:
        """The time as ISO 8601 in UTC, to the millisecond."""
        return timestamp(self.time)


class Condition(NamedTuple):
    """A condition that must hold when a `Write` becomes a row: row ``seq`` is the head of ``path`` in
    ``zone``.

    ``seq``: 0 means that the path never had a version; -1 never holds. ``error``: the row's error if the
    condition does not hold.
    """

    zone: Zone
    path: str
    seq: int
    error: str = "approval_outdated"


class Write(NamedTuple):
    """A draft of a row that makes the next version of a path, if ``expected`` is still the current version.

    - ``content``: None deletes the path.
    - ``expected``: 0 if the path must not exist yet, `UNCHECKED` for any current version.
    - ``conditions``: if one does not hold, the row is a failed row.
    - ``key``: makes the draft idempotent. A second draft with this key by the same actor makes no row.
    """

    actor: str
    tool: str
    zone: Zone
    path: str
    content: str | None
    message: str = ""
    expected: int = UNCHECKED
    detail: Mapping[str, Json] | None = None
    conditions: tuple[Condition, ...] = ()
    key: str = ""


class Note(NamedTuple):
    """A draft of a row that changes no version: a read, a refusal, an acknowledgement.

    - ``durable``: if False, the note does not cause a disk sync, but is committed together with the next
      commit.
    - ``key``: makes it idempotent, as in a `Write`.
    """

    actor: str
    tool: str
    zone: Zone
    path: str
    outcome: Outcome = "ok"
    error: str = ""
    message: str = ""
    content: str | None = None
    base: int | None = None
    sha256: str | None = None
    size: int | None = None
    detail: Mapping[str, Json] | None = None
    durable: bool = True
    key: str = ""


Draft: TypeAlias = Write | Note


class Appended(NamedTuple):
    """The outcome of a draft: its row, and for a `Write` the head of the path before it."""

    row: Row
    head: Row | None


def actor_kind(actor: str) -> ActorKind:
    """Return whether ``actor`` is an agent, a person (``human:NAME``), an external editor, or Watchroom
    itself."""
    if actor.startswith(HUMAN_PREFIX):
        return "human"
    if actor == OUTSIDE:
        return "outside"
    return "system" if actor == SYSTEM else "agent"


def is_step(row: Row) -> bool:
    """Whether ``row`` only reports the progress of a session or a command. Their effects on files have
    separate rows.

    Rows about the journal itself also count as steps. The end of a call of a client's own tool does not,
    because no other row records the call.
    """
    if row.zone == "command":
        return row.tool == PRINTED
    if row.zone == "workspace":
        return is_of_journal(row)
    if row.zone != "session" or row.tool in CLIENT_CALLS:
        return False
    return row.outcome == "ok" and not row.actor.startswith(HUMAN_PREFIX)


def outcome_of(row: Row) -> Outcome:
    """Return the outcome of the operation of ``row``. The row of a refused call of a client's own tool is
    itself accepted, as a step of the session."""
    is_refusal = row.tool == CLIENT_DENIED and row.zone == "session" and row.outcome == "ok"
    return "denied" if is_refusal else row.outcome


def is_of_journal(row: Row) -> bool:
    """Whether ``row`` is only about the journal itself."""
    return row.tool in OF_JOURNAL and row.actor == SYSTEM and row.outcome == "ok"


def timestamp(time_ns: int) -> str:
    """Return ``time_ns`` (nanoseconds since the epoch) as ISO 8601 in UTC, to the millisecond.

    A time outside of the years 1 to 9999, which a file can have, becomes the nearest second within them.
    """
    return utc_datetime(time_ns).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def utc_datetime(time_ns: int) -> datetime:
    """Return ``time_ns`` (nanoseconds since the epoch) to the microsecond, rounded down. Times outside of the
    years 1 to 9999 are treated as in `timestamp`."""
    # A float has too few digits, and would be rounded up to a later moment.
    seconds, rest = divmod(time_ns, 1_000_000_000)
    within = min(max(seconds, _FIRST_SECOND), _LAST_SECOND)
    moment = datetime.fromtimestamp(within, UTC)
    return moment.replace(microsecond=rest // 1000) if within == seconds else moment


def row_as_json(row: Row) -> dict[str, Json]:
    """Return ``row`` as the command line prints it: without empty fields, and with the time as ISO 8601."""
    fields: dict[str, Json] = {**row._asdict(), "time": row.timestamp, "kind": row.kind}
    del fields["detail_json"]
    if row.detail_json:
        fields["detail"] = row.detail
    return {name: value for name, value in fields.items() if value not in (None, "")}
