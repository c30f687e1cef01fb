"""Compares the journal with its files, and repairs the files."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from watchroom import validation
from watchroom.features.config.rows import Config, find_role_collision
from watchroom.features.config.store import Store
from watchroom.features.documents.rows import DOCUMENT_ZONE
from watchroom.features.needs.damage import find_damage
from watchroom.features.overview.reads import Breakage, BrokenVersion, find_damaged
from watchroom.features.people.decisions import is_reported
from watchroom.features.people.rules import effect_of
from watchroom.features.people.service import PeopleRegistry
from watchroom.features.tasks.files import TaskFiles
from watchroom.kernel.checkout.layout import (
    VERSIONED,
    history_line,
    history_place,
    meta_place,
    meta_text,
    oldest_kept,
    version_place,
)
from watchroom.kernel.checkout.reconciler import Reconciler
from watchroom.kernel.journal import Damage, Journal
from watchroom.kernel.rules.row_files import CONFIG_PATH, ZONES_WITH_FILES, find_row_flaw
from watchroom.kernel.zones import ZONES
from watchroom.model import Row, Zone
from watchroom.platform.disk import Parts
from watchroom.texts import Catalogue, catalogue

if TYPE_CHECKING:
    from watchroom.features.documents.service import Documents

_log = logging.getLogger("watchroom")

ProblemKind: TypeAlias = Literal[
    "journal", "registry", "decision", "path", "file", "version", "history", "metadata"
]

_PAGE: Final = 5000
_NOT_OF_FILES: Final[frozenset[ProblemKind]] = frozenset({"journal", "registry", "decision", "path"})
"""Problems that are not repaired by writing files again."""
_FILE_BREAKAGES: Final[dict[Breakage, str]] = {
    "missing": "v{version} is missing",
    "differs": "v{version} differs",
    "unreadable": "v{version} cannot be read as a file",
}


@dataclass(frozen=True, slots=True)
class Problem:
    """A difference between the journal and the files, or damage.

    ``kind``: one of these.

    - ``journal``: the journal itself is damaged. This cannot be repaired.
    - ``registry``: two agents can be confused, or the newest config is invalid. A person must change this.
    - ``decision``: a person's decision does not count (see `watchroom.features.people.decisions`).
    - ``path``: the path of a row breaks the rules of its zone, so it has no file.
    - ``file``, ``version``, ``history``, ``metadata``: a file differs from the journal.

    ``version``: the affected version, None if the problem is not about a version.
    """

    kind: ProblemKind
    zone: Zone
    path: str
    what: str
    version: int | None = None


def verify(
    store: Store,
    reconciler: Reconciler,
    tasks: TaskFiles,
    people: PeopleRegistry,
    documents: Documents | None = None,
) -> list[Problem]:
    """Return every problem of a workspace. All data is read, and nothing is changed. Raise `JournalError`.

    - ``store``: the journal and its files.
    - ``reconciler``: finds external edits.
    - ``tasks``: the folders of tasks.
    - ``people``: decides which decisions count.
    - ``documents``: the document checkpoints, None if there are no documents.
    """
    store.flush()
    found = [_journal_problem(store, each) for each in store.journal.problems()]
    found.extend(_problems_of_rows(store.journal, people, [each.what for each in found]))
    invalid = store.registry.find_invalid()
    if invalid is not None:
        what = f"v{invalid} is invalid or damaged: the last valid version is in effect"
        found.append(Problem("registry", "config", CONFIG_PATH, what, invalid))
    found.extend(_path_problems(store))
    found.extend(_role_problems(store.registry.current()))
    found.extend(
        Problem(
            "file", zone, path, "is not a regular file" if reconciler.is_obstructed(zone, path) else "differs"
        )
        for zone, path in reconciler.differing()
    )
    found.extend(_problems_of_versions(store))
    if documents:
        found.extend(
            Problem("file", DOCUMENT_ZONE, name, "differs") for name in documents.find_differing_checkpoints()
        )
    found.extend(Problem("file", "file", path, "differs") for path in tasks.find_differences())
    return found


def repair(
    store: Store,
    reconciler: Reconciler,
    tasks: TaskFiles,
    people: PeopleRegistry,
    documents: Documents | None = None,
) -> list[Problem]:
    """Record external edits, so that no edit is lost, then write the files again. Return the remaining
    problems.

    See `verify` for the parameters. Files in task folders are only recorded. A file that the journal cannot
    keep, because it is binary or too large, is not changed.
    """
    store.flush()
    reconciler.scan()
    tasks.record_all()
    if documents:
        for name in documents.find_differing_checkpoints():
            documents.rewrite_checkpoint(name, from_rows=True)
    problems = verify(store, reconciler, tasks, people)
    wrong = {
        (each.zone, each.path) for each in problems if each.kind not in _NOT_OF_FILES and each.zone != "file"
    }
    with store.checkout.settled():
        for zone, path in sorted(wrong):
            if not validation.is_unicode(path):
                continue
            try:
                is_kept = _is_kept(store, zone, path)
                if is_kept:
                    reconciler.keep_edit(zone, path)
                store.checkout.rematerialize(zone, path, current=is_kept)
            except OSError as error:
                # Another file or folder is at the place. Watchroom must not remove it, so it stays a problem.
                _log.warning("%s %s could not be written: %s", zone, path, error)
    return verify(store, reconciler, tasks, people, documents)


def versions_broken(store: Store, rows: Iterable[Row]) -> list[BrokenVersion]:
    """Return the versions among ``rows`` with a damaged text in the journal, or a wrong version file."""
    given = list(rows)
    suspects = [row for row in given if _file_breakage(store, row)]
    files: list[BrokenVersion] = []
    if suspects:
        # The file of a just committed version may not be written yet.
        with store.checkout.derived.settled():
            files = [BrokenVersion(row, what) for row in suspects if (what := _file_breakage(store, row))]
    return [*find_damaged(store.journal, given), *files]


def _problems_of_rows(journal: Journal, people: PeopleRegistry, known: Sequence[str]) -> Iterator[Problem]:
    """Yield damaged rows that no problem in ``known`` names, and decisions that do not count or are
    disputed."""
    named = {what.partition(":")[0] for what in known}
    rules = catalogue("en")
    if people.current().is_lost:
        yield Problem("decision", "person", "", rules("rule.people_lost"))
    after = 0
    while rows := journal.rows(after, limit=_PAGE):
        after = rows[-1].seq
        for row in rows:
            name, damage = f"row {row.seq}", find_damage(row)
            if damage and name not in named:
                what = f"{name}: {rules(f'rule.{damage}')}"
                yield Problem("journal", row.zone, row.path, what, row.version)
            if effect_of(row) is not None and (wrong := _find_wrong_decision(row, people, rules)):
                what = f"{name}: {row.tool} by {row.actor} {wrong}"
                yield Problem("decision", row.zone, row.path, what, row.version)


def _find_wrong_decision(row: Row, people: PeopleRegistry, rules: Catalogue) -> str:
    """Return the reason why ``row`` does not count or is disputed; empty if neither is the case."""
    flaw = people.find_flaw(row)
    if is_reported(row, flaw):
        return f"does not count: {rules(f'rule.{flaw}')}"
    dispute = people.find_dispute(row)
    return f"is disputed by {dispute.actor} in row {dispute.seq}" if dispute is not None else ""


def _path_problems(store: Store) -> Iterator[Problem]:
    """Yield the current rows whose paths break the rules of their zone, in the workspace's language. Such
    rows were not written by the tools."""
    texts = catalogue(store.registry.current().language)
    for zone in ZONES_WITH_FILES:
        for head in store.journal.heads(zone):
            flaw = find_row_flaw(head)
            if flaw is not None:
                rule = texts(f"rule.{flaw}")
                what = texts("verify.no_file", row=head.seq, actor=head.actor, rule=rule)
                yield Problem("path", zone, head.path, what, head.version)


def _is_kept(store: Store, zone: Zone, path: str) -> bool:
    """Whether the content of the file at the path, if it exists, is in the journal."""
    try:
        data = store.checkout.current(zone, path)
    except OSError:
        return False
    if data is None:
        return True
    checksum = validation.sha256(data)
    head = store.journal.head(zone, path)
    if head is not None and head.sha256 == checksum:
        return True
    refused = store.journal.refused(zone, path)
    return any(row.sha256 == checksum and store.journal.content(row.seq) is not None for row in refused)


def _role_problems(config: Config) -> Iterator[Problem]:
    """Yield pairs of agents that can be confused. Earlier versions did not check roles."""
    agents = list(config.agents.values())
    for n, agent in enumerate(agents):
        found = find_role_collision(agent, agents[:n])
        if found is not None:
            what = f"{agent.id} ({agent.role or '-'}) and {found.other.id} ({found.other.role or '-'})"
            yield Problem("registry", "config", CONFIG_PATH, f"{what}: they can be mistaken for each other")


def _problems_of_versions(store: Store) -> list[Problem]:
    """Return the problems of version files, histories and metadata.

    Others may write at the same time, and files are written after commits. So paths that seem wrong are
    checked again while writers are blocked.
    """
    found = chain.from_iterable(
        store.journal.heads(zone) for zone, spec in ZONES.items() if spec.versions or spec.has_metadata
    )
    heads = (head for head in found if find_row_flaw(head) is None)
    suspects = [(head.zone, head.path) for head in heads if any(_problems_of_head(store, head))]
    if not suspects:
        return []
    with store.checkout.derived.settled() as seq:
        current = (store.journal.head(zone, path, as_of=seq) for zone, path in suspects)
        return [problem for head in current if head for problem in _problems_of_head(store, head)]


def _problems_of_head(store: Store, head: Row) -> Iterator[Problem]:
    spec = ZONES[head.zone]
    if spec.versions:
        yield from _version_problems(store, head)
    if spec.has_metadata and _read(store, meta_place(head.zone, head.path)) != meta_text(head):
        yield Problem("metadata", head.zone, head.path, "differs")


def _version_problems(store: Store, head: Row) -> Iterator[Problem]:
    rows = store.journal.history(head.zone, head.path, after_version=oldest_kept(head) - 1)
    for row in rows:
        breakage = _file_breakage(store, row)
        if breakage:
            what = _FILE_BREAKAGES[breakage].format(version=row.version)
            yield Problem("version", head.zone, head.path, what, row.version)
    if not ZONES[head.zone].has_history:
        return
    problem = _history_problem(_read(store, history_place(head.zone, head.path)), rows)
    if problem:
        yield Problem("history", head.zone, head.path, problem)


def _file_breakage(store: Store, row: Row) -> Breakage | None:
    """Return the defect of a version's file, None if there is none."""
    if row.version is None or row.zone not in VERSIONED or find_row_flaw(row) is not None:
        return None
    try:
        data = store.checkout.folder.read(version_place(row))
    except OSError:
        return "unreadable"
    if data is None:
        return "missing"
    is_whole = validation.sha256(data) == row.sha256 if row.sha256 else not data
    return None if is_whole else "differs"


def _journal_problem(store: Store, damage: Damage) -> Problem:
    """Return ``damage`` as a problem, which mentions whether the file of the version is intact."""
    what = damage.what
    row = damage.version and store.journal.version(damage.zone, damage.path, damage.version)
    if row and row.zone in VERSIONED and _file_breakage(store, row) is None:
        what += "; its version file is still whole"
    return Problem("journal", damage.zone, damage.path, what, damage.version)


def _history_problem(data: bytes | None, rows: list[Row]) -> str | None:
    if data is None:
        return "history.json is missing"
    try:
        kept = json.loads(data)
    except ValueError:
        return "history.json is not JSON"
    wanted = [json.loads(history_line(row)) for row in rows]
    if kept == wanted:
        return None
    behind = isinstance(kept, list) and kept == wanted[: len(kept)]
    return f"history.json is {len(wanted) - len(kept)} versions behind" if behind else "history.json differs"


def _read(store: Store, parts: Parts) -> bytes | None:
    try:
        return store.checkout.folder.read(parts)
    except OSError:
        return None
