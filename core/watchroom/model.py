"""The vocabulary: a row of the journal, and the drafts that become rows.

Rows are read by the hundred thousand and must load before anything is painted, so they are named
tuples: immutable, typed, and cheap. What comes from outside is validated before it gets here.
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
    """A JSON object that cannot be changed: whoever tries gets TypeError."""

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __copy__(self) -> FrozenDict:
        return self

    def __deepcopy__(self, memo: object) -> FrozenDict:
        return self

    def __reduce__(self) -> tuple[type[FrozenDict], tuple[dict[str, Json]]]:
        return FrozenDict, (dict(self),)


class FrozenList(list[Json]):
    """A JSON array that cannot be changed: whoever tries gets TypeError."""

    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse

    def __copy__(self) -> FrozenList:
        return self

    def __deepcopy__(self, memo: object) -> FrozenList:
        return self

    def __reduce__(self) -> tuple[type[FrozenList], tuple[list[Json]]]:
        return FrozenList, (list(self),)


def frozen_json(value: Json) -> Json:
    """A copy of ``value`` that cannot be changed at any depth; still a dict, a list or a plain value."""
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
]
"""The kinds of paths. `watchroom.kernel.zones.ZONES` has a record for each."""


Outcome: TypeAlias = Literal["ok", "conflict", "denied", "failed"]
ActorKind: TypeAlias = Literal["agent", "human", "outside", "system"]

SessionStatus: TypeAlias = Literal[
    "idle", "running", "waiting_for_human_input", "paused", "done", "error", "cancelled"
]
"""How far an agent's session is (RUN)."""
ENDED: Final[frozenset[SessionStatus]] = frozenset({"done", "error", "cancelled"})
"""A session that stands so takes no further step of itself."""

OUTCOMES: Final[tuple[Outcome, ...]] = ("ok", "conflict", "denied", "failed")
UNCHECKED: Final = -1
"""As an expected version: write whatever the current version is."""

OUTSIDE: Final = "outside"
"""The actor of a change that was made to the files behind the journal's back."""
SYSTEM: Final = "system"
"""The actor of what Watchroom itself records."""
HUMAN_PREFIX: Final = "human:"

RESOLVE: Final = "resolve_conflict"
DISMISS: Final = "dismiss_conflict"
REVERT: Final = "revert_outside_edit"
REVERT_WORK: Final = "revert_work"
"""The tool by which people revert what agents did. The detail of a version of a path names the ``revert``,
which versions it ``took`` and ``gave``, and the checksum that the path had ``before`` (null: no file)."""
LOST: Final = "process_lost"
"""The tool by which Watchroom says that a process is not there any more that had not said good-bye; the path
is the id of its lease."""
CALL: Final = "call"
"""The field of a row's detail with the id of the tool call that made the row."""
OPERATION: Final = "operation"
"""The field of a row's detail with the id of the operation on a buffer that made the row."""
PRESENCE: Final = "presence"
"""The name in a row's detail: the lease of the process that runs what the row tells of."""
CHECKOUT: Final = "checkout"
"""The name in the detail of an edit made by hand: in which of a workspace's checkouts it was made."""
MACHINE: Final = "machine"
"""And of the name of the machine where that checkout is."""
SETTLING_TOOLS: Final = (RESOLVE, DISMISS, REVERT)
"""The tools by which people settle conflicts."""
SETTLING_NOTES: Final = (DISMISS, REVERT)
"""The tools by which a person settles a conflict without a new version."""
SEEN: Final = "mark_as_seen"
"""The tool by which a person says that something needs nobody any more."""

SET_BUDGET: Final = "set_budget"
BUDGET_WARNING: Final = "budget_warning"
"""The tool by which Watchroom says that most of a budget is used."""
BUDGET_REACHED: Final = "budget_reached"
"""The tool by which Watchroom says that a budget is used up, and which request asks people about it."""

