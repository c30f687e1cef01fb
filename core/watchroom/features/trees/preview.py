"""`ConflictPreview`: predicts which files of two working trees would conflict in a merge.

Both the commits of a tree since the merge base and its uncommitted changes count. After a write only the
written file is merged again, with Watchroom's own merge. Unlike a landing, it does not follow renames.
"""

from __future__ import annotations

import logging
import os
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import combinations, islice
from threading import Lock
from typing import Final, NamedTuple

from watchroom.errors import WatchroomError
from watchroom.features.config.store import Store
from watchroom.features.trees.git_merge import GitMerger
from watchroom.features.trees.reads import attribute_lines
from watchroom.features.trees.recorder import TreeRecorder
from watchroom.features.trees.region_notices import ClashSide, RegionNotices
from watchroom.features.trees.rows import (
    PREDICT,
    REPO,
    TREE,
    Prediction,
    is_landing_path,
    read_prediction,
    repo_path,
    split_repo_path,
)
from watchroom.features.trees.service import Trees
from watchroom.features.trees.view import GIT_AUTHOR, author_of, is_by_agent
from watchroom.features.trees.write_rules import MAX_PREDICTED_CHARACTERS, Clash, find_clashes
from watchroom.kernel.call_context import CallContext
from watchroom.kernel.rules.file_versions import blob_of, is_text, unescape_path
from watchroom.model import SYSTEM, Row
from watchroom.validation import MAX_PATH_BYTES, escape_unstorable

DELAY_SECONDS: Final = 0.1
"""Seconds after a write until its file is merged. Further writes in between are merged with it."""
MAX_TREES: Final = 30
"""Maximum number of trees that are compared with each other."""
_MAX_COMPARED: Final = 4
"""Maximum number of pairs that one call compares completely, because other jobs wait for it."""
_MAX_TEXTS: Final = 500
"""Maximum number of texts of commits that are kept in memory."""
_MAX_LISTED: Final = 1000
_MAX_NOTIFIED: Final = 100
"""Maximum number of files whose conflicting lines are passed on at once."""
_MAX_VERSIONS: Final = 200
"""Maximum number of versions in which the author of a line is searched."""
_log = logging.getLogger("watchroom")


class _Side(NamedTuple):
    """A file in a tree or a commit.

    - ``text``: None if there is no file, or if it is not a text that can be merged.
    - ``digest``: tells files without ``text`` apart, empty if there is none.
    - ``is_large``: it is a text that is too long to merge.
    """

    text: str | None = None
    digest: str = ""
    is_large: bool = False


class _Pair(NamedTuple):
    """The changes in the commits of two trees since their merge base.

    - ``base``: the merge base, empty if there is none.
    - ``landed``: whether the branch of the main tree has all commits of each tree. Of such a tree only
      uncommitted work can conflict with other linked trees.
    """

    base: str
    ours: frozenset[str]
    theirs: frozenset[str]
    landed: tuple[bool, bool] = (False, False)


class _Place(NamedTuple):
    """A working tree, and its branch and commit when the comparison began."""

    tree: TreeRecorder
    branch: str
    head: str

    @property
    def name(self) -> str:
        return self.branch or self.head[:8]


