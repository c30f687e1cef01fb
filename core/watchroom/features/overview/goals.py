"""Goals: states of an agent that a script can wait for. They are derived from the dashboard's model."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, TypeAlias, get_args

from watchroom.features.overview.agents import IDLE_SECONDS, AgentView, Status
from watchroom.features.overview.model import Model
from watchroom.features.sessions.view import RequestView

Goal: TypeAlias = Literal["waiting", "idle", "ended"]
"""A state of an agent.

- ``waiting``: it waits for a person.
- ``idle``: its turn is over, or it has nothing to do.
- ``ended``: its session has ended, or its process is no longer alive.
"""
GOALS: Final[tuple[Goal, ...]] = get_args(Goal)
Ending: TypeAlias = Literal["done", "error", "cancelled", "lost", "ended"]
"""The end of a session.

- ``done``, ``error``, ``cancelled``: the status of the session.
- ``lost``: its process is no longer alive.
- ``ended``: its agent or its task was ended before it.
"""


class GoalState(NamedTuple):
    """The state of an agent at one moment.

    - ``reached``: the first of the given goals that is reached, None if none is.
    - ``status``: the status on the dashboard.
    - ``ending``: how its newest session ended, None if it has not ended.
    - ``session``: the path of its newest session, empty if it has none.
    - ``requests``: its open requests to people, oldest first.
    - ``next_change``: when the state may change without a row, in nanoseconds since the epoch; None for
      never.
    """

    reached: Goal | None
    status: Status
    ending: Ending | None
    session: str
    requests: tuple[RequestView, ...]
    next_change: int | None


def find_state(model: Model, agent: str, goals: tuple[Goal, ...], now: int) -> GoalState | None:
    """Return the state of an agent, None if the agent is not registered.

    Args:
        model: The model, with the presence of processes.
        agent: The id of the agent.
        goals: The goals that the caller waits for.
        now: Nanoseconds since the epoch.
    """
    view = model.agent(agent)
    if view is None:
        return None
    status, ending = view.status(now), find_ending(view)
    asked = [each for each in reversed(model.requests) if each.agent == agent and not each.has_expired(now)]
    # Nobody processes the answer if the agent has ended or its process is lost.
    requests = () if view.is_ended or view.is_lost else tuple(asked)
    holds = {
        # With a leave, a parked agent waits for the reset of its limit.
        "waiting": status == "waiting" or bool(requests) or (status == "parked" and not view.leave),
        "idle": status in ("idle", "done") and not requests,
        "ended": ending is not None,
    }
    deadlines = [each.expires for each in requests if each.expires is not None]
    moments = [*(deadline + 1 for deadline in deadlines), view.last_heard + int(IDLE_SECONDS * 1e9) + 1]
    return GoalState(
        next((goal for goal in goals if holds[goal]), None),
        status,
        ending,
        view.session.path if view.session is not None else "",
        requests,
        min((moment for moment in moments if moment > now), default=None),
    )


def find_ending(view: AgentView) -> Ending | None:
    """Return how the newest session of ``view`` ended, None if it has not ended.

    A session whose process ended normally can be resumed, so it has not ended.
    """
    status = view.session.status if view.session is not None else "idle"
    if status == "done" or status == "error" or status == "cancelled":
        return status
    if view.is_ended:
        return "ended"
    return "lost" if view.is_lost else None
