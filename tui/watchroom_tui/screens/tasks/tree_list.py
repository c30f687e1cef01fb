"""The working trees of a repository: their branches, their agents, and their status."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from watchroom.errors import WatchroomError
from watchroom.features.overview.model import Model
from watchroom.features.trees.rows import Tree, read_try
from watchroom.features.trees.view import is_linked
from watchroom.model import Row
from watchroom.texts import Catalogue

from watchroom_tui.base_screen import BaseScreen
from watchroom_tui.formatters.actor_class import agent_class
from watchroom_tui.formatters.columns import Column
from watchroom_tui.formatters.styled_text import Line, Span
from watchroom_tui.formatters.tree_changes import branch_text
from watchroom_tui.keys.actions import Scope
from watchroom_tui.presentation.localization import texts_of
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.services.landing_queue import LandingQueue, QueuePlace
from watchroom_tui.widgets.item_list import ItemList

if TYPE_CHECKING:
    # Not imported at run time: the git code is slow to load.
    from watchroom.features.trees.code_hosts import HostRequest
    from watchroom.features.trees.pull_requests import PullRequestRecord
    from watchroom.features.trees.reads import TreeReader
    from watchroom.features.trees.standing import Standing
    from watchroom.features.trees.tree_states import Word
    from watchroom.kernel.journal import Journal
    from watchroom.workspace import Workspace

_PAUSE: Final = 0.2
"""Minimum number of seconds between two reads of the trees while new rows arrive."""
_PAUSE_AFTER_ERROR: Final = 2.0
_WORDS_SECONDS: Final = 5.0
"""Seconds between two reads of the states of the trees. Git changes them without a row."""
ALL_FROM: Final = 110
"""Minimum width in columns of a list that shows the folders of the trees, and a word for each state."""
_REQUEST_SECONDS: Final = 60.0
"""Seconds between two questions to the hosts about pull requests."""
_BROKEN: Final[tuple[Word, ...]] = ("gone", "replaced", "branch_deleted", "incomplete", "setup_failed")
"""The states in which nobody can work in a tree."""


class TreeDetails(NamedTuple):
    """The details of a tree from git and the journal.

    - ``agents``: the agents with uncommitted work.
    - ``changed``: the number of files that differ from HEAD.
    - ``standing``: the position relative to another branch, None if there is no branch to compare with.
    """

    agents: tuple[str, ...]
    changed: int
    standing: Standing | None


class TreeItem(NamedTuple):
    """A line of the list.

    - ``details``: the details of the tree, None until they are read.
    - ``tried``: the newest try of the tree's work.
    - ``conflicts``: the trees with a predicted conflict, each with the number of files.
    - ``mark``: the place among the marked trees, from 1; 0 if it is not marked.
    - ``place``: the place in the queue of landings, None if it does not wait.
    - ``words``: its unusual states.
    - ``request``: its pull request at the host, None if it has none there or the host cannot be asked.
    """

    tree: Tree
    details: TreeDetails | None
    tried: Row | None
    conflicts: tuple[tuple[Tree, int], ...] = ()
    mark: int = 0
    place: QueuePlace | None = None
    words: tuple[Word, ...] = ()
    request: HostRequest | None = None


class TreeList(ItemList[TreeItem]):
    """The working trees."""

    SCOPES: ClassVar[tuple[Scope, ...]] = ("list",)
    COLUMNS: ClassVar = (
        Column(least=12, most=40, cut="middle"),
        Column(least=5, most=30),
        Column(least=8),
        Column(least=6),
        Column(least=8, align="right"),
        Column(least=8, most=24),
        Column(least=6),
        Column(least=6),
        Column(least=10, cut="middle", grows=True, from_width=ALL_FROM),
    )

    def item_key(self, item: TreeItem) -> Hashable:
        return item.tree.id

    def cells(self, item: TreeItem) -> Sequence[Line]:
        texts, details = texts_of(self), item.details
        changed = "" if details is None else texts("changes.files", count=details.changed)
        has_changes = details is not None and details.changed
        return (
            [Span(f"{item.mark} " if item.mark else " ", "accent"), Span(branch_text(item.tree), "strong")],
            self._state_line(item),
            _names(details.agents) if details is not None else (),
            _standing_line(details.standing) if details is not None else (),
            [Span(changed, "" if has_changes else "dim")],
            _conflict_line(item.conflicts),
            self._check_line(item.tried) if item.place is None else self._place_line(item.place),
            _request_line(item.request, texts) if item.request is not None else (),
            [Span(sanitize(item.tree.folder), "dim")],
        )

    def _state_line(self, item: TreeItem) -> Line:
        """Return the words for the state of the tree. In a wide list every tree has one."""
        texts, words = texts_of(self), item.words
        if words:
            style = "error" if any(each in _BROKEN for each in words) else "warning"
            return [Span(", ".join(texts(f"cli.tree.state.{each}") for each in words), style)]
        if self.content_area.width < ALL_FROM:
            return ()
        return [Span(texts(f"cli.tree.state.{'ready' if is_linked(item.tree) else 'main'}"), "dim")]

    def _place_line(self, place: QueuePlace) -> Line:
        """Return the place in the queue of landings, e.g. ``⧗ 2/3``."""
        text = f"{place.number}/{place.of}"
        if not place.is_landing:
            return [Span(f"⧗ {text}", "dim")]
        return [Span(f"● {text} {texts_of(self)('land.lands')}", "accent")]

    def _check_line(self, tried: Row | None) -> Line:
        """Return the outcome and the age of the newest try."""
        if tried is None:
            return ()
        record, age = read_try(tried), self.age_of(tried)
        if record.status == 0:
            return [Span("✓ ", "ok"), Span(age, "dim")]
        said = texts_of(self)("row.timed_out") if record.status is None else str(record.status)
        return [Span(f"✖ {said} ", "error"), Span(age, "dim")]

    def item_text(self, item: TreeItem) -> str:
        agents = item.details.agents if item.details is not None else ()
        return " ".join((item.tree.branch, item.tree.folder, *agents))

    def copy_text(self, item: TreeItem) -> str:
        return item.tree.folder


def _conflict_line(conflicts: Sequence[tuple[Tree, int]]) -> Line:
    """Return the predicted conflicts with other trees, e.g. ``⚔ 2 fares``."""
    spans: list[Span] = []
    for tree, count in conflicts:
        spans += [Span(" ⚔ " if spans else "⚔ ", "warning"), Span(f"{count} "), Span(branch_text(tree))]
    return spans


def _request_line(request: HostRequest, texts: Catalogue) -> Line:
    """Return the state of a pull request and of its checks, e.g. ``PR open ✖ 2``."""
    label = f"PR {texts(f'cli.pull_request.is_{request.status}')} "
    counts = Counter(each.status for each in request.checks)
    if counts["failed"]:
        return [Span(label), Span(f"✖ {counts['failed']}", "error")]
    if counts["running"]:
        return [Span(label), Span(f"◌ {counts['running']}", "warning")]
    return [Span(label), Span("✓" if counts["passed"] else "", "ok")]


def _names(agents: Sequence[str]) -> Line:
    spans: list[Span] = []
    for each in agents:
        spans += [Span(", ", "dim")] if spans else []
        spans.append(Span(sanitize(each), agent_class(each)))
    return spans


def _standing_line(standing: Standing | None) -> Line:
    if standing is None:
        return ()
    counts = [
        f"{sign}{count}" for sign, count in (("↑", standing.ahead), ("↓", standing.behind)) if count
    ] or ["="]
    return [Span(f"{' '.join(counts)} "), Span(sanitize(standing.target), "dim")]


class TreesPane:
    """Shows the trees of the model in ``trees``, and reads their details from git."""

    def __init__(self, screen: BaseScreen, trees: TreeList) -> None:
        self._screen = screen
        self._app = screen.dashboard
        self._trees = trees
        self._reader: TreeReader | None = None
        self._details: Mapping[str, TreeDetails] = {}
        self._words: Mapping[str, tuple[Word, ...]] = {}
        self._words_due = 0.0
        self._requests: Mapping[str, HostRequest] = {}
        self._requests_due = 0.0
        self._seen: object = None
        self._is_loading = False
        self.queue = LandingQueue(self._app, self.redraw)
        self._marked: list[str] = []
        """The ids of the marked trees, in the order in which they were marked."""

    def redraw(self) -> None:
        """Show the marks and the queue."""
        self.show(self._app.model)

    def flip_mark(self) -> None:
        """Mark the tree under the cursor to land, or remove its mark."""
        item = self._trees.item
        if item is None or not is_linked(item.tree):
            return
        if item.tree.id in self._marked:
            self._marked.remove(item.tree.id)
        else:
            self._marked.append(item.tree.id)
        self.redraw()

    def clear_marks(self) -> None:
        """Remove all marks."""
        self._marked.clear()
        self.redraw()

    @property
    def chosen(self) -> list[Tree]:
        """The marked trees in the order of their marks, else the tree under the cursor."""
        known = {each.tree.id: each.tree for each in self._trees.items}
        marked = [known[each] for each in self._marked if each in known]
        item = self._trees.item
        return marked or ([item.tree] if item is not None and is_linked(item.tree) else [])

    def show(self, model: Model) -> None:
        """Update the list for ``model``. It is empty for an earlier moment, which has no trees on disk."""
        trees = model.trees if self._app.is_live else ()
        self._trees.show([self._item(each, model) for each in sorted(trees, key=is_linked)])
        seen = (model.trees, model.tree_files)
        if trees and self._seen != seen:
            self._seen = seen
            if not self._is_loading:
                self._is_loading = True
                self._screen.run_worker(self._load(), group="trees")

    def _item(self, tree: Tree, model: Model) -> TreeItem:
        known = {each.id: each for each in model.trees}
        conflicts = tuple(
            (known[other], len(prediction.paths))
            for pair, prediction in sorted(model.predictions.items())
            if tree.id in pair and (other := pair[pair[0] == tree.id]) in known
        )
        mark = self._marked.index(tree.id) + 1 if tree.id in self._marked else 0
        place = self.queue.places().get(tree.id)
        details, tried = self._details.get(tree.id), model.tries.get(tree.id)
        words, request = self._words.get(tree.id, ()), self._requests.get(tree.id)
        return TreeItem(tree, details, tried, conflicts, mark, place, words, request)

    def follow_the_clock(self) -> None:
        """Read the states of the trees and of their pull requests again if that is due."""
        if self._trees.items and time.monotonic() >= self._requests_due:
            self._requests_due = time.monotonic() + _REQUEST_SECONDS
            self._screen.run_worker(self._load_requests(), group="tree-requests", exclusive=True)
        if self._trees.items and time.monotonic() >= self._words_due:
            self._words_due = time.monotonic() + _WORDS_SECONDS
            self._screen.run_worker(self._load_words(), group="tree-words", exclusive=True)

    async def _load_words(self) -> None:
        try:
            words = await asyncio.to_thread(self._read_words, self._app.journal)
        except (WatchroomError, OSError):
            # Git is busy, or the journal's server does not answer. The header reports the latter.
            return
        if words != self._words:
            self._words = words
            self.redraw()

    def _read_words(self, journal: Journal) -> Mapping[str, tuple[Word, ...]]:
        return self._open_reader(journal).read_words()

    async def _load_requests(self) -> None:
        workspace = self._app.workspace
        if workspace is None:
            return
        try:
            requests = await asyncio.to_thread(_read_requests, workspace)
        except (WatchroomError, OSError):
            # Git is busy, or the journal's server does not answer. The next question comes in a minute.
            return
        if requests != self._requests:
            self._requests = requests
            self.redraw()

    async def _load(self) -> None:
        """Read the details. Repeat while the model changes."""
        try:
            loaded: object = None
            while loaded != self._seen:
                loaded = self._seen
                try:
                    self._details = await asyncio.to_thread(self._read, self._app.journal)
                except (WatchroomError, OSError):
                    # Git is busy, or the journal's server does not answer. The header reports the latter.
                    loaded = None
                    await asyncio.sleep(_PAUSE_AFTER_ERROR)
                    continue
                self.show(self._app.model)
                await asyncio.sleep(_PAUSE)
        finally:
            self._is_loading = False

    def _read(self, journal: Journal) -> dict[str, TreeDetails]:
        # Imported late: the git code is slow to load.
        from watchroom.features.trees.standing import read_standing

        states = self._open_reader(journal).describe_trees()
        trees = [each.tree for each in states]
        return {
            each.tree.id: TreeDetails(each.agents, each.changed, read_standing(each.tree, trees))
            for each in states
        }

    def _open_reader(self, journal: Journal) -> TreeReader:
        from watchroom.features.trees.reads import TreeReader

        if self._reader is None:
            self._reader = TreeReader(journal)
        return self._reader


def _read_requests(workspace: Workspace) -> dict[str, HostRequest]:
    """Return the newest pull request of each tree at its host. Slow: runs programs that use the network."""
    newest: dict[str, PullRequestRecord] = {}
    for record in workspace.pull_requests.list_records():
        newest.setdefault(record.tree, record)
    found: dict[str, HostRequest] = {}
    for tree, record in newest.items():
        recorder = workspace.trees.tree(tree) if record.state in ("pushed", "opened") else None
        if recorder is not None:
            _, answer = workspace.pull_requests.read_status(recorder.git, record)
            if answer.request is not None:
                found[tree] = answer.request
    return found
