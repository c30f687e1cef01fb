"""What the workspace's policy says of the calls of one toolbox."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from watchroom.editing import parse_tool_name
from watchroom.errors import PolicyApprovalRequired, PolicyDenied
from watchroom.model import WRITE_FILE, Json, Zone
from watchroom.rules.policy import PolicyDecision, stricter_decision
from watchroom.rules.policy_subject import PolicySubject, policy_subject
from watchroom.toolbox.context import ToolContext

WRITERS: Final[Mapping[Zone, str]] = {
    "private": "save_to_my_workspace",
    "collab": "collab_write",
    "board": "whiteboard_write",
    "file": WRITE_FILE,
}
"""The tools that write where the flush of a buffer does, by the zone of its source."""


class _Effect(NamedTuple):
    """A tool that a call is, or writes as, and what it is about."""

    tool: str
    subject: PolicySubject


class CallPolicy:
    """The policy for calls of the caller of ``context``. May be used from any thread."""

    def __init__(self, context: ToolContext) -> None:
        self._context = context

    def decide(self, tool: str, arguments: Mapping[str, Json], now: int | None = None) -> PolicyDecision:
        """Return what the policy says of a call of ``tool`` with ``arguments`` at ``now``, or at this moment;
        of the flush of a buffer the stricter of that and what it says of the tool that writes there. Raises
        `JournalError`."""
        return self._decide(tool, arguments, now)[0]

    def check(self, tool: str, arguments: Mapping[str, Json], *, is_approved: bool) -> None:
        """Raise `PolicyDenied` if the policy denies a call of ``tool`` with ``arguments``, and
        `PolicyApprovalRequired` if it wants a person's approval that the call does not have
        (``is_approved``). What a rule that is a test would have done becomes a row."""
        decision, effect = self._decide(tool, arguments)
        zones, actor = self._context.zones, self._context.actor
        zones.policy.record_test(actor, effect.tool, effect.subject, decision)
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
        # Without rules, and for people, none is tried.
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
        # As the tools of those zones name it.
        path = path.partition("/")[2] if zone in ("private", "file") else path
        yield _Effect(WRITERS.get(zone, tool), PolicySubject((path,)))
