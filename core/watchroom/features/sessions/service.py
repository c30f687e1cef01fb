"""Sessions as rows. Each step is the next version of its session's path, so only one process can take it.

The version is a fencing token: a process that takes a session over first writes a version. The content of a
row is the result of the step. Streamed text and starts of tool calls are notes on the same path. People steer
an agent by notes on its id or on the path of one of its sessions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from threading import Lock
from typing import Final, NamedTuple

from watchroom import validation
from watchroom.errors import (
    JournalDenied,
    NoReset,
    SessionExists,
    SessionNotFound,
    SessionTaken,
    UnknownAgent,
)
from watchroom.features.budgets.rows import is_subagent_step
from watchroom.features.config.store import Store
from watchroom.features.people.decisions import WRONG_FORM, takes_effect
from watchroom.features.people.rules import STOPPED_PATH, effect_of
from watchroom.features.people.service import PeopleRegistry
from watchroom.features.policy.service import WorkspacePolicy
from watchroom.features.sessions.rows import (
    AT_RESET,
    HANDED_OVER,
    WHEN,
    Parking,
    is_leave,
    is_unfinished,
    parking_of,
    presence_of,
)
from watchroom.features.sessions.rules import stop_of_all_after
from watchroom.kernel.call_context import CallContext
from watchroom.kernel.journal.topics import messages_to, steps_of
from watchroom.kernel.rules.details import get_int, get_text
from watchroom.model import (
    CANCEL,
    CONTINUE,
    LOST,
    MESSAGE,
    PAUSE,
    PRESENCE,
    RESUME,
    SPAWN,
    STREAM,
    SYSTEM,
    Json,
    Note,
    Row,
    Write,
)
from watchroom.texts import catalogue

ZONE: Final = "session"
_AGENTS: Final = "agent"
"""The zone of messages between agents."""
BEGIN: Final = "begin_session"
TOOL_BEGINS: Final = "tool_begins"
HEARD_IN_SESSION: Final = "heard_in_session"
"""A key in the steps of client sessions that began in earlier releases: the row up to which the session had
received its messages."""
_STANDS_AT: Final = "version"
"""The key of the session's version in the detail of a note about the start of a call."""
OF_STOP: Final = "of_stop"
"""A key in the detail of a pause: it is part of a stop of several agents, which is recorded after it."""
_LONGEST_LINE: Final = 200
STEERING: Final = (PAUSE, RESUME, CANCEL)
_MAX_TOPICS: Final = 3000
"""Maximum number of topics whose newest instructions are kept. Other topics are read again when needed."""


class SessionRecord(NamedTuple):
    """A ``row`` of a session with its content, ``text``.

    ``is_verified``: False for a message in a person's name that has no valid signature and needs one.
    """

    row: Row
    text: str
    is_verified: bool = True


class SessionPlace(NamedTuple):
    """The ``folder`` in which the newest session of ``agent`` began. ``is_open``: the session has not
    ended."""

    agent: str
    folder: str
    is_open: bool


class Steering(NamedTuple):
    """The instructions for an agent or a session.

    - ``pause``: the row that pauses it, None if it is not paused.
    - ``newest``: the newest row that pauses, resumes or cancels it. A stop of all agents is left out.
    - ``cancelled``: the newest row that cancels it.
    """

    pause: Row | None
    newest: Row | None
    cancelled: Row | None


