"""`Plans`: agents declare what they intend to change, before they begin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from watchroom.features.budgets.rows import is_subagent_step
from watchroom.features.config.store import Store
from watchroom.features.plans.rows import (
    DECLARE_PLAN,
    PLAN_ZONE,
    Overlap,
    Plan,
    is_plan,
    plan_detail,
    read_plan,
)
from watchroom.features.plans.rules import (
    MAX_INTENT,
    PLANNED,
    changes_planned,
    find_common,
    has_ended,
    normalize_paths,
)
from watchroom.features.sessions.messages import Messages
from watchroom.kernel.call_context import CallContext
from watchroom.kernel.journal.protocol import NoteKey
from watchroom.kernel.journal.topics import steps_of
from watchroom.kernel.rules.details import session_status
from watchroom.kernel.zones import strip_owner
from watchroom.model import Note
from watchroom.texts import catalogue
from watchroom.validation import extract_first_line

_MAX_CHANGES: Final = 10
_RECENT_ROWS: Final = 2000
"""The number of newest rows in which changes count as recent."""
_MAX_ROWS: Final = 10_000
"""Maximum number of rows that are searched for changes of an agent that has stopped."""
_MAX_NAMED: Final = 5
"""Maximum number of paths that a message names."""
_LOCK: Final = "plans"


class RecentChange(NamedTuple):
    """A planned file that others changed recently. ``actors``: their names, the first author first."""

    path: str
    version: int
    actors: tuple[str, ...]


class DeclaredPlan(NamedTuple):
    """A plan that was declared, and what the agent should know before it begins."""

    plan: Plan
    others: tuple[Plan, ...]
    """The plans of other agents that overlap with it."""
    changes: tuple[RecentChange, ...]
    """Newest first."""


class Plans:
    """The plans of agents. Usable from any thread. Methods raise `JournalError`.

    - ``store``: the journal.
    - ``messages``: notifies the agents of other plans.
    """

    def __init__(self, store: Store, messages: Messages) -> None:
        self._store = store
        self._messages = messages

    def declare(self, call: CallContext, paths: Sequence[str], intent: str = "") -> DeclaredPlan:
        """Replace the plan of the caller, and notify the agents whose plans overlap with it, each once.

        - ``paths``: paths and patterns; empty to clear the plan.
        - ``intent``: what the caller intends, one line.

        Raise `InvalidPath`, `WorkspaceLocked`.
        """
        wanted = normalize_paths(paths)
        # Of two agents that declare at the same time, the second one must find the first one's plan.
        with self._store.journal.exclusive(_LOCK):
            active = self.current()
            common = {each.agent: find_common(wanted, each.paths) for each in active}
            others = tuple(each for each in active if each.agent != call.actor and common[each.agent])
            overlaps = [Overlap(each.agent, each.row.seq, common[each.agent]) for each in others]
            note = call.with_tool(DECLARE_PLAN).note(
                PLAN_ZONE,
                call.actor,
                message=extract_first_line(intent, MAX_INTENT),
                detail=plan_detail(wanted, overlaps),
            )
            before = next((each for each in active if each.agent == call.actor), None)
            known = before.overlaps if before is not None else ()
            new = [each for each in overlaps if each not in known]
            # In one append: an overlap in a row counts as notified.
            notices = [self._draft_notice(call.actor, note.message, each) for each in new]
            appended = self._store.commits.commit_all([note, *notices])
        plan = read_plan(appended[0].row)
        return DeclaredPlan(plan, others, self._find_changes(plan))

    def current(self) -> list[Plan]:
        """Return the active plans, oldest first."""
        agents = self._store.registry.current().agents
        keys: list[NoteKey] = [(PLAN_ZONE, agent, agent, DECLARE_PLAN) for agent in agents]
        rows = self._store.journal.last_notes(keys) if keys else []
        declared = [read_plan(row) for row in rows if row is not None and is_plan(row)]
        found = [each for each in declared if each.paths and not self._has_ended(each)]
        return sorted(found, key=lambda each: each.row.seq)

    def _has_ended(self, plan: Plan) -> bool:
        steps = self._store.journal.topic(steps_of(plan.agent), after=plan.row.seq, limit=_MAX_ROWS)
        newest = next((each for each in steps if not is_subagent_step(each)), None)
        begun = newest and self._store.journal.version(newest.zone, newest.path, 1)
        if newest is None or begun is None:
            return False
        status = session_status(newest)
        is_changed = status == "idle" and self._is_changed(plan)
        return has_ended(plan.row, begun, newest, status, is_changed=is_changed)

    def _is_changed(self, plan: Plan) -> bool:
        """Return whether the agent of ``plan`` has changed a planned file."""
        last = self._store.journal.last_seq()
        after = max(plan.row.seq, last - _MAX_ROWS)
        changed = self._store.journal.changed_paths(after, last, zones=PLANNED)
        return any(
            changes_planned(plan.paths, each.zone, each.path)
            for each in changed
            if plan.agent in dict(each.actors)
        )

    def _find_changes(self, plan: Plan) -> tuple[RecentChange, ...]:
        if not plan.paths:
            return ()
        last = plan.row.seq
        changed = self._store.journal.changed_paths(max(0, last - _RECENT_ROWS), last, zones=PLANNED)
        newest = sorted(changed, key=lambda each: -each.seq)
        found = (
            RecentChange(strip_owner(each.zone, each.path), each.last, others)
            for each in newest
            if (others := tuple(name for name, _ in each.actors if name != plan.agent))
            and changes_planned(plan.paths, each.zone, each.path)
        )
        return tuple(found)[:_MAX_CHANGES]

    def _draft_notice(self, agent: str, intent: str, overlap: Overlap) -> Note:
        """Return the message about the plan of ``agent`` to the other agent of ``overlap``."""
        texts = catalogue(self._store.registry.current().language)
        more = ["…"] if len(overlap.paths) > _MAX_NAMED else []
        paths = texts("tree.separator").join([*overlap.paths[:_MAX_NAMED], *more])
        text = texts("plan.overlap", agent=agent, paths=paths, intent=intent or "-")
        return self._messages.draft(overlap.agent, text)
