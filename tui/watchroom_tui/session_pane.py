"""Show the session of the selected agent, and act on it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, cast

from watchroom.model import CANCEL, PAUSE, RESUME, Row, SessionStatus
from watchroom.projections import AgentView

from watchroom_tui import describe
from watchroom_tui.readers.session import SessionReader, SessionSnapshot
from watchroom_tui.sanitize import sanitize
from watchroom_tui.services.agent_actions import AgentActions
from watchroom_tui.transcript import TranscriptEntry, make_entries
from watchroom_tui.widgets.session_view import TranscriptView

if TYPE_CHECKING:
    from watchroom_tui.screens.agents import AgentsScreen


class SessionPane:
    """Shows in ``view`` the newest session of an agent, or an older one that was chosen."""

    def __init__(self, screen: AgentsScreen, view: TranscriptView) -> None:
        self._screen = screen
        self._app = screen.watchroom
        self._view = view
        self._reader = SessionReader(self._app.journal)
        self._agent: AgentView | None = None
        self._as_of = 0
        self._chosen: str | None = None
        self._steps_asked = 0
        self._shown: tuple[str, Row | None, Row | None] | None = None
        self._entries: tuple[object, list[TranscriptEntry]] = (None, [])
        self._agent_actions = AgentActions(screen)

    def _start(self, work: Callable[[], Awaitable[None]], group: str, *, exclusive: bool = False) -> None:
        self._screen.run_worker(work, group=group, exclusive=exclusive)

    def choose(self, path: str | None) -> None:
        """Show the session at ``path``; None shows the newest."""
        self._chosen, self._shown = path, None

    def show(self, agent: AgentView | None, as_of: int) -> None:
        """Bring the pane up to the model as of row ``as_of``."""
        self._agent, self._as_of = agent, as_of
        session = agent.session if agent else None
        if session is None:
            if self._shown is not None or self._chosen is None:
                self._shown = None
                self._view.clear()
            return
        shown = self._shown[0] if self._shown else session.path
        if self._chosen is None and shown != session.path and self._view.is_being_read:
            # The agent has begun another one, but nothing is taken from under a reader's eyes.
            self._chosen = shown
        path = self._chosen or session.path
        is_newest = path == session.path
        wanted = (path, session.last, session.streams) if is_newest else (path, None, None)
        if wanted != self._shown:
            self._shown = wanted
            self._start(partial(self._load, path, as_of), "session", exclusive=True)

    def step(self, older: int) -> None:
        """Go to the session before this one, or with a negative number to the one after it."""
        if self._agent is not None and self._agent.session is not None:
            # Keys that come while the sessions are looked up count, too.
            self._steps_asked += older
            self._start(partial(self._step, self._agent.agent.id), "session-step", exclusive=True)

    async def _step(self, agent: str) -> None:
        journal, as_of = self._app.journal, self._as_of

        def found() -> list[Row]:
            heads = journal.heads("session", f"{agent}/", as_of=as_of)
            return sorted(heads, key=lambda row: row.seq)

        rows = await asyncio.to_thread(found)
        paths = [row.path for row in rows]
        if not paths:
            return
        now = self._shown[0] if self._shown else paths[-1]
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
        self._view.show_session(path, entries, (agent, reading.saying), title=self._title(reading))

    def _read(self, path: str, as_of: int) -> tuple[SessionSnapshot, list[TranscriptEntry]]:
        reading = self._reader.read(path, as_of)
        # A reading that was given up may still be at work in its thread.
        steps, entries = self._entries
        if reading.steps is not steps:
            entries = make_entries(path.partition("/")[0], reading.steps, self._app.texts)
            self._entries = reading.steps, entries
        return reading, entries

    def _title(self, reading: SessionSnapshot) -> str:
        texts, last = self._app.texts, reading.steps[-1].row
        detail = last.detail
        status = cast("SessionStatus", detail.get("status", "idle"))
        if reading.saying:
            status = "running"
        tokens = detail.get("tokens")
        used = sum(each for each in tokens if isinstance(each, int)) if isinstance(tokens, list) else 0
        parts = [
            (
                f"{texts('pane.session')} {describe.SESSION_MARKS[status].text}"
                f" {texts(f'session.status.{status}')}"
            ),
            texts("session.steps", count=detail.get("step", 0)),
            texts(
                f"session.tokens{'_estimated' * ('estimated' in detail)}", count=describe.format_count(used)
            ),
        ]
        if self._chosen:
            parts.insert(0, texts("session.earlier", id=sanitize(reading.path[-describe.SESSION_WIDTH :])))
        return " · ".join(parts)

    def write_message(self) -> None:
        agent = self._steerable()
        if agent is not None:
            self._agent_actions.write_message(agent)

    def hold_or_release(self) -> None:
        agent = self._steerable()
        if agent is None or self._agent is None or self._agent.session is None:
            return
        is_held = self._agent.session.status in ("paused", "error")
        self._agent_actions.start(partial(self._hold, agent, is_held))

    async def _hold(self, agent: str, is_held: bool) -> None:
        texts = self._app.texts
        if await self._agent_actions.act(RESUME if is_held else PAUSE, {"agent_id": agent}):
            self._app.show_message(
                texts("session.resumed" if is_held else "session.paused", agent=sanitize(agent))
            )

    def end(self) -> None:
        agent = self._steerable()
        if agent is not None:
            texts, name = self._app.texts, sanitize(agent)
            question = texts("session.end_question", agent=name)
            done = texts("session.ended", agent=name)
            act = partial(self._agent_actions.confirm_and_act, texts("session.end_title"), question)
            self._agent_actions.start(partial(act, CANCEL, {"agent_id": agent}, done))

    def _steerable(self) -> str | None:
        """The agent, if it has a session that heeds what is said now; else says why not."""
        if self._agent is None:
            if self._agent_actions.can_act():
                self._app.show_message(self._app.texts("session.none"), "warning")
            return None
        agent = self._agent.agent.id
        return agent if self._agent_actions.can_receive(agent) else None
