"""The compare screen: the paths that changed between two moments of the workspace, and their differences."""

from __future__ import annotations

import asyncio
from typing import ClassVar, Final

from textual import on, work
from textual.app import ComposeResult
from watchroom.features.overview.model import Model
from watchroom.kernel.journal import ChangedPath

from watchroom_tui.base_screen import BaseScreen
from watchroom_tui.context import RangeTarget
from watchroom_tui.formatters.diff_drawing import DiffDrawing
from watchroom_tui.formatters.styled_text import Span
from watchroom_tui.keys.actions import bindings
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.readers.changed_paths import compare_path, read_changes
from watchroom_tui.screens.compare.path_list import ChangedPathList, ComparedPath
from watchroom_tui.widgets.containers import Horizontal
from watchroom_tui.widgets.item_list import ItemList
from watchroom_tui.widgets.text_pane import TextPane

MOST_COUNTED: Final = 500
"""Maximum number of paths to compare when the screen opens. Other paths are compared when opened."""

_SHOWN_AT_ONCE: Final = 10


class CompareScreen(BaseScreen):
    """The comparison of the two moments of ``target``, over the previous screen."""

    CSS_PATH = "compare.tcss"
    SCREEN_NAME: ClassVar = "compare"
    BINDINGS = bindings("compare")

    def __init__(self, target: RangeTarget) -> None:
        super().__init__()
        self._target = target
        self._found: list[ComparedPath] = []
        self._opened: ChangedPath | None = None
        self.paths = ChangedPathList(
            title="pane.changed_paths", empty="empty.changed_paths", id="changed", classes="pane"
        )
        self.view = TextPane(title="pane.diff", empty="empty.changed_path", id="diff", classes="pane")

    def compose_panes(self) -> ComposeResult:
        with Horizontal(id="body", classes="group"):
            yield self.paths
            yield self.view

    def prepare(self) -> None:
        after, until = self._target
        self.paths.show_span(self.dashboard.texts("compare.span", after=after, until=until))
        self.load_paths()

    def show_model(self, model: Model) -> None:
        """Do nothing, because both moments are fixed."""

    def cancel_mode(self) -> bool:
        """Return from the difference to the list before the screen closes."""
        return self.focused is self.view and self.return_to_pane()

    @work(exclusive=True, group="paths")
    async def load_paths(self) -> None:
        app = self.dashboard
        changed = await read_changes(app, self._target)
        self._found = [ComparedPath(path) for path in changed]
        self.paths.show(tuple(self._found))
        for start in range(0, min(len(changed), MOST_COUNTED), _SHOWN_AT_ONCE):
            for index, path in enumerate(changed[start : start + _SHOWN_AT_ONCE], start):
                compared = await compare_path(app, path)
                if compared is not None:
                    self._found[index] = ComparedPath(path, compared.difference)
            self.paths.show(tuple(self._found))

    @on(ItemList.Opened, "#changed")
    def open_path(self) -> None:
        entry = self.paths.item
        if entry is not None:
            self._opened = entry.path
            self.front(self.view)
            self.load_difference(entry.path)

    @on(ItemList.Highlighted, "#changed")
    def leave_path(self) -> None:
        entry = self.paths.item
        if entry is None or entry.path != self._opened:
            self._opened = None
            self.view.clear()

    @work(exclusive=True, group="diff")
    async def load_difference(self, path: ChangedPath) -> None:
        app = self.dashboard
        name = f"{sanitize(self.paths.place(path))}  v{path.before} → v{path.last}"
        compared = await compare_path(app, path)
        diff = compared.diff if compared is not None else None
        drawing = await asyncio.to_thread(DiffDrawing, diff, side_by_side=False) if diff else None
        if path != self._opened:
            return
        if diff is None or drawing is None:
            self._say(path, "compare.no_text", name)
        elif not diff.changed:
            self._say(path, "compare.same", name)
        else:
            self.view.show_drawing(path, drawing, title=name)
        if compared is not None:
            entry = ComparedPath(path, compared.difference)
            self._found = [entry if each.path == path else each for each in self._found]
            self.paths.show(tuple(self._found))

    def _say(self, path: ChangedPath, key: str, name: str) -> None:
        self.view.show_notice(path, [[], [Span(f" {self.dashboard.texts(key)}", "dim")]], title=name)