CHECKPOINT: Final = "journal_checkpoint"
"""The tool by which Watchroom says what the tree over all rows before was."""
PEOPLE_LOST: Final = "people_lost"
"""The tool by which Watchroom says that rows are gone by which people were enrolled."""
PEOPLE_FORGOTTEN: Final = "forget_people"
"""The tool by which a person says that this was meant."""
IDENTIFY: Final = "identify_workspace"
"""The tool of the row that gives a workspace its id."""
OF_JOURNAL: Final = (CHECKPOINT, IDENTIFY)
"""The tools by which Watchroom says something of the journal itself, of which nobody has to know."""

SEND_ALERT: Final = "send_alert"
"""The tool by which Watchroom says that it sent an alert, or could not; the path is the target's name."""

RequestKind: TypeAlias = Literal["approve", "prompt", "select"]
"""What a request asks of a person: to approve calls, to write an answer, or to choose."""
ASK: Final = "ask_person"
"""The tool of a request's first row: an agent asks."""
ANSWER: Final = "answer_request"
WITHDRAW: Final = "withdraw_request"
"""A request ended without an answer."""
STREAM: Final = "llm_stream"
"""The tool of a note within a session's step: a piece of what a model is just saying."""
CONTINUE: Final = "continue_session"
"""The tool of a session's row that is no step: another process goes on with it. A version, which moves the
number of the session; where the session has ended, or a client runs it, a note."""
PRINTED: Final = "command_output"
"""The tool of a note with a piece of what a command prints while it runs."""
CLIENT_CALL: Final = "client_call"
"""The tool of a session's row with which a call of a client's own tool ends. The detail has the call; see
`watchroom.features.sessions.rows`."""
CLIENT_DENIED: Final = "client_call_denied"
"""The tool of such a row if the call was refused: by a rule or by a person."""
CLIENT_CALLS: Final = (CLIENT_CALL, CLIENT_DENIED)
PAUSE: Final = "pause_agent"
RESUME: Final = "resume_agent"
CANCEL: Final = "cancel_agent"
STOP_AGENTS: Final = "stop_agents"
RELEASE_AGENTS: Final = "release_agents"
"""The tools by which a person pauses agents together, and lets these go on."""
MESSAGE: Final = "send_message"
SPAWN: Final = "spawn_agent"
TERMINATE: Final = "terminate_agent"
END_TASK: Final = "end_task"
WRITE_FILE: Final = "write_file"
USER: Final = "user"
"""To whom an agent writes that means the people who watch."""
CONTROLS: Final = (PAUSE, RESUME, CANCEL, MESSAGE)
"""The tools by which people steer an agent's sessions."""

MAX_ROW: Final = 2**63 - 1
"""The largest number that a row can have."""
MAX_TEXT_BYTES: Final = 10 * 1024 * 1024
_FIRST_SECOND: Final = -62_135_596_800
_LAST_SECOND: Final = 253_402_300_799


MAX_STORED_NESTING: Final = 200
"""Maximum depth of arrays and objects in the detail or the content of a row. Twice the maximum for a call's
arguments, because what a row stores contains them."""


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
    # Most texts are shorter than so many brackets, and to count these is quicker than to walk the value.
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
    """Return the object in ``text``, a row's `Row.detail_json`; an empty one if it is damaged."""
    return (parse_object(text) or {}) if text else {}


class Row(NamedTuple):
    """One operation, as the journal keeps it. Its content is fetched apart, with `Journal.content`.

    ``time`` is nanoseconds since the epoch, UTC. ``version`` is the version that the row made: only
    rows that changed something have one. ``base`` is the version that the actor started from or
    read (-1: it did not say). ``sha256`` and ``size`` (bytes of UTF-8) describe the content that the
    row carries, whether it was accepted or refused; both are None where it carries none.
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
        """What else the operation records; empty if its text is damaged. Read single values with
        `watchroom.kernel.rules.details`: any of them can be missing or of another type."""
        return parse_detail(self.detail_json)

    @property
    def kind(self) -> ActorKind:
        return actor_kind(self.actor)

    @property
    def deleted(self) -> bool:
        """Whether this version of the path is its absence."""
        return self.version is not None and self.sha256 is None

    @property
    def timestamp(self) -> str:
        """The time as ISO 8601 in UTC, to the millisecond."""
        return timestamp(self.time)


class Condition(NamedTuple):
    """What must still be so when a `Write` becomes a row: that row ``seq`` is the head of ``path`` in
    ``zone`` (0: that the path never had a version; -1 never holds). ``error`` is the row's where not."""

    zone: Zone
    path: str
    seq: int
    error: str = "approval_outdated"


