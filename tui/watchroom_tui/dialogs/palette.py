"""The command palette, with the actions of all screens."""

from __future__ import annotations

from collections.abc import Iterator
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
from watchroom_tui.keys.keymap import palette_title, why_impossible
from watchroom_tui.presentation.localization import texts_of
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.readers.plugin_screens import plugin_screens
from watchroom_tui.textual_compat import require
from watchroom_tui.widgets.line_widget import content

if TYPE_CHECKING:
    from textual.screen import Screen

require(CommandPalette, "_start_no_matches_countdown", "_NO_MATCHES", "_list_visible")

_WORD_SCORE: Final = 100.0
"""Score bonus for a match at the start of a word, above the scores of fuzzy matches."""
_NAME_SCORE: Final = 50.0
"""Score bonus for an action with exactly the typed name or synonym."""
_HERE_SCORE: Final = 20.0
"""Score bonus for an action that is possible on this screen."""
_IMPOSSIBLE: Final = 0.01
"""Score factor for an action of this screen that is not possible now."""


class ActionCommands(Provider):
    """Search for actions by name, key and synonym."""

    async def discover(self) -> Hits:
        for action in list_actions(self._dashboard, self.screen):
            yield DiscoveryHit(self._line(action, Content(self._title(action))), self._run(action))

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for action in list_actions(self._dashboard, self.screen):
            title = self._title(action)
            score = self._score(action, query, matcher.match(title))
            if score > 0:
                line = self._line(action, matcher.highlight(title))
                yield Hit(score, line, self._run(action), text=title)

    def _score(self, action: Action, query: str, score: float) -> float:
        """Return the score of ``action``, 0 without a match. ``score``: the score of the title."""
        texts = self._dashboard.texts
        names = action.synonyms(texts)
        if has_word(query, f"{self._title(action)} {names}"):
            score += _WORD_SCORE
        if query.casefold() in (name.strip().casefold() for name in (action.label(texts), *names.split(","))):
            score += _NAME_SCORE
        if self._is_elsewhere(action):
            return score
        if not self._is_possible(action):
            return score * _IMPOSSIBLE
        return score + _HERE_SCORE if score else 0.0

    def _is_elsewhere(self, action: Action) -> bool:
        """Whether ``action`` belongs to another screen."""
        return SCREEN_OF_SCOPE.get(action.scope) not in (None, getattr(self.screen, "SCREEN_NAME", ""))

    def _is_possible(self, action: Action) -> bool:
        if action.scope == "timeline":
            # The app asks the front screen, which is the palette.
            return action.id == "timeline" or self._dashboard.timeline is not None
        return is_possible(action, self.screen)

    @property
    def _dashboard(self) -> Dashboard:
        return dashboard_of(self.screen)

    def _title(self, action: Action) -> str:
        return palette_title(action, self._dashboard.texts, self._dashboard.keymap)

    def _line(self, action: Action, title: Content) -> Content:
        said = action.help(self._dashboard.texts)
        if not self._is_elsewhere(action) and not self._is_possible(action):
            app = self._dashboard
            why = why_impossible(action, app.texts, app.keymap, has_trees=bool(app.model.trees))
            said += f" · {why}"
        return title + Content.styled(f"  {said}", "dim")

    def _run(self, action: Action) -> partial[bool]:
        return partial(self._dashboard.call_later, run_action, self._dashboard, action)


class ScreenCommands(Provider):
    """Search for screens of other packages by their titles."""

    async def discover(self) -> Hits:
        for title, open_screen in self._screens():
            yield DiscoveryHit(title, open_screen)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for title, open_screen in self._screens():
            if (score := matcher.match(title)) > 0:
                yield Hit(score, matcher.highlight(title), open_screen, text=title)

    def _screens(self) -> Iterator[tuple[str, partial[bool]]]:
        app = dashboard_of(self.screen)
        for name, screen in plugin_screens().found.items():
            key = f" ({screen.key})" if screen.key else ""
            title = app.texts("plugin.open", title=sanitize(screen.title(app.language)))
            yield f"{title}{key}", partial(app.call_later, app.run_action, f"app.plugin_screen('{name}')")


def list_actions(app: Dashboard, screen: Screen[object]) -> list[Action]:
    """Return the actions of every screen, with the actions of ``screen`` first."""
    front = app.base_screen
    here = {*OF_THE_APP, *([front.SCREEN_NAME] if front else []), *scopes_of(screen.focused)}
    actions = [each for each in ACTIONS if app.can_act or not each.acts]
    offered = [each for each in actions if each.scope in here or each.scope in SCREEN_OF_SCOPE]
    return sorted(offered, key=lambda each: each.scope not in here)


async def run_action(app: Dashboard, action: Action) -> None:
    """Run ``action`` on its screen, or show that it is not possible now.

    An action of another screen is not run at once if it changes the workspace, because the person has not
    seen the affected item. Open the screen and show the key instead.
    """
    name, texts = SCREEN_OF_SCOPE.get(action.scope), app.texts
    before = app.base_screen.SCREEN_NAME if app.base_screen is not None else ""
    goes_there = name is not None and name != before
    if name is not None and goes_there:
        await app.show_screen(name)
    keys, help_text = action.shown_keys(app.keymap), action.help(texts)
    if not is_possible(action, app.screen):
        where, why = (
            texts(f"scope.{action.scope}"),
            why_impossible(action, texts, app.keymap, has_trees=bool(app.model.trees)),
        )
        app.show_message(texts("palette.not_here", where=where, why=why, action=help_text), "warning")
    elif goes_there and action.acts and keys:
        app.show_message(texts("palette.select", shown=keys[0], action=help_text))
    else:
        await app.run_action(action.target, app.screen)


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
