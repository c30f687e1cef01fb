"""Applies the policy to calls, records people's grants and their uses, and pauses agents that loop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from uuid import uuid4

from watchroom import validation
from watchroom.errors import GrantEnded, GrantNotFound, GrantRefused, RequestNotFound
from watchroom.features.config.store import Store
from watchroom.features.people.service import PeopleReader
from watchroom.features.policy import grants
from watchroom.features.policy.breaker import BREAKER, Breaker, BreakerSettings, Trip
from watchroom.features.policy.grants import GrantChoice
from watchroom.features.policy.reads import GrantState, list_grants, list_newest
from watchroom.features.policy.rules import PolicyDecision, PolicySubject, decide, policy_subject
from watchroom.features.requests.rows import Request, call_subject, has_expired, parse_request
from watchroom.kernel.call_context import CallContext
from watchroom.kernel.journal.topics import messages_to
from watchroom.kernel.rules.row_files import CONFIG_PATH
from watchroom.model import GRANT, PAUSE, REVOKE_GRANT, SYSTEM, USE_GRANT, Json, Note, Row, Write
from watchroom.texts import catalogue

TEST: Final = "test_policy"
"""The tool of rows that record the decision of a rule under test."""
_MAX_SUBJECT: Final = 200
"""Maximum characters of the subject in a recorded test."""
_MAX_SENTENCE: Final = 4000
"""Maximum characters of the sentence that describes a grant."""
_MAX_REASON: Final = 200
"""Maximum characters of a reason."""


class WorkspacePolicy:
    """The policy of the workspace of ``store``: the rules in the config in force. Thread-safe.

    decision = workspace.policy.decide("alice", "Bash", {"command": "git push"})
    if decision.verdict == "deny":
        print(decision.label)
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def applies_to(self, agent: str) -> bool:
        """Whether the newest policy has rules for ``agent``."""
        return self._store.registry.current().policy.applies_to(agent)

    def decide(
        self,
        agent: str,
        tool: str,
        arguments: Mapping[str, Json] | PolicySubject,
        now: int | None = None,
    ) -> PolicyDecision:
        """Return the decision on a call of ``tool`` by ``agent``.

        - ``arguments``: the arguments of the call, or the result of `policy_subject` for them.
        - ``now``: nanoseconds since the epoch, default the time of the journal's clock.

        Raise `JournalError`.
        """
        rules = self._store.registry.current().policy
        if not rules.applies_to(agent):
            return PolicyDecision()
        now = self._store.journal.now() if now is None else now
        return decide(rules, agent, tool, arguments, now)

    def record_test(
        self,
        call: CallContext,
        tool: str,
        arguments: Mapping[str, Json] | PolicySubject,
        decision: PolicyDecision,
    ) -> None:
        """Record the decision of a rule under test, if it differs from ``decision``."""
        if not decision.would_differ or decision.tested is None:
            return
        number, rule, *_ = decision.tested
        subject = arguments if isinstance(arguments, PolicySubject) else policy_subject(arguments)
        texts = catalogue(self._store.registry.current(call).language)
        message = texts(
            "policy.would",
            tool=tool,
            subject=subject.command or ", ".join(subject.paths) or "-",
            rule=decision.tested.label,
            verdict=texts(f"policy.{rule.verdict}"),
        )
        detail: dict[str, Json] = {"tool": tool, "rule": number, "verdict": rule.verdict}
        line = validation.escape_unstorable(message.replace("\n", " "), _MAX_SUBJECT)
        self._store.commits.note(
            call.with_tool(TEST).note("config", CONFIG_PATH, message=line, detail=detail)
        )


