"""The events of a client. Adapters translate hooks, transcripts and the protocol into these, and
`ClientSession` writes rows from them. Pure.

A ``key`` is the client's id of a message or a call. If an event is reported twice with the same key, it
becomes one row. This happens with a hook and a transcript, or after a resumption.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from watchroom.features.budgets.rows import UsageTotal
from watchroom.features.sessions.limits import RateLimit

Attachment: TypeAlias = Literal["run", "attached"]
"""Whether Watchroom started the client, or a person did."""
PlanStatus: TypeAlias = Literal["pending", "in_progress", "completed"]


class ClientInfo(NamedTuple):
    """A client.

    - ``client``, ``version``: the name in its record, and its version
    - ``cwd``, ``model``: the folder and the model that it works with
    - ``attachment``: whether Watchroom or a person started it
    - ``pid``, ``started``: the id and the start time of its process, 0 if unknown
    """

    client: str
    version: str = ""
    cwd: str = ""
    model: str = ""
    attachment: Attachment = "attached"
    pid: int = 0
    started: float = 0.0


class PromptSubmitted(NamedTuple):
    """The agent received the prompt ``text`` from ``author`` (``human:NAME``, empty if unknown)."""

    text: str
    author: str = ""
    key: str = ""


class TextStreamed(NamedTuple):
    """A piece of the message that the model is generating."""

    text: str


class MessageCompleted(NamedTuple):
    """A complete message of the model, the ``thought`` before it, and its usage (``used``)."""

    text: str
    thought: str = ""
    model: str = ""
    used: UsageTotal | None = None
    key: str = ""


class CallStarted(NamedTuple):
    """A call of a tool began. ``arguments`` is the JSON text of an object."""

    id: str
    tool: str
    arguments: str = "{}"


class CallFinished(NamedTuple):
    """The call ``id`` ended with ``result``, text or JSON.

    - ``is_error``: whether it failed or was not made
    - ``refusal``: the code of the refusal, empty if it was not refused
    - ``tool``, ``arguments``: the call, empty if only its id is known; ``cwd``: the client's folder then
    """

    id: str
    result: str = ""
    is_error: bool = False
    refusal: str = ""
    tool: str = ""
    arguments: str = ""
    cwd: str = ""


class PlanUpdated(NamedTuple):
    """The agent's new plan: its entries with their status."""

    entries: tuple[tuple[str, PlanStatus], ...]


class UsageAdded(NamedTuple):
    """Usage of ``model`` that the client reports separately from messages. It is added to earlier usage."""

    used: UsageTotal
    model: str = ""
    key: str = ""


class TurnEnded(NamedTuple):
    """The agent waits for the next prompt. ``reason`` is empty if the turn ended normally."""

    reason: str = ""


class TurnFailed(NamedTuple):
    """The turn ended without an answer, because of ``reason``. The client accepts further prompts.

    ``key``: only one row is written for each key; empty for no check.
    """

    reason: str
    key: str = ""


class TurnLimited(NamedTuple):
    """The turn ended because of a rate or usage ``limit``. The session is parked until the limit resets.

    - ``key``: only one row is written for each key; empty for no check.
    - ``held``: why the session was not resumed after the reset (`Parking.held`), empty for a new limit.
    """

    limit: RateLimit
    key: str = ""
    held: str = ""


class TurnBegan(NamedTuple):
    """The client began a turn, according to its transcript. It becomes no row."""


class CallMade(NamedTuple):
    """The model made the call ``id``, according to the transcript. It becomes no row, because a hook reports
    such a call before the client runs it."""

    id: str


class CallReturned(NamedTuple):
    """The call ``id`` ended, according to the transcript. It becomes no row."""

    id: str


class ResetReported(NamedTuple):
    """The used-up limits of the account reset at ``seconds`` since the epoch, 0 if no limit is used up.

    A later limit has this reset if its own text names no reset.
    """

    seconds: int


class SessionEnded(NamedTuple):
    """The session ended with ``outcome``, because of ``reason``."""

    outcome: Literal["done", "cancelled", "error"] = "done"
    reason: str = ""


class ClientPaused(NamedTuple):
    """``by`` paused the agent, or resumed it if not ``is_paused``. While paused, calls and prompts wait."""

    by: str = ""
    is_paused: bool = True


class BudgetHeld(NamedTuple):
    """A used-up budget holds the agent's next call or prompt until a person decides. If not ``is_held``, the
    hold has ended."""

    is_held: bool = True


ClientEvent: TypeAlias = (
    PromptSubmitted
    | TextStreamed
    | MessageCompleted
    | CallStarted
    | CallFinished
    | PlanUpdated
    | UsageAdded
    | TurnEnded
    | TurnFailed
    | TurnLimited
    | SessionEnded
    | ClientPaused
    | BudgetHeld
)
TranscriptEvent: TypeAlias = ClientEvent | TurnBegan | CallMade | CallReturned | ResetReported
"""What a line of a transcript reports."""
