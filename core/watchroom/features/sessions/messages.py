"""Messages from people and agents that wait for an agent until they are handed over to its model.

In a session of the runtime, the step that receives a message records the hand-over. For all other agents, a
note records it. The note's base is the newest message that was handed over.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Final, Self

from watchroom.features.config.store import Store
from watchroom.features.sessions.rows import HANDED_OVER, MESSAGES
from watchroom.features.sessions.service import ZONE, SessionRecord, SessionRecords, split_session
from watchroom.kernel.journal.topics import messages_to
from watchroom.model import MESSAGE, SYSTEM, Json, Note
from watchroom.validation import escape_unstorable

_AGENTS: Final = "agent"
_MAX_MESSAGES: Final = 20
"""Maximum number of messages in one hand-over. Later messages follow in the next hand-over."""
_MAX_SUBJECT: Final = 200
"""Maximum characters of a message in lists."""
_MAX_CHARACTERS: Final = 50_000
"""Maximum characters in one hand-over. The first message is always included."""


class Messages:
    """The messages for agents. Usable from any thread."""

    def __init__(self, store: Store, sessions: SessionRecords) -> None:
        self._store = store
        self._sessions = sessions

    def find_waiting(self, path: str) -> list[SessionRecord]:
        """Return the messages that wait for an agent and its session, oldest first.

        ``path``: the path of the session, or the agent's id if the session is unknown. Raise `JournalError`.
        """
        agent, _ = split_session(path)
        journal = self._store.journal
        after = self._sessions.handed_over_until(agent)
        places = [(messages_to(ZONE, agent), after), (messages_to(_AGENTS, agent), after)]
        if path != agent:
            places.append((messages_to(ZONE, path), self._sessions.handed_over_until(path)))
        last = journal.last_seq()
        rows = [row for topic, after in places for row in journal.topic(topic, after=after, until=last)]
        messages = [row for row in rows if row.tool == MESSAGE and row.actor != agent]
        return [
            self._sessions.record(row)
            for row in sorted(messages, key=lambda row: row.seq)
            if self._sessions.counts(row)
        ]

    def record(self, path: str, messages: Sequence[SessionRecord]) -> None:
        """Record that ``messages`` were handed over to the session at ``path``. Raise `JournalError`."""
        agent, _ = split_session(path)
        notes: list[Note] = []
        for place in {agent: None, path: None}:
            rows = [each.row.seq for each in messages if (each.row.path == path) == (place == path)]
            if rows:
                detail: dict[str, Json] = {MESSAGES: list[Json](rows)}
                notes.append(Note(agent, HANDED_OVER, ZONE, place, base=max(rows), detail=detail))
        self._store.commits.commit_all(notes)

    def notify(self, agent: str, text: str, *, key: str = "") -> None:
        """Send ``agent`` a message of Watchroom. ``key``: a second message with this key is not sent."""
        self._store.commits.commit(self.draft(agent, text)._replace(key=key))

    def draft(self, agent: str, text: str) -> Note:
        """Return the draft of a message of Watchroom to ``agent``."""
        subject = escape_unstorable(text, _MAX_SUBJECT)
        content = escape_unstorable(text, len(text))
        return Note(SYSTEM, MESSAGE, _AGENTS, agent, message=subject, content=content)

    def hand_over(self) -> Handover:
        """Return a context manager that hands messages over."""
        return Handover(self._store, self)


class Handover:
    """A context manager that hands messages over to one session.

    First give the messages to the client, then call `record`. If this process dies in between, the messages
    still wait, and are handed over again. Within the context no other process hands messages over to the same
    agent.

    Example::

        with workspace.messages.hand_over() as handover:
            send([each.text for each in handover.take("alice/s-1")])
            handover.record()
    """

    def __init__(self, store: Store, messages: Messages) -> None:
        self._store = store
        self._messages = messages
        self._claim = ExitStack()
        self._path = ""
        self._taken: list[SessionRecord] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    @property
    def is_empty(self) -> bool:
        """Whether all taken messages are recorded."""
        return not self._taken

    def take(self, path: str) -> list[SessionRecord]:
        """Return the messages that wait for the session at ``path`` (`Messages.find_waiting`), oldest first.

        At most 20 messages or 50,000 characters. The result is empty while another process hands messages
        over to the agent. Raise `JournalError`.
        """
        if self._taken or not self._messages.find_waiting(path):
            return []
        agent, _ = split_session(path)
        if not self._claim.enter_context(self._store.journal.claim(f"messages/{agent}")):
            self._claim.close()
            return []
        # Another process may have handed messages over before the claim.
        self._path, self._taken = path, _first(self._messages.find_waiting(path))
        if not self._taken:
            self._claim.close()
        return self._taken

    def record(self) -> None:
        """Record that the taken messages are handed over. Raise `JournalError`."""
        if self._taken:
            self._messages.record(self._path, self._taken)
            self.release()

    def release(self) -> None:
        """Give the taken messages back, so that the next hand-over takes them."""
        self._taken = []
        self._claim.close()


def _first(messages: Sequence[SessionRecord]) -> list[SessionRecord]:
    """Return the messages for one hand-over."""
    first: list[SessionRecord] = []
    characters = 0
    for each in messages[:_MAX_MESSAGES]:
        characters += len(each.text)
        if first and characters > _MAX_CHARACTERS:
            break
        first.append(each)
    return first
