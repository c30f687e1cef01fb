"""Reverting what agents did since some moment: planned path by path, committed all or none, laid out, told.

While the row of a revert is the first version of its path it is being laid out; the second one says that it
is done. Whoever finds a first one whose process died finishes it: nothing of it is decided again.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from watchroom import validation
from watchroom.checkout.reconciler import Reconciler
from watchroom.errors import ConflictSettled, HeadsMoved, WatchroomError
from watchroom.model import MESSAGE, REVERT_WORK, SHARED, SYSTEM, Draft, Json, Note, Row, Write, Zone
from watchroom.rules.reverts import PlannedItem, PlannedPath, RevertPlan, RevertSelection
from watchroom.rules.task_versions import EXECUTABLE, EXECUTABLE_BEFORE, file_checksum, is_executable
from watchroom.texts import catalogue
from watchroom.zones.conflict_settlement import ConflictSettlement
from watchroom.zones.people import PeopleReader
from watchroom.zones.revert_planning import ZONE, RevertPart, RevertPlanner, RevertRecord, read_record
from watchroom.zones.stops import StopZone
from watchroom.zones.store import Store
from watchroom.zones.task_files import TaskFiles
from watchroom.zones.task_recording import OUTSIDERS
from watchroom.zones.tasks import Tasks

_MOST_TRIES: Final = 5
_MOST_TOLD: Final = 1000
"""So many agents at most are told."""
_log = logging.getLogger("watchroom")


class RevertOutcome(NamedTuple):
    """The revert with the ``id``: ``record`` is what it did, and ``row`` its last row."""

    id: str
    record: RevertRecord
    row: Row


class RevertZone:
    """Reverts what agents did, in ``store``. ``tasks`` and ``task_files`` have the folders of tasks,
    ``conflicts`` and ``stops`` what people say of conflicts and agents; ``reconciler`` records edits by hand
    before anything is planned, ``people`` says which reverts count. ``parts`` revert what
    has no versions of a text."""

    def __init__(
        self,
        store: Store,
        reconciler: Reconciler,
        tasks: Tasks,
        task_files: TaskFiles,
        conflicts: ConflictSettlement,
        stops: StopZone,
        people: PeopleReader,
        parts: Sequence[RevertPart] = (),
    ) -> None:
        self._store = store
        self._reconciler = reconciler
        self._tasks = tasks
        self._task_files = task_files
        self._conflicts = conflicts
        self._stops = stops
        self._people = people
        self._parts = parts

    def plan(self, selection: RevertSelection) -> RevertPlan:
        """Return what reverting ``selection`` would do now: nothing is changed. Raises `RevertNotFound`,
        `RevertTooLarge`, `JournalError`."""
        # A reading becomes a row some 20 ms later, and decides whether a handoff can be withdrawn.
        self._store.commits.flush()
        return self._planner().plan(selection)

    def apply(
        self,
        actor: str,
        selection: RevertSelection,
        *,
        revert_id: str = "",
        message: str = "",
        clean_only: bool = False,
        pause: bool = True,
    ) -> RevertOutcome:
        """Revert ``selection`` for the person ``actor``, all of it or nothing; with ``clean_only`` only the
        paths that nobody has to decide about. Returns what was done when every file is in place.

        The agents whose work it is are paused first, unless ``pause`` is false, and told afterwards, with
        ``message``. With the ``revert_id`` of a revert that was begun already, that one is finished. Raises
        `RevertNotFound`, `RevertTooLarge`, `HeadsMoved` where others write faster than it can be planned,
        `JournalError`.
        """
        revert = validation.check_revert_id(revert_id) if revert_id else secrets.token_hex(4)
        if self._store.journal.head(ZONE, revert) is None:
            self._begin(actor, revert, selection, message, clean_only=clean_only, pause=pause)
        return self.finish(actor, revert)

    def finish(self, actor: str, revert: str) -> RevertOutcome:
        """Do for ``actor`` what is left to do of the ``revert`` with that id: lay out the files of tasks, and
        say that it is done. Returns what was done. Raises `RevertNotFound`, `JournalError`."""
        record = read_record(self._store.journal, revert)
        row = self._store.journal.version(ZONE, revert, 2)
        if row is not None:
            return RevertOutcome(revert, record, row)
        for zone, path, _ in record.written:
            task, _, name = path.partition("/")
            if zone == "file" and self._tasks.has_folder_here(task):
                self._task_files.lay_out_revert(task, name)
        done, head = self._store.write(Write(actor, REVERT_WORK, ZONE, revert, record.dump(), expected=1))
        # Where it was finished by somebody else meanwhile, that one's row counts.
        return RevertOutcome(revert, record, done if done.outcome == "ok" or head is None else head)

    def finish_all(self) -> None:
        """Finish the reverts whose processes died. What cannot be is logged, and left for another time.
        Raises `JournalError`."""
        for head in self._store.journal.heads(ZONE):
            if head.version == 1 and self._people.counts(head):
                try:
                    self.finish(SYSTEM, head.path)
                except WatchroomError:
                    _log.exception("the revert %s could not be finished", head.path)

    def _planner(self) -> RevertPlanner:
        agents = self._store.registry.current().agents
        members = {agent.id: agent.task for agent in agents.values()}
        return RevertPlanner(self._store.journal, self._tasks, members, self._parts)

    def _begin(
        self,
        actor: str,
        revert: str,
        selection: RevertSelection,
        message: str,
        *,
        clean_only: bool,
        pause: bool,
    ) -> None:
        selected = self._planner().select(
            selection._replace(until=selection.until or self._store.journal.last_seq())
        )
        if pause and not selection.undo:
            told, _ = self._stops.pause(actor, selected.agents)
            # What a call that goes on writes afterwards would not be reverted.
            self._stops.wait_until_paused(told)
        for tries in range(1, _MOST_TRIES + 1):
            self._record_edits(selected.versions)
            plan = self.plan(selection)
            try:
                self._commit(actor, revert, selection, plan, message, clean_only=clean_only)
                break
            except HeadsMoved:
                if tries == _MOST_TRIES:
                    raise

    def _record_edits(self, places: Iterable[tuple[Zone, str]]) -> None:
        """Make rows of what was written by hand to ``places``, that it is planned with."""
        tasks = set()
        for zone, path in places:
            if zone != "file":
                self._reconciler.check(zone, path)
            elif (task := path.partition("/")[0]) not in tasks:
                tasks.add(task)
                if self._tasks.has_folder_here(task):
                    self._task_files.record_task_changes(task, OUTSIDERS)

    def _commit(
        self,
        actor: str,
        revert: str,
        selection: RevertSelection,
        plan: RevertPlan,
        message: str,
        *,
        clean_only: bool,
    ) -> None:
        chosen = plan.of_kind("clean") if clean_only else plan.of_kind("clean", "conflict")
        written = [each for each in chosen if each.makes_version]
        waiting = [] if clean_only else plan.of_kind("conflict")
        items = [each for each in plan.items if each.plan.kind == "clean"]
        record = RevertRecord(
            tuple((each.zone, each.path, (each.head.version or 0) + 1) for each in written),
            tuple((each.zone, each.path) for each in waiting),
            tuple((each.zone, each.path, each.plan.reason) for each in plan.changes("cannot")),
            plan.not_reverted,
            plan.agents,
            plan.until,
            tuple((each.zone, each.path) for each in items),
        )
        detail: dict[str, Json] = {"written": len(written), "conflicts": len(waiting), "items": len(items)}
        drafts: list[Draft] = [
            Write(actor, REVERT_WORK, ZONE, revert, record.dump(), message, expected=0, detail=detail),
            *(_version(actor, revert, each, message) for each in written),
            *(
                _conflict(revert, each, each in written, self._describe_rest(plan))
                for each in waiting
                if each.zone in SHARED
            ),
            # Of what cannot be reverted, too: who read something is told.
            *(draft for each in plan.items for draft in _item_drafts(actor, revert, each)),
            *self._dismissals(actor, selection.undo),
            *self._messages(actor, plan, [*chosen, *items], message),
        ]
        self._store.commits.commit_all(drafts, all_or_nothing=True)

    def _describe_rest(self, plan: RevertPlan) -> str:
        """What a conflict of the revert is about, as people read it."""
        texts = catalogue(self._store.registry.current().language)
        return texts("revert.rest", agents=", ".join(plan.agents[:10]))[:200]

    def _dismissals(self, actor: str, undone: str) -> Iterator[Note]:
        """What settles the conflicts that the revert ``undone`` left for people, if there is one."""
        if not undone:
            return
        journal = self._store.journal
        for zone, path in read_record(journal, undone).conflicts:
            for row in journal.refused(zone, path, limit=100):
                if row.detail.get("revert") == undone:
                    # Where somebody decided it already nothing is left to settle.
                    with suppress(ConflictSettled):
                        yield self._conflicts.draft_dismissal(actor, row.seq, "")

    def _messages(
        self, actor: str, plan: RevertPlan, changed: Sequence[PlannedPath | PlannedItem], message: str
    ) -> Iterator[Note]:
        """What tells the agents whose work it was, and those who wrote the same paths last."""
        known = self._store.registry.current()
        text = catalogue(known.language)(
            "revert.told", who=actor, agents=", ".join(plan.agents[:10]), paths=_listed(changed)
        )
        text = f"{text}\n{message}" if message else text
        heads = [each.head for each in changed if isinstance(each, PlannedPath)]
        agents = [*plan.agents, *(head.actor for head in heads if head.kind == "agent")]
        told = [agent for agent in dict.fromkeys(agents) if agent in known.agents][:_MOST_TOLD]
        for agent in told if changed else ():
            yield Note(actor, MESSAGE, "agent", agent, message=text[:200], content=text)


def _version(actor: str, revert: str, planned: PlannedPath, message: str) -> Write:
    plan, head = planned.plan, planned.head
    detail: dict[str, Json] = {
        "revert": revert,
        "took": list(plan.took),
        "gave": list(plan.gave),
        "before": file_checksum(head),
        **(plan.blob.detail if plan.blob is not None else {}),
    }
    rights = {EXECUTABLE: plan.executable, EXECUTABLE_BEFORE: is_executable(head)}
    detail |= {name: True for name, holds in rights.items() if holds}
    place = planned.zone, planned.path
    return Write(actor, REVERT_WORK, *place, plan.content, message, expected=head.version or 0, detail=detail)


def _conflict(revert: str, planned: PlannedPath, is_written: bool, message: str) -> Note:
    """What people have to decide about the rest of a path: the text without all that is reverted, against
    the one that stands until then."""
    current = (planned.head.version or 0) + is_written
    return Note(
        *(SYSTEM, REVERT_WORK, planned.zone, planned.path, "conflict", "revert_conflict"),
        message=message,
        content=planned.plan.proposal or "",
        base=planned.base,
        detail={"revert": revert, "current": current, "current_author": planned.head.actor},
    )


def _item_drafts(actor: str, revert: str, item: PlannedItem) -> Iterator[Draft]:
    """The rows that revert ``item``, in the name of ``actor``."""
    for draft in item.drafts:
        yield draft._replace(actor=actor, detail={**(draft.detail or {}), "revert": revert})


def _listed(planned: Sequence[PlannedPath | PlannedItem]) -> str:
    shown = ", ".join(f"{each.zone} {each.path}" for each in planned[:20])
    return f"{shown} …" if len(planned) > len(planned[:20]) else shown or "-"
