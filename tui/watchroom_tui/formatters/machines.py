"""Texts about other machines. The machines' own texts are sanitized here. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from watchroom.texts import Catalogue

from watchroom_tui.formatters.local_time import local_clock
from watchroom_tui.presentation.sanitize import sanitize, shorten

if TYPE_CHECKING:
    from watchroom.serving.machines.connection import MachineView, Outcome
    from watchroom.serving.machines.messages import FarAgent


def machine_text(view: MachineView, own_version: str, texts: Catalogue) -> str:
    """Return the state of the connection in one line. ``own_version``: of Watchroom here."""
    name, since = sanitize(view.name), local_clock(view.since)
    version = sanitize(view.version)
    if view.state == "refused":
        return texts("machine.refused", name=name, there=version, here=own_version)
    if view.state == "lost":
        line = texts("machine.lost", name=name, time=since)
        return texts("machine.because", what=line, reason=shorten(view.reason)) if view.reason else line
    if view.state == "connecting":
        return texts("machine.connecting", name=name)
    line = texts("machine.connected", name=name, place=sanitize(view.place), time=since)
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
    """Return what became of an answer."""
    need = outcome.need
    who = sanitize(f"{outcome.name}/{need.party}")
    return texts(f"machine.fate.{outcome.fate}", who=who, what=shorten(outcome.message) or "-")


def sent_text(view: MachineView, row: int, texts: Catalogue) -> str:
    """Return the state of an answer whose result is missing, empty if there is none."""
    if row not in view.sent:
        return ""
    return texts("machine.unknown" if view.sent[row] else "machine.sent")