class SessionRecords:
    """The rows of agents' sessions. Usable from any thread.

    - ``policy``: decides on the calls of sessions.
    - ``people``: knows which rows of people take effect.
    """

    def __init__(self, store: Store, policy: WorkspacePolicy, people: PeopleRegistry) -> None:
        self._store = store
        self._people = people
        self.policy = policy
        self._lock = Lock()
        self._steered: dict[str, tuple[int, Mapping[str, Row]]] = {}
        """By topic: the newest row that was read, and the newest instruction of each tool."""
        self._stop_of_all: tuple[int, Row | None] = (0, None)
        """The newest version of the list of stopped agents, and the stop of all agents as of that version."""

    def now(self) -> int:
        """Return the time of the journal's clock, in nanoseconds since the epoch."""
        return self._store.journal.now()

    def begin(self, agent: str, session: str, text: str, message: str, detail: Mapping[str, Json]) -> Row:
        """Write the first row of ``session`` of ``agent``, with the content ``text``. Raise `UnknownAgent`,
        `InvalidSession`, `SessionExists`."""
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
        """Write the next step of the session at ``path``.

        - ``version``: the version of the step before.
        - ``tool``: the kind of the step.
        - ``text``: the content of the row.
        - ``detail``: may name the presence lease of the process that runs the session, default this one.
        - ``key``: if the agent already has a row with this key, that row is returned.

        Raise `SessionTaken` if the session is not at ``version``.
        """
        agent, _ = split_session(path)
        draft = Write(agent, tool, ZONE, path, text, message, version, self._present(detail), key=key)
        row = self._store.write(draft).row
        if row.outcome != "ok":
            raise SessionTaken(session=path)
        return row

    def _present(self, detail: Mapping[str, Json]) -> dict[str, Json]:
        """Return ``detail`` with the presence lease of the process that runs the session, by default this
        process."""
        return {**detail, PRESENCE: detail.get(PRESENCE) or self._store.journal.presence.hold()}

    def take_over(self, last: Row, text: str, detail: Mapping[str, Json]) -> Row:
        """Take over the session whose newest step is ``last``. The former process can then write no more
        steps.

        Write a step with the content ``text`` and ``detail``, unless this process wrote ``last``. Return the
        newest step. Raise `SessionTaken` if there is a newer step than ``last``.
        """
        if presence_of(last) == self._store.journal.presence.hold():
            return last
        return self.step(last.path, last.version or 0, CONTINUE, text, last.message, detail)

    def record_takeover(self, last: Row, detail: Mapping[str, Json] | None = None) -> bool:
        """Record that this process now runs a session that another process ran. Return whether another
        process ran it. ``last``: the newest step of the session.

        The note is written in the background, and does not exclude other processes. It is for ended sessions,
        and for sessions of clients: any process may write their next step. ``detail``: additional fields for
        the note's detail.
        """
        presence = self._store.journal.presence.hold()
        if presence_of(last) == presence:
            return False
        agent, _ = split_session(last.path)
        fields = {**(detail or {}), PRESENCE: presence}
        note = Note(agent, CONTINUE, ZONE, last.path, base=last.version, detail=fields, durable=False)
        self._store.commits.note(note)
        return True

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
        """Write a note about the session at ``path`` and return its row.

        - ``actor``, ``tool``: the actor and the kind of the note.
        - ``base``: the version of the session that the note is about, None for none.
        - ``key``: if the actor already has a row with this key, that row is returned.

        Raise `JournalError`.
        """
        note = Note(actor, tool, ZONE, path, message=_line(message), base=base, detail=detail, key=key)
        return self._store.commits.commit(note).row

    def record_stream(self, path: str, text: str) -> None:
        """Record ``text``, a piece of a model's answer in the session at ``path``, in the background. The
        step records the whole answer."""
        agent, _ = split_session(path)
        self._store.commits.note(
            Note(agent, STREAM, ZONE, path, message=_line(text), content=text, durable=False)
        )

    def record_tool_start(self, path: str, version: int, key: str, tool: str) -> None:
        """Record durably that the call ``key`` of ``tool`` starts in the session at ``path``.

        Needed for calls whose outcome cannot be determined later. ``version``: the version of the session's
        newest step. Raise `SessionTaken` if another process took the session over or started the call, so
        that only one process runs it.
        """
        agent, _ = split_session(path)
        detail: dict[str, Json] = {"key": key, "tool": validation.escape_unstorable(tool, 100)}
        detail[_STANDS_AT] = version
        row = self._store.commits.commit(Note(agent, TOOL_BEGINS, ZONE, path, detail=detail)).row
        head = self._store.journal.head(ZONE, path)
        if head is None or head.version != version or key in self._begun(path, head, row.seq - 1):
            raise SessionTaken(session=path)

    def _begun(self, path: str, head: Row, until: int) -> frozenset[str]:
        """Return the keys of the calls that started after the step ``head``. Starts by a process that had
        lost the session are left out."""
        rows = self._starts(path, head.seq, until)
        return frozenset(
            str(row.detail["key"]) for row in rows if row.detail.get(_STANDS_AT, head.version) == head.version
        )

    def started_calls(self, path: str, after: int, until: int | None = None) -> frozenset[str]:
        """Return the keys of the calls that started in the session at ``path`` after row ``after``, up to row
        ``until`` (default: the newest)."""
        return frozenset(str(row.detail["key"]) for row in self._starts(path, after, until))

    def _starts(self, path: str, after: int, until: int | None) -> list[Row]:
        agent, _ = split_session(path)
        return self._store.journal.notes(ZONE, path, agent, TOOL_BEGINS, after=after, until=until)

    def history(self, path: str) -> list[SessionRecord]:
        """Return all steps of the session at ``path``, oldest first. Raise `SessionNotFound`."""
        rows = self._store.journal.history(ZONE, path)
        if not rows:
            raise SessionNotFound(session=path)
        return [SessionRecord(row, self._store.content(row)) for row in rows]

    def first_message_after(self, agent: str) -> int | None:
        """Return the number of the row that spawned ``agent``, which has no session yet. Its messages come
        after this row.

        None if nobody can have written to it. Raise `UnknownAgent`.
        """
        born = self._store.journal.version(_AGENTS, agent, 1)
        if born is not None and born.tool == SPAWN:
            return born.seq
        return 0 if self._store.registry.agent(agent).task else None

    def newest(self, path: str) -> Row | None:
        """Return the newest step of the session at ``path``; None if there is no such session."""
        return self._store.journal.head(ZONE, path)

    def newest_step(self, agent: str) -> Row | None:
        """Return the newest step of all sessions of ``agent``; None if it has none."""
        return next(iter(self._store.journal.topic(steps_of(agent), limit=1)), None)

    def heads(self, agent: str = "") -> list[Row]:
        """Return the newest step of each session of ``agent``, or of all agents."""
        return list(self._store.journal.heads(ZONE, f"{agent}/" if agent else ""))

    def find_places(self) -> list[SessionPlace]:
        """Return where the newest session of each agent began. Agents without a client are left out."""
        newest: dict[str, Row] = {}
        for step in self.heads():
            agent, _ = split_session(step.path)
            if not is_subagent_step(step) and (agent not in newest or newest[agent].seq < step.seq):
                newest[agent] = step
        begun = {agent: self._store.journal.version(ZONE, step.path, 1) for agent, step in newest.items()}
        found = [
            SessionPlace(agent, get_text(row.detail, "cwd"), is_unfinished(newest[agent]))
            for agent, row in begun.items()
            if row is not None
        ]
        return [each for each in found if each.folder]

    def control(
        self,
        call: CallContext,
        agent: str,
        session: str | None,
        text: str,
        *,
        at_reset: bool = False,
        is_of_stop: bool = False,
    ) -> Row:
        """Pause, resume, cancel or write to the sessions of ``agent``, or to its ``session``.

        - ``call``: its tool selects the action.
        - ``text``: the message or the reason.
        - ``at_reset``: resume when the limit resets for which the session is parked. Default: now.
        - ``is_of_stop``: the pause is part of a stop of several agents.

        Return the note's row. Raise `InvalidAgentId`, `UnknownAgent`, `InvalidSession`, `SessionNotFound`.
        Raise `NoReset` if a resume at the reset has no known time.
        """
        if self._store.registry.current().agents.get(validation.check_agent_id(agent)) is None:
            raise UnknownAgent(agent=agent, known=", ".join(self._store.registry.current().agents) or "-")
        path = agent
        if session is not None:
            path = session_path(agent, validation.check_session_id(session))
        of_agent = next(self._store.journal.heads(ZONE, f"{agent}/"), None)
        if of_agent is None or (session is not None and self._store.journal.head(ZONE, path) is None):
            raise SessionNotFound(session=path)
        subject = validation.escape_unstorable(text, _LONGEST_LINE)
        detail = {OF_STOP: True} if is_of_stop else None
        note = call.note(ZONE, path, message=subject, content=text or None, detail=detail)
        if at_reset:
            parking = self._parking(agent if session is None else path)
            if parking is None or parking.resets is None:
                raise NoReset(agent=agent)
            note = note._replace(detail={WHEN: AT_RESET})
        return self._store.commits.commit(note).row

    def _parking(self, path: str) -> Parking | None:
        """Return the limit that a session waits for, None if the session is not parked. ``path``: the
        session, or its agent for the newest session."""
        agent, session = split_session(path)
        heads = [self.newest(path)] if session else self.heads(agent)
        steps = [step for step in heads if step is not None and not is_subagent_step(step)]
        newest = max(steps, key=lambda step: step.seq, default=None)
        return None if newest is None else parking_of(newest)

    def find_leave(self, path: str) -> Row | None:
        """Return the row with which a person permitted to resume the session at ``path`` when its limit
        resets.

        None if the session is not parked, or nobody has permitted it since it was parked.
        """
        row = self.find_resume(path)
        return row if row is not None and is_leave(row) else None

    def find_resume(self, path: str) -> Row | None:
        """Return the newest instruction to resume the session at ``path``, now or at the reset, since the
        session was parked.

        None if there is none, if the session is not parked, or if a person has paused or cancelled it.
        """
        parking = self._parking(path)
        begun = None if parking is None else self._store.journal.version(ZONE, path, parking.since)
        if begun is None:
            return None
        rows = [each.row for each in self.controls(path, begun.seq) if each.row.tool != MESSAGE]
        # A leave does not end a pause.
        newest = next((row for row in reversed(rows) if not is_leave(row)), None)
        return rows[-1] if rows and (newest is None or newest.tool == RESUME) else None

    def controls(self, path: str, after: int) -> list[SessionRecord]:
        """Return the messages and instructions to the session at ``path`` after row ``after`` that take
        effect, oldest first. An unsigned message is included, marked as unverified."""
        journal = self._store.journal
        last = journal.last_seq()
        rows = (row for topic in _topics_of(path) for row in journal.topic(topic, after=after, until=last))
        return [self.record(row) for row in sorted(rows, key=lambda row: row.seq) if self.counts(row)]

    def find_steering(self, path: str) -> Steering:
        """Return the instructions in force for the agent or the session at ``path``.

        A pause of an agent holds for each of its sessions, also for later sessions. It ends when a person
        resumes or cancels the agent. A stop of all agents holds for later agents too, until a person releases
        them or resumes the agent. Raise `JournalError`.
        """
        last = self._store.journal.last_seq()
        newest: dict[str, Row] = {}
        for topic in _topics_of(path):
            for tool, row in self._read_steering(topic, last).items():
                if tool not in newest or newest[tool].seq < row.seq:
                    newest[tool] = row
        said = max(newest.values(), key=lambda row: row.seq, default=None)
        stop, resumed = self.find_stop_of_all(), newest.get(RESUME)
        if stop is None or (resumed is not None and resumed.seq > stop.seq):
            stop = said if said is not None and said.tool == PAUSE else None
        return Steering(stop, said, newest.get(CANCEL))

    def _read_steering(self, topic: str, last: int) -> Mapping[str, Row]:
        """Return the newest instruction of each tool in ``topic`` up to row ``last``. Each row is read
        once."""
        read, known = self._steered.get(topic, (0, {}))
        said = self._store.journal.topic(topic, after=read, until=last)
        new = {row.tool: row for row in reversed(said) if is_steering(row) and self.counts(row)}
        newest = {**known, **new}
        with self._lock:
            self._steered[topic] = (max(read, last), newest)
            if len(self._steered) > _MAX_TOPICS:
                del self._steered[next(iter(self._steered))]
        return newest

    def find_stop_of_all(self) -> Row | None:
        """Return the row that stops all agents, also agents that begin later; None if there is none, or if a
        person has released them. Raise `JournalError`."""
        head = self._store.journal.head("workspace", STOPPED_PATH)
        if head is None:
            return None
        read, stop = self._stop_of_all
        if read != head.seq:
            number, versions = 0, {}
            for row in self._store.journal.history("workspace", STOPPED_PATH):
                if self.counts(row):
                    number, versions[row.seq] = stop_of_all_after(number, row), row
            stop = versions.get(number)
            self._stop_of_all = (head.seq, stop)
        return stop

    def counts(self, row: Row) -> bool:
        """Whether the message or instruction ``row`` takes effect. In a closed workspace, resuming needs a
        signature, and an unsigned message takes effect as unverified."""
        flaw = self._people.find_flaw(row)
        return takes_effect(row, flaw) or (effect_of(row) == "message" and flaw != WRONG_FORM)

    def handed_over_until(self, place: str) -> int:
        """Return the number of the row up to which the messages to ``place`` were handed over to a model; 0
        if there is none. ``place``: an agent's id or a session's path. Raise `JournalError`."""
        agent, _ = split_session(place)
        if place == agent:
            known = heard_until(self.newest_step(agent))
        else:
            known = heard_in_session(self.newest(place))
        return max(self._handed_over_by_note(place), known)

    def _handed_over_by_note(self, place: str) -> int:
        """Return the newest message to ``place`` that was handed over to a client; 0 if there is none."""
        agent, _ = split_session(place)
        note = self._store.journal.last_note(ZONE, place, agent, HANDED_OVER)
        return (note.base or 0) if note is not None else 0

    def is_handed_over(self, row: Row) -> bool:
        """Whether ``row`` is a message that was handed over to a client. Raise `JournalError`."""
        return row.tool == MESSAGE and row.seq <= self._handed_over_by_note(row.path)

    def records(self, numbers: Iterable[int]) -> list[SessionRecord]:
        """Return the rows with these ``numbers`` that exist."""
        return [
            self.record(row) for number in numbers if (row := self._store.journal.row(number)) is not None
        ]

    def record(self, row: Row) -> SessionRecord:
        """Return ``row`` with its content. A person's message without a valid signature is marked as
        unverified."""
        text = self._store.content(row)
        is_verified = effect_of(row) != "message" or not self._people.find_flaw(row)
        if not is_verified:
            texts = catalogue(self._store.registry.current().language)
            text = texts("session.unverified", actor=row.actor, text=text)
        return SessionRecord(row, text, is_verified)


