"""Plans reverts: selects versions, and plans each path."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final, NamedTuple, Protocol

from watchroom.errors import InvalidPath, JournalDamaged, RevertNotFound, RevertTooLarge
from watchroom.features.reverts.rules import (
    NOT_KEPT,
    TOO_MANY,
    ClientEdit,
    PathPlan,
    PathVersion,
    Place,
    PlannedItem,
    PlannedPath,
    RevertPlan,
    RevertSelection,
    first_needed,
    is_revert_row,
    plan_path,
)
from watchroom.features.sessions.rows import client_call
from watchroom.features.tasks.folder import normalize_task_path
from watchroom.features.tasks.rows import FILE, is_spawn
from watchroom.features.tasks.service import Tasks
from watchroom.features.trees.rows import REPO, TREE, read_tree
from watchroom.features.trees.view import find_row_path
from watchroom.kernel.journal import Journal, RowFilter
from watchroom.kernel.rules.details import get_int, get_list, get_object
from watchroom.kernel.rules.file_versions import blob_of, is_executable, is_text
from watchroom.kernel.rules.row_files import find_row_flaw
from watchroom.kernel.zones import ON_DISK_FIRST, ZONES
from watchroom.model import Json, Row, Zone, parse_object

ZONE: Final[Zone] = "revert"
TEXT_ZONES: Final[tuple[Zone, ...]] = tuple(zone for zone, spec in ZONES.items() if spec.reverts == "text")
"""Zones whose versions are reverted as texts."""
LISTED_ZONES: Final[tuple[Zone, ...]] = tuple(zone for zone, spec in ZONES.items() if spec.reverts == "item")
"""Zones whose rows are counted if no part reverts them."""
CLIENT_EDITS: Final = "client_edit"
"""The name under which edits by clients' own tools are counted. No revert can undo them."""
MORE_PATHS: Final = "…"
"""A mark for further paths that a row does not list."""
MAX_CLIENT_EDITS: Final = 1000
"""Maximum number of listed files that were edited with clients' own tools."""
MAX_PATHS: Final = 10_000
MAX_ITEM_ROWS: Final = 100_000
"""Maximum number of selected rows without versions of text."""
MAX_VERSIONS: Final = 20_000
"""Maximum number of versions of a path since the first selected version."""
TASK_ELSEWHERE: Final = "task_elsewhere"
INVALID_PATH: Final = "invalid_path"
"""Reasons why a path cannot be reverted: its task has ended, its folder is on another machine, or its name is
invalid."""
UNSAFE_NAME: Final = "unsafe_name"
"""The reason why a task file cannot be reverted: its name is not UTF-8, or not a valid name of a task file.
"""
_ENTRY_TOOL: Final = "whiteboard_append"
_PAGE: Final = 1000


class RevertPart(Protocol):
    """Plans the revert of items of one kind that have no versions of text."""

    @property
    def zones(self) -> Collection[Zone]:
        """The zones of the rows that the plan is based on."""
        ...

    def plan(self, rows: Sequence[Row]) -> Sequence[PlannedItem]:
        """Plan the revert of ``rows``: accepted rows of agents in ``zones``, oldest first. Raise
        `JournalError`."""
        ...

    def plan_undo(self, revert: str, paths: Sequence[str]) -> Sequence[PlannedItem]:
        """Plan how to undo the revert with the id ``revert`` for the items at ``paths`` that it changed.
        Raise `JournalError`."""
        ...


class _Selected(NamedTuple):
    """The selected work.

    - ``versions``: the selected versions by place.
    - ``agents``: the authors of these versions.
    - ``others``: the number of other operations by zone.
    - ``rows``: rows without versions of text, newest first.
    - ``client_edits``: see `RevertPlan`.
    """

    versions: dict[Place, set[int]]
    agents: tuple[str, ...]
    others: Mapping[str, int]
    rows: Sequence[Row] = ()
    client_edits: tuple[ClientEdit, ...] = ()


