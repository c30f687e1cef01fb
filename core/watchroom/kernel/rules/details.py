"""What the details of rows say, typed: for those who show rows and know no JSON. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final, Literal, NamedTuple, TypeAlias, cast, get_args

from watchroom.model import END_TASK, WITHDRAW, Json, RequestKind, Row, SessionStatus, parse_detail

CommandEnding: TypeAlias = Literal["running", "exited", "timed_out", "stopped", "interrupted", "failed"]
"""How a command stands: it runs; it ended by itself; its time was over; somebody stopped it; its process
died; it could not be started."""
_CUT_OFF: tuple[CommandEnding, ...] = ("timed_out", "stopped", "interrupted")
TaskOutcome: TypeAlias = Literal["done", "failed", "cancelled"]
MAX_AMOUNT: Final = 1e15
"""Largest number that a detail is believed: of tokens, seconds and US dollars."""
_MAX_INT: Final = 2**63 - 1
SESSION_STATUSES: Final[tuple[SessionStatus, ...]] = get_args(SessionStatus)
TASK_OUTCOMES: Final[tuple[TaskOutcome, ...]] = get_args(TaskOutcome)
REQUEST_KINDS: Final[tuple[RequestKind, ...]] = get_args(RequestKind)
ANSWER_OUTCOMES: Final = ("approved", "rejected", "mixed", "edited", "replied", "chosen", "expired")
"""How an answer ends a request, as `watchroom.features.requests.rows.answer_outcome` records it."""
WITHDRAWAL_OUTCOMES: Final = ("expired", "withdrawn")
"""How a request ends without an answer."""


class StepDetail(NamedTuple):
    """What a session's step says of the session: its ``status``, its number of ``steps``, the tokens it used
    (of which ``estimated`` are no provider's count), its tool ``calls`` and ``seconds`` of work; ``error`` is
    the code of what stopped it, ``read`` the row of the message that the step took in. ``cost`` is in US
    dollars, for all tokens but the ``unpriced`` ones."""

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
        """What ``step`` says."""
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
    """How a command stands, and the ``exit_code`` of one that ended by itself."""

    ending: CommandEnding
    exit_code: int | None = None

    @property
    def is_failure(self) -> bool:
        return self.ending not in ("running", "exited") or bool(self.exit_code)

    @classmethod
    def of(cls, row: Row) -> CommandDetail:
        """What ``row``, of a command, says."""
        detail, code = row.detail, get_int(row.detail, "exit_code")
        cut_off = next((each for each in _CUT_OFF if detail.get(each)), None)
        if cut_off is not None:
            return cls(cut_off, code)
        if code is not None:
            return cls("exited", code)
        return cls("failed" if row.version == 2 else "running")


class DocumentEdit(NamedTuple):
    """What a row did to a realtime document: the operation ``op`` on ``field``, and as far as it applies the
    number of characters ``added`` and ``removed``, the ``amount``, the ``element``, ``key`` and ``value``
    as short JSON, None where it set none."""

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
        """What ``row``, of a document, says."""
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
    """What a row says of a buffer: its ``name``; the ``operation`` as the toolset of buffers calls it
    (``replace``, ``flush``), or the whole name of the tool where it belongs to no buffer; whether the buffer
    ``is_closed`` by it, or ``waits_for_choice`` because of it."""

    name: str
    operation: str
    is_closed: bool
    waits_for_choice: bool

    @classmethod
    def of(cls, row: Row) -> BufferDetail:
        """What ``row``, of a buffer, says."""
        name = row.path.rpartition("/")[2]
        waits = row.version is not None and get_int(row.detail, "pending") == row.version
        return cls(name, row.tool.removeprefix(f"{name}_"), row.deleted, waits)


def request_number(row: Row) -> int:
    """The number of the request that ``row``, of a request, is about."""
    return get_int(row.detail, "request") or row.seq


def session_status(step: Row) -> SessionStatus:
    """Return the status of the session after ``step``; ``idle`` if the step records no known one."""
    return parse_status(step.detail_json)


@lru_cache(maxsize=1024)
def parse_status(step_detail: str) -> SessionStatus:
    """Return the session status in ``step_detail``, the detail of a step as JSON; ``idle`` if it has no known
    one."""
    # The dashboard asks several times for each agent in each frame.
    status = parse_detail(step_detail).get("status")
    return status if status in SESSION_STATUSES else "idle"


def request_kind(row: Row) -> RequestKind:
    """Return the kind of answer that ``row``, a request's first, asks for; ``prompt`` if it names no known
    kind."""
    kind = row.detail.get("kind")
    return kind if kind in REQUEST_KINDS else "prompt"


def request_outcome(row: Row) -> str:
    """Return in one word how the request ended that ``row`` closes. The word is empty if the row asks, or
    names no outcome that its tool can have."""
    outcome = get_text(row.detail, "outcome")
    return outcome if outcome in (WITHDRAWAL_OUTCOMES if row.tool == WITHDRAW else ANSWER_OUTCOMES) else ""


def task_end_status(row: Row) -> TaskOutcome:
    """Return how the task ended that ``row`` ends: ``done``, ``failed`` or ``cancelled``."""
    status = row.detail.get("status", "done")
    # Whoever writes past the tools can end a task, and cannot say that its work is done.
    return status if row.tool == END_TASK and status in ("done", "failed") else "cancelled"


def task_of(row: Row) -> str:
    """The id of the task that ``row`` is about: of an agent, a file, a command or the task itself; empty
    where it is about none."""
    if row.zone == "agent":
        return get_text(row.detail, "task")
    return row.path.partition("/")[0] if row.zone in ("task", "file", "command") else ""


def spawned_role(row: Row) -> str:
    """The role of the agent that ``row`` made, empty of any other row."""
    return get_text(row.detail, "role")


def met_version(row: Row) -> int | None:
    """The version that stood when ``row`` was refused, None where it does not say."""
    current = get_int(row.detail, "current")
    return row.base if current is None else current


def lease_end(row: Row) -> int:
    """When the lease of a board that ``row`` tells of ends, in nanoseconds since the epoch."""
    return (get_int(row.detail, "until") or 0) * 1_000_000


def output_stream(row: Row) -> Literal["stdout", "stderr"]:
    """Where a command printed the piece that ``row`` carries."""
    return "stderr" if row.detail.get("stream") == "stderr" else "stdout"


def size_without_text(row: Row) -> int | None:
    """How many bytes the version ``row`` of a task's file has whose content is no text, so that the journal
    has only its checksum; None of any other row."""
    return get_int(row.detail, "size") if row.zone == "file" else None


def get_int(fields: Mapping[str, Json], name: str) -> int | None:
    """Return the integer ``name`` of ``fields``; None if it is missing, of another type, or has more than 64
    bits."""
    value = fields.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if -_MAX_INT <= value <= _MAX_INT else None


def get_count(fields: Mapping[str, Json], name: str) -> int:
    """Return the integer ``name`` of ``fields``; 0 if it is missing, negative or of another type, and at most
    the largest of 64 bits."""
    value = fields.get(name)
    return min(max(0, value), _MAX_INT) if isinstance(value, int) and not isinstance(value, bool) else 0


def get_float(fields: Mapping[str, Json], name: str) -> float:
    """Return the number ``name`` of ``fields``; 0 if it is missing, negative, of another type, or larger than
    `MAX_AMOUNT`."""
    value = fields.get(name)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    # NaN compares as neither.
    return float(cast("float", value)) if is_number and 0 <= cast("float", value) <= MAX_AMOUNT else 0.0


def get_text(fields: Mapping[str, Json], name: str) -> str:
    """Return the text ``name`` of ``fields``; an empty one if it is missing or of another type."""
    value = fields.get(name)
    return value if isinstance(value, str) else ""


def get_list(fields: Mapping[str, Json], name: str) -> Sequence[Json]:
    """Return the array ``name`` of ``fields``; an empty one if it is missing or of another type."""
    value = fields.get(name)
    return value if isinstance(value, list) else ()


def get_ints(fields: Mapping[str, Json], name: str) -> list[int]:
    """Return the integers in the array ``name`` of ``fields``, without values of another type or of more than
    64 bits."""
    found = (get_int({name: each}, name) for each in get_list(fields, name))
    return [each for each in found if each is not None]


def get_object(fields: Mapping[str, Json], name: str) -> Mapping[str, Json]:
    """Return the object ``name`` of ``fields``; an empty one if it is missing or of another type."""
    value = fields.get(name)
    return value if isinstance(value, Mapping) else {}


def _pair(detail: Mapping[str, Json], name: str) -> tuple[int, int]:
    """Return two numbers; 0 for both if ``name`` is anything else than two numbers."""
    counts = get_list(detail, name)
    used = [get_count({name: each}, name) for each in counts]
    first, second = used if len(used) == 2 else (0, 0)
    return first, second
