"""Sessions as rows: each step is the next version of its session's path, so one process alone can take it.
The version is the fencing number: a process that takes a session over moves it before anything else.

What a step gave is its row's content. What happens within a step (streamed text, a tool call that begins) are
notes on the same path. People steer an agent with notes on its id, or on one of its sessions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from watchroom import validation
from watchroom.errors import SessionExists, SessionNotFound, SessionTaken, UnknownAgent
from watchroom.journal.topics import messages_to, steps_of
from watchroom.model import CONTINUE, MESSAGE, PRESENCE, SPAWN, STREAM, Json, Note, Row, Write
from watchroom.rules.decisions import WRONG_FORM, takes_effect
from watchroom.rules.details import get_int
from watchroom.rules.effects import effect_of
from watchroom.rules.messages import HANDED_OVER
from watchroom.rules.presence import presence_of
from watchroom.texts import catalogue
from watchroom.zones.people import PeopleZone
from watchroom.zones.policy_guard import PolicyGuard
from watchroom.zones.store import Store

ZONE: Final = "session"
_AGENTS: Final = "agent"
"""The zone in which agents speak to each other."""
BEGIN: Final = "begin_session"
TOOL_BEGINS: Final = "tool_begins"
HEARD_IN_SESSION: Final = "heard_in_session"
"""In the detail of a step of a client's session that an earlier version began: its newest step of then."""
_STANDS_AT: Final = "version"
"""In the detail of a call that begins: the number at which the session stood."""
_LONGEST_LINE: Final = 200


class SessionRecord(NamedTuple):
    """A ``row`` of a session with its content, ``text``.

    ``is_verified``: False for a message in a person's name that has no valid signature and needs one.
    """

    row: Row
    text: str
    is_verified: bool = True


