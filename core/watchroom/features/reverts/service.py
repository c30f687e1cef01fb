"""Reverts the work of agents since a given moment.

Each path is planned, then everything is committed in one append, task files are written, and agents are
notified. The first version of a revert's path means that task files are being written. The second version
means that it is finished. If its process dies between the two, the next process finishes the revert by the
recorded plan.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from watchroom import validation
from watchroom.errors import (
    ConflictSettled,
    FolderDenied,
    HeadsMoved,
    NotText,
    RevertUnfinished,
    WatchroomError,
)
from watchroom.features.config.store import Store
from watchroom.features.conflicts.service import Conflicts
from watchroom.features.people.service import PeopleReader
from watchroom.features.reverts.planning import ZONE, RevertPart, RevertPlanner, RevertRecord, read_record
from watchroom.features.reverts.rules import (
    SUBJECT_CHARACTERS,
    PlannedItem,
    PlannedPath,
    RevertPlan,
    RevertSelection,
)
from watchroom.features.sessions.stops import StoppedAgents, paused_only
from watchroom.features.tasks.files import OUTSIDERS, TaskFiles
from watchroom.features.tasks.rows import FILE
from watchroom.features.tasks.service import Tasks
from watchroom.features.trees.rows import REPO
from watchroom.features.trees.service import Trees
from watchroom.kernel.call_context import CallContext
from watchroom.kernel.checkout.reconciler import Reconciler
from watchroom.kernel.rules.file_versions import EXECUTABLE, EXECUTABLE_BEFORE, file_checksum, is_executable
from watchroom.kernel.zones import SHARED
from watchroom.model import MESSAGE, REVERT_WORK, SYSTEM, Draft, Json, Note, Row, Write, Zone
from watchroom.texts import catalogue

_MAX_TRIES: Final = 5
_MAX_NOTIFIED: Final = 1000
"""Maximum number of agents that are notified."""
_RETRY_SECONDS: Final = 5.0
"""Seconds until an unfinished revert is tried again."""
_log = logging.getLogger("watchroom")


class RevertOutcome(NamedTuple):
    """The revert with the id ``id``: its ``record``, and its last ``row``."""

    id: str
    record: RevertRecord
    row: Row


class Reverts:
    """Reverts the work of agents.

    Args:
        store: the journal and the files.
        reconciler: records external edits before anything is planned.
        tasks: the tasks and their folders.
        task_files: writes the files of tasks.
        trees: writes the files of working trees.
        conflicts: settles conflicts of a revert that is undone.
        stops: pauses the agents.
        people: decides which reverts count.
        parts: plan items without versions of text.
    """

    def __init__(
        self,
        store: Store,
        reconciler: Reconciler,
        tasks: Tasks,
        task_files: TaskFiles,
        trees: Trees,
        conflicts: Conflicts,
        stops: StoppedAgents,
        people: PeopleReader,
        parts: Sequence[RevertPart] = (),
    ) -> None:
        self._store = store
        self._reconciler = reconciler
        self._tasks = tasks
        self._task_files = task_files
        self._trees = trees
        self._conflicts = conflicts
        self._stops = stops
        self._people = people
        self._parts = parts

    def plan(self, selection: RevertSelection) -> RevertPlan:
        """Plan the revert of ``selection``, and change nothing. Raise `RevertNotFound`, `RevertTooLarge`,
        `JournalError`."""
        # A read becomes a row up to 20 ms later, and a handoff that was read cannot be withdrawn.
        self._store.commits.flush()
        return self._planner().plan(selection)

    def apply(
        self,
        call: CallContext,
        selection: RevertSelection,
        *,
        revert_id: str = "",
        message: str = "",
        clean_only: bool = False,
        pause: bool = True,
    ) -> RevertOutcome:
        """Revert ``selection`` atomically. Return the outcome once all files are written.

        - ``revert_id``: the id of an unfinished revert to finish. Default: a new revert.
        - ``message``: a text for the agents whose work is reverted.
        - ``clean_only``: revert only paths without conflicts.
        - ``pause``: pause these agents first.

        Raise `RevertNotFound`, `RevertTooLarge`, `JournalError`. Raise `PausedOnly` if the journal refuses
        the revert after the pauses, and `HeadsMoved` if others write faster than the revert can be planned.
        Raise `RevertUnfinished` if the revert has rows, but cannot be finished yet. Then it is tried again in
        the background.
        """
        revert = validation.check_revert_id(revert_id) if revert_id else secrets.token_hex(4)
        if self._store.journal.head(ZONE, revert) is None:
            self._begin(call, revert, selection, message, clean_only=clean_only, pause=pause)
        try:
            return self.finish(call, revert)
        except (WatchroomError, OSError) as error:
            self._finish_later()
            language = self._store.registry.current().language
            reason = error.message(language) if isinstance(error, WatchroomError) else str(error)
            raise RevertUnfinished(revert=revert, reason=reason) from error

    def finish(self, call: CallContext, revert: str) -> RevertOutcome:
        """Finish the revert with the id ``revert``: write the files of tasks, and commit that it is finished.
        Return the outcome. Raise `RevertNotFound`, `JournalError`."""
        record = read_record(self._store.journal, revert)
        row = self._store.journal.version(ZONE, revert, 2)
        if row is not None:
            return RevertOutcome(revert, record, row)
        failures: list[WatchroomError] = []
        # A deleted file can be in the place of a folder, or its folder in the place of a file.
        for zone, path, _ in sorted(record.written, key=lambda each: not self._is_deletion(*each)):
            owner, _, name = path.partition("/")
            try:
                if zone == FILE and self._tasks.has_folder_here(owner):
                    self._task_files.materialize_revert(owner, name)
                elif zone == REPO:
                    self._trees.materialize_revert(owner, name)
            except (FolderDenied, NotText) as error:
                failures.append(error)
        if failures:
            raise failures[0]
        done, head = self._store.write(
            call.with_tool(REVERT_WORK).write(ZONE, revert, record.dump(), expected=1)
        )
        # Another process may have finished it. Then the row of that process counts.
        return RevertOutcome(revert, record, done if done.outcome == "ok" or head is None else head)

    def _is_deletion(self, zone: Zone, path: str, version: int) -> bool:
        row = self._store.journal.version(zone, path, version)
        return row is not None and row.deleted

    def finish_all(self) -> None:
        """Finish the reverts that were interrupted or could not be finished. If a revert fails, log the error
        and try again in the background. Raise `JournalError`."""
        for revert, error in self._finish_open():
            _log.error("the revert %s could not be finished", revert, exc_info=error)

    def _retry(self) -> None:
        """Finish the open reverts. Raise the error of one that fails, which the background logs once."""
        for _, error in self._finish_open():
            raise error

    def _finish_open(self) -> list[tuple[str, Exception]]:
        """Finish the open reverts. Return the ids and errors of those that fail. They are tried again."""
        failed: list[tuple[str, Exception]] = []
        for head in self._store.journal.heads(ZONE):
            if head.version == 1 and self._people.counts(head):
                try:
                    self.finish(CallContext(SYSTEM), head.path)
                except (WatchroomError, OSError) as error:
                    failed.append((head.path, error))
        if failed:
            self._finish_later()
        return failed

    def _finish_later(self) -> None:
        self._store.background.schedule("unfinished reverts", self._retry, _RETRY_SECONDS)

    def _planner(self) -> RevertPlanner:
        agents = self._store.registry.current().agents
        members = {agent.id: agent.task for agent in agents.values()}
        return RevertPlanner(self._store.journal, self._tasks, members, self._parts)

    def _begin(
        self,
        call: CallContext,
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
        paused: Mapping[str, int] = {}
        if pause and not selection.undo:
            paused, _ = self._stops.pause(call, selected.agents)
            # Without the wait, later writes of a running call would not be reverted.
            self._stops.wait_until_paused(paused)
        with paused_only(paused):
            for tries in range(1, _MAX_TRIES + 1):
                self._record_edits(selected.versions)
                plan = self.plan(selection)
                try:
                    self._commit(call, revert, selection, plan, message, clean_only=clean_only)
                    break
                except HeadsMoved:
                    if tries == _MAX_TRIES:
                        raise

    def _record_edits(self, places: Iterable[tuple[Zone, str]]) -> None:
        """Record external edits of ``places``, so that the plan includes them."""
        tasks = set()
        has_trees = False
        for zone, path in places:
            if zone == REPO:
                has_trees = True
            elif zone != FILE:
                self._reconciler.check(zone, path)
            elif (task := path.partition("/")[0]) not in tasks:
                tasks.add(task)
                if self._tasks.has_folder_here(task):
                    self._task_files.record_task_changes(task, OUTSIDERS)
        if has_trees:
            self._trees.refresh_all()

    def _commit(
        self,
        call: CallContext,
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
        call = call.with_tool(REVERT_WORK)
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
            call.write(ZONE, revert, record.dump(), message, expected=0, detail=detail),
            *(_version(call, revert, each, message) for each in written),
            *(
                call.stamp(_conflict(revert, each, each in written, self._describe_conflict(plan)))
                for each in waiting
                if each.zone in SHARED
            ),
            # Items that cannot be reverted also have drafts: notifications of their readers.
            *(draft for each in plan.items for draft in _item_drafts(call, revert, each)),
            *self._dismissals(call, selection.undo),
            *self._messages(call, plan, [*chosen, *items], message),
        ]
        self._store.commits.commit_all(drafts, all_or_nothing=True)

    def _describe_conflict(self, plan: RevertPlan) -> str:
        """Return the message of a conflict of the revert, for people."""
        texts = catalogue(self._store.registry.current().language)
        told = texts("revert.rest", agents=", ".join(plan.agents[:10]))
        return validation.escape_unstorable(told, SUBJECT_CHARACTERS)

    def _dismissals(self, call: CallContext, undone: str) -> Iterator[Note]:
        """Yield the notes that settle the conflicts of the undone revert ``undone``, if it is given."""
        if not undone:
            return
        journal = self._store.journal
        for zone, path in read_record(journal, undone).conflicts:
            for row in journal.refused(zone, path, limit=100):
                if row.detail.get("revert") == undone:
                    # Somebody may have already settled it.
                    with suppress(ConflictSettled):
                        yield self._conflicts.draft_dismissal(call, row.seq, "")

    def _messages(
        self, call: CallContext, plan: RevertPlan, changed: Sequence[PlannedPath | PlannedItem], message: str
    ) -> Iterator[Note]:
        """Yield the messages to the agents whose work is reverted, and to the last writers of the ``changed``
        paths."""
        known = self._store.registry.current()
        text = catalogue(known.language)(
            "revert.told", who=call.actor, agents=", ".join(plan.agents[:10]), paths=_list_paths(changed)
        )
        text = f"{text}\n{message}" if message else text
        heads = [each.head for each in changed if isinstance(each, PlannedPath)]
        agents = [*plan.agents, *(head.actor for head in heads if head.kind == "agent")]
        notified = [agent for agent in dict.fromkeys(agents) if agent in known.agents][:_MAX_NOTIFIED]
        for agent in notified if changed else ():
            subject = validation.escape_unstorable(text, SUBJECT_CHARACTERS)
            yield call.with_tool(MESSAGE).note("agent", agent, message=subject, content=text)


def _version(call: CallContext, revert: str, planned: PlannedPath, message: str) -> Write:
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
    return call.write(*place, plan.content, message, expected=head.version or 0, detail=detail)


def _conflict(revert: str, planned: PlannedPath, is_written: bool, message: str) -> Note:
    """Return the conflict about changes of a path that could not be reverted automatically. Its sides are the
    current text and the text without the selected changes."""
    current = (planned.head.version or 0) + is_written
    return Note(
        *(SYSTEM, REVERT_WORK, planned.zone, planned.path, "conflict", "revert_conflict"),
        message=message,
        content=planned.plan.proposal or "",
        base=planned.base,
        detail={"revert": revert, "current": current, "current_author": planned.head.actor},
    )


def _item_drafts(call: CallContext, revert: str, item: PlannedItem) -> Iterator[Draft]:
    """Yield the caller's drafts that revert ``item``."""
    for draft in item.drafts:
        yield call.stamp(draft._replace(actor=call.actor, detail={**(draft.detail or {}), "revert": revert}))


def _list_paths(planned: Sequence[PlannedPath | PlannedItem]) -> str:
    trees = {each.path.partition("/")[0] for each in planned if each.zone == REPO}
    shown = ", ".join(_name_path(each.zone, each.path, len(trees) > 1) for each in planned[:20])
    return f"{shown} …" if len(planned) > len(planned[:20]) else shown or "-"


def _name_path(zone: Zone, path: str, has_trees: bool) -> str:
    """Return a path for agents and people. Files of a repository have the names that clients know.

    ``has_trees``: there are paths in several working trees.
    """
    if zone != REPO or has_trees:
        return f"{zone} {path}"
    return path.partition("/")[2]