class RevertPlanner:
    """Plans reverts.

    - ``journal``: the rows.
    - ``tasks``: decides whether a task's folder is on this machine.
    - ``members``: the task of each agent.
    - ``parts``: plan items without versions of text.
    """

    def __init__(
        self, journal: Journal, tasks: Tasks, members: Mapping[str, str], parts: Sequence[RevertPart] = ()
    ) -> None:
        self._journal = journal
        self._tasks = tasks
        self._members = members
        self._parts = parts

    def plan(self, selection: RevertSelection) -> RevertPlan:
        """Plan the revert of ``selection``, and change nothing. Raise `RevertNotFound`, `JournalError`, and
        `RevertTooLarge` for more than 10,000 paths."""
        until = selection.until or self._journal.last_seq()
        selected = self.select(selection._replace(until=until))
        planned = [self._planned(place, numbers) for place, numbers in sorted(selected.versions.items())]
        planned = self._with_kept_blobs(planned)
        planned = [_decided(each) if selection.decides((each.zone, each.path)) else each for each in planned]
        items = self._plan_items(selection.undo, selected.rows)
        return RevertPlan(
            until, selected.agents, tuple(planned), selected.others, tuple(items), selected.client_edits
        )

    def _with_kept_blobs(self, planned: Sequence[PlannedPath]) -> list[PlannedPath]:
        """Return ``planned``. Binary files whose bytes are not kept are marked as files that cannot be
        reverted."""
        wanted = {each.plan.blob.sha256 for each in planned if each.plan.blob is not None}
        lost = wanted.difference(self._journal.blobs.kept([*wanted])) if wanted else set()
        cannot = PathPlan("cannot", reason=NOT_KEPT)
        return [
            each._replace(plan=cannot) if each.plan.blob and each.plan.blob.sha256 in lost else each
            for each in planned
        ]

    def _plan_items(self, undone: str, rows: Sequence[Row]) -> Iterator[PlannedItem]:
        changed = read_record(self._journal, undone).items if undone else ()
        for part in self._parts:
            if undone:
                paths = [path for zone, path in changed if zone in part.zones]
                yield from part.plan_undo(undone, paths) if paths else ()
            else:
                of_part = [row for row in reversed(rows) if row.zone in part.zones]
                yield from part.plan(of_part) if of_part else ()

    def select(self, selection: RevertSelection) -> _Selected:
        """Return the work in ``selection``. Raise the errors of `plan`."""
        if selection.undo:
            return self._selected_by_revert(selection.undo)
        versions: defaultdict[Place, set[int]] = defaultdict(set)
        agents: dict[str, None] = {}
        others: Counter[str] = Counter()
        rows: list[Row] = []
        edits: Counter[tuple[str, str, str]] = Counter()
        of_parts = {zone for part in self._parts for zone in part.zones}
        left_out = set(selection.left_out)
        is_versioned = self._make_check()
        for row in self._rows(selection):
            if row.kind != "agent" or row.outcome != "ok":
                continue
            call = client_call(row)
            if call is not None:
                unversioned = [each for each in call.paths if not is_versioned(each, call.folder)]
                if call.is_edit and (unversioned or call.left_out):
                    others[CLIENT_EDITS] += 1
                    more = (MORE_PATHS,) if call.left_out else ()
                    named = [(row.actor, path, call.folder) for path in (*unversioned, *more)]
                    # The list is bounded, so that many edits of an agent do not block the revert.
                    edits.update(each for each in named if each in edits or len(edits) < MAX_CLIENT_EDITS)
                continue
            if selection.with_spawned and is_spawn(row):
                # Pause both agents, even if they have no work yet.
                agents.update(dict.fromkeys((row.actor, row.path)))
                continue
            is_item = row.zone in of_parts and find_row_flaw(row) is None
            if is_item and (row.zone, row.path) not in left_out:
                agents.setdefault(row.actor)
                rows.append(row)
                if len(rows) > MAX_ITEM_ROWS:
                    raise RevertTooLarge(most=MAX_ITEM_ROWS)
            elif row.zone in LISTED_ZONES or (row.zone in of_parts and not is_item):
                others[row.zone] += 1
            if row.zone not in TEXT_ZONES or row.version is None or (row.zone, row.path) in left_out:
                continue
            agents.setdefault(row.actor)
            versions[row.zone, row.path].add(row.version)
            if len(versions) > MAX_PATHS:
                raise RevertTooLarge(most=MAX_PATHS)
        rows.sort(key=lambda row: -row.seq)
        listed = tuple(ClientEdit(*edit, times) for edit, times in sorted(edits.items()))
        return _Selected(dict(versions), tuple(sorted(agents)), others, rows, listed)

    def _make_check(self) -> Callable[[str, str], bool]:
        """Return a function that checks whether a file has versions in a working tree.

        It takes the file's path, and the folder for relative paths.
        """
        heads = self._journal.heads(TREE)
        trees = [read_tree(each.path, self._journal.content(each.seq) or "") for each in heads]

        @cache
        def is_versioned(path: str, folder: str) -> bool:
            found = find_row_path(trees, path, folder)
            return found is not None and self._journal.head(REPO, found) is not None

        return is_versioned

    def _rows(self, selection: RevertSelection) -> Iterator[Row]:
        wanted: list[str | None] = [*selection.agents]
        if selection.task:
            of_task = {agent for agent, task in self._members.items() if task == selection.task}
            wanted = [*sorted(of_task & set(selection.agents) if selection.agents else of_task)]
        elif not wanted:
            wanted = [None]
        # Spawned agents are appended to the list during the loop.
        for actor in wanted:
            only = RowFilter(actor=actor, after=selection.after, steps=False)
            before = (selection.until or 0) + 1
            while rows := self._journal.rows_before(before, limit=_PAGE, only=only):
                yield from rows
                before = rows[-1].seq
                if selection.with_spawned and actor is not None:
                    wanted.extend(row.path for row in rows if is_spawn(row) and row.path not in wanted)

    def _selected_by_revert(self, revert: str) -> _Selected:
        record = read_record(self._journal, revert)
        versions: dict[Place, set[int]] = {}
        for zone, path, version in record.written:
            versions[zone, path] = {version}
        return _Selected(versions, record.agents, {})

    def _planned(self, place: Place, selected: set[int]) -> PlannedPath:
        zone, path = place
        head = self._journal.head(zone, path)
        if head is None or head.version is None:
            raise RuntimeError("a path with versions has no head")
        if find_row_flaw(head) is not None:
            return PlannedPath(
                zone, path, PathPlan("cannot", reason=INVALID_PATH), head, None, min(selected) - 1
            )
        first, versions = min(selected), list[PathVersion]()
        while not versions or first_needed(selected, versions) < first:
            first = min([first, *([first_needed(selected, versions)] if versions else ())])
            if head.version - first > MAX_VERSIONS:
                return PlannedPath(zone, path, PathPlan("cannot", reason=TOO_MANY), head, None, first - 1)
            versions = self._versions(place, first)
        current = versions[-1].content
        before = self._version(place, first - 1) if first > 1 else None
        plan = plan_path(selected, versions, before)
        if zone in ON_DISK_FIRST and plan.kind in ("clean", "conflict"):
            if zone == FILE and not self._is_here(path):
                plan = PathPlan("cannot", reason=TASK_ELSEWHERE)
            elif not _is_writable_name(path):
                plan = PathPlan("cannot", reason=UNSAFE_NAME)
        return PlannedPath(zone, path, plan, head, current, first - 1)

    def _is_here(self, path: str) -> bool:
        """Return whether the task's folder of the file at ``path`` is open and on this machine."""
        task = path.partition("/")[0]
        return self._tasks.has_folder_here(task)

    def _versions(self, place: Place, first: int) -> list[PathVersion]:
        found: list[PathVersion] = []
        after = first - 1
        while pages := self._journal.versions(*place, after=after):
            found += [_path_version(row, content) for row, content in pages]
            after = found[-1].number
        return found

    def _version(self, place: Place, version: int) -> PathVersion:
        ((row, content),) = self._journal.versions(*place, after=version - 1, limit=1)
        return _path_version(row, content)


