"""Compares the journal with the files laid out from it, and mends the files."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from watchroom import validation
from watchroom.checkout.layout import (
    CONFIG_PATH,
    VERSIONED,
    history_line,
    history_place,
    meta_place,
    meta_text,
    oldest_kept,
    version_place,
)
from watchroom.checkout.reconciler import Reconciler
from watchroom.checkout.rendering import verified_content
from watchroom.disk import Parts
from watchroom.journal import Damage, Journal
from watchroom.model import Row, Zone
from watchroom.rules.config import Config, find_role_collision
from watchroom.rules.damage import find_damage
from watchroom.rules.decisions import is_reported
from watchroom.rules.effects import effect_of
from watchroom.rules.row_files import ZONES_WITH_FILES, find_row_flaw
from watchroom.texts import Catalogue, catalogue
from watchroom.zones import Store, TaskFiles
from watchroom.zones.people import PeopleZone

if TYPE_CHECKING:
    from watchroom.zones.realtime import RealtimeZone

_log = logging.getLogger("watchroom")

ProblemKind: TypeAlias = Literal[
    "journal", "registry", "decision", "path", "file", "version", "history", "metadata"
]

Breakage: TypeAlias = Literal["content", "missing", "differs", "unreadable"]
"""What is wrong with a version: its content in the journal, or its file among the versions."""

_PAGE: Final = 5000
_NOT_OF_FILES: Final[frozenset[ProblemKind]] = frozenset({"journal", "registry", "decision", "path"})
"""What no laying out mends."""
_FILE_BREAKAGES: Final[dict[Breakage, str]] = {
    "missing": "v{version} is missing",
    "differs": "v{version} differs",
    "unreadable": "v{version} is no file that can be read",
}


class BrokenVersion(NamedTuple):
    row: Row
    what: Breakage


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is not as the journal says. ``journal``: the journal itself is damaged, which cannot
    be mended. ``registry``: two agents may pass for each other, or the newest config does not count, until a
    person changes it. ``decision``: somebody's that does not count, see `watchroom.rules.decisions`.
    ``path``: a row whose path breaks the rules of its zone, so that it makes no file. ``version``: the
    one that it concerns, if it is one."""

    kind: ProblemKind
    zone: Zone
    path: str
    what: str
    version: int | None = None


def verify(
    store: Store,
    reconciler: Reconciler,
    tasks: TaskFiles,
    people: PeopleZone,
    documents: RealtimeZone | None = None,
) -> list[Problem]:
    """Every disagreement between the journal and the files of ``store``, the edits that ``reconciler`` finds,
    what lies in the folders of ``tasks``, decisions of ``people`` that do not count, and the checkpoints of
    ``documents``. Reads everything; changes nothing. Raises `JournalError`."""
    store.flush()
    found = [_of_journal(store, each) for each in store.journal.problems()]
    found.extend(_problems_of_rows(store.journal, people, [each.what for each in found]))
    invalid = store.registry.find_invalid()
    if invalid is not None:
        what = f"v{invalid} is not valid or is damaged: the last valid version holds"
        found.append(Problem("registry", "config", CONFIG_PATH, what, invalid))
    found.extend(_path_problems(store))
    found.extend(_role_problems(store.registry.current()))
    found.extend(
        Problem(
            "file", zone, path, "is no regular file" if reconciler.is_obstructed(zone, path) else "differs"
        )
        for zone, path in reconciler.differing()
    )
    found.extend(_problems_of_versions(store))
    if documents:
        found.extend(
            Problem("file", "realtime", name, "differs") for name in documents.find_differing_checkpoints()
        )
    found.extend(Problem("file", "file", path, "differs") for path in tasks.find_differences())
    return found