class Write(NamedTuple):
    """A draft of a row that makes the next version of a path, if ``expected`` still is the current one.

    ``content`` None deletes. ``expected`` 0 means that the path must not exist yet, `UNCHECKED` that
    any current version will do. Where one of ``conditions`` does not hold, the row is a failed one. A
    ``key`` makes the draft idempotent: given again by the same actor, it makes no second row.
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
    """A draft of a row that changes no version: a reading, a refusal, an acknowledgement.

    A note that is not ``durable`` is not worth a disk sync of its own: it rides with the next commit. A
    ``key`` makes it idempotent, as that of a `Write`.
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
    """What became of a draft: its row, and for a `Write` the head of the path just before it."""

    row: Row
    head: Row | None


def actor_kind(actor: str) -> ActorKind:
    """Whether ``actor`` is an agent, a person (``human:NAME``), somebody outside, or Watchroom itself."""
    if actor.startswith(HUMAN_PREFIX):
        return "human"
    if actor == OUTSIDE:
        return "outside"
    return "system" if actor == SYSTEM else "agent"


def is_step(row: Row) -> bool:
    """Whether ``row`` only tells how a session or a command goes on: what they do to files has rows of its
    own. So does what Watchroom says of the journal itself. The end of a call of a client's own tool is no
    step here: no other row records the call."""
    if row.zone == "command":
        return row.tool == PRINTED
    if row.zone == "workspace":
        return is_of_journal(row)
    if row.zone != "session" or row.tool in CLIENT_CALLS:
        return False
    return row.outcome == "ok" and not row.actor.startswith(HUMAN_PREFIX)


def outcome_of(row: Row) -> Outcome:
    """What came of the operation of ``row``. The row of a refused call of a client's own tool is a step of
    the session, which is accepted."""
    is_refusal = row.tool == CLIENT_DENIED and row.zone == "session" and row.outcome == "ok"
    return "denied" if is_refusal else row.outcome


def is_of_journal(row: Row) -> bool:
    """Whether ``row`` only says something of the journal itself."""
    return row.tool in OF_JOURNAL and row.actor == SYSTEM and row.outcome == "ok"


def timestamp(time_ns: int) -> str:
    """``time_ns`` (nanoseconds since the epoch) as ISO 8601 in UTC, to the millisecond. What lies beyond the
    years 1 to 9999, as a file's time may, is the nearest second within."""
    return utc_datetime(time_ns).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def utc_datetime(time_ns: int) -> datetime:
    """``time_ns`` (nanoseconds since the epoch) to the microsecond, never later; within the years 1 to 9999,
    as in `timestamp`."""
    # A float has not the digits: it would round up to a moment after the one that is meant.
    seconds, rest = divmod(time_ns, 1_000_000_000)
    within = min(max(seconds, _FIRST_SECOND), _LAST_SECOND)
    moment = datetime.fromtimestamp(within, UTC)
    return moment.replace(microsecond=rest // 1000) if within == seconds else moment


def row_as_json(row: Row) -> dict[str, Json]:
    """``row`` as the command line prints it: without empty fields, the time as ISO 8601."""
    fields: dict[str, Json] = {**row._asdict(), "time": row.timestamp, "kind": row.kind}
    del fields["detail_json"]
    if row.detail_json:
        fields["detail"] = row.detail
    return {name: value for name, value in fields.items() if value not in (None, "")}
