"""The workspace's policy for the calls of one toolbox."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from watchroom.algorithms.editing import parse_tool_name
from watchroom.errors import PolicyApprovalRequired, PolicyDenied
from watchroom.features.policy.rules import PolicyDecision, PolicySubject, policy_subject, stricter_decision
from watchroom.kernel.call_context import CallContext
from watchroom.kernel.tools.context import ToolContext
from watchroom.kernel.zones import ZONES, strip_owner
from watchroom.model import Json


class _Effect(NamedTuple):
    """The tool of a call, or another tool with the same effect, and the subject of the call."""

    tool: str
    subject: PolicySubject


class CallPolicy:
    """The policy for the calls of one actor. Usable from any thread."""

    def __init__(self, context: ToolContext) -> None:
        self._context = context

    def decide(self, tool: str, arguments: Mapping[str, Json], now: int | None = None) -> PolicyDecision:
        """Return the policy's decision on a call of ``tool`` with ``arguments``.

        For the flush of a buffer, return the stricter decision of the flush and the tool with the same
        effect. ``now``: nanoseconds since the epoch, default the current time. Raise `JournalError`.
        """
        if not self._context.zones.policy.applies_to(self._context.actor):
            return PolicyDecision()
        return self._decide(tool, arguments, now)[0]

    def check(self, call: CallContext, arguments: Mapping[str, Json], *, is_approved: bool) -> None:
        """Check that the policy permits ``call``, and record the decision of a rule under test.

        Raise `PolicyDenied` if the policy denies the call. Raise `PolicyApprovalRequired` if the policy
        requires a person's approval and ``is_approved`` is False.
        """
        zones, tool = self._context.zones, call.tool
        if not zones.registry.current(call).policy.applies_to(call.actor):
            return
        decision, effect = self._decide(tool, arguments)
        zones.policy.record_test(call, effect.tool, effect.subject, decision)
        if decision.verdict == "deny":
            raise PolicyDenied(tool=tool, number=decision.label)
        if decision.verdict == "ask" and not is_approved:
            raise PolicyApprovalRequired(tool=tool, number=decision.label)

    def _decide(
        self, tool: str, arguments: Mapping[str, Json], now: int | None = None
    ) -> tuple[PolicyDecision, _Effect]:
        zones, actor = self._context.zones, self._context.actor
        effect = _Effect(tool, policy_subject(arguments))
        decision = zones.policy.decide(actor, *effect, now)
        # A decision without checks means that no rule applies to the caller.
        for other in self._flush_effects(tool) if decision.checks else ():
            stricter = stricter_decision(decision, zones.policy.decide(actor, *other, now))
            if stricter is not decision:
                decision, effect = stricter, other
        return decision, effect

    def _flush_effects(self, tool: str) -> Iterator[_Effect]:
        buffer, kind = parse_tool_name(tool) or ("", "")
        source = (
            self._context.zones.buffers.source_of(self._context.actor, buffer) if kind == "flush" else None
        )
        if source is None:
            return
        zone, path = source
        yield _Effect(ZONES[zone].write_tool or tool, PolicySubject((strip_owner(zone, path),)))
