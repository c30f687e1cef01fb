"""Agents and needs of other machines, and texts about them. The machines' own texts are sanitized. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from watchroom.texts import Catalogue

from watchroom_tui.formatters.labels import SUBJECT_WIDTH
from watchroom_tui.formatters.local_time import local_clock
from watchroom_tui.presentation.sanitize import sanitize, shorten

_NEVER: Final = 2**63
_ANSWERS_TO_CUT: Final = ("reject", "seen")

if TYPE_CHECKING:
    from watchroom.serving.machines.connection import MachineView, Outcome
    from watchroom.serving.machines.messages import FarAgent, FarAnswer, FarNeed


class RemoteNeed(NamedTuple):
    """A need of the machine ``view``."""

    view: MachineView
    need: FarNeed

    @property
    def identity(self) -> tuple[str, str, int]:
        """The identity of the need, among those of this machine and of others."""
        return "machine", self.view.name, self.need.row

    @property
    def party(self) -> str:
        """Its agent or file, after the machine's name. Sanitized."""
        return sanitize(f"{self.view.name}/{self.need.party}")

    @property
    def answers(self) -> Sequence[FarAnswer]:
        """The possible answers. A request that is shown only in part cannot be approved."""
        need = self.need
        return [each for each in need.answers if not need.is_cut or each in _ANSWERS_TO_CUT]

    @property
    def opened_at(self) -> int:
        """The time at which it was opened, by the clock of this machine, in nanoseconds since the epoch."""
        return self.need.opened - self.view.ahead

    @property
    def deadline(self) -> int | None:
        """Its deadline by the clock of this machine, None for none."""
        return self.need.deadline - self.view.ahead if self.need.deadline else None


class RemoteAgent(NamedTuple):
    """An agent of the machine ``view``. None: a line about the machine itself."""

    view: MachineView
    agent: FarAgent | None

    @property
    def is_broken(self) -> bool:
        """Whether this is a machine without a connection."""
        return self.agent is None and self.view.state in ("lost", "refused")

    @property
    def identity(self) -> tuple[str, str, str]:
        return "machine", self.view.name, self.agent.id if self.agent is not None else ""


def remote_needs(views: Iterable[MachineView]) -> tuple[RemoteNeed, ...]:
    """Return the needs of all machines. Those with a deadline come first, then those of each machine in its
    order."""
    found = [RemoteNeed(view, need) for view in views for need in view.needs]
    return tuple(sorted(found, key=lambda each: each.deadline or _NEVER))


def remote_sentence(item: RemoteNeed, texts: Catalogue) -> str:
    """Return the need in one line."""
    matter = shorten(item.need.matter, SUBJECT_WIDTH)
    return texts("machine.need", who=item.party, kind=shorten(item.need.kind), what=matter)


def remote_agents(views: Iterable[MachineView], own_version: str) -> Iterator[RemoteAgent]:
    """Yield the agents of all machines. A machine that needs an explanation, or has no agents, has a line of
    its own before them."""
    for view in views:
        is_plain = view.is_connected and view.agents and view.version == own_version and not view.more_agents
        if not is_plain:
            yield RemoteAgent(view, None)
        for agent in view.agents:
            yield RemoteAgent(view, agent)


def machine_text(view: MachineView, own_version: str, texts: Catalogue) -> str:
    """Return the machine and the state of its connection in one line. ``own_version``: of Watchroom here."""
    return texts("machine.named", name=sanitize(view.name), what=connection_text(view, own_version, texts))


def connection_text(
    view: MachineView, own_version: str, texts: Catalogue, *, with_reason: bool = True
) -> str:
    """Return the state of the connection.

    - ``own_version``: of Watchroom here.
    - ``with_reason``: whether to name the reason of a lost connection.
    """
    since, version = local_clock(view.since), sanitize(view.version)
    if view.state == "refused":
        return texts("machine.refused", there=version, here=own_version)
    if view.state == "lost":
        line = texts("machine.lost", time=since)
        is_named = with_reason and view.reason
        return texts("machine.because", what=line, reason=shorten(view.reason)) if is_named else line
    if view.state == "connecting":
        return texts("machine.connecting")
    line = texts("machine.connected", place=sanitize(view.place), time=since)
    if view.version == own_version:
        return line
    return line + texts("machine.other_version", there=version, here=own_version)


def agent_status(view: MachineView, agent: FarAgent, texts: Catalogue) -> str:
    """Return the status of ``agent`` in words. Without a connection, it is unknown."""
    return texts(f"legend.agents.{agent.status}" if view.is_connected else "machine.agent_unknown")


def left_out_text(view: MachineView, texts: Catalogue) -> str:
    """Return how many agents and needs the other machine left out, empty for none."""
    if not view.more_agents and not view.more_needs:
        return ""
    return texts("machine.left_out", agents=view.more_agents, needs=view.more_needs)


def outcome_text(outcome: Outcome, texts: Catalogue) -> str:
    """Return a text about the outcome of an answer."""
    need = outcome.need
    who = sanitize(f"{outcome.name}/{need.party}")
    return texts(f"machine.fate.{outcome.fate}", who=who, what=shorten(outcome.message) or "-")


def sent_text(view: MachineView, row: int, texts: Catalogue) -> str:
    """Return the state of an answer whose result is missing, empty if there is none."""
    if row not in view.sent:
        return ""
    return texts("machine.unknown" if view.sent[row] else "machine.sent")
