"""What the details of rows say, typed: for those who show rows and know no JSON. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple, TypeAlias, cast

from watchroom.model import END_TASK, Json, Row, SessionStatus

CommandEnding: TypeAlias = Literal["running", "exited", "timed_out", "stopped", "interrupted", "failed"]
"""How a command stands: it runs; it ended by itself; its time was over; somebody stopped it; its process
died; it could not be started."""
_CUT_OFF: tuple[CommandEnding, ...] = ("timed_out", "stopped", "interrupted")


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
            cast("SessionStatus", detail.get("status", "idle")),
            _int(detail, "step") or 0,
            given,
            said,
            _int(detail, "estimated") or 0,
            _int(detail, "calls") or 0,
            _float(detail, "seconds"),
            _text(detail, "error"),
            _int(detail, "mail"),
            cache_read,
            cache_write,
            _float(detail, "cost"),
            _int(detail, "unpriced") or 0,
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
        detail, code = row.detail, _int(row.detail, "exit_code")
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
            _text(detail, "op"),
            _text(detail, "field"),
            _int(detail, "added") or 0,
            _int(detail, "removed") or 0,
            _int(detail, "amount") or 0,
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
        waits = row.version is not None and _int(row.detail, "pending") == row.version
        return cls(name, row.tool.removeprefix(f"{name}_"), row.deleted, waits)


def request_number(row: Row) -> int:
    """The number of the request that ``row``, of a request, is about."""
    return _int(row.detail, "request") or row.seq


def request_outcome(row: Row) -> str:
    """How the request ended that ``row`` closes, in one word; empty of a row that asks."""
    return _text(row.detail, "outcome")


def task_end_status(row: Row) -> str:
    """Return how the task ended that ``row`` ends: ``done``, ``failed`` or ``cancelled``."""
    status = _text(row.detail, "status") or "done"
    # Whoever writes past the tools can end a task, and cannot say that its work is done.
    return status if row.tool == END_TASK and status in ("done", "failed") else "cancelled"


def task_of(row: Row) -> str:
    """The id of the task that ``row`` is about: of an agent, a file, a command or the task itself; empty
    where it is about none."""
    if row.zone == "agent":
        return _text(row.detail, "task")
    return row.path.partition("/")[0] if row.zone in ("task", "file", "command") else ""


def spawned_role(row: Row) -> str:
    """The role of the agent that ``row`` made, empty of any other row."""
    return _text(row.detail, "role")


def met_version(row: Row) -> int | None:
    """The version that stood when ``row`` was refused, None where it does not say."""
    current = _int(row.detail, "current")
    return row.base if current is None else current


def lease_end(row: Row) -> int:
    """When the lease of a board that ``row`` tells of ends, in nanoseconds since the epoch."""
    return (_int(row.detail, "until") or 0) * 1_000_000


def output_stream(row: Row) -> Literal["stdout", "stderr"]:
    """Where a command printed the piece that ``row`` carries."""
    return "stderr" if row.detail.get("stream") == "stderr" else "stdout"


def size_without_text(row: Row) -> int | None:
    """How many bytes the version ``row`` of a task's file has whose content is no text, so that the journal
    has only its checksum; None of any other row."""
    return _int(row.detail, "size") if row.zone == "file" else None


def _int(detail: Mapping[str, Json], name: str) -> int | None:
    value = detail.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _float(detail: Mapping[str, Json], name: str) -> float:
    value = detail.get(name)
    return float(value) if isinstance(value, int | float) else 0.0


def _pair(detail: Mapping[str, Json], name: str) -> tuple[int, int]:
    """Two numbers, 0 where there are none."""
    counts = detail.get(name)
    used = [each for each in counts if isinstance(each, int)] if isinstance(counts, list) else []
    first, second = used if len(used) == 2 else (0, 0)
    return first, second


def _text(detail: Mapping[str, Json], name: str) -> str:
    value = detail.get(name)
    return value if isinstance(value, str) else ""
