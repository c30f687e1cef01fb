"""What reverting the work of agents does: which versions are selected, and the plan of each path."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

from watchroom.errors import InvalidPath, JournalDamaged
from watchroom.journal import Journal, RowFilter
from watchroom.model import REVERT_WORK, ZONES, Json, Row, Zone, parse_object
from watchroom.rules.client_calls import client_call
from watchroom.rules.details import get_int, get_list, get_object
from watchroom.rules.members import is_spawn
from watchroom.rules.reverts import (
    NOT_KEPT,
    ClientEdit,
    PathPlan,
    PathVersion,
    Place,
    PlannedItem,
    PlannedPath,
    RevertPlan,
    RevertSelection,
    first_needed,
    plan_path,
)
from watchroom.rules.row_files import find_row_flaw
from watchroom.rules.task_versions import blob_of, is_executable, is_text
from watchroom.sandbox.task_folder import normalize_task_path
from watchroom.zones.revert_errors import RevertNotFound, RevertTooLarge
from watchroom.zones.tasks import Tasks

ZONE: Final[Zone] = "revert"
TEXT_ZONES: Final[tuple[Zone, ...]] = ("private", "collab", "board", "file")
"""What is reverted: versions of texts."""
LISTED_ZONES: Final[tuple[Zone, ...]] = ("realtime", "handoff", "request", "command", "agent")
"""What is counted, where no part reverts it."""
CLIENT_EDITS: Final = "client_edit"
"""The name under which edits by clients' own tools are counted, which no revert takes back."""
MORE_PATHS: Final = "…"
"""The path of edits whose row does not have all paths."""
MAX_CLIENT_EDITS: Final = 1000
"""Files that agents edited by their clients' own tools that are listed."""
MOST_PATHS: Final = 10_000
MOST_ITEM_ROWS: Final = 100_000
"""Of what is no text."""
MOST_VERSIONS: Final = 20_000
"""Of a path, since the first selected one."""
TOO_MANY: Final = "too_many_versions"
TASK_ELSEWHERE: Final = "task_elsewhere"
INVALID_PATH: Final = "invalid_path"
"""Why a path cannot be reverted: its task has ended, or its folder is on another machine."""
UNSAFE_NAME: Final = "unsafe_name"
"""Why a task's file cannot be reverted: its name is not UTF-8, or no name that a task's file can be given."""
_ENTRY_TOOL: Final = "whiteboard_append"
_PAGE: Final = 1000


class RevertPart(Protocol):
    """Plans what a revert does to one kind of thing that is no text with versions."""

    @property
    def zones(self) -> Collection[Zone]:
        """Whose rows it plans with."""
        ...

    def plan(self, rows: Sequence[Row]) -> Sequence[PlannedItem]:
        """What reverting ``rows`` does: accepted rows of agents in ``zones``, oldest first. Raises
        `JournalError`."""
        ...

    def plan_undo(self, revert: str, paths: Sequence[str]) -> Sequence[PlannedItem]:
        """What undoing the ``revert`` with that id does to the items at ``paths`` that it changed. Raises
        `JournalError`."""
        ...


class _Selected(NamedTuple):
    """The versions that are selected, by place, whose they are, what else their authors did, and the
    ``rows`` of what is no text, newest first; ``client_edits`` as those of a `RevertPlan`."""

    versions: dict[Place, set[int]]
    agents: tuple[str, ...]
    others: Mapping[str, int]
    rows: Sequence[Row] = ()
    client_edits: tuple[ClientEdit, ...] = ()