class ConflictPreview:
    """Keeps the predicted conflicts of all pairs of ``trees`` in rows. May be used from any thread.

    - ``store``: the rows.
    - ``notices``: gets the lines that conflict.
    - ``schedule``: runs a function soon, on another thread.
    """

    def __init__(
        self,
        store: Store,
        trees: Trees,
        notices: RegionNotices,
        schedule: Callable[[Callable[[], None]], None],
    ) -> None:
        self._store = store
        self._notices = notices
        self._trees = trees
        self._schedule = schedule
        self._lock = Lock()
        self._updating = Lock()
        self._written: set[tuple[str, str]] = set()
        self._heads: dict[str, str] = {}
        self._pairs: dict[tuple[str, str], _Pair] = {}
        self._due: set[tuple[str, str]] = set()
        """The pairs to compare wholly."""
        self._found: dict[tuple[str, str], frozenset[str]] = {}
        self._texts: OrderedDict[tuple[str, str], _Side] = OrderedDict()

    def start(self) -> None:
        """Schedule a comparison of all trees, and compare every file that is written from now on."""
        self._trees.subscribe(self._hear)
        self._schedule(self.update)

    def _hear(self, rows: Sequence[Row]) -> None:
        with self._lock:
            for row in rows:
                if row.zone == REPO and not is_landing_path(row.path):
                    self._written.add((split_repo_path(row.path)[0], _name(row)))
        self._schedule(self.update)

    def update(self) -> None:
        """Merge the files that were written since the last call, and some pairs of trees whose HEAD has
        moved. Record the predictions that changed. Schedule another call if pairs are left."""
        if not self._trees.is_open:
            # The last rows are recorded while the workspace closes.
            return
        with self._updating:
            with self._lock:
                written, self._written = self._written, set()
            try:
                self._update(written)
            except (WatchroomError, OSError) as error:
                # Such as a tree that is being removed. The next write compares all pairs again.
                self._heads.clear()
                self._due.clear()
                _log.warning("no conflicts of working trees are predicted: %s", error)
            has_more = bool(self._due)
        if has_more:
            self._schedule(self.update)

    def _update(self, written: Iterable[tuple[str, str]]) -> None:
        trees = self._trees.all()[:MAX_TREES]
        if len(trees) < 2 and not self._found:
            return
        # Reading the state again for each pair took a third of the time.
        places = {each.id: _place(each) for each in trees}
        moved = {name for name, place in places.items() if self._heads.get(name) != place.head}
        names: dict[str, set[str]] = {}
        for tree, path in written:
            names.setdefault(tree, set()).add(path)
        pairs = [*combinations(sorted(places), 2)]
        # What landed is known by the branch of the main tree.
        main = next((each.id for each in trees if each.git.git == self._trees.common), "")
        moved |= {*places} if main in moved else set()
        self._due |= {key for key in pairs if moved & {*key} or key not in self._pairs}
        self._due &= {*pairs}
        self._heads = {name: place.head for name, place in places.items()}
        for key in pairs:
            asked = {name for tree in key for name in names.get(tree, ())}
            if asked and key not in self._due:
                both = [places[each] for each in key]
                found = self._merge(both, asked)
                self._notify(both, asked, found)
                self._record(key, (self._found.get(key, frozenset()) - asked) | found.keys(), places)
        for key in sorted(self._due)[:_MAX_COMPARED]:
            both = [places[each] for each in key]
            self._pairs[key] = self._compare(both, places[main].head if main and main not in key else "")
            found = self._merge(both, self._list_common(key))
            self._notices.keep_only(key, {_storable(each) for each in found})
            # Their agents were notified before this process began.
            told = frozenset() if key in self._found else self._read_recorded(key)
            self._notify(both, found, found, told)
            self._record(key, frozenset(found), places)
            self._due.discard(key)
        for gone in [key for key in self._found if key not in pairs]:
            self._notices.keep_only(gone, ())
            self._record(gone, frozenset(), places)
            self._found.pop(gone, None)
            self._pairs.pop(gone, None)

    def _compare(self, both: Sequence[_Place], target: str) -> _Pair:
        """Compare the commits of two trees. ``target``: the commit in which they land, empty if one of them
        is the main tree."""
        ours = both[0].tree
        one, other = (each.head for each in both)
        merger = GitMerger(ours.git)
        base = merger.find_base(one, other) if one and other else ""
        if not base:
            return _Pair("", frozenset(), frozenset())
        changed = [frozenset(ours.git.list_committed(base, each)) for each in (one, other)]
        landed = [bool(target) and merger.is_ancestor(each, target) for each in (one, other)]
        return _Pair(base, changed[0], changed[1], (landed[0], landed[1]))

    def _list_common(self, key: tuple[str, str]) -> set[str]:
        """Return the files that both trees may have changed since their merge base."""
        pair = self._pairs[key]
        recorded = (
            {_name(row) for row in self._store.journal.heads(REPO, repo_path(each, ""))} for each in key
        )
        one, other = recorded
        return (one | pair.ours) & (other | pair.theirs)

    def _merge(self, both: Sequence[_Place], names: Iterable[str]) -> dict[str, list[Clash]]:
        """Return which of the files ``names`` conflict in two trees, each with the lines if it is a text."""
        one, other = (each.tree.id for each in both)
        pair = self._pairs[one, other]
        return dict(self._find_conflicts(pair, both, names)) if pair.base else {}

    def _find_conflicts(
        self, pair: _Pair, places: Sequence[_Place], names: Iterable[str]
    ) -> Iterator[tuple[str, list[Clash]]]:
        asked = list(names)
        both = self._read_common(pair, places, asked)
        differing = [name for name in both[0] if both[0][name] != both[1][name]]
        for place, found, has_landed in zip(places, both, pair.landed, strict=True):
            committed = self._read_commit(place.tree, place.head, differing) if has_landed else {}
            differing = [name for name in differing if not has_landed or found[name] != committed[name]]
        before = self._read_commit(places[0].tree, pair.base, differing)
        for name in differing:
            ours, theirs = (each[name] for each in both)
            clashes = None if before[name] in (ours, theirs) else _find_clashes(before[name], ours, theirs)
            if clashes is not None:
                yield name, clashes

    def _notify(
        self,
        places: Sequence[_Place],
        names: Iterable[str],
        found: Mapping[str, list[Clash]],
        told: Collection[str] = (),
    ) -> None:
        """Pass on the conflicting lines of the files ``names``. ``told``: the files whose conflicts are known
        to their agents."""
        one, other = (ClashSide(each.tree.id, each.name, each.tree.git.folder, ()) for each in places)
        trees = [each.tree for each in places]
        asked = [*names]
        for name in asked:
            if name not in found:
                self._notices.replace(_storable(name), (one, other), (), is_told=True)
        for name in islice((each for each in asked if each in found), _MAX_NOTIFIED):
            clashes = found[name]
            both = (
                self._describe(one, trees[0], name, [each.ours for each in clashes]),
                self._describe(other, trees[1], name, [each.theirs for each in clashes]),
            )
            self._notices.replace(_storable(name), both, clashes, is_told=name in told)

    def _describe(
        self, side: ClashSide, tree: TreeRecorder, name: str, ranges: Sequence[tuple[int, int]]
    ) -> ClashSide:
        """Return the file ``name`` on this ``side``, with the agents that changed the lines ``ranges``."""
        agents = tuple(self._find_agents(tree, name, ranges)) if ranges else ()
        return side._replace(place=_storable(os.path.join(side.place, name)), agents=agents)

    def _find_agents(self, tree: TreeRecorder, name: str, ranges: Sequence[tuple[int, int]]) -> list[str]:
        """Return the agents whose versions have the lines ``ranges``; else, such as for removed lines, the
        agent that wrote the file last."""
        (head,) = tree.heads([name])
        if head is None or head.deleted:
            return []
        after = max(0, (head.version or 0) - _MAX_VERSIONS)
        rows = self._store.journal.history(REPO, head.path, after_version=after)
        known = {author_of(row) for row in rows} - {GIT_AUTHOR}
        if len({each.actor for each in known}) == 1 and all(map(is_by_agent, known)):
            # All changes are its own. Finding the author of each line takes 0.1 s in long files.
            return [known.pop().actor]
        versions = self._store.journal.versions(REPO, head.path, after=after)
        authors = [author_of(row) for row in attribute_lines([*versions])]
        found = {each.actor for start, end in ranges for each in authors[start:end] if is_by_agent(each)}
        newest = author_of(head)
        return sorted(found) or ([newest.actor] if is_by_agent(newest) else [])

    def _read_common(
        self, pair: _Pair, places: Sequence[_Place], names: Sequence[str]
    ) -> list[dict[str, _Side]]:
        """Return the files among ``names`` that both trees may have changed, as they are in each tree."""
        rows = [dict(zip(names, each.tree.heads(names), strict=True)) for each in places]
        changed = [
            {name for name in names if found[name] is not None or name in committed}
            for found, committed in zip(rows, (pair.ours, pair.theirs), strict=True)
        ]
        common = [name for name in names if name in changed[0] and name in changed[1]]
        return [
            self._read_files(place, {name: found[name] for name in common})
            for place, found in zip(places, rows, strict=True)
        ]

    def _read_files(self, place: _Place, rows: Mapping[str, Row | None]) -> dict[str, _Side]:
        """Return the files of ``rows`` as they are in the tree of ``place``. Files without a row are as they
        were committed."""
        found = {name: self._side_of_row(row) for name, row in rows.items() if row is not None}
        return found | self._read_commit(
            place.tree, place.head, [name for name in rows if rows[name] is None]
        )

    def _side_of_row(self, row: Row) -> _Side:
        if row.deleted:
            return _Side()
        if not is_text(row):
            blob = blob_of(row)
            return _Side(digest=blob.sha256 if blob is not None else f"row {row.seq}")
        return _side_of_text(self._store.journal.content(row.seq) or "")

    def _read_commit(self, tree: TreeRecorder, commit: str, names: Sequence[str]) -> dict[str, _Side]:
        missing = [name for name in names if (commit, name) not in self._texts]
        found = {name: self._texts[commit, name] for name in names if (commit, name) in self._texts}
        if missing:
            read = tree.blobs.read_commit(commit, missing)
            found |= {name: _side_of(read[name]) for name in missing}
        for name in names:
            self._texts[commit, name] = found[name]
            self._texts.move_to_end((commit, name))
        while len(self._texts) > _MAX_TEXTS:
            self._texts.popitem(last=False)
        return found

    def _record(self, key: tuple[str, str], found: frozenset[str], places: Mapping[str, _Place]) -> None:
        """Record that the files ``found`` of the pair ``key`` conflict. ``places``: all trees by id."""
        known = self._found.get(key)
        if known is None:
            known = self._read_recorded(key)
        if found != known:
            # A removed tree has no name.
            one, other = (places[each].name if each in places else "" for each in key)
            prediction = Prediction(key, tuple(sorted(found))[:_MAX_LISTED], (one, other))
            note = CallContext(SYSTEM, PREDICT).note(TREE, key[0], detail=prediction.detail)
            self._store.commits.commit(note)
        self._found[key] = found

    def _read_recorded(self, key: tuple[str, str]) -> frozenset[str]:
        """Return the prediction in the newest row about the pair."""
        for row in self._store.journal.notes(TREE, key[0], SYSTEM, PREDICT, limit=_MAX_LISTED):
            recorded = read_prediction(row)
            if recorded.trees == key:
                return frozenset(recorded.paths)
        return frozenset()


