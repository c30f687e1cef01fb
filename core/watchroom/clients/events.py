"""What happens in a client of its own, in our words: what its protocol or its hooks tell is translated into
these, and `ClientSession` makes rows of them. Pure.

A ``key`` names what a thing is in the client (a message's id, a call's): told twice, by a hook and by a
transcript or again after a resumption, it is one row.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from watchroom.rules.usage import UsageTotal

Attachment: TypeAlias = Literal["run", "attached"]
"""Whether Watchroom started the client, or a person did."""
PlanStatus: TypeAlias = Literal["pending", "in_progress", "completed"]


class ClientInfo(NamedTuple):
    """A client: its name (``claude``, ``codex``) and version, the folder and the model that it works with,
    how it came here, and the number of its process with the time at which that began (0: not known)."""

    client: str
    version: str = ""
    cwd: str = ""
    model: str = ""
    attachment: Attachment = "attached"
    pid: int = 0
    started: float = 0.0


class PromptSubmitted(NamedTuple):
    """Somebody gave the agent ``text`` to work on: ``author`` (``human:NAME``), empty where that is not
    known."""

    text: str
    author: str = ""
    key: str = ""


class TextStreamed(NamedTuple):
    """A piece of what the model is just saying."""

    text: str


class MessageCompleted(NamedTuple):
    """The model said ``text``, whole, after it thought ``thought``; ``used`` is what that took."""

    text: str
    thought: str = ""
    model: str = ""
    used: UsageTotal | None = None
    key: str = ""


class CallStarted(NamedTuple):
    """A tool is called. ``arguments`` is the JSON text of an object."""

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
    """The agent's plan is this now: texts, and how far each is."""

    entries: tuple[tuple[str, PlanStatus], ...]


class UsageTold(NamedTuple):
    """The client told what ``model`` used, apart from a message: to be added to what it told before."""

    used: UsageTotal
    model: str = ""
    key: str = ""


class TurnEnded(NamedTuple):
    """The agent waits for the next prompt. ``reason`` says why where it is not that it is done."""

    reason: str = ""


class TurnFailed(NamedTuple):
    """The turn ended without an answer, because of ``reason``. The client takes another prompt."""

    reason: str


class SessionEnded(NamedTuple):
    """The client is done with the session: ``outcome`` is how, ``reason`` why."""

    outcome: Literal["done", "cancelled", "error"] = "done"
    reason: str = ""


class ClientPaused(NamedTuple):
    """The agent is held, by ``by``: its next call or prompt waits."""

    by: str = ""
    is_paused: bool = True


class BudgetHeld(NamedTuple):
    """A used-up budget holds the agent's next call or prompt until a person decides; not ``is_held``: no
    more."""

    is_held: bool = True


ClientEvent: TypeAlias = (
    PromptSubmitted
    | TextStreamed
    | MessageCompleted
    | CallStarted
    | CallFinished
    | PlanUpdated
    | UsageTold
    | TurnEnded
    | TurnFailed
    | SessionEnded
    | ClientPaused
    | BudgetHeld
)
