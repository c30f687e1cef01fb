"""Applies the policy to calls, and pauses agents that loop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from watchroom import validation
from watchroom.features.config.store import Store
from watchroom.features.policy.breaker import BREAKER, Breaker, BreakerSettings, Trip
from watchroom.features.policy.rules import PolicyDecision, PolicySubject, decide, policy_subject
from watchroom.kernel.call_context import CallContext
from watchroom.kernel.journal.topics import messages_to
from watchroom.kernel.rules.row_files import CONFIG_PATH
from watchroom.model import PAUSE, SYSTEM, Json, Note, Row
from watchroom.texts import catalogue

TEST: Final = "test_policy"
"""The tool of rows that record the decision of a rule under test."""
_MAX_SUBJECT: Final = 200
"""Maximum characters of the subject in a recorded test."""
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


class AgentBreaker:
    """Pauses agents that loop, with the reason in a row. Not thread-safe.

    ``store``: the rows of all agents, and the settings of the breaker.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._breaker = Breaker()
        self._settings: BreakerSettings | None = None
        """The cached settings; None if they may have changed."""

    def watch(self, row: Row) -> None:
        """Apply ``row``, the next row, and pause its agent if it loops.

        Even if many processes watch, the agent is paused once until a person sends it a message. Raise
        `JournalError`.
        """
        if self._settings is None or row.kind != "agent":
            # Agents cannot change settings, and most rows are from agents, so few rows need a query.
            self._settings = self._store.registry.current().breaker
        trip = self._breaker.apply(row, self._settings)
        if trip is not None:
            self._pause(trip)

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
