"""The merge screen: merge a refused write or an external edit with the current version."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import ClassVar, Final

from textual import on, work
from textual.app import ComposeResult
from textual.events import Resize
from textual.widget import Widget
from watchroom.algorithms.merge import Choice, TextStyle, apply_edit, text_with_markers
from watchroom.features.boards.view import BoardView
from watchroom.features.files.view import SharedFile
from watchroom.features.overview.model import Model
from watchroom.kernel.rules.conflicts import ConflictView, is_same_text
from watchroom.model import Row
from watchroom.texts import catalogue

from watchroom_tui.base_screen import BaseScreen
from watchroom_tui.dialogs.confirm import ConfirmDialog
from watchroom_tui.formatters.labels import actor_span
from watchroom_tui.keys.actions import bindings
from watchroom_tui.screens.merge.draft import MergeDraft, load_merge
from watchroom_tui.screens.merge.measures import RegionMeasures
from watchroom_tui.screens.merge.panes import RegionPane, ResultPane, SidePane
from watchroom_tui.screens.merge.resolution import ConflictResolution
from watchroom_tui.screens.merge.title import MergeTitle
from watchroom_tui.textual_compat import paint_with_next_frame
from watchroom_tui.widgets.containers import Horizontal
from watchroom_tui.widgets.editor import Editor
from watchroom_tui.widgets.frame import Footer
from watchroom_tui.widgets.line_widget import content

EDITED_LINES: Final = 300
"""Maximum number of lines that the editor opens around a region. The editor is slow with many more."""


FRAME: Final = 2
"""The width in columns of the frame of a pane."""

DECIDING: Final = ("take", "whole_file", "undo", "redo")
"""The actions that change the regions."""


class MergeScreen(BaseScreen):
    """The merge of one conflict, over the previous screen. Decisions are kept when the screen closes."""

    CSS_PATH = "merge.tcss"
    SCREEN_NAME: ClassVar = "merge"
    BINDINGS = bindings("merge")
    AUTO_FOCUS = "#result"

    def __init__(self, row: Row) -> None:
        super().__init__()
        self._row = row
        self._draft: MergeDraft | None = None
        self._for_all = False
        self._is_settling = False
        self._edited: tuple[int, int] | None = None
        self._measures = RegionMeasures()
        self._width_of_changes = 0
        self._taking_over = asyncio.Lock()
        self._heads: tuple[SharedFile, ...] | tuple[BoardView, ...] = ()
        self._conflicts: tuple[ConflictView, ...] | None = None

    def compose_panes(self) -> ComposeResult:
        yield MergeTitle()
        with Horizontal(id="sides"):
            yield SidePane("base")
            yield SidePane("current")
            yield SidePane("incoming")
        yield ResultPane(id="result")
        editor = Editor(id="editor")
        editor.display = False
        yield editor

    def prepare(self) -> None:
        panes = self._text_panes
        for pane in panes:
            pane.others = [each for each in panes if each is not pane]
            pane.on_scrolled = self._forget_reveal
        self.load_merge()

    @work(group="merge")
    async def load_merge(self) -> None:
        """Resume the draft of this conflict, or begin a new draft."""
        app = self.dashboard
        draft = app.drafts.find(MergeDraft, self._row.seq)
        if draft is None:
            draft = await load_merge(app.journal, app.worker_process, self._row)
            app.drafts.keep(self._row.seq, draft)
        else:
            await draft.catch_up(app.journal, app.worker_process)
        if not self.is_attached or not self.is_running:
            # The screen was closed during the load; the draft is kept for the next time.
            return
        self._draft = draft
        self._show_draft()
        self.show_model(app.model)

    @property
    def draft(self) -> MergeDraft | None:
        """The merge, None until its texts are read."""
        return self._draft

    @property
    def _text_panes(self) -> list[RegionPane]:
        # A closing screen has no panes, so that deferred calls do nothing.
        return [*self.query(SidePane), *self.query(ResultPane)]

    # -- showing

    def show_model(self, model: Model) -> None:
        if self._draft is None or self._draft.is_committing:
            return
        if self._draft.is_done:
            if self.is_in_front:
                self.app.pop_screen()
            return
        if model.conflicts is not self._conflicts:
            self._conflicts = model.conflicts
            self._check_conflict(model)
        heads = model.heads_of(self._row.zone)
        if heads is self._heads:
            return
        self._heads = heads
        head = next((each.head for each in heads if each.head.path == self._row.path), None)
        if head is not None and head != self._draft.sides.current:
            self.catch_up()

    def _check_conflict(self, model: Model) -> None:
        """Report that others settled the conflict, or added to it, during the merge."""
        draft, app = self._draft, self.dashboard
        if draft is None:
            return
        row = self._row
        mine = draft.find_conflict(model.conflicts)
        if mine is None and not draft.is_settled and not draft.sides.is_own:
            draft.is_settled = True
            same = self._version_with_its_text(model)
            key = "merge.settled" if same is None else "merge.alike"
            app.show_message(app.texts(key, path=draft.label, author=row.actor, version=same))
        elif mine is not None and mine.id > draft.newest:
            draft.newest = mine.id
            key = "merge.again_outside" if draft.sides.is_outside else "merge.again"
            app.show_message(app.texts(key, author=row.actor), "warning")
        self.query_one(MergeTitle).show(draft, for_all=self._for_all)

    def _version_with_its_text(self, model: Model) -> int | None:
        """Return the number of the current version if it has the same text as the incoming row."""
        shared = model.heads_of(self._row.zone)
        head = next((each.head for each in shared if each.head.path == self._row.path), None)
        return head.version if head is not None and is_same_text(self._row, head) else None

    @work(group="merge")
    async def catch_up(self) -> None:
        """Merge the newer version of the file in."""
        await self.merge_newer_version()

    async def merge_newer_version(self) -> bool:
        """Return whether a newer version was merged in. Report it unless the conflict is settled."""
        app, draft = self.dashboard, self._draft
        if draft is None or self._edited is not None:
            return False
        left = draft.left
        if not await draft.catch_up(app.journal, app.worker_process) or not self.is_attached:
            return False
        self._show_draft()
        if draft.is_settled:
            return True
        head = draft.sides.current
        again = draft.left - left
        app.show_message(
            app.texts(
                "merge.moved_on_open" if again > 0 else "merge.moved_on",
                path=draft.label,
                version=draft.sides.version,
                author=head.actor if head else "-",
                count=again,
            ),
            "warning",
        )
        return True

    def _show_draft(self) -> None:
        draft, texts = self._draft, self.dashboard.texts
        if draft is None:
            return
        base, current, styles = draft.sides.base, draft.sides.current, draft.styles
        none = texts("merge.none")
        standing = f"v{current.version} · {actor_span(current).text}" if current else none
        titles = {
            "base": (
                texts("merge.base", which=f"v{base.version} · {actor_span(base).text}" if base else none),
                styles.base,
            ),
            "current": (texts("merge.current", which=standing), styles.current),
            "incoming": (
                texts("merge.incoming", which=draft.sides.name_incoming(texts)),
                styles.incoming,
            ),
            "result": (texts("merge.result"), styles.merged),
        }
        for pane in self._text_panes:
            pane.set_title(self._with_style(*titles[pane.id or "result"]))
        self._show_regions()
        gutter = max(pane.gutter_width for pane in self.query(SidePane))
        self._width_of_changes = gutter + self._measures.widest_change
        self.arrange_sides()

    def _with_style(self, title: str, style: TextStyle) -> str:
        """Return ``title``, with ``style`` added if the styles of the texts differ."""
        if self._draft is None or not self._draft.styles.differ:
            return title
        return f"{title} · {style.describe(catalogue(self.dashboard.language))}"

    @on(Resize)
    def arrange_sides(self) -> None:
        """Show side by side only as many panes as can show whole changed lines. Hide the base first, then
        stack the panes."""
        names = ((3, "-without-space-for-base"), (2, "-stacked"))
        self.update_classes(
            {name: self._width_of_changes > self.size.width // sides - FRAME for sides, name in names}
        )
        # The current region may be out of view.
        self._reveal()

    def _set_for_all(self, for_all: bool) -> None:
        """Apply the next choice to the whole file, or to one region again, and show which."""
        self._for_all = for_all
        result = self.query_one(ResultPane)
        result.set_class(for_all, "-armed")
        title = self.dashboard.texts("merge.whole_file_result" if for_all else "merge.result")
        result.set_title(self._with_style(title, self._draft.styles.merged) if self._draft else title)
        self._show_regions()

    def _show_regions(self) -> None:
        if self._draft is None:
            return
        state = self._draft.state
        self._measures.measure(state.regions)
        for pane in self._text_panes:
            pane.show(self._measures, state.at)
        self.query_one(MergeTitle).show(self._draft, for_all=self._for_all)

    def _forget_reveal(self) -> None:
        for pane in self._text_panes:
            pane.forget_reveal()

    def _reveal(self) -> None:
        if self._draft is not None:
            for pane in self._text_panes:
                pane.reveal(self._draft.state.at)

    def _put_in_front(self, pane: Widget) -> None:
        """Do nothing, because this screen shows its panes at every size."""

    def next_pane(self, step: int) -> None:
        shown: list[Widget] = [pane for pane in self.panes if pane.display]
        index = next((n for n, pane in enumerate(shown) if pane is self.focused), -step)
        shown[(index + step) % len(shown)].focus()

    def action_flip_base(self) -> None:
        """Show the base, or hide it to save space."""
        is_shown = self.query_one("#base", SidePane).display
        self.set_class(is_shown, "-without-base")
        self.set_class(not is_shown, "-base")
        self._reveal()

    # -- deciding

    def action_take(self, choice: Choice) -> None:
        if self._draft is None:
            return
        if not self._for_all:
            self._draft.state.take(choice)
        elif self._draft.state.count_overwritten(choice):
            self._take_everywhere(choice)
            return
        else:
            self._draft.state.choose_everywhere(choice)
            self._set_for_all(False)
        self._show_regions()
        self._reveal()

    @work(group="settle")
    async def _take_everywhere(self, choice: Choice) -> None:
        """Make ``choice`` for every conflict after a confirmation, because it overwrites decisions."""
        draft, texts = self._draft, self.dashboard.texts
        if draft is None or self._is_settling:
            return
        self._is_settling = True
        try:
            state = draft.state
            question = texts(
                "merge.whole_file_question", count=state.count_overwritten(choice), all=state.conflicts
            )
            title = texts("merge.whole_file_title")
            if await self.app.push_screen_wait(ConfirmDialog(title, question)):
                draft.state.choose_everywhere(choice)
            self._set_for_all(False)
            self._reveal()
        finally:
            self._is_settling = False

    def action_whole_file(self) -> None:
        self._set_for_all(not self._for_all)

    def cancel_mode(self) -> bool:
        was_armed = self._for_all
        if was_armed:
            self._set_for_all(False)
        return was_armed

    def action_step(self, by: int) -> None:
        if self._draft is not None:
            self._draft.state.step(by)
            self._show_regions()
            self._reveal()

    def _go_to_open(self) -> None:
        """Go to the first open region."""
        if self._draft is not None and self._draft.left:
            self._draft.state.at = self._draft.state.open[0]
            self._show_regions()
            self._reveal()

    @on(RegionPane.Pointed)
    def point(self, event: RegionPane.Pointed) -> None:
        if self._draft is not None and event.region in self._draft.state.stops:
            self._draft.state.at = event.region
            self._show_regions()

    def action_undo(self) -> None:
        self._go_in_time("undo")

    def action_redo(self) -> None:
        self._go_in_time("redo")

    def _go_in_time(self, where: str) -> None:
        if self._draft is None:
            return
        state = self._draft.state
        if state.undo() if where == "undo" else state.redo():
            self._show_regions()
            self._reveal()
        else:
            self.dashboard.show_message(self.dashboard.texts(f"merge.no_{where}"))

    # -- editing

    async def action_edit(self) -> None:
        draft = self._draft
        if draft is None or not self._can_edit(draft):
            return
        state = draft.state
        start, end = state.window(EDITED_LINES)
        regions, at = state.regions[start:end], state.at - start

        def read() -> tuple[str, int]:
            return text_with_markers(regions), text_with_markers(regions[:at]).count("\n")

        # Keys pressed during the read wait for the editor.
        text, line = await asyncio.to_thread(read)
        if not self._can_edit(draft) or draft.state.regions[start:end] != regions:
            return
        self._edited, draft.is_editing = (start, end), True
        editor = self.query_one(Editor)
        # In one frame, not in one for the layout and one for the texts.
        with self.app.batch_update():
            editor.open(text, line)
            editor.border_title = content(self.dashboard.texts("merge.editing"))
            self._show_editor(True)
            self._show_regions()

    def _can_edit(self, draft: MergeDraft) -> bool:
        return self._edited is None and not draft.is_catching_up

    def _show_editor(self, is_shown: bool) -> None:
        """Replace the result with the editor, or show the result again. Focus it and redraw the footer."""
        result, editor = self.query_one(ResultPane), self.query_one(Editor)
        # Without a class: a class would recompute every style below it.
        result.display, editor.display = not is_shown, is_shown
        shown: Widget = editor if is_shown else result
        # At once: the messages of the new focus would change its colours and the footer frames later.
        shown.has_focus = True
        self.set_focus(shown)
        paint_with_next_frame(self, [self.query_one(Footer).refresh()])

    @on(Editor.Done)
    @work(exclusive=True, group="written")
    async def finish_editing(self) -> None:
        await self._finish_editing()

    async def _finish_editing(self) -> None:
        """Close the editor, then merge in a version that arrived during the edit."""
        if not await self._take_over():
            return
        # In one frame, not in one for the layout and one for the texts.
        with self.app.batch_update():
            self._show_editor(False)
            self._show_regions()
            self._reveal()
        await self.merge_newer_version()

    async def _take_over(self) -> bool:
        """Apply the edited text to the merge. Return False if nothing is being edited."""
        async with self._taking_over:
            if self._draft is None or self._edited is None:
                return False
            state, (start, end) = self._draft.state, self._edited
            regions, text = state.regions, self.query_one(Editor).source
            written = await asyncio.to_thread(apply_edit, regions[start:end], text)
            state.do((*regions[:start], *written, *regions[end:]))
            self._edited, self._draft.is_editing = None, False
            if any(each.is_open and each.text for each in written):
                self.dashboard.show_message(self.dashboard.texts("merge.marks_left"), "warning")
            return True

    async def leave(self) -> None:
        await self._take_over()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Disable decisions while the person edits."""
        return self._edited is None or action not in DECIDING

    # -- settling

    @work(group="settle")
    async def settle(self, how: Callable[[ConflictResolution], Awaitable[None]]) -> None:
        await self._settle(how)

    async def _settle(self, how: Callable[[ConflictResolution], Awaitable[None]]) -> None:
        """Run ``how``. Do nothing if the person is already being asked or a call is running."""
        draft = self._draft
        if draft is None or draft.is_committing or self._is_settling:
            return
        self._is_settling = True
        try:
            await self._finish_editing()
            await how(ConflictResolution(self, draft, self._go_to_open))
        finally:
            self._is_settling = False

    def action_preview(self) -> None:
        self.settle(ConflictResolution.preview)

    def action_commit(self) -> None:
        self.dashboard.open_editor(partial(self._settle, ConflictResolution.commit), self)

    def action_dismiss_conflict(self) -> None:
        self.settle(ConflictResolution.dismiss)

    def action_revert(self) -> None:
        self.settle(ConflictResolution.revert)