class RevertRecord(NamedTuple):
    """The result of a revert, as recorded in its row.

    - ``written``: the versions that it wrote: zone, path and number.
    - ``conflicts``: paths with remaining changes that people must decide on.
    - ``could_not``: paths that it could not revert, with the reason.
    - ``not_reverted``: as in `RevertPlan`.
    - ``agents``: the agents whose work was reverted.
    - ``until``: the last row that it considered.
    - ``items``: changed items without versions of text.
    """

    written: tuple[tuple[Zone, str, int], ...]
    conflicts: tuple[Place, ...]
    could_not: tuple[tuple[Zone, str, str], ...]
    not_reverted: Mapping[str, int]
    agents: tuple[str, ...]
    until: int
    items: tuple[Place, ...] = ()

    def dump(self) -> str:
        """Return the record as the content of its row."""
        return json.dumps(self._asdict(), ensure_ascii=False)


def read_record(journal: Journal, revert: str) -> RevertRecord:
    """Return the record of the revert with the id ``revert`` in ``journal``.

    Raise `RevertNotFound`, `JournalDamaged` if the record cannot be read, and `JournalError`.
    """
    # A person signed the first version. The second version records the end of the revert.
    row = journal.version(ZONE, revert, 1)
    if row is None:
        raise RevertNotFound(revert=revert)
    fields = parse_object(journal.content(row.seq) or "") or {}
    until, counts = get_int(fields, "until"), get_object(fields, "not_reverted")
    not_reverted = {zone: count for zone in counts if (count := get_int(counts, zone)) is not None}
    agents = tuple(name for name in get_list(fields, "agents") if isinstance(name, str))
    if until is None or len(not_reverted) != len(counts) or len(agents) != len(get_list(fields, "agents")):
        raise JournalDamaged
    return RevertRecord(
        tuple((zone, path, version) for zone, path, version in _entries(fields, "written", int)),
        tuple((zone, path) for zone, path in _entries(fields, "conflicts")),
        tuple((zone, path, reason) for zone, path, reason in _entries(fields, "could_not", str)),
        not_reverted,
        agents,
        until,
        tuple((zone, path) for zone, path in _entries(fields, "items")),
    )


