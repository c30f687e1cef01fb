"""Pause all working agents, show proof that they have stopped, and resume them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, cast

from watchroom.features.overview.agents import AgentView
from watchroom.model import RELEASE_AGENTS, STOP_AGENTS, Json

from watchroom_tui.context import Dashboard
from watchroom_tui.dialogs.confirm import ConfirmDialog
from watchroom_tui.dialogs.stop import StopDialog, StopProgress, StopState
from watchroom_tui.presentation.sanitize import sanitize

if TYPE_CHECKING:
    from watchroom.workspace import Workspace

PATIENCE: Final = 10.0
"""Timeout in seconds for the proof that an agent has paused."""
_LOOK_SECONDS: Final = 0.1
"""Seconds between checks. Polling is needed, because the end of a process may write no row."""
_GOES_ON: Final = ("idle", "running", "waiting_for_human_input", "parked")
"""The statuses of sessions of working agents."""


class AgentStop:
    """Service that pauses all agents and resumes the paused agents. The journal lists the paused agents.
    ``patience``: timeout in seconds for the proofs."""

    def __init__(self, app: Dashboard, patience: float = PATIENCE) -> None:
        self._app = app
        self._patience = patience

    async def toggle(self) -> None:
        """Ask whether to pause all working agents. Ask whether to resume the paused agents if no agent works.

        Show for each agent whether its stop is proven, or why the agent could not be notified. Await this in
        a worker.
        """
        app = self._app
        if not app.can_act:
            app.explain_read_only()
            return
        doubted = await asyncio.to_thread(self._find_doubted)
        at_work = [
            view.agent.id
            for view in app.model.agents
            if self._is_at_work(view) or (view.agent.id in doubted and view.agent.id not in app.model.stopped)
        ]
        stopped = [view.agent.id for view in app.model.agents if self._is_held(view)]
        if at_work:
            answer = await self._act(STOP_AGENTS, {"agents": at_work, "everybody": True}, "stop", at_work)
            if answer is not None:
                await self._prove(answer)
        elif stopped or app.model.is_everybody_stopped:
            answer = await self._act(RELEASE_AGENTS, {}, "resume" if stopped else "resume_later", stopped)
            if answer is not None:
                agents = _join_names(_notified_agents(answer))
                done = "stop.resume_done" if agents else "stop.resume_later_done"
                app.show_message(app.texts(done, agents=agents))
        else:
            app.show_message(app.texts("stop.nobody") + self._others())

    def _others(self) -> str:
        """Return a sentence about agents on other machines, which keep running. Empty if there are none."""
        machines = [each.name for each in self._app.machines if each.agents]
        return self._app.texts("stop.others", machines=_join_names(machines)) if machines else ""

    def _find_doubted(self) -> Sequence[str]:
        """Return the agents with an ended session and a client that may still run."""
        # Imported on first use, because the module is slow to load.
        from watchroom.agents.clients.stopping import doubted_agents

        workspace = self._app.workspace
        return doubted_agents(workspace) if workspace is not None else []

    def _is_at_work(self, view: AgentView) -> bool:
        if view.is_ended or not view.is_present or self._is_stopped(view):
            return False
        if view.session is None:
            return view.status(self._app.now()) in ("running", "error")
        return view.session.status in _GOES_ON

    def _is_held(self, view: AgentView) -> bool:
        """Return whether the agent is resumed with the others."""
        return view.agent.id in self._app.model.stopped or (view.is_stopped_with_all and view.is_unfinished)

    def _is_stopped(self, view: AgentView) -> bool:
        """Return whether the agent is paused, or will pause at its next step."""
        if view.is_ended:
            return False
        if view.is_stopped_with_all:
            return True
        last = view.session.last.seq if view.session else 0
        return view.is_paused or last < self._app.model.stopped.get(view.agent.id, 0)

    async def _act(
        self, tool: str, arguments: Mapping[str, Json], verb: str, agents: Sequence[str]
    ) -> Mapping[str, Json] | None:
        """Call ``tool`` if the person confirms. Return the result of the tool, or None if the person declines
        or the call fails. Show the reason for a failure."""
        app, texts = self._app, self._app.texts
        question = texts(f"stop.{verb}_question", count=len(agents), agents=_join_names(agents))
        if tool == STOP_AGENTS:
            question += self._others()
        title = texts("stop.stop_title" if tool == STOP_AGENTS else "stop.resume_title")
        if not await app.push_screen_wait(ConfirmDialog(title, question)):
            return None
        answer = await app.act(tool, arguments)
        if answer is None:
            return None
        if not answer["success"]:
            app.show_failure(answer)
            return None
        return answer

    async def _prove(self, answer: Mapping[str, Json]) -> None:
        """Show which agents of ``answer`` have stopped, until all agents have stopped or the time is up. Show
        the outcome in notices too, because the person may close the dialog."""
        app, workspace = self._app, self._app.workspace
        refused = cast("Mapping[str, str]", answer.get("refused", {}))
        if workspace is None:
            return
        until = time.monotonic() + self._patience
        proofs = await asyncio.to_thread(self._check, workspace, _notified_agents(answer))
        progress = StopProgress(proofs, refused, workspace.root, int(self._patience))
        dialog = StopDialog(progress)
        app.push_screen(dialog)
        while progress.unproven and time.monotonic() < until:
            await asyncio.sleep(_LOOK_SECONDS)
            again = await asyncio.to_thread(self._check, workspace, progress.unproven)
            newer = {proof.agent: proof for proof in again}
            proofs = [newer.get(proof.agent, proof) for proof in proofs]
            progress = progress._replace(agents=proofs)
            dialog.show_progress(progress)
        dialog.show_progress(progress._replace(is_over=True))
        proven = [proof.agent for proof in proofs if proof.is_proven]
        if proven:
            app.show_message(app.texts("stop.stop_done", agents=_join_names(proven)))
        if progress.unproven:
            text = app.texts("stop.not_proven", agents=_join_names(progress.unproven))
            app.show_message(text, "error")
        for agent, reason in refused.items():
            text = app.texts("stop.stop_failed", agent=sanitize(agent), reason=reason)
            app.show_message(text, "error")

    def _check(self, workspace: Workspace, agents: Iterable[str]) -> Sequence[StopState]:
        # Imported on first use, because the module is slow to load.
        from watchroom.agents.clients.stopping import check_paused

        proofs = [check_paused(workspace, agent, self._app.language) for agent in agents]
        return [StopState(proof.agent, proof.is_proven, proof.how) for proof in proofs]


def _notified_agents(answer: Mapping[str, Json]) -> Sequence[str]:
    return list(cast("Mapping[str, int]", answer["rows"]))


def _join_names(agents: Sequence[str]) -> str:
    return ", ".join(map(sanitize, agents))
