"""The palette: every action of every screen."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from textual.command import CommandList, CommandPalette, DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.widgets.option_list import Option

from watchroom_tui.context import Dashboard, dashboard_of
from watchroom_tui.keys.actions import (
    ACTIONS,
    OF_THE_APP,
    SCREEN_OF_SCOPE,
    Action,
    is_possible,
    scopes_of,
)
from watchroom_tui.keys.keymap import palette_title
from watchroom_tui.presentation.localization import texts_of
from watchroom_tui.textual_compat import require
from watchroom_tui.widgets.line_widget import content

if TYPE_CHECKING:
    from textual.screen import Screen

require(CommandPalette, "_start_no_matches_countdown", "_NO_MATCHES", "_list_visible")

_WORD_SCORE: Final = 100.0
"""Added to the score of a match at the start of a word, so that it comes before fuzzy matches."""


class ActionCommands(Provider):
    """The actions, found by their names, keys and synonyms."""

    async def discover(self) -> Hits:
        for action in list_actions(self._dashboard, self.screen):
            yield DiscoveryHit(self._line(action, Content(self._title(action))), self._run(action))

    async def search(self, query: str) -> Hits:
        matcher, texts = self.matcher(query), self._dashboard.texts
        for action in list_actions(self._dashboard, self.screen):
            title = self._title(action)
            score = matcher.match(title)
            if has_word(query, f"{title} {action.synonyms(texts)}"):
                score += _WORD_SCORE
            if score > 0:
                line = self._line(action, matcher.highlight(title))
                yield Hit(score, line, self._run(action), text=title)

    @property
    def _dashboard(self) -> Dashboard:
        return dashboard_of(self.screen)

    def _title(self, action: Action) -> str:
        return palette_title(action, self._dashboard.texts, self._dashboard.keymap)

    def _line(self, action: Action, title: Content) -> Content:
        return title + Content.styled(f"  {action.help(self._dashboard.texts)}", "dim")

    def _run(self, action: Action) -> partial[bool]:
        return partial(self._dashboard.call_later, run_action, self._dashboard, action)


def list_actions(app: Dashboard, screen: Screen[object]) -> list[Action]:
    """Return the actions of every screen, those of ``screen`` first."""
    front = app.base_screen
    here = {*OF_THE_APP, *([front.SCREEN_NAME] if front else []), *scopes_of(screen.focused)}
    actions = [each for each in ACTIONS if app.can_act or not each.acts]
    offered = [each for each in actions if each.scope in here or each.scope in SCREEN_OF_SCOPE]
    return sorted(offered, key=lambda each: each.scope not in here)


async def run_action(app: Dashboard, action: Action) -> None:
    """Run ``action`` on its screen, or show that it is not possible now."""
    name = SCREEN_OF_SCOPE.get(action.scope)
    if name is not None and (app.base_screen is None or name != app.base_screen.SCREEN_NAME):
        await app.show_screen(name)
    if is_possible(action, app.screen):
        await app.run_action(action.target, app.screen)
    else:
        app.show_message(app.texts("palette.not_here", action=action.help(app.texts)), "warning")


def has_word(query: str, text: str) -> bool:
    """Return whether a word of ``text`` begins with ``query``, ignoring case."""
    words = "".join(each if each.isalnum() else " " for each in text.casefold())
    return f" {query.casefold()}" in f" {words}" or query in text.split()


class Palette(CommandPalette):
    """Textual's palette, with the text for no matches in the dashboard's language."""

    DEFAULT_CSS = """
    Palette CommandList { text-wrap: nowrap; text-overflow: ellipsis; }
    """

    def _start_no_matches_countdown(self, search_value: str) -> None:
        # Textual shows it in English, half a second later.
        self._list_visible = bool(search_value)
        if search_value:
            option = Option(content(texts_of(self)("palette.no_match")), disabled=True, id=self._NO_MATCHES)
            self.query_one(CommandList).add_option(option)
