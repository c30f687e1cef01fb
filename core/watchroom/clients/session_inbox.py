"""What was sent to the session of a client: whether it is paused or cancelled, and messages."""

from __future__ import annotations

from threading import Lock
from typing import NamedTuple

from watchroom.clients.hooks import fetch_notifications
from watchroom.clients.session import ClientSession
from watchroom.model import CANCEL, PAUSE, RESUME, Row
from watchroom.texts import catalogue
from watchroom.workspace import Workspace
from watchroom.zones.messages import Handover


class Controls(NamedTuple):
    """What people have said to a session: who paused it, empty where it is not paused; the row by which it
    was cancelled and has not been prompted since."""

    paused_by: str = ""
    cancelled: Row | None = None


class SessionInbox:
    """What was sent to the sessions of ``agent`` in ``workspace``. May be used from any thread."""

    def __init__(self, workspace: Workspace, agent: str) -> None:
        self._workspace = workspace
        self._agent = agent
        self.prompted: dict[str, int] = {}
        """The row of the newest prompt that this process has seen, by the path of the session."""
        self._lock = Lock()
        self._read: dict[str, tuple[int, Controls]] = {}
        """How far the controls of a session were read, by its path, and what they came to."""

    def controls(self, session: ClientSession, main: str) -> Controls:
        """What people have said to ``session``, which is the one at the path ``main`` or a subagent's of it.
        Raises `JournalError`."""
        paused_by, cancelled = self._read_controls(main)
        begun = self._workspace.journal.version("session", main, 1)
        if cancelled is not None and not self._is_cancelled(cancelled, session, main, begun):
            cancelled = None
        return Controls(paused_by, cancelled)

    def _read_controls(self, main: str) -> Controls:
        """What was said to the session at ``main``, each row of which is read once."""
        with self._lock:
            seq, (paused_by, cancelled) = self._read.get(main, (0, Controls()))
            for record in self._workspace.session_zone.controls(main, seq):
                seq = record.row.seq
                if record.row.tool in (PAUSE, RESUME):
                    paused_by = record.row.actor if record.row.tool == PAUSE else ""
                elif record.row.tool == CANCEL:
                    cancelled, paused_by = record.row, ""
            known = Controls(paused_by, cancelled)
            self._read[main] = (seq, known)
            return known

    def forget(self, main: str) -> None:
        """Keep nothing of the session at the path ``main`` in memory: asked again, it is read anew."""
        with self._lock:
            self._read.pop(main, None)
            self.prompted.pop(main, None)

    def _is_cancelled(self, cancelled: Row, session: ClientSession, main: str, begun: Row | None) -> bool:
        """Whether a person's word still holds: until the next prompt."""
        if begun is not None and cancelled.seq < begun.seq:
            return False
        prompted = self.prompted.get(main)
        if prompted is not None:
            return cancelled.seq > prompted
        last = session.last
        return cancelled.seq > last.seq or session.status == "cancelled"

    def take_news(self, main: str, handover: Handover) -> str:
        """Return what has come for the agent, empty if nothing has: handoffs and settled conflicts since the
        last call, which count as delivered, and the messages that ``handover`` takes for the session at the
        path ``main``. Raises `JournalError`."""
        language = self._workspace.config.language
        texts = catalogue(language)
        news = [fetch_notifications(self._workspace, self._agent, language)]
        # Each message begins a line, and nothing within one does.
        news += [
            texts("hook.message", sender=each.row.actor, text="\n  ".join(each.text.splitlines()))
            for each in handover.take(main)
        ]
        return "\n".join(each for each in news if each)
