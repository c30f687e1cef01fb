"""`Landings`: merges the commits of a working tree into a branch, such as the branch of the main tree.

The merge changes no file on disk. A file that git cannot merge becomes a conflict on its own path,
``land.TREE/PATH``. The texts of the merge base and of the branch become two versions there. The text of the
tree becomes the refused write. People settle it like any other conflict, and land the tree again. Their
choices also apply to later landings, see `watchroom.features.trees.settled_conflicts`.

A landing is decided by a row. If the process is killed before that row, nothing has happened. If it is killed
after that row, the next process continues the landing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from threading import Lock
from typing import Final, Literal, NamedTuple, TypeAlias

from watchroom.errors import GitBusy, GitError, InvalidTarget, TargetChanged, TreeGone, UncommittedWork
from watchroom.features.config.store import Store
from watchroom.features.trees.commits import reported_as_done
from watchroom.features.trees.git import GitTree
from watchroom.features.trees.git_merge import ConflictTexts, FileConflict, GitMerger, Merge
from watchroom.features.trees.recorder import TreeRecorder
from watchroom.features.trees.rows import (
    CHANGE,
    GRADE,
    INTO,
    LAND,
    LANDING_PREFIX,
    REPO,
    SIDE,
    TREE,
    repo_path,
)
from watchroom.features.trees.service import Trees
from watchroom.features.trees.settled_conflicts import MAX_CONFLICT_ROWS, SettledConflicts
from watchroom.features.trees.tree_states import list_places
from watchroom.features.trees.trials import TrialOutcome, run_trial
from watchroom.features.trees.view import NO_AGENTS
from watchroom.kernel.call_context import CallContext
from watchroom.kernel.journal import RowFilter
from watchroom.kernel.rules.details import get_float, get_int, get_list, get_text
from watchroom.model import SYSTEM, Json, Note, Row, Write
from watchroom.validation import MAX_PATH_BYTES, escape_unstorable, extract_first_line

LandingState: TypeAlias = Literal[
    "up_to_date", "conflict", "check_failed", "moved", "decided", "landed", "interrupted"
]
"""The outcome of a landing.

