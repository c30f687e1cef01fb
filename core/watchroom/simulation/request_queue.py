"""Whose turn it is to ask people something: now and then one agent's, and never too many at once. Pure."""

from __future__ import annotations

from collections.abc import Callable

from watchroom.simulation.scenario import Scenario


class RequestQueue:
    """The requests of a ``scenario`` in the order in which they are due. ``clock`` gives the seconds since
    its beginning, at speed 1. Belongs to one thread."""

    def __init__(self, scenario: Scenario, clock: Callable[[], float]) -> None:
        self._most = scenario.open_requests
        self._every = scenario.request_every
        self._clock = clock
        self._plans = [(plan.after, plan) for plan in scenario.requests]
        self._open: set[str] = set()

    def take(self, agent: str) -> str:
        """The routine in which ``agent`` may ask something now; empty where it may not. It comes again
        later."""
        if len(self._open) >= self._most:
            return ""
        now = self._clock()
        for at, (due, plan) in enumerate(self._plans):
            if due <= now and agent in plan.by:
                del self._plans[at]
                self._plans.append((self._next_due(now), plan))
                self._open.add(agent)
                return plan.play
        return ""

    def hold(self, agent: str) -> None:
        """``agent`` has a request open from before."""
        self._open.add(agent)

    def end(self, agent: str) -> None:
        """What ``agent`` asked is over."""
        self._open.discard(agent)

    def _next_due(self, now: float) -> float:
        return max([now, *(due for due, _ in self._plans)]) + self._every