class Grants:
    """The grants in the workspace of ``store``. ``people`` decides which rows count. Thread-safe.

    A grant is version 1 of its path, ``AGENT/ID``. Each later version is one use, so that two calls never
    take the same use. A deletion revokes it.
    """

    def __init__(self, store: Store, people: PeopleReader) -> None:
        self._store = store
        self._people = people

    def make(self, call: CallContext, request: int, choice: GrantChoice) -> Row:
        """Grant calls like the call of a request, as the person of ``call``. ``request``: its number.

        Return the row. Raise `RequestNotFound`, `GrantRefused`, and the errors of signing.
        """
        asked = self._find_request(request)
        shown = parse_request(self._store.content(asked))
        grant = grants.build_grant(asked.path, request, shown, choice, self._store.journal.now())
        if grant is None:
            raise GrantRefused(request=request)
        detail: dict[str, Json] = {"request": request}
        texts = catalogue(self._store.registry.current(call).language)
        draft = call.with_tool(GRANT).write(
            grants.ZONE,
            f"{grant.agent}/{uuid4().hex[:12]}",
            grants.dump_grant(grant),
            validation.escape_unstorable(grants.describe_grant(grant, texts), _MAX_SENTENCE),
            0,
            detail,
        )
        return self._store.write(draft).row

    def revoke(self, call: CallContext, number: int) -> Row:
        """Revoke the grant in row ``number`` as the person of ``call``. Return the row.

        Raise `GrantNotFound`, `GrantEnded`.
        """
        made = self._store.journal.row(number)
        if made is None or made.zone != grants.ZONE or made.version != 1:
            raise GrantNotFound(grant=number)
        while True:
            head = self._store.journal.head(grants.ZONE, made.path)
            if head is None or head.deleted:
                raise GrantEnded(grant=number)
            draft = call.with_tool(REVOKE_GRANT).write(
                grants.ZONE, made.path, None, expected=head.version or 0, detail={"row": number}
            )
            row = self._store.write(draft).row
            if row.outcome == "ok":
                return row

    def list_active(self, agent: str = "") -> list[GrantState]:
        """Return the grants that still allow calls, oldest first.

        ``agent``: only grants for this agent, default all. Raise `JournalError`.
        """
        return [*list_grants(self._store.journal, self._people, agent)]

    def _find(self, path: str, request: Request) -> GrantState | None:
        """Return the oldest active grant that covers the ``request`` at ``path``, None if there is none."""
        call = grants.read_call(request)
        if call is None:
            return None
        agent = path.partition("/")[0]
        covering = list_grants(
            self._store.journal, self._people, agent, lambda grant: grants.matches(grant, path, call)
        )
        return next(covering, None)

    def use(self, asked: Row, request: Request) -> Row | None:
        """Take a use of a grant for the call of ``request`` in the row ``asked``. Return the row of the use,
        None if no grant covers the call.

        A use that was taken for this request before is returned again. Raise `JournalError`.
        """
        while (found := self._find(asked.path, request)) is not None:
            if found.row.seq > asked.seq:
                # A person gave it after the request, for later calls.
                return None
            draft = Write(
                *(SYSTEM, USE_GRANT, grants.ZONE, found.row.path, ""),
                message=validation.escape_unstorable(call_subject(request.calls[0]), _MAX_SUBJECT),
                expected=found.head.version or 0,
                detail={"request": asked.seq, "before": found.head.seq},
            )
            row = self._store.write(draft).row
            if row.outcome == "ok":
                return None if self._people.find_flaw(row) else row
        return None

    def find_use(self, asked: Row) -> Row | None:
        """Return the use that was taken for the request in the row ``asked``. None if there is none, or if
        its grant has ended since."""
        journal, agent = self._store.journal, asked.path.partition("/")[0]
        for head in list_newest(journal, agent):
            if head.version == 1 or head.deleted:
                continue
            for row in journal.history(grants.ZONE, head.path, after_version=1, limit=grants.MAX_USES):
                is_use = row.tool == USE_GRANT and row.detail.get("request") == asked.seq
                if is_use and not self._people.find_flaw_now(row) and not self._has_expired(head.path):
                    return row
        return None

    def _has_expired(self, path: str) -> bool:
        """Return whether the time of the grant at ``path`` is over."""
        made = self._store.journal.version(grants.ZONE, path, 1)
        grant = grants.parse_grant(self._store.content(made)) if made is not None else None
        return grant is None or has_expired(grant.expires, self._store.journal.now())

    def _find_request(self, number: int) -> Row:
        row = self._store.journal.row(number)
        if row is None or row.zone != "request" or row.version != 1 or self._people.find_flaw(row):
            raise RequestNotFound(request=number)
        return row


class AgentBreaker:
    """Pauses agents that loop, with the reason in a row. Not thread-safe.

    ``store``: the rows of all agents, and the settings of the breaker.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._breaker = Breaker()
        self._settings: BreakerSettings | None = None
        """The cached settings; None if they may have changed."""
        self._trip: Trip | None = None
        """The trip whose agent is not paused yet."""
        self._seq = 0
        """The last counted row."""

    def watch(self, row: Row) -> None:
        """Apply ``row``, the next row, and pause its agent if it loops.

        Even if many processes watch, the agent is paused once until a person sends it a message. Raise
        `JournalError`.
        """
        if self._settings is None or row.kind != "agent":
            # Agents cannot change settings, and most rows are from agents, so few rows need a query.
            self._settings = self._store.registry.current().breaker
        self._pause_tripped()
        # A row is delivered again if the pause was refused, and must not be counted twice.
        if row.seq > self._seq:
            self._trip = self._breaker.apply(row, self._settings)
            self._seq = row.seq
            self._pause_tripped()

    def _pause_tripped(self) -> None:
        if self._trip is not None:
            self._pause(self._trip)
            self._trip = None

    def _pause(self, trip: Trip) -> None:
        # Ignore messages after the trip: a process that lags must not pause an agent again after a person
        # answered.
        topic = messages_to("session", trip.agent)
        newest = next(iter(self._store.journal.topic(topic, until=trip.row, limit=1)), None)
        texts = catalogue(self._store.registry.current().language)
        detail: dict[str, Json] = {BREAKER: trip.kind, "count": trip.times, "row": trip.row}
        note = Note(
            *(SYSTEM, PAUSE, "agent", trip.agent),
            message=texts(f"breaker.{trip.kind}", count=trip.times, subject=trip.subject)[:_MAX_REASON],
            detail=detail,
            key=f"{BREAKER} {trip.agent} {trip.kind} {newest.seq if newest is not None else 0}",
        )
        self._store.commits.commit(note)