- ``up_to_date``: the branch already has the work of the tree.
- ``conflict``: people have to settle conflicts first.
- ``check_failed``: the check failed in the merge.
- ``moved``: others moved the branch each time before the check had ended.
- ``decided``: the branch is being moved.
- ``landed``: the branch was moved, with the files of the tree that has it checked out.
- ``interrupted``: the landing was decided, but not completed: git was busy, or others had moved the branch.
"""
_CLAIM: Final = "landing"
_COMMIT: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_MAX_MORE: Final = 2
"""Maximum number of times that a landing is merged and checked again because others have moved the branch."""
_MAX_LISTED: Final = 1000


class LandingRecord(NamedTuple):
    """The outcome of a landing, as recorded in its note.

    - ``tree``: the id of the tree.
    - ``into``: the branch.
    - ``before``, ``after``: the commits of the branch before and after the move; empty if unknown.
    - ``paths``: the files with conflicts. For a completed landing: the files of the tree with this branch
      that were not updated, because others had changed them.
    - ``command``, ``status``, ``seconds``, ``output``: the result of the check. The status is None without a
      check, and after the timeout.
    - ``settled``: see `LandingPlan`.
    """

    tree: str
    state: LandingState
    into: str
    before: str = ""
    after: str = ""
    paths: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    status: int | None = None
    seconds: float = 0.0
    output: str = ""
    settled: tuple[str, ...] = ()

    @property
    def detail(self) -> dict[str, Json]:
        """The record as the detail of a row, without the output."""
        fields: dict[str, Json] = {"state": self.state, INTO: escape_unstorable(self.into)}
        fields |= {"before": self.before, "after": self.after}
        fields["paths"] = [escape_unstorable(each, MAX_PATH_BYTES) for each in self.paths[:_MAX_LISTED]]
        if self.settled:
            fields["settled"] = [
                escape_unstorable(each, MAX_PATH_BYTES) for each in self.settled[:_MAX_LISTED]
            ]
        if self.command:
            fields |= {"command": [*self.command], "status": self.status, "seconds": round(self.seconds, 3)}
        return fields


def read_landing(row: Row) -> LandingRecord:
    """Return the record of ``row``, a note with the tool `LAND`."""
    detail = row.detail
    paths, command, settled = (
        tuple(each for each in get_list(detail, name) if isinstance(each, str))
        for name in ("paths", "command", "settled")
    )
    state = get_text(detail, "state")
    status = detail.get("status")
    return LandingRecord(
        row.path,
        next((each for each in _STATES if each == state), "interrupted"),
        get_text(detail, INTO),
        get_text(detail, "before"),
        get_text(detail, "after"),
        paths,
        command,
        status if isinstance(status, int) else None,
        get_float(detail, "seconds"),
        settled=settled,
    )


_STATES: Final[tuple[LandingState, ...]] = (
    "up_to_date",
    "conflict",
    "check_failed",
    "moved",
    "decided",
    "landed",
    "interrupted",
)


class LandingPlan(NamedTuple):
    """A planned landing.

    - ``tree``: the id of the tree.
    - ``source``: the branch of the tree, or its commit if HEAD is detached.
    - ``into``, ``before``: the branch, and its current commit.
    - ``head``: the commit of the tree.
    - ``content``: the id of the merged git tree, empty while there are conflicts.
    - ``is_forward``: the branch is moved to ``head`` without a merge commit.
    - ``conflicts``: the files that people must settle by choosing texts.
    - ``others``: the paths of conflicts without texts: deleted or binary files, links. They are settled by
      merging the branch into the tree.
    - ``settled``: the files in which people have already settled all or some of the conflicts.
    """

    tree: str
    source: str
    into: str
    before: str
    head: str
    content: str = ""
    is_forward: bool = False
    conflicts: Mapping[str, ConflictTexts] = {}
    others: tuple[str, ...] = ()
    settled: tuple[str, ...] = ()

    @property
    def is_up_to_date(self) -> bool:
        """Whether the branch has the work already."""
        return not self.content and not self.conflicts and not self.others


class Landings:
    """Lands working trees, one at a time.

    - ``store``: the journal.
    - ``trees``: the working trees.
    - ``counts``: returns whether a person's decision counts.
    """

    def __init__(self, store: Store, trees: Trees, counts: Callable[[Row], bool]) -> None:
        self._store = store
        self._trees = trees
        self._counts = counts
        self._settled = SettledConflicts(store, counts)
        self._lock = Lock()
        self._scanned = 0
        self._newest: LandingRecord | None = None
        self._checks: dict[str, tuple[str, ...]] = {}

    def find_target(self) -> str:
        """Return the branch of the main tree, empty if it has none."""
        main = next((each for each in self._trees.all() if each.git.git == self._trees.common), None)
        return main.git.read_state().branch if main is not None else ""

    def plan(self, tree: TreeRecorder, into: str | None = None) -> LandingPlan:
        """Plan the landing of ``tree``. Change nothing.

        ``into``: the branch, default the branch of the main tree.

        Raise `UncommittedWork`, `InvalidTarget`, `GitBusy` during a rebase or a merge, `GitError`.
        """
        state, target = tree.git.read_state(), into or self.find_target()
        merger = GitMerger(tree.git)
        if not target:
            raise InvalidTarget(branch="-", rule="no_target")
        if target == state.branch:
            raise InvalidTarget(branch=target, rule="own_branch")
        before = merger.find_commit(target)
        if not before:
            raise InvalidTarget(branch=target, rule="branch_unknown")
        if not state.head:
            raise InvalidTarget(branch=target, rule="no_work")
        self._find_holder(target)
        if state.operation:
            raise GitBusy(rule="git_operation")
        changed = sorted({*tree.git.list_changed(), *tree.git.list_staged()})
        if changed:
            raise UncommittedWork(tree=state.branch or tree.id, paths=_join(changed))
        plan = LandingPlan(tree.id, state.branch or state.head[:12], target, before, state.head)
        base = merger.find_base(before, state.head)
        if not base:
            raise InvalidTarget(branch=target, rule="no_common_commit")
        if base == state.head:
            return plan
        merge = merger.merge(before, state.head)
        plan = plan._replace(is_forward=base == before)
        return self._settle(plan, merger, merge) if merge.conflicts else plan._replace(content=merge.tree)

    def _settle(self, plan: LandingPlan, merger: GitMerger, merge: Merge) -> LandingPlan:
        """Return ``plan`` with the conflicts of ``merge`` that nobody has settled."""
        settled: dict[FileConflict, str] = {}
        conflicts: dict[str, ConflictTexts] = {}
        remembered: list[str] = []
        others: list[str] = []
        for each in merge.conflicts:
            texts = merger.read_texts(each)
            if texts is None:
                others.append(each.path)
                continue
            found = self._settled.apply(_conflict_path(plan.tree, each.path), texts)
            remembered += [each.path] if found.is_remembered else []
            if found.text is None:
                conflicts[each.path] = found.texts
            else:
                settled[each] = found.text
        plan = plan._replace(settled=tuple(remembered))
        if conflicts or others:
            return plan._replace(conflicts=conflicts, others=tuple(others))
        return plan._replace(content=merger.replace_texts(merge.tree, settled))

    def land(
        self,
        call: CallContext,
        tree: TreeRecorder,
        into: str | None = None,
        *,
        check: Sequence[str] = (),
        linked: Iterable[str] = (),
        timeout: float = 3600.0,
        cache: str = "",
    ) -> LandingRecord:
        """Land ``tree``, or record why it cannot land.

        - ``into``: see `plan`.
        - ``check``: a program with its arguments. It runs in a copy with the merge, which is kept for the
          next check. The branch is only moved if its exit code is 0.
        - ``linked``, ``timeout``, ``cache``: see `watchroom.features.trees.commits.AgentCommits.try_agent`.

        Raise `TargetChanged` if uncommitted changes block the landing in the tree that has the branch
        checked out, `GitBusy` if another landing runs, and the errors of `plan`.
        """
        with self._store.journal.claim(_CLAIM) as is_mine:
            if not is_mine:
                raise GitBusy(rule="landing_running")
            self._resume(call)
            plan = self.plan(tree, into)
            record = self._try(plan, tree, check, linked, timeout, cache)
            for _ in range(_MAX_MORE):
                if record.state == "moved":
                    plan = self.plan(tree, into)
                    record = self._try(plan, tree, check, linked, timeout, cache)
            if record.state == "decided":
                self.record(call, record)
                return self._finish(call, record, tree)
            if record.state == "conflict":
                self._record_conflicts(plan)
            self.record(call, record)
            return record

    def _try(
        self,
        plan: LandingPlan,
        tree: TreeRecorder,
        check: Sequence[str],
        linked: Iterable[str],
        timeout: float,
        cache: str,
    ) -> LandingRecord:
        """Return the record of a decided landing, or of a landing that ends before the decision."""
        record = LandingRecord(plan.tree, "up_to_date", plan.into, plan.before, settled=plan.settled)
        if plan.conflicts or plan.others:
            return record._replace(state="conflict", paths=(*plan.conflicts, *plan.others))
        if plan.is_up_to_date:
            return record
        merger = GitMerger(tree.git)
        after = plan.head
        if not plan.is_forward:
            message = f"Merge branch '{plan.source}' into {plan.into}"
            after = merger.commit_merge(plan.content, (plan.before, plan.head), message)
        record = record._replace(after=after)
        self._check_target(record)
        if check:
            done = self._run_check(plan, tree.git, check, linked, timeout, cache)
            record = record._replace(
                command=tuple(check), status=done.status, seconds=done.seconds, output=done.output
            )
            if done.status != 0:
                return record._replace(state="check_failed")
            if not os.path.isdir(tree.git.folder):
                raise TreeGone(tree=plan.tree)
        if merger.find_commit(plan.into) != plan.before:
            return record._replace(state="moved")
        if check:
            # The check may have taken an hour.
            self._check_target(record)
        return record._replace(state="decided")

    def _check_target(self, record: LandingRecord) -> None:
        """Raise `TargetChanged` if changed files block the landing in the tree that has the branch checked
        out."""
        holder = self._find_holder(record.into)
        if holder is not None and (paths := GitMerger(holder).list_blocking(record.before, record.after)):
            raise TargetChanged(branch=record.into, folder=holder.folder, paths=_join(paths))

    def _run_check(
        self,
        plan: LandingPlan,
        tree: GitTree,
        check: Sequence[str],
        linked: Iterable[str],
        timeout: float,
        cache: str,
    ) -> TrialOutcome:
        return run_trial(
            tree,
            plan.content,
            check,
            claim=lambda slot: self._store.journal.claim(f"trial:{plan.tree}:{slot}"),
            linked=linked,
            timeout=timeout,
            cache=cache,
        )

    def _find_holder(self, branch: str) -> GitTree | None:
        """Return the tree that has ``branch`` checked out, None if no tree has. Raise `InvalidTarget` if its
        files could not follow the branch."""
        main = GitTree("", self._trees.common, self._trees.common)
        names = GitMerger(main).find_names(branch)
        places = list_places(self._trees.common)
        holders = [each for each in places if names & {each.branch, each.tree.read_operated_branch()}]
        if not holders:
            # The folder of the main tree is unknown if its git folder is not in it, as in a submodule.
            is_known = any(each.is_main for each in places) or GitMerger(main).is_bare()
            if not is_known and main.read_state().branch in names:
                raise InvalidTarget(branch=branch, rule="target_unknown")
            return None
        if len(holders) > 1:
            raise InvalidTarget(branch=branch, rule="target_shared")
        (holder,) = holders
        if not holder.is_there:
            raise InvalidTarget(branch=branch, rule="target_gone")
        if holder.tree.read_state().operation:
            raise InvalidTarget(branch=branch, rule="target_busy")
        return holder.tree

    def find_check(self, tree: str) -> tuple[str, ...]:
        """Return the command of the last check of the tree with this id, else the check in the settings;
        empty for none."""
        command = self._store.registry.current().trees.check
        return self._read_newest()[1].get(tree) or (("/bin/sh", "-c", command) if command else ())

    # -- the move

    def _finish(self, call: CallContext, record: LandingRecord, tree: TreeRecorder) -> LandingRecord:
        """Move the branch as decided, and record that."""
        holder, merger = self._find_holder(record.into), GitMerger(tree.git)
        kept: list[str] = []
        try:
            if holder is not None:
                kept = GitMerger(holder).move_checked_out(record.into, record.before, record.after)
            elif merger.find_commit(record.into) != record.after:
                merger.move_branch(record.into, record.before, record.after)
        except GitError:
            # If the branch has moved, its files follow when git is free.
            if merger.find_commit(record.into) != record.after:
                self.record(call, record._replace(state="interrupted"))
            raise
        record = record._replace(state="landed", paths=tuple(kept))
        with reported_as_done(f"{record.into} {record.after[:12]}"):
            self.record(call, record)
        recorder = self._trees.tree_at(holder.folder) if holder is not None else None
        if recorder is not None:
            self._trees.refresh(recorder)
        return record

    def resume(self) -> None:
        """Continue a landing that was decided, and whose process was killed. Nothing happens while another
        landing runs. Raise `GitError`, `JournalError`."""
        with self._store.journal.claim(_CLAIM) as is_mine:
            if is_mine:
                self._resume(CallContext(SYSTEM))

    def _resume(self, call: CallContext) -> None:
        record, _ = self._read_newest()
        if record is None or record.state != "decided":
            return
        tree = next(iter(self._trees.all()), None)
        if tree is None:
            return
        merger = GitMerger(tree.git)
        now = merger.find_commit(record.into)
        if not self._is_sound(record, merger):
            return
        if now in (record.before, record.after):
            try:
                self._finish(call, record, tree)
            except InvalidTarget as error:
                if now == record.after and error.values["rule"] == "target_busy":
                    # The files follow when the operation has ended.
                    raise
                # The tree with the branch is gone, for example. A moved branch stays moved.
                self.record(call, record._replace(state="landed" if now == record.after else "interrupted"))
        else:
            is_landed = bool(now) and merger.is_ancestor(record.after, now)
            self.record(call, record._replace(state="landed" if is_landed else "interrupted"))

    def _is_sound(self, record: LandingRecord, merger: GitMerger) -> bool:
        """Return whether ``record`` can belong to a landing. A landing never removes a commit from a branch.
        A program that can write the journal can add any row."""
        is_named = all(_COMMIT.fullmatch(each) for each in (record.before, record.after))
        return is_named and merger.is_ancestor(record.before, record.after)

    # -- rows

    def _read_newest(self) -> tuple[LandingRecord | None, Mapping[str, tuple[str, ...]]]:
        """Return the newest landing, and the command of the newest check of each tree. Only new rows are
        read."""
        journal = self._store.journal
        with self._lock:
            last = journal.last_seq()
            only = RowFilter(zone=TREE, tool=LAND, outcome="ok", after=self._scanned)
            rows = journal.rows_before(last + 1, limit=_MAX_LISTED, only=only)
            # Only people decide. The service records how a landing ended.
            mine = (row for row in rows if row.actor == SYSTEM or row.kind == "human")
            records = [read_landing(row) for row in mine if self._counts(row)]
            self._newest = next(iter(records), self._newest)
            self._checks |= {each.tree: each.command for each in reversed(records) if each.command}
            self._scanned = last
            return self._newest, self._checks

    def has_failed_before(self, landed: LandingRecord) -> bool:
        """Return whether the attempt before ``landed`` to land the same tree failed."""
        journal = self._store.journal
        only = RowFilter(zone=TREE, tool=LAND, path=landed.tree, outcome="ok")
        rows = journal.rows_before(journal.last_seq() + 1, limit=_MAX_LISTED, only=only)
        found = (read_landing(row) for row in rows if row.path == landed.tree)
        before = next((each for each in found if each.after != landed.after), None)
        return before is not None and before.state in ("conflict", "check_failed", "moved")

    def record(self, call: CallContext, record: LandingRecord) -> None:
        """Record the outcome of a landing. A decided landing is continued by the next landing, or by
        `resume`."""
        subject = extract_first_line(f"{record.into}: {record.state}", 200)
        note = call.with_tool(LAND).note(TREE, record.tree, message=subject, detail=record.detail)
        self._store.commits.commit(note)

    def _record_conflicts(self, plan: LandingPlan) -> None:
        """Record the conflicts of ``plan`` that are not in rows yet."""
        for name, texts in plan.conflicts.items():
            path = _conflict_path(plan.tree, name)
            if not self._is_recorded(path, texts):
                self._store.commits.commit_all([*self._draft_conflict(plan, path, name, texts)])

    def _is_recorded(self, path: str, texts: ConflictTexts) -> bool:
        journal = self._store.journal
        head = journal.head(REPO, path)
        refused = journal.refused(REPO, path, limit=MAX_CONFLICT_ROWS)
        newest = max(refused, key=lambda row: row.seq, default=None)
        if head is None or newest is None or journal.content(head.seq) != texts.ours:
            return False
        return (
            journal.content(newest.seq) == texts.theirs and get_int(newest.detail, "current") == head.version
        )

    def _draft_conflict(
        self, plan: LandingPlan, path: str, name: str, texts: ConflictTexts
    ) -> Iterator[Write | Note]:
        """Yield the drafts of a conflict: the texts of the merge base and of the branch, and the refused text
        of the tree."""
        head = self._store.journal.head(REPO, path)
        base = ((head.version or 0) if head is not None else 0) + 1
        into, source = escape_unstorable(plan.into), escape_unstorable(plan.source)
        git: dict[str, Json] = {GRADE: "git"}
        yield Write(SYSTEM, CHANGE, REPO, path, texts.base, detail=git)
        yield Write(SYSTEM, CHANGE, REPO, path, texts.ours, detail={**git, SIDE: into})
        detail: dict[str, Json] = {"current": base + 1, "current_author": into, SIDE: source, INTO: into}
        yield Note(
            self._author_of(plan.tree, name),
            LAND,
            REPO,
            path,
            "conflict",
            "merge_conflict",
            content=texts.theirs,
            base=base,
            detail=detail,
        )

    def _author_of(self, tree: str, name: str) -> str:
        """Return the agent that changed the file last, else ``system``."""
        head = self._store.journal.head(REPO, repo_path(tree, escape_unstorable(name, MAX_PATH_BYTES)))
        is_agent = head is not None and head.actor not in NO_AGENTS and ":" not in head.actor
        return head.actor if head is not None and is_agent else SYSTEM


def _conflict_path(tree: str, name: str) -> str:
    return repo_path(LANDING_PREFIX + tree, escape_unstorable(name, MAX_PATH_BYTES))


def _join(paths: Sequence[str]) -> str:
    """Return the first ten of ``paths`` in one line, and the number of all if there are more."""
    shown = ", ".join(escape_unstorable(each) for each in paths[:10])
    return shown if len(paths) <= 10 else f"{shown}, … ({len(paths)})"
