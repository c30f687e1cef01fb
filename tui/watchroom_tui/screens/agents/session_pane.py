"""Show the session of the selected agent."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from watchroom.features.budgets.rows import UsageTotal
from watchroom.features.overview.agents import AgentView
from watchroom.features.sessions.reads import list_sessions
from watchroom.features.sessions.rows import parking_of
from watchroom.kernel.rules.details import StepDetail
from watchroom.model import Row, SessionStatus

from watchroom_tui.formatters import labels
from watchroom_tui.formatters.check_texts import claim_text
from watchroom_tui.formatters.transcript import TranscriptEntry, make_entries
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.readers.session import SessionReader, SessionSnapshot
from watchroom_tui.screens.agents.transcript_view import TranscriptView

if TYPE_CHECKING:
    from watchroom_tui.base_screen import BaseScreen


class _Shown(NamedTuple):
    """The session that is shown. The fields after ``path`` are set only for the agent's newest session.

    - ``last``: its last step.
    - ``streams``: the row of the newest text that its model is writing.
    - ``lost``: a text about the lost agent, empty if the agent is not lost.
    """

    path: str
    last: Row | None = None
    streams: Row | None = None
    lost: str = ""
    check: str = ""
    """A text about its claim that it is done."""
    is_paused: bool = False
    """Whether the agent is paused. The newest step does not always show it."""
    is_stopped: bool = False
    """Whether its process ended before the session did. No step shows it."""


class SessionPane:
    """Shows the newest session of an agent, or a chosen older session, in ``view``."""

    def __init__(self, screen: BaseScreen, view: TranscriptView) -> None:
        self._screen = screen
        self._app = screen.dashboard
        self._view = view
        self._reader = SessionReader(self._app.journal)
        self._agent: AgentView | None = None
        self._as_of = 0
        self._chosen: str | None = None
        self._wanted_step = 0
        self._steps_asked = 0
        self._shown: _Shown | None = None
        self._entries: tuple[object, list[TranscriptEntry]] = (None, [])

    def _start(self, work: Callable[[], Awaitable[None]], group: str, *, exclusive: bool = False) -> None:
        self._screen.run_worker(work, group=group, exclusive=exclusive)

    def choose(self, path: str | None, step: int = 0) -> None:
        """Choose the session that the next `show` shows.

        - ``path``: the session, None for the newest one.
        - ``step``: the version of the step under the cursor, 0 for the end.
        """
        self._chosen, self._shown, self._wanted_step = path, None, step

    def leave_others(self, agent: str) -> None:
        """Show the newest session of ``agent``, unless a session of ``agent`` is already chosen. Navigation
        to a session chooses it before the cursor moves to its agent."""
        if self._chosen is None or self._chosen.partition("/")[0] != agent:
            self.choose(None)

    def show(self, agent: AgentView | None, as_of: int) -> None:
        """Show the session of ``agent`` as of row ``as_of``."""
        self._agent, self._as_of = agent, as_of
        session = agent.session if agent else None
        if agent is None or session is None:
            if self._shown is not None or self._chosen is None:
                self._shown = None
                self._view.clear()
            return
        shown = self._shown.path if self._shown else session.path
        if self._chosen is None and shown != session.path and self._view.is_being_read:
            # The agent has begun another session, but a person is still reading this one.
            self._chosen = shown
        path = self._chosen or session.path
        wanted = _Shown(path)
        if path == session.path:
            is_paused = agent.status(self._app.now()) == "paused"
            check = claim_text(agent, self._app.texts, has_checks=self._app.model.has_checks)
            wanted = _Shown(
                path,
                session.last,
                session.streams,
                self._lost_text(agent),
                check,
                is_paused,
                agent.is_stopped,
            )
        if wanted != self._shown:
            self._shown = wanted
            self._start(partial(self._load, path, as_of), "session", exclusive=True)

    def step(self, older: int) -> None:
        """Go back by this number of sessions, or forward if ``older`` is negative."""
        if self._agent is not None and self._agent.session is not None:
            # Keys pressed while the sessions are listed count, too.
            self._steps_asked += older
            self._start(partial(self._step, self._agent.agent.id), "session-step", exclusive=True)

    async def _step(self, agent: str) -> None:
        found = await asyncio.to_thread(list_sessions, self._app.journal, agent, as_of=self._as_of)
        paths = [row.path for row in found]
        if not paths:
            return
        now = self._shown.path if self._shown else paths[-1]
        at = paths.index(now) if now in paths else len(paths) - 1
        at = max(0, min(len(paths) - 1, at - self._steps_asked))
        self._steps_asked = 0
        self.choose(None if at == len(paths) - 1 else paths[at])
        self.show(self._agent, self._as_of)

    async def _load(self, path: str, as_of: int) -> None:
        agent = path.partition("/")[0]
        reading, entries = await asyncio.to_thread(self._read, path, as_of)
        if not reading.steps:
            self._view.clear()
            return
        self._view.set_class(self._chosen is not None, "-past")
        self._view.show_session(path, entries, (agent, reading.saying), title=self._title(reading))
        if self._wanted_step and path == self._chosen:
            self._view.move_to_step(self._wanted_step)
            self._wanted_step = 0

    def _read(self, path: str, as_of: int) -> tuple[SessionSnapshot, list[TranscriptEntry]]:
        reading = self._reader.read(path, as_of)
        # A cancelled read may still run in its thread and replace `_entries`.
        steps, entries = self._entries
        if reading.steps is not steps:
            entries = make_entries(path.partition("/")[0], reading.steps, self._app.texts)
            self._entries = reading.steps, entries
        return reading, entries

    def _title(self, reading: SessionSnapshot) -> str:
        texts, detail = self._app.texts, StepDetail.of(reading.steps[-1].row)
        tokens = labels.format_count(detail.tokens)
        parts = [
            f"{texts('pane.session')} {self._state(reading, detail.status)}",
            texts("session.steps", count=detail.steps),
            texts(f"session.tokens{'_estimated' * bool(detail.estimated_tokens)}", count=tokens),
        ]
        if detail.cost:
            parts.append(labels.cost_text(UsageTotal(cost=detail.cost, unpriced=detail.unpriced)))
        if self._shown is not None and self._shown.check:
            parts.insert(1, self._shown.check)
        if self._chosen:
            parts.insert(0, texts("session.earlier", id=sanitize(reading.path[-labels.SESSION_WIDTH :])))
        return " · ".join(parts)

    def _state(self, reading: SessionSnapshot, status: SessionStatus) -> str:
        """Return the mark and name of the session's state. The newest step does not show that the process was
        killed, so ``lost`` is checked first."""
        if self._shown is not None and self._shown.lost:
            return f"{labels.STATUS_MARKS['lost'].text} {sanitize(self._shown.lost)}"
        shown: SessionStatus = "running" if reading.saying else status
        if self._shown is not None and self._shown.is_paused:
            shown = "paused"
        if self._shown is not None and self._shown.is_stopped and shown in ("running", "parked", "paused"):
            return f"{labels.STATUS_MARKS['idle'].text} {self._app.texts('agents.stopped')}"
        last = self._shown.last if self._shown is not None else None
        if shown == "parked" and last is not None and (parking := parking_of(last)) is not None:
            text = labels.parking_text(parking, last.time, self._app.texts)
            return f"{labels.SESSION_MARKS[shown].text} {text}"
        return f"{labels.SESSION_MARKS[shown].text} {self._app.texts(f'session.status.{shown}')}"

    def _lost_text(self, agent: AgentView) -> str:
        """Return that the agent is lost, and the command that resumes it, if it is known. Empty if the agent
        is not lost. Not sanitized."""
        if not agent.is_lost:
            return ""
        resume = self._app.model.message_reader(agent.agent.id).hint
        return labels.lost_agent_text(agent, resume, self._app.texts)