class RevertPlanner:
    """Plans reverts of what ``journal`` says; ``tasks`` says whose folder is here, and ``members`` gives the
    agents of a task. ``parts`` plan what is no text."""

    def __init__(
        self, journal: Journal, tasks: Tasks, members: Mapping[str, str], parts: Sequence[RevertPart] = ()
    ) -> None:
        self._journal = journal
        self._tasks = tasks
        self._members = members
        self._parts = parts

    def plan(self, selection: RevertSelection) -> RevertPlan:
        """What reverting ``selection`` does now. Changes nothing. Raises `RevertNotFound` where it names
        none, `RevertTooLarge` where it touches more than 10,000 paths, `JournalError`."""
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
        """``planned``, where bytes that are not kept cannot come back."""
        wanted = {each.plan.blob.sha256 for each in planned if each.plan.blob is not None}
        lost = wanted.difference(self._journal.kept_blobs([*wanted])) if wanted else set()
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
        """The versions that ``selection`` means. Raises as `plan` does."""
        if selection.undo:
            return self._selected_by_revert(selection.undo)
        versions: defaultdict[Place, set[int]] = defaultdict(set)
        agents: dict[str, None] = {}
        others: Counter[str] = Counter()
        rows: list[Row] = []
        edits: Counter[tuple[str, str, str]] = Counter()
        of_parts = {zone for part in self._parts for zone in part.zones}
        left_out = set(selection.left_out)
        for row in self._rows(selection):
            if row.kind != "agent" or row.outcome != "ok":
                continue
            call = client_call(row)
            if call is not None:
                if call.is_edit:
                    others[CLIENT_EDITS] += 1
                    more = (MORE_PATHS,) if call.left_out else ()
                    named = [(row.actor, path, call.folder) for path in (*call.paths, *more)]
                    # However many an agent edits, it does not keep people from reverting the rest.
                    edits.update(each for each in named if each in edits or len(edits) < MAX_CLIENT_EDITS)
                continue
            if selection.with_spawned and is_spawn(row):
                # Both are paused, even where nothing of their work is there yet.
                agents.update(dict.fromkeys((row.actor, row.path)))
                continue
            is_item = row.zone in of_parts and find_row_flaw(row) is None
            if is_item and (row.zone, row.path) not in left_out:
                agents.setdefault(row.actor)
                rows.append(row)
                if len(rows) > MOST_ITEM_ROWS:
                    raise RevertTooLarge(most=MOST_ITEM_ROWS)
            elif row.zone in LISTED_ZONES or (row.zone in of_parts and not is_item):
                others[row.zone] += 1
            if row.zone not in TEXT_ZONES or row.version is None or (row.zone, row.path) in left_out:
                continue
            agents.setdefault(row.actor)
            versions[row.zone, row.path].add(row.version)
            if len(versions) > MOST_PATHS:
                raise RevertTooLarge(most=MOST_PATHS)
        rows.sort(key=lambda row: -row.seq)
        listed = tuple(ClientEdit(*edit, times) for edit, times in sorted(edits.items()))
        return _Selected(dict(versions), tuple(sorted(agents)), others, rows, listed)

    def _rows(self, selection: RevertSelection) -> Iterator[Row]:
        wanted: list[str | None] = [*selection.agents]
        if selection.task:
            of_task = {agent for agent, task in self._members.items() if task == selection.task}
            wanted = [*sorted(of_task & set(selection.agents) if selection.agents else of_task)]
        elif not wanted:
            wanted = [None]
        # Grows by those whom they spawned.
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
            if head.version - first > MOST_VERSIONS:
                return PlannedPath(zone, path, PathPlan("cannot", reason=TOO_MANY), head, None, first - 1)
            versions = self._versions(place, first)
        current = versions[-1].content
        before = self._version(place, first - 1) if first > 1 else None
        plan = plan_path(selected, versions, before)
        if zone == "file" and plan.kind in ("clean", "conflict"):
            if not self._is_here(path):
                plan = PathPlan("cannot", reason=TASK_ELSEWHERE)
            elif not _is_writable_name(path):
                plan = PathPlan("cannot", reason=UNSAFE_NAME)
        return PlannedPath(zone, path, plan, head, current, first - 1)

    def _is_here(self, path: str) -> bool:
        """Whether the task's folder of the file at ``path`` is open, and on this machine."""
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
    """A revert as its row says: the versions that it ``written``, each a zone, a path and a number; the paths
    where people decide about the rest (``conflicts``), and those that it ``could_not`` revert, with the
    reason; the ``agents`` whose work it was; the ``items`` that are no texts and were changed."""

    written: tuple[tuple[Zone, str, int], ...]
    conflicts: tuple[Place, ...]
    could_not: tuple[tuple[Zone, str, str], ...]
    not_reverted: Mapping[str, int]
    agents: tuple[str, ...]
    until: int
    items: tuple[Place, ...] = ()

    def dump(self) -> str:
        """As the content of its row."""
        return json.dumps(self._asdict(), ensure_ascii=False)


def read_record(journal: Journal, revert: str) -> RevertRecord:
    """Return what the revert with the id ``revert`` did, by ``journal``. Raise `RevertNotFound`;
    `JournalDamaged` if its record cannot be read; `JournalError`."""
    # The first version is the one that a person signed; the second says that it is finished.
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
    """Return the arrays in the array ``name`` of ``fields``: a zone, a path, and values of the types
    ``more``. Raise `JournalDamaged` if one is anything else."""
    for entry in get_list(fields, name):
        if not isinstance(entry, list) or [type(value) for value in entry] != [str, str, *more]:
            raise JournalDamaged
        if entry[0] not in ZONES:
            raise JournalDamaged
        yield entry


def _is_writable_name(path: str) -> bool:
    """Return whether the task's file of the rows at ``path`` can be found and written by its name."""
    try:
        return normalize_task_path(path.partition("/")[2]) == path.partition("/")[2]
    except InvalidPath:
        return False


def _decided(planned: PlannedPath) -> PlannedPath:
    """``planned``, where a person has decided that all that is selected goes."""
    plan = planned.plan
    if plan.kind != "conflict":
        return planned
    return planned._replace(plan=plan._replace(kind="clean", content=plan.proposal))


def _path_version(row: Row, content: str | None) -> PathVersion:
    detail, is_file = row.detail, row.zone == "file"
    # Whatever an agent may put into a row's detail switches nothing.
    switched = detail if row.tool == REVERT_WORK and row.kind in ("human", "system") else {}
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