def _entries(fields: Mapping[str, Json], name: str, *more: type) -> Iterator[list[Any]]:
    """Yield the arrays in the array ``name`` of ``fields``: a zone, a path, and values of the types ``more``.
    Raise `JournalDamaged` for any other value."""
    for entry in get_list(fields, name):
        if not isinstance(entry, list) or [type(value) for value in entry] != [str, str, *more]:
            raise JournalDamaged
        if entry[0] not in ZONES:
            raise JournalDamaged
        yield entry


def _is_writable_name(path: str) -> bool:
    """Return whether the task's file with rows at ``path`` can be found and written by its name."""
    try:
        return normalize_task_path(path.partition("/")[2]) == path.partition("/")[2]
    except InvalidPath:
        return False


def _decided(planned: PlannedPath) -> PlannedPath:
    """Return ``planned`` with its conflict decided: all selected changes are removed."""
    plan = planned.plan
    if plan.kind != "conflict":
        return planned
    return planned._replace(plan=plan._replace(kind="clean", content=plan.proposal))


def _path_version(row: Row, content: str | None) -> PathVersion:
    detail, is_file = row.detail, row.zone in ON_DISK_FIRST
    switched = detail if is_revert_row(row) else {}
    return PathVersion(
        row.version or 0,
        None if row.deleted else content,
        is_text=not is_file or is_text(row),
        took=_numbers(switched.get("took")),
        gave=_numbers(switched.get("gave")),
        is_entry=row.tool == _ENTRY_TOOL,
        blob=blob_of(row) if is_file else None,
        executable=is_executable(row),
    )


def _numbers(value: Json) -> frozenset[int]:
    return (
        frozenset(each for each in value if isinstance(each, int)) if isinstance(value, list) else frozenset()
    )