def _place(tree: TreeRecorder) -> _Place:
    state = tree.git.read_state()
    return _Place(tree, state.branch, state.head)


def _find_clashes(base: _Side, ours: _Side, theirs: _Side) -> list[Clash] | None:
    """Return the lines in which two changes of ``base`` conflict: None without a conflict, and no lines if
    one side is not text. Both differ from ``base`` and from each other. Nothing is predicted for texts that
    are too long to merge."""
    if base.is_large or ours.is_large or theirs.is_large:
        return None
    if ours.text is None or theirs.text is None or base.digest:
        return []
    return find_clashes(base.text or "", ours.text, theirs.text) or None


def _side_of(data: bytes | None) -> _Side:
    if data is None:
        return _Side()
    try:
        text = None if b"\0" in data else data.decode()
    except UnicodeDecodeError:
        text = None
    return _Side(digest=sha256(data).hexdigest()) if text is None else _side_of_text(text)


def _side_of_text(text: str) -> _Side:
    if len(text) <= MAX_PREDICTED_CHARACTERS:
        return _Side(text)
    return _Side(digest=sha256(text.encode()).hexdigest(), is_large=True)


def _storable(name: str) -> str:
    return escape_unstorable(name, MAX_PATH_BYTES)


def _name(row: Row) -> str:
    return os.fsdecode(unescape_path(split_repo_path(row.path)[1]))
