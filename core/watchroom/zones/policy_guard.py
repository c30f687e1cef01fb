"""The workspace's policy, asked about one call at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from watchroom import validation
from watchroom.checkout.layout import CONFIG_PATH
from watchroom.model import Json, Note
from watchroom.rules.policy import PolicyDecision, decide
from watchroom.rules.policy_subject import PolicySubject, policy_subject
from watchroom.texts import catalogue
from watchroom.zones.store import Store

TEST: Final = "test_policy"
"""The tool of a row that says what a rule would have done that is a test."""
_MAX_SUBJECT: Final = 200
"""Characters."""


class PolicyGuard:
    """Decides by the rules of the configuration in ``store``, as it is now, and by the journal's clock. May
    be used from any thread.

        decision = workspace.policy.decide("alice", "Bash", {"command": "git push"})
        if decision.verdict == "deny":
            print(decision.label)
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def decide(
        self,
        agent: str,
        tool: str,
        arguments: Mapping[str, Json] | PolicySubject,
        now: int | None = None,
    ) -> PolicyDecision:
        """Return what the policy says of a call of ``tool`` by ``agent``, whose ``arguments`` are given as
        they are, or as `policy_subject` reads them, at ``now`` (nanoseconds since the epoch; default: at
        this moment). Raises `JournalError`."""
        rules = self._store.registry.current().policy
        if not rules.rules:
            return PolicyDecision()
        now = self._store.journal.now() if now is None else now
        return decide(rules, agent, tool, arguments, now)

    def record_test(
        self,
        agent: str,
        tool: str,
        arguments: Mapping[str, Json] | PolicySubject,
        decision: PolicyDecision,
    ) -> None:
        """Say by a row what a rule would have done that is a test, where ``decision`` about this call would
        have been another."""
        if not decision.would_differ or decision.tested is None:
            return
        number, rule, *_ = decision.tested
        subject = arguments if isinstance(arguments, PolicySubject) else policy_subject(arguments)
        texts = catalogue(self._store.registry.current().language)
        message = texts(
            "policy.would",
            tool=tool,
            subject=subject.command or ", ".join(subject.paths) or "-",
            rule=decision.tested.label,
            verdict=texts(f"policy.{rule.verdict}"),
        )
        detail: dict[str, Json] = {"tool": tool, "rule": number, "verdict": rule.verdict}
        line = validation.escape_unstorable(message.replace("\n", " "), _MAX_SUBJECT)
        self._store.commits.note(Note(agent, TEST, "config", CONFIG_PATH, message=line, detail=detail))
