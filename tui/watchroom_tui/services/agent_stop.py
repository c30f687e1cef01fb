"""Pause every agent that works, and resume those again."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, cast

from watchroom.model import PAUSE, RESUME
from watchroom.projections import AgentView

from watchroom_tui.context import Dashboard
from watchroom_tui.dialogs.confirm import ConfirmDialog
from watchroom_tui.sanitize import sanitize

_GOES_ON: Final = ("idle", "running", "waiting_for_human_input")
"""How a session stands that a process goes on with."""


class AgentStop:
    """Stops all agents, or lets those go on that it stopped.

    Which these are is kept while the dashboard runs; after a restart they are all agents that are paused.
    """

    def __init__(self, app: Dashboard) -> None:
        self._app = app
        self._told: dict[str, int] = {}
        """The row by which each agent was told to stop."""

    async def toggle(self) -> None:
        """Ask whether all agents at work should be paused; where none is, whether the paused ones should go
        on. Says whom it concerned, and who could not be reached and why. Awaits the answer: run it in a
        worker."""
        app = self._app
        if not app.can_act:
            app.explain_read_only()
            return
        at_work = [view.agent.id for view in app.model.agents if self._is_at_work(view)]
        stopped = [view.agent.id for view in app.model.agents if self._is_stopped(view)]
        resumable = [agent for agent in stopped if not self._told or agent in self._told]
        if at_work:
            self._told |= await self._act(PAUSE, "stop", at_work)
        elif resumable:
            for agent in await self._act(RESUME, "resume", resumable):
                self._told.pop(agent, None)
        else:
            app.show_message(app.texts("stop.nobody"))

    def _is_at_work(self, view: AgentView) -> bool:
        if view.is_ended or not view.is_present or self._is_stopped(view):
            return False
        if view.session is None:
            return view.status(self._app.now()) in ("running", "error")
        return view.session.status in _GOES_ON

    def _is_stopped(self, view: AgentView) -> bool:
        """Whether it is paused, or will be at its next step, for it was told to here."""
        if view.is_ended:
            return False
        last = view.session.last.seq if view.session else 0
        return last < self._told.get(view.agent.id, 0) or (
            view.session is not None and view.session.status == "paused"
        )

    async def _act(self, tool: str, verb: str, agents: Sequence[str]) -> dict[str, int]:
        """The agents that took it, after the person confirmed it, each with the row that tells of it."""
        app, texts = self._app, self._app.texts
        question = texts(f"stop.{verb}_question", count=len(agents), agents=_named(agents))
        if not await app.push_screen_wait(ConfirmDialog(texts(f"stop.{verb}_title"), question)):
            return {}
        answers = await asyncio.gather(*(app.act(tool, {"agent_id": agent}) for agent in agents))
        done: dict[str, int] = {}
        for agent, answer in zip(agents, answers, strict=True):
            if answer is not None and answer["success"]:
                done[agent] = cast(int, answer["row"])
            elif answer is not None:
                reason = f"{answer['message']} {answer['suggestion']}"
                app.show_message(texts(f"stop.{verb}_failed", agent=sanitize(agent), reason=reason), "error")
        if done:
            app.show_message(texts(f"stop.{verb}_done", agents=_named(list(done))))
        return done


def _named(agents: Sequence[str]) -> str:
    return ", ".join(map(sanitize, agents))
