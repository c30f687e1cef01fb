"""Help: the keys of the current screen, and the meanings of the signs."""

from __future__ import annotations

from watchroom_tui.dialogs.base import LinesDialog
from watchroom_tui.formatters.columns import fit
from watchroom_tui.formatters.legend import legend_lines
from watchroom_tui.formatters.styled_text import Line, Span
from watchroom_tui.keys.actions import SCOPES, Action, of_scope
from watchroom_tui.keys.keymap import shown_key


class HelpDialog(LinesDialog):
    TITLE_KEY = "help.title"

    def on_mount(self) -> None:
        app = self.dashboard
        name = app.base_screen.SCREEN_NAME if app.base_screen else ""
        here = {
            "app",
            "timeline",
            "list",
            "view",
            name,
            *(app.base_screen.EXTRA_SCOPES if app.base_screen else ()),
        }
        lines: list[Line] = []
        legend = legend_lines(app.texts)
        # Actions of this screen come first, because people open the help for them. The signs follow.
        for scope in sorted(SCOPES, key=lambda each: (each != name, SCOPES.index(each))):
            has_trees = bool(app.model.trees)
            actions = [each for each in of_scope(scope) if has_trees or not each.in_repository]
            if not actions or scope not in here:
                continue
            if scope != name:
                lines += legend
                legend = []
            lines.append([Span(f" {app.texts(f'scope.{scope}')}", "title")])
            lines.extend(
                [Span(fit(f"   {self._keys_of(action)}", 18), "key"), Span(action.help(app.texts))]
                for action in actions
            )
            lines.append([])
        self.show_lines(lines)

    def _keys_of(self, action: Action) -> str:
        """Return the keys of ``action``, or a hint at the palette if ``action`` has no keys."""
        app = self.dashboard
        palette = shown_key("palette", app.keymap)
        return " ".join(action.shown_keys(app.keymap)) or app.texts("help.in_palette", palette=palette)
