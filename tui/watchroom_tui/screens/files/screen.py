"""The files screen: the shared files, their versions, comparison, blame and rollback."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import ClassVar, Final, NamedTuple

from rich.cells import cell_len
from textual import on, work
from textual.app import ComposeResult
from watchroom.algorithms.merge import split_lines
from watchroom.features.files.view import SharedFile
from watchroom.features.overview.client_files import ClientFile
from watchroom.features.overview.model import Model, Need
from watchroom.features.overview.reads import (
    MAX_VERSIONS,
    UnreadableVersionError,
    find_damaged,
    read_client_call,
    read_history,
    read_lineage,
)
from watchroom.features.trees.rows import REPO
from watchroom.features.trees.view import is_by_agent
from watchroom.model import Row

from watchroom_tui.base_screen import BaseScreen
from watchroom_tui.context import Target, TreeTarget, VersionTarget
from watchroom_tui.dialogs.agent_commit import commit_agent
from watchroom_tui.dialogs.restore import ask_to_restore
from watchroom_tui.dialogs.revert import RevertSubject, ask_to_revert, ask_to_revert_row
from watchroom_tui.dialogs.row import RowDialog
from watchroom_tui.formatters.client_calls import client_file_lines
from watchroom_tui.formatters.columns import fit_path
from watchroom_tui.formatters.diff_drawing import DiffDrawing
from watchroom_tui.formatters.labels import path_of
from watchroom_tui.formatters.local_time import local_clock
from watchroom_tui.formatters.styled_text import Span
from watchroom_tui.keys.actions import bindings
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.readers.blame import BlameGutter, blame_lines
from watchroom_tui.readers.comparison import Comparison, compare_versions
from watchroom_tui.screens.files.change_list import ChangeItem, ChangeList
from watchroom_tui.screens.files.change_view import ChangeView, ChosenLines
from watchroom_tui.screens.files.shared_list import SharedFileList
from watchroom_tui.screens.files.tree_pane import Form, TreePane
from watchroom_tui.services.agent_actions import AgentActions
from watchroom_tui.services.change_comments import ChangeComments
from watchroom_tui.services.external_editor import edit_client_file, edit_version
from watchroom_tui.services.file_preview import show_version
from watchroom_tui.widgets.containers import Container
from watchroom_tui.widgets.frame import Footer
from watchroom_tui.widgets.item_list import ItemList
from watchroom_tui.widgets.version_timeline import VersionTimeline, version_name

SIDES_FROM: Final = 100
"""Minimum width in columns to show two versions side by side."""

PATIENCE: Final = 0.3
"""Seconds before the pane reports that a slow read is in progress."""

CHECKED_AT_ONCE: Final = 2_000_000
"""Size in bytes that ends a batch of checksum checks. Other work can run between batches."""


class Shown(NamedTuple):
    """The content of the right pane: a version in a form, or its difference from another row than its
    base."""

    row: int
    other: int | None
    form: Form


class FilesScreen(BaseScreen):
    CSS_PATH = "files.tcss"
    SCREEN_NAME: ClassVar = "files"
    EXTRA_SCOPES: ClassVar = ("changes", "line_comments")
    AUTO_FOCUS = "#shared"
    BINDINGS = bindings("files")

    def __init__(self) -> None:
        super().__init__()
        self._form: Form = "text"
        """The form of versions. Changes since HEAD have their own form."""
        self._wants_sides = False
        self._shown_file: SharedFile | None = None
        self._client_file: ClientFile | None = None
        """The shown file if agents edited it with the tools of their clients, else None."""
        self._shown: Shown | None = None
        self._compared: Comparison | None = None
        self._wanted_seq: int | None = None
        self._wanted_version: tuple[str, int] | None = None
        self._checked: dict[int, str] = {}
        self._checked_files = False
        self._is_in_tree = False
        """Whether the shown file is one of the changes since HEAD."""
        self._had_changes = False
        """Whether the changes were shown for the last model."""
        self._wanted_change = ""
        """The row path of the changed file to go to once the changes are loaded."""
        self._wanted_tree = ""
        """The id of the tree to go to once the changes are loaded."""
        self._wanted_since = 0
        """The newest row when the person went there. Changes up to this row decide whether it exists."""

        self.changes = ChangeList(
            title="pane.changes", empty="empty.changes", id="changes", classes="pane -away"
        )
        self.shared = SharedFileList(title="pane.shared", empty="empty.shared", id="shared", classes="pane")
        self.timeline = VersionTimeline(
            title="pane.versions", empty="empty.versions", id="versions", classes="pane"
        )
        self.view = ChangeView(
            self._comment, title="pane.diff", empty="empty.diff", id="diff", classes="pane"
        )
        self._body = Container(id="body", classes="group")
        self._tree_pane: TreePane | None = None

    def compose_panes(self) -> ComposeResult:
        with self._body:
            with Container(id="left", classes="group"):
                yield self.changes
                yield self.shared
                yield self.timeline
            yield self.view

    def prepare(self) -> None:
        # `_show_lists` brings the changes to the front in a repository.
        self._put_in_front(self.shared)

    def show_model(self, model: Model) -> None:
        self._show_lists(model)
        self._seek_version()
        self._show_versions()
        self._show_comments()
        if self.dashboard.workspace is not None and not self._checked_files and self.timeline.items:
            self.check_versions(anew=True)

    def _show_lists(self, model: Model) -> None:
        """Show the changes since HEAD in a repository, and the other files. Show the files of trees instead
        of the changes at an earlier moment, which has no HEAD."""
        has_changes = bool(model.trees) and self.dashboard.is_live
        others: tuple[SharedFile | ClientFile, ...] = (*model.files, *model.client_files)
        self.shared.show(others if has_changes else (*model.tree_files, *others))
        self.set_class(has_changes, "-in-tree")
        self.changes.set_class(not has_changes, "-away")
        self.shared.set_class(has_changes and not others, "-away")
        if has_changes and not self._had_changes:
            # The list was hidden when the screen chose the focus.
            self._put_in_front(self.changes)
            self.changes.focus()
        self._had_changes = has_changes
        self._is_in_tree = has_changes and (self._is_in_tree or not self.shared.items)
        if has_changes and self.tree_pane.is_outdated(model):
            self.run_worker(self._load_changes(), group="changes")

    async def _load_changes(self) -> None:
        await self.tree_pane.load_changes(self._seek_change)

    @property
    def tree_pane(self) -> TreePane:
        """The changes since HEAD and the selected file."""
        if self._tree_pane is None:
            self._tree_pane = TreePane(self.dashboard, self.changes, self.view)
        return self._tree_pane

    def go_to(self, target: Target) -> None:
        super().go_to(target)
        if isinstance(target, VersionTarget):
            self._go_to_version(target.path, target.version)
        elif isinstance(target, TreeTarget):
            self._show_lists(self.dashboard.model)
            self._go_to_change(tree=target.id)

    @property
    def is_arriving(self) -> bool:
        groups = {"changes"} if self._is_seeking_change else set()
        if self._wanted_seq is not None or self._wanted_version is not None:
            groups.add("versions")
        return any(
            each.node is self and each.group in groups and not each.is_finished for each in self.workers
        )

    @property
    def _is_seeking_change(self) -> bool:
        return bool(self._wanted_change or self._wanted_tree)

    def go_to_row(self, row: Row) -> None:
        """Go to the file of ``row``, and to the row on the timeline of the file."""
        model = self.dashboard.model
        self._show_lists(model)
        if row.zone == REPO and self._had_changes:
            self._wanted_seq = row.seq
            self._go_to_change(row.path)
            return
        if not self.shared.move_to(row.path):
            # The file has no accepted version, so that only the row can be shown.
            self.app.push_screen(RowDialog(row))
            return
        self._wanted_seq = row.seq
        self._form = "difference"
        self._shown_file = None
        self._show_versions()
        self.front(self.timeline)

    def _go_to_version(self, path: str, version: int) -> None:
        """Go to a new version. It may be missing until the next model."""
        self._wanted_version = path, version
        self.front(self.timeline)
        self.show_model(self.dashboard.model)

    def _seek_version(self) -> None:
        if self._wanted_version is None:
            return
        path, version = self._wanted_version
        if self._had_changes and any(each.path == path for each in self.dashboard.model.tree_files):
            self._wanted_version = None
            self._go_to_change(path)
            return
        head = next((each.head for each in self.dashboard.model.files if each.path == path), None)
        if head is not None and (head.version or 0) >= version and self.shared.move_to(path):
            self._shown_file = None

    @property
    def current_need(self) -> Need | None:
        file = self.shared.item
        return self.find_need(["unchecked"], file.path if file else None)

    @on(ItemList.Highlighted, "#shared")
    def choose_file(self) -> None:
        self._show_versions()

    def _go_to_change(self, path: str = "", tree: str = "") -> None:
        """Go to a changed file, or to a tree, once the changes are loaded. ``path``: the file's row path."""
        self._wanted_change, self._wanted_tree = path, tree
        self._wanted_since = self.dashboard.model.seq
        self._seek_change()

    def _seek_change(self) -> None:
        """Go to the wanted file or tree if it is in the list of changes. Give up if the list is complete
        without it. Otherwise the cursor would move when the file is changed later."""
        is_found = bool(self._wanted_tree) and self.changes.move_to_tree(self._wanted_tree)
        if self._wanted_change and self.changes.move_to_file(self._wanted_change):
            is_found = True
        if is_found:
            self._wanted_change = self._wanted_tree = ""
            self._is_in_tree = True
            self.front(self.changes)
            self._shown_file = None
        elif self._is_seeking_change and self.tree_pane.loaded_seq >= self._wanted_since:
            self._wanted_change = self._wanted_tree = ""
            self._wanted_seq = None
            self.dashboard.drop_keys()
        # The file under the cursor may have a new version.
        self._show_versions()

    @on(ItemList.Highlighted, "#changes")
    def choose_change(self) -> None:
        self._show_versions()
        # The available keys may differ for the new line.
        self.query_one(Footer).refresh()

    @on(ItemList.Opened, "#changes")
    def open_change(self) -> None:
        self.front(self.view)

    def on_descendant_focus(self) -> None:
        super().on_descendant_focus()
        if self.focused is self.changes or self.focused is self.shared:
            self._is_in_tree = self.focused is self.changes
            self._show_versions()
        if self.focused is self.timeline or self.focused is self.changes:
            self._shown = None
            self._show_row()

    @property
    def _change(self) -> ChangeItem | None:
        """The selected line of the changes, None if the shown file is not one of the changes."""
        return self.changes.item if self._is_in_tree else None

    @property
    def _shows_change(self) -> bool:
        """Whether the right pane shows the changed file, not one of its versions."""
        return self._is_in_tree and self.focused is not self.timeline

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "settle":
            change, file = self.changes.item, self._shown_file
            if self._is_in_tree:
                return change is not None and change.file is not None and change.file.has_conflict
            return file is not None and bool(self.dashboard.model.conflicts_of(file.head))
        if action == "show_terminal":
            return bool(self._agent)
        if action == "open_file":
            return self._chosen_file() is not None
        of_changes = {"commit_agent", "message"}
        if action in of_changes:
            return self._change is not None
        # Files in trees are restored by reverting work, not by rollback. Only versions can be marked.
        return not (self._is_in_tree and (action == "rollback" or (action == "mark" and self._shows_change)))

    @on(ItemList.Highlighted, "#versions")
    def choose_version(self) -> None:
        self._show_row()

    @on(ItemList.Opened, "#shared")
    @on(ItemList.Opened, "#versions")
    def open_version(self) -> None:
        self.front(self.view)

    def action_mark(self) -> None:
        """Mark the version under the cursor, or remove the mark."""
        self.timeline.flip_mark()
        self._show_row()

    def action_flip_diff(self) -> None:
        """Show the difference from the version before, or from HEAD for a change. If it is shown already,
        show the text."""
        self._flip("difference")

    def action_flip_sides(self) -> None:
        if self.app.size.width < SIDES_FROM:
            texts = self.dashboard.texts
            self.dashboard.show_message(texts("files.too_narrow", columns=SIDES_FROM), "warning")
            return
        if self._form_in_front == "difference":
            self._wants_sides = not self._wants_sides
        else:
            self._wants_sides, self._form_in_front = True, "difference"
        self._shown = None
        self._show_row()

    def action_flip_blame(self) -> None:
        self._flip("authors")

    def _flip(self, form: Form) -> None:
        """Show ``form``. If it is shown already, show the text instead, or the authors if it is the
        difference of a change."""
        other: Form = "authors" if self._shows_change and form == "difference" else "text"
        self._form_in_front = other if self._form_in_front == form else form
        self._show_row()

    @property
    def _form_in_front(self) -> Form:
        """The form in which the change or version is shown."""
        if self._shows_change:
            return self.tree_pane.shown
        return "difference" if self._form == "text" and self.timeline.compared else self._form

    @_form_in_front.setter
    def _form_in_front(self, form: Form) -> None:
        if self._shows_change:
            self.tree_pane.shown = form
        else:
            self._form = form

    def on_resize(self) -> None:
        if self._has_sides() != self._body.has_class("-sides"):
            self.draw_comparison()

    def _show_versions(self) -> None:
        file = self._chosen_file()
        if isinstance(file, ClientFile):
            self._show_client_file(file)
            return
        self._client_file = None
        if file is self._shown_file:
            return
        if file is None or self._shown_file is None or file.path != self._shown_file.path:
            self.timeline.mark(None)
            self._checked = {}
            self._checked_files = self.dashboard.workspace is not None
        self._shown_file = file
        if file is None:
            self._shown = self._compared = None
            self.timeline.show(())
            self.view.clear()
        else:
            self.load_versions(file)

    def _chosen_file(self) -> SharedFile | ClientFile | None:
        """Return the file under the cursor of the changes or of the shared files, None without a file."""
        if not self._is_in_tree:
            return self.shared.item
        change = self.changes.item
        if change is None or change.file is None:
            return None
        head = change.file.head
        known = self._shown_file
        # Return the same object for the same version, so that the versions are not loaded again.
        if known is not None and known.head == head:
            return known
        return SharedFile(head.path, head)

    def _show_client_file(self, file: ClientFile) -> None:
        """Show the newest edit of ``file``, which has no versions."""
        if file == self._client_file:
            return
        self._client_file = file
        self._shown_file = self._shown = self._compared = None
        self.workers.cancel_group(self, "versions")
        self.timeline.mark(None)
        self.timeline.show(())
        self.load_client_edit(file)

    @work(exclusive=True, group="diff")
    async def load_client_edit(self, file: ClientFile) -> None:
        texts, journal = self.dashboard.texts, self.dashboard.journal
        text = await asyncio.to_thread(read_client_call, journal, file.row)
        lines = await asyncio.to_thread(client_file_lines, file, text, texts)
        if file != self._client_file:
            return
        self._arrange()
        title = self._path_title(file.path, local_clock(file.row.time))
        self.view.show_notice(("client", file.row.seq, file.path), lines, title=title)

    @work(exclusive=True, group="versions")
    async def load_versions(self, file: SharedFile) -> None:
        journal, as_of = self.dashboard.journal, self.dashboard.model.seq
        self.timeline.show(await asyncio.to_thread(read_history, journal, file.head, as_of=as_of))
        if self._wanted_version is not None:
            path, version = self._wanted_version
            mine = [row for row in self.timeline.items if row.path == path and row.version == version]
            if mine:
                self.timeline.move_to(mine[0].seq)
                self._wanted_version = None
        if self._wanted_seq is not None:
            self.timeline.move_to(self._wanted_seq)
            self._wanted_seq = None
        self._show_row()
        self.check_versions(anew=False)

    @work(exclusive=True, group="check")
    async def check_versions(self, *, anew: bool) -> None:
        """Compare the versions with their checksums in batches. ``anew``: also check versions again."""
        app, texts = self.dashboard, self.dashboard.texts
        workspace = app.workspace if app.is_live else None
        if anew:
            self._checked = {}
            self._checked_files = workspace is not None
        # Keep the results if a newer version cancels this worker.
        checked = self._checked
        waiting = [row for row in self.timeline.items if row.version is not None and row.seq not in checked]
        while waiting:
            now: list[Row] = []
            while waiting and sum(row.size or 0 for row in now) < CHECKED_AT_ONCE:
                now.append(waiting.pop(0))
            find = workspace.broken_versions if workspace else partial(find_damaged, app.journal)
            broken = await asyncio.to_thread(find, now)
            checked |= {row.seq: "" for row in now}
            for each in broken:
                what = texts(f"files.broken.{each.what}", version=each.row.version)
                before = checked[each.row.seq]
                checked[each.row.seq] = f"{before} · {what}" if before else what
            self.timeline.show_broken({seq: what for seq, what in checked.items() if what})

    def _show_row(self) -> None:
        """Update the lower pane for the cursor, the mark and the chosen form."""
        if self._shows_change:
            if self.changes.item is not None and self.changes.item.file is not None:
                self._shown = None
                self.load_change()
            return
        row, file = self.timeline.item, self._shown_file
        if row is None or file is None:
            return
        other, form = self.timeline.compared, self._form_in_front
        wanted = Shown(row.seq, None if other is None or form == "authors" else other.seq, form)
        if wanted != self._shown:
            self._shown = wanted
            if form == "authors":
                self.load_blame(row)
            elif form == "text":
                self.load_text(row)
            else:
                self.load_comparison(row, other)

    @work(exclusive=True, group="diff")
    async def load_text(self, row: Row) -> None:
        """Show the text of ``row``, with marks at the lines that it changed."""
        self._compared = None
        self._arrange()
        with self._at_work_on(row):
            await show_version(self.dashboard, self.view, row, path_of(row))

    @work(exclusive=True, group="diff")
    async def load_comparison(self, row: Row, other: Row | None) -> None:
        try:
            with self._at_work_on(row):
                self._compared = await compare_versions(self.dashboard, row, other)
        except UnreadableVersionError as error:
            self._say(error.row, "files.unreadable")
            return
        self.draw_comparison()

    @work(exclusive=True, group="diff")
    async def load_change(self) -> None:
        """Show the changed file under the cursor."""
        change = self._change
        if change is None or change.file is None:
            return
        self._compared = None
        sides = self._has_sides()
        self._body.set_class(sides, "-sides")
        await self.tree_pane.show_file(change.file, side_by_side=sides)

    def _has_sides(self) -> bool:
        is_wide = self.app.size.width >= SIDES_FROM
        return self._wants_sides and is_wide and self._form_in_front == "difference"

    def _arrange(self) -> None:
        """Arrange the panes for two versions side by side, or for one column."""
        self._body.set_class(self._has_sides(), "-sides")

    @work(exclusive=True, group="draw")
    async def draw_comparison(self) -> None:
        """Draw the last comparison."""
        sides, compared = self._has_sides(), self._compared
        self._arrange()
        if compared is None:
            return
        # In a thread: even counting thousands of changes is slow.
        drawing = await asyncio.to_thread(DiffDrawing, compared.diff, side_by_side=sides)
        if compared is not self._compared:
            return
        pair = compared.pair
        name = version_name(pair.old) if pair.old is not None else "v0"
        title = self._title(f"{name} → {version_name(pair.new)}")
        if compared.diff.changed:
            self.view.show_drawing(pair, drawing, title=title)
        else:
            text = self.dashboard.texts("files.no_changes", version=name)
            self.view.show_notice(pair, [[], [Span(" "), Span(text, "dim")]], title=title)

    @work(exclusive=True, group="diff")
    async def load_blame(self, row: Row) -> None:
        app = self.dashboard
        self._compared = None
        self._arrange()
        try:
            with self._at_work_on(row):
                versions = await asyncio.to_thread(read_lineage, app.journal, row)
                text, found = await blame_lines(app.journal, versions, app.worker_process)
        except UnreadableVersionError as error:
            self._say(error.row, "files.unreadable")
            return
        oldest = versions[0] if len(versions) >= MAX_VERSIONS and (versions[0].version or 0) > 1 else None

        def draw() -> BlameGutter:
            return BlameGutter(split_lines(text), found, self._foot, oldest=oldest)

        drawing = await asyncio.to_thread(draw)
        title = self._title(app.texts("files.blame", version=version_name(row)))
        self.view.show_drawing(("blame", row.path), drawing, title=title, with_cursor=True)

    def _foot(self, row: Row) -> str:
        said = f" · {sanitize(row.message)}" if row.message else ""
        return f"{version_name(row)} · {sanitize(row.actor)} · {local_clock(row.time)}{said}"

    @contextmanager
    def _at_work_on(self, row: Row) -> Iterator[None]:
        """Report a read in progress after `PATIENCE` seconds."""
        is_done = False

        def say() -> None:
            # The callback of an expired timer may run only after the read is done.
            if not is_done:
                self._say(row, "files.working")

        timer = self.set_timer(PATIENCE, say)
        try:
            yield
        finally:
            is_done = True
            timer.stop()

    def _say(self, row: Row, key: str) -> None:
        """Show a message about a version in place of its text."""
        text = self.dashboard.texts(key, version=version_name(row))
        self._compared = None
        self.view.show_notice(key, [[], [Span(" "), Span(text, "dim")]], title=self._title(version_name(row)))

    def _title(self, what: str) -> str:
        """Return a title of the file's path, cut to the space, and ``what``."""
        file = self._shown_file
        return self._path_title(path_of(file.head) if file is not None else "", what)

    def _path_title(self, path: str, what: str) -> str:
        path = sanitize(path)
        # A pane behind another pane has no size yet.
        space = (self.view.size.width or self.app.size.width) - cell_len(what) - 8
        return f"{path if cell_len(path) <= space else fit_path(path, max(8, space))}  {what}"

    async def action_settle(self) -> None:
        """Open the merge of the selected actor's conflict in the file, or of the newest conflict."""
        app, row, file = self.dashboard, self.timeline.item, self._shown_file
        mine = [] if file is None else app.model.conflicts_of(file.head)
        chosen = next((each for each in mine if row is not None and each.actor == row.actor), None)
        if mine:
            await app.navigator.open_merge((chosen or mine[0]).row)

    def action_commit_agent(self) -> None:
        """Commit the work of the selected change's agent, without the work of others."""
        app, change = self.dashboard, self._change
        trees = {each.id: each for each in app.model.trees}
        tree = None if change is None else trees.get(change.file.tree if change.file else change.group)
        if change is not None and tree is None and trees:
            # The head of an agent's group has no tree; take the tree of its first file.
            inside = (each.file for each in self.changes.items if each.file and each.group == change.group)
            tree = next((trees.get(each.tree) for each in inside), None)
        if change is None or tree is None:
            return
        if not app.can_act:
            app.explain_read_only()
            return
        mine = [each for each in self.changes.files if each.tree == tree.id]
        authors = dict.fromkeys(one.author for each in mine for one in each.authors)
        agents = sorted({each.actor for each in authors if each.grade in ("tool", "window")})
        chosen = next(iter(change.actors), agents[0] if agents else "")
        if not agents:
            app.show_message(app.texts("commit_agent.nobody"), "warning")
            return
        app.run_worker(commit_agent(app, tree, agents, chosen), group="commit_agent", exclusive=True)

    def _show_comments(self) -> None:
        """Draw the file again if its comments have changed."""
        change = self._change
        file = change.file if change is not None and self._shows_change else None
        if file is not None and not self.tree_pane.has_shown_comments(file):
            self.load_change()

    @property
    def _agent(self) -> str:
        """The agent that wrote the line under the cursor, else the first agent of the change, else empty."""
        change = self._change
        line = self.view.line if self.focused is self.view else None
        agents = (
            []
            if change is None
            else [each.author.actor for each in change.authors if is_by_agent(each.author)]
        )
        return self.tree_pane.find_agent(line) or next(iter(agents), "")

    def _comment(self, chosen: ChosenLines) -> None:
        """Let the person comment on lines of the changed file, or edit a comment."""
        app, change = self.dashboard, self._change
        if not app.can_act:
            app.explain_read_only()
            return
        comments, agent = ChangeComments(app), self._agent
        if chosen.comment is not None:
            app.open_editor(partial(comments.edit, chosen.comment))
        elif not agent or change is None or change.file is None:
            app.show_message(app.texts("change_comments.nobody"), "warning")
        else:
            app.open_editor(partial(comments.write, change.file, agent, chosen.lines))

    def action_message(self) -> None:
        """Send the unsent comments to the agent. Without comments, let the person write to it."""
        if self._agent:
            AgentActions(self.dashboard).send_comments_or_write(self._agent)
        else:
            self.dashboard.show_message(self.dashboard.texts("change_comments.nobody"), "warning")

    def action_show_terminal(self) -> None:
        """Show the terminal of the change's agent."""
        AgentActions(self.dashboard).show_terminal(self._agent)

    def cancel_mode(self) -> bool:
        return self.view.clear_mark()

    async def action_open_file(self) -> None:
        """Open the file in the person's editor."""
        file = self._chosen_file()
        if isinstance(file, ClientFile):
            await edit_client_file(self.dashboard, file)
        elif file is not None:
            await edit_version(self.dashboard, file.head)

    def action_revert_work(self) -> None:
        """Ask to revert the work of the agent of the selected change or version. If this is a revert, ask to
        undo it."""
        if self._shows_change:
            change = self._change
            if change is not None and change.actors:
                ask_to_revert(self.dashboard, RevertSubject(change.actors[0]))
            else:
                self.dashboard.show_message(self.dashboard.texts("revert.agents_only"), "warning")
        elif self.timeline.item is not None:
            ask_to_revert_row(self.dashboard, self.timeline.item)

    def action_rollback(self) -> None:
        """Restore the selected version after a confirmation that shows the changes."""
        row, file = self.timeline.item, self._shown_file
        if row is not None and file is not None:
            ask_to_restore(self.dashboard, row, file.head)