def repair(
    store: Store,
    reconciler: Reconciler,
    tasks: TaskFiles,
    people: PeopleZone,
    documents: RealtimeZone | None = None,
) -> list[Problem]:
    """Record what differs in ``store``, through ``reconciler``, so that nothing is lost, then lay it out
    again, and the checkpoints of ``documents``. What lies in the folders of ``tasks`` is only recorded.
    Returns what remains wrong, also of the decisions of ``people``.

    A file that cannot be kept in the journal, because it is no text or too large, is left where it is.
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
                # What stands in the way is not ours to remove; what remains wrong is told.
                _log.warning("%s %s could not be laid out again: %s", zone, path, error)
    return verify(store, reconciler, tasks, people, documents)


def contents_broken(journal: Journal, rows: Iterable[Row]) -> list[BrokenVersion]:
    """Those of ``rows`` whose content in ``journal`` is lost, or is not what its checksum says."""
    return [
        BrokenVersion(row, "content")
        for row in rows
        if row.sha256 is not None and row.version is not None and verified_content(journal, row) is None
    ]


def versions_broken(store: Store, rows: Iterable[Row]) -> list[BrokenVersion]:
    """What is wrong with the versions of shared files that ``rows`` made, in the journal of ``store`` and as
    files."""
    given = list(rows)
    suspects = [row for row in given if _file_breakage(store, row)]
    files: list[BrokenVersion] = []
    if suspects:
        # A version that was committed a moment ago may be on its way to its file.
        with store.checkout.derived.settled():
            files = [BrokenVersion(row, what) for row in suspects if (what := _file_breakage(store, row))]
    return [*contents_broken(store.journal, given), *files]


def _problems_of_rows(journal: Journal, people: PeopleZone, known: Sequence[str]) -> Iterator[Problem]:
    """Yield the rows that readers set aside, without those that a problem in ``known`` names already; those
    that may not change protected state; and the decisions that are disputed."""
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
            if effect_of(row) is not None and (said := _find_wrong_decision(row, people, rules)):
                what = f"{name}: {row.tool} by {row.actor} {said}"
                yield Problem("decision", row.zone, row.path, what, row.version)


def _find_wrong_decision(row: Row, people: PeopleZone, rules: Catalogue) -> str:
    """Return why ``row`` does not count, or is disputed; empty where neither is so."""
    flaw = people.find_flaw(row)
    if is_reported(row, flaw):
        return f"does not count: {rules(f'rule.{flaw}')}"
    dispute = people.find_dispute(row)
    return f"is disputed by {dispute.actor} in row {dispute.seq}" if dispute is not None else ""


def _path_problems(store: Store) -> Iterator[Problem]:
    """The newest rows of paths that break the rules of their zone, in the language of the workspace. They
    were written past the tools."""
    texts = catalogue(store.registry.current().language)
    for zone in ZONES_WITH_FILES:
        for head in store.journal.heads(zone):
            flaw = find_row_flaw(head)
            if flaw is not None:
                rule = texts(f"rule.{flaw}")
                what = texts("verify.no_file", row=head.seq, actor=head.actor, rule=rule)
                yield Problem("path", zone, head.path, what, head.version)


def _is_kept(store: Store, zone: Zone, path: str) -> bool:
    """Whether what stands at the path, if anything does, is in the journal."""
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
    """Agents registered before roles were checked, or by hand, of whom one could be taken for the other."""
    agents = list(config.agents.values())
    for n, agent in enumerate(agents):
        found = find_role_collision(agent, agents[:n])
        if found is not None:
            what = f"{agent.id} ({agent.role or '-'}) and {found.other.id} ({found.other.role or '-'})"
            yield Problem("registry", "config", CONFIG_PATH, f"{what}: one could be taken for the other")


def _problems_of_versions(store: Store) -> list[Problem]:
    """What differs in the files that belong to versions. Everyone may go on writing meanwhile: a version that
    was committed a moment ago may be on its way to its files, so only what seems wrong is looked at again,
    with everyone held off."""
    found = chain.from_iterable(store.journal.heads(zone) for zone in (*VERSIONED, "handoff"))
    heads = (head for head in found if find_row_flaw(head) is None)
    suspects = [(head.zone, head.path) for head in heads if any(_problems_of_head(store, head))]
    if not suspects:
        return []
    with store.checkout.derived.settled() as seq:
        current = (store.journal.head(zone, path, as_of=seq) for zone, path in suspects)
        return [problem for head in current if head for problem in _problems_of_head(store, head)]


def _problems_of_head(store: Store, head: Row) -> Iterator[Problem]:
    if head.zone != "handoff":
        yield from _version_problems(store, head)
    elif _read(store, meta_place(head.path)) != meta_text(head):
        yield Problem("metadata", "handoff", head.path, "differs")


def _version_problems(store: Store, head: Row) -> Iterator[Problem]:
    rows = store.journal.history(head.zone, head.path, after_version=oldest_kept(head) - 1)
    for row in rows:
        breakage = _file_breakage(store, row)
        if breakage:
            told = _FILE_BREAKAGES[breakage].format(version=row.version)
            yield Problem("version", head.zone, head.path, told, row.version)
    if head.zone != "collab":
        return
    what = _history_problem(_read(store, history_place(head.path)), rows)
    if what:
        yield Problem("history", "collab", head.path, what)


def _file_breakage(store: Store, row: Row) -> Breakage | None:
    """What is wrong with the file of a version."""
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


def _of_journal(store: Store, damage: Damage) -> Problem:
    """The damage as a problem; where the version's file is whole, that is told."""
    what = damage.what
    row = damage.version and store.journal.version(damage.zone, damage.path, damage.version)
    if row and row.zone in VERSIONED and _file_breakage(store, row) is None:
        what += "; its file among the versions still is whole"
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