class SessionZone:
    """The steps of agents' sessions, in ``store``; ``policy`` decides about their calls, ``people`` says
    which of what was said to them counts."""

    def __init__(self, store: Store, policy: PolicyGuard, people: PeopleZone) -> None:
        self._store = store
        self._people = people
        self.policy = policy

    def now(self) -> int:
        """The time by the journal's clock, in nanoseconds since the epoch."""
        return self._store.journal.now()

    def begin(self, agent: str, session: str, text: str, message: str, detail: Mapping[str, Json]) -> Row:
        """The first row of ``session`` of ``agent``, with its content ``text``, ``message`` and ``detail``.
        Raises `UnknownAgent`, `InvalidSession`, `SessionExists`."""
        self._store.registry.agent(agent)
        path = session_path(agent, validation.check_session_id(session))
        row = self._store.write(Write(agent, BEGIN, ZONE, path, text, message, 0, self._present(detail))).row
        if row.outcome != "ok":
            raise SessionExists(session=path)
        return row

    def step(
        self,
        path: str,
        version: int,
        tool: str,
        text: str,
        message: str,
        detail: Mapping[str, Json],
        *,
        key: str = "",
    ) -> Row:
        """The next row of the session at ``path`` that stands at ``version``, by ``tool``, with its content
        ``text``, ``message`` and ``detail``. With a ``key`` that a row of the agent has already, that row is
        returned. A ``detail`` that names the lease of another process keeps it: that one goes on with the
        session. Raises `SessionTaken` if the session does not stand there."""
        agent, _ = split_session(path)
        draft = Write(agent, tool, ZONE, path, text, message, version, self._present(detail), key=key)
        row = self._store.write(draft).row
        if row.outcome != "ok":
            raise SessionTaken(session=path)
        return row

    def _present(self, detail: Mapping[str, Json]) -> dict[str, Json]:
        """The detail of a step, and which process goes on with it: this one unless it says another."""
        return {**detail, PRESENCE: detail.get(PRESENCE) or self._store.journal.present()}

    def take_over(self, last: Row, text: str, detail: Mapping[str, Json]) -> Row:
        """Go on in this process with the session whose newest step is ``last``: its number moves by a row
        with the content ``text`` and the ``detail``, so that the next step of the process that had it is
        refused, whenever that wakes. Returns the row from which it goes on: ``last`` where this process took
        that. Raises `SessionTaken` if the session does not stand there any more."""
        if presence_of(last) == self._store.journal.present():
            return last
        return self.step(last.path, last.version or 0, CONTINUE, text, last.message, detail)

    def record_takeover(self, last: Row, detail: Mapping[str, Json] | None = None) -> None:
        """Note soon that this process goes on with the session whose newest step is ``last``, if another one
        took that, with what else ``detail`` says of it. It refuses nobody: for a session that has ended, and
        one of a client, of which any process may write the next step."""
        presence = self._store.journal.present()
        if presence_of(last) != presence:
            agent, _ = split_session(last.path)
            told = {**(detail or {}), PRESENCE: presence}
            note = Note(agent, CONTINUE, ZONE, last.path, base=last.version, detail=told, durable=False)
            self._store.commits.note(note)

    def note(
        self,
        actor: str,
        tool: str,
        path: str,
        message: str,
        detail: Mapping[str, Json],
        *,
        base: int | None = None,
        key: str = "",
    ) -> Row:
        """Note, as ``actor``, what ``tool`` did to the session at ``path``: ``message``, ``detail``, and the
        number ``base`` that it is about. With a ``key`` that a row of the actor has already, that row is
        returned. Raises `JournalError`."""
        note = Note(actor, tool, ZONE, path, message=_line(message), base=base, detail=detail, key=key)
        return self._store.commits.commit(note).row

    def record_stream(self, path: str, text: str) -> None:
        """Note ``text``, a piece of a model's answer in the session at ``path``, soon: the whole answer comes
        with the step."""
        agent, _ = split_session(path)
        self._store.commits.note(
            Note(agent, STREAM, ZONE, path, message=_line(text), content=text, durable=False)
        )

    def record_tool_start(self, path: str, version: int, key: str, tool: str) -> None:
        """Note, durably, that the call ``key`` of ``tool`` begins in the session at ``path``, whose outcome
        could not be found out later. Raises `SessionTaken` if the session, which stood at ``version``, was
        taken, or the call was begun elsewhere: of several processes one alone may go on to run it."""
        agent, _ = split_session(path)
        detail: dict[str, Json] = {"key": key, "tool": validation.escape_unstorable(tool, 100)}
        detail[_STANDS_AT] = version
        row = self._store.commits.commit(Note(agent, TOOL_BEGINS, ZONE, path, detail=detail)).row
        head = self._store.journal.head(ZONE, path)
        if head is None or head.version != version or key in self._begun(path, head, row.seq - 1):
            raise SessionTaken(session=path)

    def _begun(self, path: str, head: Row, until: int) -> frozenset[str]:
        """The keys of the calls that began since the step ``head``, but those of a process from which the
        session was taken: it was refused."""
        rows = self._starts(path, head.seq, until)
        return frozenset(
            str(row.detail["key"]) for row in rows if row.detail.get(_STANDS_AT, head.version) == head.version
        )

    def started_calls(self, path: str, after: int, until: int | None = None) -> frozenset[str]:
        """The keys of the calls that began in the session at ``path`` after row ``after``, up to row
        ``until`` if that is given."""
        return frozenset(str(row.detail["key"]) for row in self._starts(path, after, until))

    def _starts(self, path: str, after: int, until: int | None) -> list[Row]:
        agent, _ = split_session(path)
        return self._store.journal.notes(ZONE, path, agent, TOOL_BEGINS, after=after, until=until)

    def history(self, path: str) -> list[SessionRecord]:
        """The rows of all steps of the session at ``path``, oldest first. Raises `SessionNotFound`."""
        rows = self._store.journal.history(ZONE, path)
        if not rows:
            raise SessionNotFound(session=path)
        return [SessionRecord(row, self._store.content(row)) for row in rows]

    def first_message_after(self, agent: str) -> int | None:
        """The row after which others may have written to ``agent``, which has no session yet: that by which
        it was spawned. None where nobody can have. Raises `UnknownAgent`."""
        born = self._store.journal.version(_AGENTS, agent, 1)
        if born is not None and born.tool == SPAWN:
            return born.seq
        return 0 if self._store.registry.agent(agent).task else None

    def newest(self, path: str) -> Row | None:
        """The newest step of the session at ``path``, None if there is no such session."""
        return self._store.journal.head(ZONE, path)

    def newest_step(self, agent: str) -> Row | None:
        """The newest step of any session of ``agent``, None if it has none."""
        return next(iter(self._store.journal.topic(steps_of(agent), limit=1)), None)

    def heads(self, agent: str = "") -> list[Row]:
        """The newest step of each session, of all agents or of ``agent``."""
        return list(self._store.journal.heads(ZONE, f"{agent}/" if agent else ""))

    def control(self, actor: str, tool: str, agent: str, session: str | None, text: str) -> Row:
        """A person's word to the sessions of ``agent``, or to its ``session``: ``actor`` pauses, resumes,
        cancels or writes ``text``, as ``tool`` says. Returns the note's row. Raises `InvalidAgentId`,
        `UnknownAgent`, `InvalidSession`, `SessionNotFound`."""
        if self._store.registry.current().agents.get(validation.check_agent_id(agent)) is None:
            raise UnknownAgent(agent=agent, known=", ".join(self._store.registry.current().agents) or "-")
        path = agent
        if session is not None:
            path = session_path(agent, validation.check_session_id(session))
        of_agent = next(self._store.journal.heads(ZONE, f"{agent}/"), None)
        if of_agent is None or (session is not None and self._store.journal.head(ZONE, path) is None):
            raise SessionNotFound(session=path)
        note = Note(actor, tool, ZONE, path, message=text[:200], content=text or None)
        return self._store.commits.commit(note).row

    def controls(self, path: str, after: int) -> list[SessionRecord]:
        """Return what was said to the session at ``path`` after row ``after`` and counts, oldest first. A
        message that nobody signed is among it, marked as unverified."""
        agent, _ = split_session(path)
        journal = self._store.journal
        last = journal.last_seq()
        topics = (messages_to(ZONE, path), messages_to(ZONE, agent), messages_to(_AGENTS, agent))
        rows = (row for topic in topics for row in journal.topic(topic, after=after, until=last))
        return [self.record(row) for row in sorted(rows, key=lambda row: row.seq) if self.counts(row)]

    def counts(self, row: Row) -> bool:
        """Whether what ``row`` says to a session reaches it: to resume one has to be signed in a closed
        workspace; an unsigned message is read as unverified."""
        flaw = self._people.find_flaw(row)
        return takes_effect(row, flaw) or (effect_of(row) == "message" and flaw != WRONG_FORM)

    def handed_over_until(self, place: str) -> int:
        """Return the newest row up to which the messages to ``place`` were handed over to a model; 0 if none
        was. ``place`` is an agent's id or a session's path. Raises `JournalError`."""
        agent, _ = split_session(place)
        if place == agent:
            known = heard_until(self.newest_step(agent))
        else:
            known = heard_in_session(self.newest(place))
        return max(self._handed_over_by_note(place), known)

    def _handed_over_by_note(self, place: str) -> int:
        """As `handed_over_until`, of messages that clients were given."""
        agent, _ = split_session(place)
        note = self._store.journal.last_note(ZONE, place, agent, HANDED_OVER)
        return (note.base or 0) if note is not None else 0

    def is_handed_over(self, row: Row) -> bool:
        """Whether ``row`` is a message that a client of its agent was given. Raises `JournalError`."""
        return row.tool == MESSAGE and row.seq <= self._handed_over_by_note(row.path)

    def records(self, numbers: Iterable[int]) -> list[SessionRecord]:
        """The rows with these ``numbers``, without those that there are not."""
        return [
            self.record(row) for number in numbers if (row := self._store.journal.row(number)) is not None
        ]

    def record(self, row: Row) -> SessionRecord:
        """Return ``row`` with its content; a person's message that does not count is marked as unverified."""
        text = self._store.content(row)
        is_verified = effect_of(row) != "message" or not self._people.find_flaw(row)
        if not is_verified:
            texts = catalogue(self._store.registry.current().language)
            text = texts("session.unverified", actor=row.actor, text=text)
        return SessionRecord(row, text, is_verified)


def session_path(agent: str, session: str) -> str:
    """The path of ``session`` of ``agent``."""
    return f"{agent}/{session}"


def heard_until(step: Row | None) -> int:
    """Return the row up to which an agent had got its messages as of ``step``, the newest of its sessions; 0
    if there is none. Clients' sessions of earlier versions do not say: they had got all that came before."""
    if step is None:
        return 0
    heard = get_int(step.detail, "heard")
    return step.seq if heard is None else heard


def heard_in_session(step: Row | None) -> int:
    """As `heard_until`, of the messages to the very session whose newest step is ``step``. No message to a
    session is older than its first row."""
    if step is None:
        return 0
    return (get_int(step.detail, HEARD_IN_SESSION) or 0) if "heard" in step.detail else step.seq


def split_session(path: str) -> tuple[str, str]:
    """The agent and the session's id of ``path``."""
    agent, _, session = path.partition("/")
    return agent, session


def _line(text: str) -> str:
    """A text in a line, for lists."""
    return validation.escape_unstorable(text.replace("\n", " ").strip(), _LONGEST_LINE)
