"""The palette: every action of every screen."""

from __future__ import annotations

from textual.command import CommandList, CommandPalette
from textual.widgets.option_list import Option

from watchroom_tui.presentation.localization import texts_of
from watchroom_tui.textual_compat import require
from watchroom_tui.widgets.line_widget import content

require(CommandPalette, "_start_no_matches_countdown", "_NO_MATCHES", "_list_visible")


class Palette(CommandPalette):
    """Textual's, which says in the language of the dashboard that nothing matches."""

    def _start_no_matches_countdown(self, search_value: str) -> None:
        # Textual says it in English, half a second later.
        self._list_visible = bool(search_value)
        if search_value:
            option = Option(content(texts_of(self)("palette.no_match")), disabled=True, id=self._NO_MATCHES)
            self.query_one(CommandList).add_option(option)
