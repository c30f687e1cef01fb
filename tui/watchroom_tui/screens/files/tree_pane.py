"""The part of the files screen for a repository: the changes since HEAD, and the selected file."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from watchroom.errors import WatchroomError
from watchroom.features.overview.model import Model
from watchroom.features.trees.comments import TreeComment
from watchroom.features.trees.rows import REPO, Tree, split_repo_path
from watchroom.features.trees.view import is_by_agent

from watchroom_tui.context import Dashboard
from watchroom_tui.formatters import labels
from watchroom_tui.formatters.commented_drawing import CommentedDrawing
from watchroom_tui.formatters.diff_drawing import DiffDrawing, DiffInput
from watchroom_tui.formatters.drawing import DrawnLine
from watchroom_tui.formatters.local_time import local_clock
from watchroom_tui.formatters.styled_text import Span
from watchroom_tui.formatters.tree_changes import branch_text
from watchroom_tui.formatters.tree_text import TreeText
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.screens.files.change_list import ChangeList
from watchroom_tui.screens.files.change_view import ChangeView

if TYPE_CHECKING:
    from watchroom.features.trees.reads import ChangedFile, FileLine, FileText, TreeReader
    from watchroom.features.trees.write_rules import Clash
    from watchroom.kernel.journal import Journal

Form: TypeAlias = Literal["authors", "text", "difference"]
_PAUSE: Final = 0.2
"""Minimum number of seconds between two loads of the changes while new rows arrive."""
_PAUSE_AFTER_ERROR: Final = 2.0
_MAX_TREES: Final = 4
"""Maximum number of other trees that a file is compared with, because each starts git."""
_MAX_CLASHES: Final = 3
"""Maximum number of conflicting ranges of lines that a title names for each tree."""


class TreePane:
    """Loads the changes into ``changes``, and files into ``view``."""

    def __init__(self, app: Dashboard, changes: ChangeList, view: ChangeView) -> None:
        self._app = app
        self._changes = changes
        self._view = view
        self._reader: TreeReader | None = None
        self._seen: object = None
        self._loaded: object = None
        """The part of the model for which the changes were last loaded."""
        self.loaded_seq = 0
        """The newest row for which the changes are loaded, or for which git could not list them."""
        self._is_loading = False
        self._read: FileText | None = None
        """The text of the shown file."""
        self._clashes: Sequence[tuple[Tree, Sequence[Clash]]] = ()
        """The lines of the shown file that would conflict with those in other trees."""
        self._comments: Sequence[TreeComment] = ()
        """The shown comments on the file."""
        self.shown: Form = "authors"

    def is_outdated(self, model: Model) -> bool:
        """Return whether the changes must be loaded again for ``model``. Record the model."""
        seen = (model.trees, model.tree_files, model.predictions)
        if self._loaded == seen:
            self.loaded_seq = model.seq
        if self._seen is not None and self._seen == seen:
            return False
        self._seen = seen
        return not self._is_loading

    async def load_changes(self, on_loaded: Callable[[], object]) -> None:
        """Load the changes. Repeat while the model changes, or if git fails. Call ``on_loaded`` after each
        attempt."""
        self._is_loading = True
        try:
            self._loaded = None
            while self._loaded != self._seen:
                seen, model = self._seen, self._app.model
                conflicts = {each.path for each in model.conflicts if each.zone == REPO}
                try:
                    files = await asyncio.to_thread(self._read_changes, model, conflicts)
                except (WatchroomError, OSError):
                    # Git is busy, or the journal's server does not answer. The header reports the latter.
                    self.loaded_seq = model.seq
                    on_loaded()
                    await asyncio.sleep(_PAUSE_AFTER_ERROR)
                    continue
                predicted = {
                    (tree, path)
                    for each in model.predictions.values()
                    for tree in each.trees
                    for path in each.paths
                }
                self._changes.show_changes(model.trees, files, predicted)
                self._loaded, self.loaded_seq = seen, model.seq
                on_loaded()
                await asyncio.sleep(_PAUSE)
        finally:
            self._is_loading = False

    def _read_changes(self, model: Model, conflicts: set[str]) -> list[ChangedFile]:
        reader = self._open(self._app.journal)
        return [file for tree in model.trees for file in reader.list_changes(tree.id, conflicts)]

    def _open(self, journal: Journal) -> TreeReader:
        if self._reader is None:
            # Imported late: the git code is slow to load.
            from watchroom.features.trees.reads import TreeReader

            self._reader = TreeReader(journal)
        return self._reader

    async def show_file(self, file: ChangedFile, *, side_by_side: bool) -> None:
        """Show ``file`` in the form `shown`."""
        try:
            read = await asyncio.to_thread(self._read_file, file)
            self._clashes = await asyncio.to_thread(self._find_clashes, file, self._app.model)
        except (WatchroomError, OSError) as error:
            said = error.message(self._app.language) if isinstance(error, WatchroomError) else str(error)
            self._say(file, said)
            return
        self._read, self._comments = read, self.comments_on(file)
        has_text = read.text is not None or (read.head is not None and file.head.deleted)
        if not has_text:
            self._say(file, self._app.texts("changes.no_text"))
        elif self.shown == "difference" or read.text is None:
            await self._show_difference(file, read, side_by_side=side_by_side)
        else:
            text = TreeText(read.lines, self._foot, has_authors=self.shown == "authors")
            drawing = CommentedDrawing(
                text, self._comments, (), [text.line_at(at).text for at in range(len(text))]
            )
            title = self._title(file, self._shown_text())
            self._view.show_drawing((file.tree, file.name, "text"), drawing, title=title, with_cursor=True)

    def _read_file(self, file: ChangedFile) -> FileText:
        return self._open(self._app.journal).read_file(file.tree, file.name)

    def _find_clashes(self, file: ChangedFile, model: Model) -> list[tuple[Tree, Sequence[Clash]]]:
        reader, known = self._open(self._app.journal), {each.id: each for each in model.trees}
        others = [
            known[other]
            for pair, prediction in sorted(model.predictions.items())
            if file.tree in pair and file.name in prediction.paths
            if (other := pair[pair[0] == file.tree]) in known
        ]
        return [(each, reader.find_clashes(file.tree, each.id, file.name)) for each in others[:_MAX_TREES]]

    async def _show_difference(self, file: ChangedFile, read: FileText, *, side_by_side: bool) -> None:
        old, new = read.head or "", read.text or ""
        changed = await self._app.worker_process.changes(old, new)

        comments = self._comments

        def draw() -> CommentedDrawing:
            # Imported late: slow to load, and only needed for a difference.
            from watchroom.algorithms.merge import split_lines

            before, after = split_lines(old), split_lines(new)
            difference = DiffDrawing(DiffInput(before, after, changed), side_by_side=side_by_side)
            plain = ([each.rstrip("\r\n") for each in lines] for lines in (before, after))
            return CommentedDrawing(difference, comments, *plain)

        drawing = await asyncio.to_thread(draw)
        title = self._title(file, self._shown_text())
        self._view.show_drawing((file.tree, file.name, "difference"), drawing, title=title, with_cursor=True)

    def comments_on(self, file: ChangedFile) -> Sequence[TreeComment]:
        """Return the comments on lines of ``file``."""
        tree, path = split_repo_path(file.head.path)
        return [each for each in self._app.model.comments if (each.tree, each.path) == (tree, path)]

    def has_shown_comments(self, file: ChangedFile) -> bool:
        """Return whether the shown comments are the current comments on ``file``."""
        return [*self._comments] == [*self.comments_on(file)]

    def find_agent(self, line: DrawnLine | None) -> str:
        """Return the agent that wrote ``line`` of the shown file, empty if no agent did."""
        if line is None or line.is_old or self._read is None or line.at >= len(self._read.lines):
            return ""
        author = self._read.lines[line.at].author
        return author.actor if is_by_agent(author) else ""

    def _shown_text(self) -> str:
        """Return the shown form of the file, and the number of unsent comments on it."""
        texts = self._app.texts
        shown = texts(f"changes.shown.{self.shown}")
        unsent = sum(not each.sent for each in self._comments)
        return f"{shown} · {texts('change_comments.count', count=unsent)}" if unsent else shown

    def _foot(self, line: FileLine) -> str:
        texts, row = self._app.texts, line.row
        if row is None:
            return texts("changes.line.git")
        state = texts("changes.line.committed" if line.is_committed else "changes.line.uncommitted")
        who, how = sanitize(line.author.name), labels.origin_text(row, texts)
        return f"{who} · {how} · v{row.version} · {local_clock(row.time)} · {state}"

    def _say(self, file: ChangedFile, text: str) -> None:
        lines = [[], [Span(" "), Span(sanitize(text), "dim")]]
        self._view.show_notice((file.tree, file.name, "notice"), lines, title=self._title(file, ""))

    def _title(self, file: ChangedFile, what: str) -> str:
        clashes = [self._clash_text(tree, found) for tree, found in self._clashes]
        return "  ".join([sanitize(file.name), *filter(None, (what, *clashes))])

    def _clash_text(self, tree: Tree, clashes: Sequence[Clash]) -> str:
        """Return the lines that conflict with those in ``tree``, e.g. ``⚔ ⎇ fares: lines 3–5, 9``."""
        ranges = [each.ours for each in clashes[:_MAX_CLASHES]]
        shown = [f"{start + 1}–{end}" if end > start + 1 else f"{start + 1}" for start, end in ranges]
        more = ["…"] if len(clashes) > _MAX_CLASHES else []
        lines = self._app.texts("changes.clash", lines=", ".join(shown + more)) if shown else ""
        return f"⚔ {branch_text(tree)}{lines}"
