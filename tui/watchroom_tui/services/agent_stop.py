"""Pause every agent that works, and resume those again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast

from watchroom.model import RELEASE_AGENTS, STOP_AGENTS, Json
from watchroom.projections import AgentView

from watchroom_tui.context import Dashboard
from watchroom_tui.dialogs.confirm import ConfirmDialog
from watchroom_tui.sanitize import sanitize

_GOES_ON: Final = ("idle", "running", "waiting_for_human_input")
"""How a session stands that a process goes on with."""


class AgentStop:
    """Stops all agents, or lets those go on that were stopped so. Which these are stands in the journal."""

    def __init__(self, app: Dashboard) -> None:
        self._app = app

    async def toggle(self) -> None:
        """Ask whether all agents at work should be paused; where none is, whether those should go on that
        were stopped together. Says whom it concerned, and who could not be reached and why. Awaits the
        answer: run it in a worker."""
        app = self._app
        if not app.can_act:
            app.explain_read_only()
            return
        at_work = [view.agent.id for view in app.model.agents if self._is_at_work(view)]
        stopped = [view.agent.id for view in app.model.agents if view.agent.id in app.model.stopped]
        if at_work:
            await self._act(STOP_AGENTS, {"agents": at_work}, "stop", at_work)
        elif stopped:
            await self._act(RELEASE_AGENTS, {}, "resume", stopped)
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
        return last < self._app.model.stopped.get(view.agent.id, 0) or (
            view.session is not None and view.session.status == "paused"
        )

    async def _act(self, tool: str, arguments: Mapping[str, Json], verb: str, agents: Sequence[str]) -> None:
        """Call ``tool``, after the person confirmed it, and say whom it reached."""
        app, texts = self._app, self._app.texts
        question = texts(f"stop.{verb}_question", count=len(agents), agents=_named(agents))
        if not await app.push_screen_wait(ConfirmDialog(texts(f"stop.{verb}_title"), question)):
            return
        answer = await app.act(tool, arguments)
        if answer is None:
            return
        if not answer["success"]:
            app.show_message(f"{answer['message']} {answer['suggestion']}", "error")
            return
        for agent, reason in cast("Mapping[str, str]", answer.get("refused", {})).items():
            app.show_message(texts("stop.stop_failed", agent=sanitize(agent), reason=reason), "error")
        told = list(cast("Mapping[str, int]", answer["rows"]))
        app.show_message(texts(f"stop.{verb}_done", agents=_named(told)))


def _named(agents: Sequence[str]) -> str:
    return ", ".join(map(sanitize, agents))