def is_steering(row: Row) -> bool:
    """Whether ``row`` pauses, resumes or cancels an agent now. A leave for a later resume ends no pause."""
    return row.tool in STEERING and not is_leave(row)


def _topics_of(path: str) -> set[str]:
    """Return the topics of the messages and instructions to the agent or session at ``path``."""
    agent, _ = split_session(path)
    return {messages_to(ZONE, path), messages_to(ZONE, agent), messages_to(_AGENTS, agent)}


def session_path(agent: str, session: str) -> str:
    """Return the path of ``session`` of ``agent``."""
    return f"{agent}/{session}"


def heard_until(step: Row | None) -> int:
    """Return the number of the row up to which an agent had received its messages. ``step``: its newest step;
    None returns 0.

    Steps of client sessions in earlier releases do not record this row: these sessions had received all
    earlier messages.
    """
    if step is None:
        return 0
    heard = get_int(step.detail, "heard")
    return step.seq if heard is None else heard


def heard_in_session(step: Row | None) -> int:
    """Return the number of the row up to which a session had received its messages. ``step``: the newest step
    of the session."""
    if step is None:
        return 0
    return (get_int(step.detail, HEARD_IN_SESSION) or 0) if "heard" in step.detail else step.seq


def split_session(path: str) -> tuple[str, str]:
    """Return the agent and the id of the session at ``path``."""
    agent, _, session = path.partition("/")
    return agent, session


def _line(text: str) -> str:
    """Return ``text`` as one line, for lists."""
    return validation.escape_unstorable(text.replace("\n", " ").strip(), _LONGEST_LINE)


def record_lost_processes(store: Store) -> list[Row]:
    """Write a row for each expired presence lease and delete the lease. Return the rows.

    Each lost process gets one row, even if several processes notice it. Raise `JournalError`,
    `WorkspaceLocked`.
    """
    rows = []
    for each in store.journal.presence.all():
        if not each.is_alive:
            detail: dict[str, Json] = {"process": each.process, "machine": each.machine, "since": each.since}
            note = Note(
                *(SYSTEM, LOST, "workspace", each.id, "failed", "not_seen_alive"),
                message=each.resume,
                detail=detail,
                key=f"lost/{each.id}",
            )
            try:
                rows.append(store.commits.commit(note).row)
            except JournalDenied:
                # The journal refuses the row of an agent's login if the process has renewed its lease.
                continue
            store.journal.presence.forget(each.id)
    return rows
