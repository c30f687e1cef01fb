"""A screen of another package: its table, over the previous screen."""

from __future__ import annotations

from typing import ClassVar, Final

from textual import work
from textual.app import ComposeResult
from watchroom.features.overview.model import Model
from watchroom.features.sessions.runtime.threads import run_in_thread

from watchroom_tui.base_screen import BaseScreen
from watchroom_tui.formatters.columns import fit
from watchroom_tui.formatters.styled_text import Line, Span, width_of
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.readers.plugin_screens import ScreenPlugin, ScreenTable
from watchroom_tui.widgets.text_pane import TextPane

MAX_ROWS: Final = 1000
MAX_COLUMNS: Final = 20
_MAX_CELL: Final = 200
"""Max characters of a cell. The rest is left out."""


class PluginScreen(BaseScreen):
    """The table of ``screen``. An error of the plug-in is shown in its place."""

    CSS_PATH = "plugin.tcss"
    SCREEN_NAME: ClassVar = "plugin"

    def __init__(self, screen: ScreenPlugin) -> None:
        super().__init__()
        self._screen = screen
        self._shown: Model | None = None
        self._is_reading = False
        self.table = TextPane(empty="empty.plugin", id="table", classes="pane")

    def compose_panes(self) -> ComposeResult:
        yield self.table

    def show_model(self, model: Model) -> None:
        if model is not self._shown and not self._is_reading:
            self._is_reading = True
            self.read_table()

    @work(group="table")
    async def read_table(self) -> None:
        """Read the table, and again if the shown moment changed meanwhile. One call runs at a time."""
        app = self.dashboard
        title = sanitize(self._screen.title(app.language))
        while self._shown is not app.model:
            self._shown = app.model
            try:
                table = await run_in_thread(self._screen.read, app.model, app.journal)
                lines = draw_table(table)
            except Exception as error:  # noqa: BLE001  # a package of others can raise anything; it is shown
                text = app.texts("plugin.failed", error=f"{type(error).__name__}: {error}")
                lines = [[Span(f" {sanitize(text)}", "warning")]]
            self.table.show_notice(self._screen, lines, title=title)
        self._is_reading = False


def draw_table(table: ScreenTable) -> list[Line]:
    """Return the lines of ``table``: its columns side by side. Raise TypeError or ValueError if it is not a
    table."""
    columns, rows = ScreenTable(*table)
    cells = [[_cell(each) for each in row[:MAX_COLUMNS]] for row in (columns, *rows[:MAX_ROWS])]
    widths = [max(width_of([Span(cell)]) for cell in column) for column in zip(*cells, strict=True)]
    head, *body = (" " + "  ".join(map(fit, row, widths)) for row in cells)
    lines: list[Line] = [[Span(head, "dim")], *([Span(line)] for line in body)]
    if len(rows) > MAX_ROWS:
        lines.append([Span(f" … +{len(rows) - MAX_ROWS}", "dim")])
    return lines


def _cell(value: object) -> str:
    return sanitize(str(value)[:_MAX_CELL])
