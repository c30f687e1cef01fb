"""Which agents a person can pause or resume. Pure."""

from __future__ import annotations

from watchroom.features.overview.agents import AgentView
from watchroom.model import ENDED


def is_held(view: AgentView) -> bool:
    """Whether the session of ``view`` waits for a person to resume it."""
    return view.is_paused or (view.session is not None and view.session.status == "error")


def can_pause(view: AgentView | None) -> bool:
    """Whether the agent of ``view`` has a session that a person can pause or resume."""
    return (
        view is not None
        and view.session is not None
        and not view.is_ended
        and view.session.status not in ENDED
    )
