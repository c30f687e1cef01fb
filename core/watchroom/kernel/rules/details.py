"""Typed access to the details of rows, for code that shows rows without parsing JSON. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final, Literal, NamedTuple, TypeAlias, cast, get_args

from watchroom.kernel.zones import ON_DISK_FIRST
from watchroom.model import END_TASK, WITHDRAW, Json, RequestKind, Row, SessionStatus, parse_detail

CommandEnding: TypeAlias = Literal["running", "exited", "timed_out", "stopped", "interrupted", "failed"]
"""The state of a command: running, ended by itself, timed out, stopped, interrupted because its process died,
or not started."""
_CUT_OFF: tuple[CommandEnding, ...] = ("timed_out", "stopped", "interrupted")
TaskOutcome: TypeAlias = Literal["done", "failed", "cancelled"]
MAX_AMOUNT: Final = 1e15
"""Maximum accepted number in a detail, for tokens, seconds and US dollars."""
_MAX_INT: Final = 2**63 - 1
SESSION_STATUSES: Final[tuple[SessionStatus, ...]] = get_args(SessionStatus)
TASK_OUTCOMES: Final[tuple[TaskOutcome, ...]] = get_args(TaskOutcome)
REQUEST_KINDS: Final[tuple[RequestKind, ...]] = get_args(RequestKind)
ANSWER_OUTCOMES: Final = ("approved", "rejected", "mixed", "edited", "replied", "chosen", "expired")
"""The outcomes of an answered request, as recorded by `watchroom.features.requests.rows.answer_outcome`."""
WITHDRAWAL_OUTCOMES: Final = ("expired", "withdrawn")
"""The outcomes of a request without an answer."""


class StepDetail(NamedTuple):
    """The state of a session, as recorded in one of its steps.

    - ``status``, ``steps``: the status, and the number of steps.
    - ``calls``, ``seconds``: the number of tool calls, and the working time.
    - ``estimated``: the part of the tokens that is estimated, and not counted by a provider.
    - ``cost``: US dollars, for all tokens except the ``unpriced`` tokens.
    - ``error``: the code of the error that stopped the session.
    - ``read``: the row of the message that the step received.
    """

    status: SessionStatus
    steps: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    estimated_tokens: int = 0
    calls: int = 0
    seconds: float = 0.0
    error: str = ""
    read: int | None = None
    cache_read: int = 0
    cache_write: int = 0
    cost: float = 0.0
    unpriced: int = 0

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    @classmethod
    def of(cls, step: Row) -> StepDetail:
        """Return the detail of ``step``."""
        detail = step.detail
        given, said = _pair(detail, "tokens")
        cache_read, cache_write = _pair(detail, "cached")
        return cls(
            session_status(step),
            get_count(detail, "step"),
            given,
            said,
            get_count(detail, "estimated"),
            get_count(detail, "calls"),
            get_float(detail, "seconds"),
            get_text(detail, "error"),
            get_int(detail, "mail"),
            cache_read,
            cache_write,
            get_float(detail, "cost"),
            get_count(detail, "unpriced"),
        )


class CommandDetail(NamedTuple):
    """The state of a command. ``exit_code``: for a command that ended by itself."""

    ending: CommandEnding
    exit_code: int | None = None

    @property
    def is_failure(self) -> bool:
        return self.ending not in ("running", "exited") or bool(self.exit_code)

    @classmethod
    def of(cls, row: Row) -> CommandDetail:
        """Return the detail of ``row``, a row of a command."""
        detail, code = row.detail, get_int(row.detail, "exit_code")
        cut_off = next((each for each in _CUT_OFF if detail.get(each)), None)
        if cut_off is not None:
            return cls(cut_off, code)
        if code is not None:
            return cls("exited", code)
        return cls("failed" if row.version == 2 else "running")


class DocumentEdit(NamedTuple):
    """The edit of a realtime document by a row.

    - ``op``, ``field``: the operation, and the field.
    - ``added``, ``removed``: numbers of characters.
    - ``amount``: the change of a counter.
    - ``key``, ``element``, ``value``: as short JSON, None if the edit has none.
    """

    op: str
    field: str
    added: int = 0
    removed: int = 0
    amount: int = 0
    key: str | None = None
    element: str | None = None
    value: str | None = None

    @classmethod
    def of(cls, row: Row) -> DocumentEdit:
        """Return the detail of ``row``, a row of a document."""
        detail = row.detail
        key, element = detail.get("key"), detail.get("element")
        return cls(
            get_text(detail, "op"),
            get_text(detail, "field"),
            get_count(detail, "added"),
            get_count(detail, "removed"),
            get_count(detail, "amount"),
            None if key is None else str(key),
            None if element is None else str(element),
            str(detail["value"]) if "value" in detail else None,
        )


class BufferDetail(NamedTuple):
    """A row of a buffer.

    - ``name``: the name of the buffer.
    - ``operation``: the operation (``replace``, ``flush``), or the whole name of the tool if it belongs to no
      buffer.
    - ``is_closed``: whether the row closes the buffer.
    - ``waits_for_choice``: whether the buffer waits for a choice after the row.
    """

    name: str
    operation: str
    is_closed: bool
    waits_for_choice: bool

    @classmethod
    def of(cls, row: Row) -> BufferDetail:
        """Return the detail of ``row``, a row of a buffer."""
        name = row.path.rpartition("/")[2]
        waits = row.version is not None and get_int(row.detail, "pending") == row.version
        return cls(name, row.tool.removeprefix(f"{name}_"), row.deleted, waits)


def request_number(row: Row) -> int:
    """The number of the request that ``row`` belongs to."""
    return get_int(row.detail, "request") or row.seq


def session_status(step: Row) -> SessionStatus:
    """Return the status of the session after ``step``; ``idle`` if the status is missing or unknown."""
    return parse_status(step.detail_json)


@lru_cache(maxsize=1024)
def parse_status(step_detail: str) -> SessionStatus:
    """Return the session status in ``step_detail``, the JSON detail of a step; ``idle`` if the status is
    missing or unknown."""
    # The dashboard calls this several times for each agent in each frame.
    status = parse_detail(step_detail).get("status")
    return status if status in SESSION_STATUSES else "idle"


def request_kind(row: Row) -> RequestKind:
    """Return the kind of answer that ``row``, the first row of a request, asks for; ``prompt`` if the kind is
    missing or unknown."""
    kind = row.detail.get("kind")
    return kind if kind in REQUEST_KINDS else "prompt"


def request_outcome(row: Row) -> str:
    """Return the outcome of the request that ``row`` closes, as one word. Empty if the row opens the request,
    or if its outcome is not valid for its tool."""
    outcome = get_text(row.detail, "outcome")
    return outcome if outcome in (WITHDRAWAL_OUTCOMES if row.tool == WITHDRAW else ANSWER_OUTCOMES) else ""


def task_end_status(row: Row) -> TaskOutcome:
    """Return the outcome of the task that ``row`` ends: ``done``, ``failed`` or ``cancelled``."""
    status = row.detail.get("status", "done")
    # A writer without the tools can end a task, but cannot mark it as done.
    return status if row.tool == END_TASK and status in ("done", "failed") else "cancelled"


def task_of(row: Row) -> str:
    """Return the id of the task to which ``row`` belongs; empty if it belongs to none."""
    if row.zone == "agent":
        return get_text(row.detail, "task")
    return row.path.partition("/")[0] if row.zone in ("task", "file", "command") else ""


def spawned_role(row: Row) -> str:
    """Return the role of the agent that ``row`` spawned, empty for any other row."""
    return get_text(row.detail, "role")


def met_version(row: Row) -> int | None:
    """Return the version that was current when ``row`` was refused, None if the row does not record it."""
    current = get_int(row.detail, "current")
    return row.base if current is None else current


def lease_end(row: Row) -> int:
    """Return the end of the board lock in ``row``, in nanoseconds since the epoch."""
    return (get_int(row.detail, "until") or 0) * 1_000_000


def output_stream(row: Row) -> Literal["stdout", "stderr"]:
    """Return the stream on which a command printed the output in ``row``."""
    return "stderr" if row.detail.get("stream") == "stderr" else "stdout"


def size_without_text(row: Row) -> int | None:
    """Return the size in bytes of the binary file of ``row``, a version of a file in a task or a working
    tree. The journal has only its checksum. None for any other row."""
    return get_int(row.detail, "size") if row.zone in ON_DISK_FIRST else None


def get_int(fields: Mapping[str, Json], name: str) -> int | None:
    """Return the integer ``name`` of ``fields``; None if it is missing, has another type, or has more than 64
    bits."""
    value = fields.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if -_MAX_INT <= value <= _MAX_INT else None


def get_count(fields: Mapping[str, Json], name: str) -> int:
    """Return the integer ``name`` of ``fields``, at most the largest 64-bit integer; 0 if it is missing,
    negative or has another type."""
    value = fields.get(name)
    return min(max(0, value), _MAX_INT) if isinstance(value, int) and not isinstance(value, bool) else 0


def get_float(fields: Mapping[str, Json], name: str) -> float:
    """Return the number ``name`` of ``fields``; 0 if it is missing, negative, has another type, or exceeds
    `MAX_AMOUNT`."""
    value = fields.get(name)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    # Comparisons with NaN are always false.
    return float(cast("float", value)) if is_number and 0 <= cast("float", value) <= MAX_AMOUNT else 0.0


def get_text(fields: Mapping[str, Json], name: str) -> str:
    """Return the text ``name`` of ``fields``; empty if it is missing or has another type."""
    value = fields.get(name)
    return value if isinstance(value, str) else ""


def get_list(fields: Mapping[str, Json], name: str) -> Sequence[Json]:
    """Return the array ``name`` of ``fields``; empty if it is missing or has another type."""
    value = fields.get(name)
    return value if isinstance(value, list) else ()


def get_ints(fields: Mapping[str, Json], name: str) -> list[int]:
    """Return the integers in the array ``name`` of ``fields``, without values of another type or with more
    than 64 bits."""
    found = (get_int({name: each}, name) for each in get_list(fields, name))
    return [each for each in found if each is not None]


def get_object(fields: Mapping[str, Json], name: str) -> Mapping[str, Json]:
    """Return the object ``name`` of ``fields``; empty if it is missing or has another type."""
    value = fields.get(name)
    return value if isinstance(value, Mapping) else {}


def _pair(detail: Mapping[str, Json], name: str) -> tuple[int, int]:
    """Return the two numbers in ``name``; 0 for both if it has any other value."""
    counts = get_list(detail, name)
    used = [get_count({name: each}, name) for each in counts]
    first, second = used if len(used) == 2 else (0, 0)
    return first, second
