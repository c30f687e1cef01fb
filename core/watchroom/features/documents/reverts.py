"""Reverts of realtime documents.

An ordinary edit gives each field the value that it would have without the selected versions. The edit merges
with concurrent edits. In a text, characters that only the selected versions inserted are removed. Characters
that only they deleted are restored. Other fields get the merged value of all other versions.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from watchroom.errors import JournalDamaged
from watchroom.features.documents.rows import BY, DOCUMENT_ZONE, SEEN, find_edited_range, parse_object
from watchroom.features.reverts.rules import TOO_MANY, PathPlan, PlannedItem, is_revert_row
from watchroom.kernel.journal import Journal
from watchroom.model import REVERT_WORK, SYSTEM, UNCHECKED, Json, Row, Write, Zone

if TYPE_CHECKING:
    from watchroom.algorithms.crdt import Document, Text
    from watchroom.algorithms.crdt.text_weave import KnownText, Operations, TextWeave

MAX_VERSIONS: Final = 20_000
"""Maximum number of versions of a document."""
MAX_TEXT_VERSIONS: Final = 5_000
"""Maximum number of versions since the first selected version, for a document with texts."""
DAMAGED: Final = "damaged"
"""The reason why a document cannot be reverted: one of its versions cannot be read."""
_CREATED: Final = 1
_PEER_BITS: Final = 63


class DocumentReversal:
    """Plans the revert of document fields in ``journal``."""

    zones: Final[tuple[Zone, ...]] = (DOCUMENT_ZONE,)

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def plan(self, rows: Sequence[Row]) -> Sequence[PlannedItem]:
        """See `RevertPart.plan`."""
        selected: dict[str, set[int]] = {}
        for row in rows:
            # A created document stays, because others may have written to it.
            if row.version is not None and row.version > _CREATED:
                selected.setdefault(row.path, set()).add(row.version)
        return [item for name, versions in selected.items() for item in self._planned(name, versions)]

    def plan_undo(self, revert: str, paths: Sequence[str]) -> Sequence[PlannedItem]:
        """See `RevertPart.plan_undo`. The revert's own edit is reverted."""
        items: list[PlannedItem] = []
        for name in dict.fromkeys(path.rpartition("/")[0] for path in paths):
            rows = self._journal.history(DOCUMENT_ZONE, name)
            versions = {row.version or 0 for row in rows if _revert_of(row) == revert}
            items += self._planned(name, versions) if versions else ()
        return items

    def _planned(self, name: str, selected: set[int]) -> Iterator[PlannedItem]:
        head = self._journal.head(DOCUMENT_ZONE, name)
        last = (head.version or 0) if head else 0
        if last > MAX_VERSIONS:
            yield PlannedItem(DOCUMENT_ZONE, name, PathPlan("cannot", reason=TOO_MANY))
            return
        try:
            yield from _DocumentPlan(self._journal, name, selected).items()
        except JournalDamaged:
            yield PlannedItem(DOCUMENT_ZONE, name, PathPlan("cannot", reason=DAMAGED))


