"""The events of a client. Adapters translate hooks, transcripts and the protocol into these, and
`ClientSession` writes rows from them. Pure.

A ``key`` is the client's id of a message or a call. An event that is reported twice with the same key, by a
hook and a transcript or after a resumption, is one row.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from watchroom.features.budgets.rows import UsageTotal

Attachment: TypeAlias = Literal["run", "attached"]
"""Whether Watchroom started the client, or a person did."""
PlanStatus: TypeAlias = Literal["pending", "in_progress", "completed"]


class ClientInfo(NamedTuple):
    """A client.

    - ``client``, ``version``: the name in its record, and its version
    - ``cwd``, ``model``: the folder and the model that it works with
    - ``attachment``: who started it
    - ``pid``, ``started``: the number and the start time of its process, 0 if they are not known
    """

    client: str
    version: str = ""
    cwd: str = ""
    model: str = ""
    attachment: Attachment = "attached"
    pid: int = 0
    started: float = 0.0


class PromptSubmitted(NamedTuple):
    """The agent was given ``text`` to work on, by ``author`` (``human:NAME``, empty if it is not known)."""

    text: str
    author: str = ""
    key: str = ""


class TextStreamed(NamedTuple):
    """A piece of the message that the model is generating."""

    text: str


class MessageCompleted(NamedTuple):
    """A complete message of the model, with the ``thought`` before it and the usage (``used``)."""

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

    - ``is_error``: it failed, or was not made
    - ``refusal``: the code of why it was refused, empty if it was not
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


class UsageReported(NamedTuple):
    """Usage of ``model`` that the client reports without a message. It is added to earlier usage."""

    used: UsageTotal
    model: str = ""
    key: str = ""


class TurnEnded(NamedTuple):
    """The agent waits for the next prompt. ``reason`` is empty if the turn ended normally."""

    reason: str = ""


class TurnFailed(NamedTuple):
    """The turn ended without an answer, because of ``reason``. The client takes another prompt."""

    reason: str


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
    | UsageReported
    | TurnEnded
    | TurnFailed
    | SessionEnded
    | ClientPaused
    | BudgetHeld
)