class _DocumentPlan:
    """The document ``name`` of ``journal`` without its versions ``selected``."""

    def __init__(self, journal: Journal, name: str, selected: set[int]) -> None:
        # The engine is slow to load, and most reverts have no documents.
        from watchroom.algorithms.crdt import Document, name_replica
        from watchroom.features.documents.replica import DocumentReplica

        self._journal = journal
        self._name = name
        self._rows: list[tuple[Row, Mapping[str, Json]]] = []
        after = _CREATED
        while found := journal.versions(DOCUMENT_ZONE, name, after=after):
            self._rows += [(row, parse_object(row, content)) for row, content in found]
            after = found[-1][0].version or after
        self._reverts = {row.version or 0: _took(row) for row, _ in self._rows if _revert_of(row) is not None}
        self._took = selected
        before = _versions_off(self._reverts)
        self._off = _versions_off(self._reverts, selected)
        self._replica = name_replica(SYSTEM, secrets.randbits(_PEER_BITS) or 1)
        newest = DocumentReplica(name, journal)
        self._current: Document = newest.document
        self._next = newest.version
        self._without = Document(self._current.schema)
        self._begin = _first_needed(selected, self._reverts, _seen_versions(row for row, _ in self._rows))
        self._first = DocumentReplica(name, journal, until=self._begin - 1).document
        switched = self._off ^ before
        changed = {field for row, delta in self._rows if row.version in switched for field in delta}
        self._fields = [field for field in self._current.schema if field in changed]

    def items(self) -> list[PlannedItem]:
        """Return the planned item for each field that the versions changed."""
        planned = [*self._planned_fields()]
        if planned and all(each.plan.kind == "nothing" for each in planned):
            # The plan matters once other versions that made the same change are also reverted.
            first = planned[0]
            shown = first.current or ""
            field = self._fields[0]
            planned[0] = self._item(first.path, field, shown, shown, [{}], merges=True)
        return planned

    def _planned_fields(self) -> Iterator[PlannedItem]:
        from watchroom.algorithms.crdt import Text

        for row, delta in self._rows:
            if row.version not in self._off and row.version not in self._reverts:
                kept = {name: state for name, state in delta.items() if self._current.schema[name] != "rga"}
                self._without.merge(kept)
        for field in self._fields:
            found = self._current.field(field)
            if isinstance(found, Text):
                yield self._planned_text(field, found)
            else:
                yield self._planned_value(field)

    def _planned_text(self, field: str, found: Text) -> PlannedItem:
        from watchroom.algorithms.crdt.text_weave import TextWeave

        path = f"{self._name}/{field}"
        since = [
            (row, delta[field])
            for row, delta in self._rows
            if (row.version or 0) >= self._begin and field in delta
        ]
        if len(since) > MAX_TEXT_VERSIONS:
            return PlannedItem(DOCUMENT_ZONE, path, PathPlan("cannot", reason=TOO_MANY))
        weave = TextWeave(self._first.text(field))
        views = _Views(self._begin, [row for row, _ in since])
        for row, delta in since:
            version = row.version or 0
            views.open(weave, version)
            if version in self._reverts:
                earlier = {each: took for each, took in self._reverts.items() if each <= version}
                weave.add_revert(version, delta, _versions_off(earlier))
            else:
                inserted = weave.add(version, delta)
                weave.add_deletion(version, views.edit(row, inserted))
        edits = weave.edits(self._off)
        current = found.value
        if not edits:
            return PlannedItem(DOCUMENT_ZONE, path, PathPlan("nothing"), current)
        if not weave.is_whole:
            return PlannedItem(DOCUMENT_ZONE, path, PathPlan("cannot", reason=DAMAGED), current)
        edited = self._current.copy().text(field)
        written = edited.edit_all(edits, self._replica)
        return self._item(path, field, current, edited.value, [{field: written}], merges=True)

    def _planned_value(self, field: str) -> PlannedItem:
        path = f"{self._name}/{field}"
        current = self._current.field(field).value
        wanted = self._without.field(field).value
        # Compare as JSON, because 1, 1.0 and true are equal in Python.
        if _shown(current) == _shown(wanted):
            return PlannedItem(DOCUMENT_ZONE, path, PathPlan("nothing"), _shown(current))
        edited = self._current.copy()
        written = [{field: delta} for delta in self._edits(edited, field, wanted)]
        return self._item(path, field, _shown(current), _shown(edited.field(field).value), written)

    def _edits(self, edited: Document, field: str, wanted: Json) -> Iterator[Mapping[str, Json]]:
        """Yield the deltas that give ``field`` of ``edited`` the value ``wanted``."""
        from watchroom.algorithms.crdt import LWWMap, LWWRegister, ORSet, PNCounter

        found = edited.field(field)
        stamp = edited.stamp(self._replica, self._journal.now() // 1_000_000)
        if isinstance(found, LWWRegister):
            yield found.set(wanted, stamp)
        elif isinstance(found, LWWMap) and isinstance(wanted, Mapping):
            for key in sorted(found.value.keys() - wanted.keys()):
                yield found.remove(key, edited.stamp(self._replica))
            for key, value in wanted.items():
                if key not in found.value or _shown(found.value[key]) != _shown(value):
                    yield found.set(key, value, edited.stamp(self._replica))
        elif isinstance(found, ORSet) and isinstance(wanted, list):
            for element in sorted({*found.value} - {*wanted}):
                yield found.remove(element)
            for element in sorted({*wanted} - {*found.value}):
                yield found.add(element, self._replica)
        elif isinstance(found, PNCounter) and isinstance(wanted, int):
            amount = wanted - found.value
            count = found.increment if amount > 0 else found.decrement
            yield count(abs(amount), self._replica)

    def _item(
        self,
        path: str,
        field: str,
        current: str,
        then: str,
        written: Sequence[Mapping[str, Json]],
        *,
        merges: bool = False,
    ) -> PlannedItem:
        """Return the item of ``field``, with one row for each delta of the document in ``written``.

        - ``merges``: the deltas merge with writes of others before the commit. Otherwise such a write causes
          a new plan.
        """
        detail: dict[str, Json] = {
            "field": field,
            "op": "revert",
            "took": sorted(self._took),
            BY: self._replica,
        }
        drafts: list[Write] = []
        for delta in written:
            text = json.dumps(delta, ensure_ascii=False)
            expected = UNCHECKED if merges else self._next
            place = DOCUMENT_ZONE, self._name
            drafts.append(Write(SYSTEM, REVERT_WORK, *place, text, expected=expected, detail=detail))
            self._next += 1
        return PlannedItem(DOCUMENT_ZONE, path, PathPlan("clean", then, then), current, tuple(drafts))


class _Views:
    """The text as writers saw it when they deleted characters that others had already deleted.

    The deltas of ``rows``, in order from version ``begin``, do not contain those characters.
    """

    def __init__(self, begin: int, rows: Sequence[Row]) -> None:
        self._last: dict[tuple[str, int], int] = {}
        """The last version that needs a view, by the writer and the version that the writer saw."""
        for row in rows:
            seen = _seen_version(row)
            if seen is not None and seen >= begin - 1:
                self._last[row.actor, seen] = row.version or 0
        self._waiting = sorted(self._last, key=lambda view: view[1], reverse=True)
        self._open: dict[tuple[str, int], KnownText] = {}

    def open(self, weave: TextWeave, version: int) -> None:
        """Keep the text of ``weave`` for all writers who saw a version before ``version``, the next
        version."""
        while self._waiting and self._waiting[-1][1] < version:
            self._open[self._waiting.pop()] = weave.known_text()

    def edit(self, row: Row, inserted: Sequence[Operations]) -> list[Operations]:
        """Apply the edit of ``row``, which inserted the characters ``inserted``, to the text as its writer
        saw it.

        Return the characters that its writer deleted, if the delta does not contain all of them.
        """
        edited = find_edited_range(row)
        if edited is None:
            return []
        replaced: list[Operations] = []
        for view in [each for each in self._open if each[0] == row.actor]:
            found = self._open[view].replace(edited.start, edited.stop - edited.start, inserted)
            if view[1] == _seen_version(row):
                replaced = found
            if self._last[view] <= (row.version or 0):
                del self._open[view]
        return replaced


def _seen_version(row: Row) -> int | None:
    """Return the version that the writer of ``row`` saw, if the row deleted characters that others had
    already deleted."""
    seen = row.detail.get(SEEN)
    return seen if isinstance(seen, int) and 0 < seen < (row.version or 0) else None


def _seen_versions(rows: Iterable[Row]) -> dict[int, int]:
    """Return the results of `_seen_version` by the numbers of the written versions, without None."""
    return {row.version or 0: seen for row in rows if (seen := _seen_version(row)) is not None}


def _revert_of(row: Row) -> Json:
    """Return the revert that made ``row``, None if no revert did."""
    return row.detail.get("revert") if is_revert_row(row) else None


def _versions_off(reverts: Mapping[int, set[int]], selected: Collection[int] = ()) -> set[int]:
    """Return the versions that are off after the versions ``selected`` are reverted.

    ``reverts``: the versions that each revert turned off. A revert that is itself off turns nothing off.
    """
    off = set(selected)
    # Only later reverts can turn a revert off.
    for version in sorted(reverts, reverse=True):
        if version not in off:
            off |= reverts[version]
    return off - reverts.keys()


def _first_needed(selected: set[int], reverts: Mapping[int, set[int]], seen: Mapping[int, int]) -> int:
    """Return the first version that is needed to revert the versions ``selected``.

    - ``reverts``: later reverts. They need the versions that they turned off.
    - ``seen``: the versions that writers saw. To restore what a writer saw, the version after the seen
      version is needed. It is ignored if too many versions would then be needed.
    """
    first = min(selected)
    newest = max([*selected, *seen])
    while True:
        before = first
        for version in sorted(reverts, reverse=True):
            if version >= first:
                first = min(first, *reverts[version]) if reverts[version] else first
        wanted = [saw + 1 for version, saw in seen.items() if version >= first]
        first = min([first, *(each for each in wanted if newest - each < MAX_TEXT_VERSIONS // 2)])
        if first == before:
            return max(first, _CREATED + 1)


def _took(row: Row) -> set[int]:
    turned = row.detail.get("took")
    return {each for each in turned if isinstance(each, int)} if isinstance(turned, list) else set()


def _shown(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1, sort_keys=True) + "\n"
