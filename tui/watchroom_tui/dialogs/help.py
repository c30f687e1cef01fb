"""The keys that work here, from the registry, and what the signs mean."""

from __future__ import annotations

from textual.app import ComposeResult

from watchroom_tui.dialogs.base import Dialog
from watchroom_tui.formatters.columns import fit
from watchroom_tui.formatters.legend import legend_lines
from watchroom_tui.formatters.styled_text import Line, Span
from watchroom_tui.keys.actions import SCOPES, of_scope
from watchroom_tui.widgets.text_pane import TextPane


class HelpDialog(Dialog):
    def compose(self) -> ComposeResult:
        yield TextPane(title="help.title", empty="empty.detail", id="detail", classes="pane")

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
        # What only works here comes first: that is what people open the help for.
        for scope in sorted(SCOPES, key=lambda each: (each != name, SCOPES.index(each))):
            has_trees = bool(app.model.trees)
            actions = [each for each in of_scope(scope) if has_trees or not each.in_repository]
            if not actions or scope not in here:
                continue
            lines.append([Span(f" {app.texts(f'scope.{scope}')}", "title")])
            lines.extend(
                [
                    Span(fit(f"   {' '.join(action.shown_keys(app.keymap))}", 18), "key"),
                    Span(action.help(app.texts)),
                ]
                for action in actions
            )
            lines.append([])
        lines += legend_lines(app.texts)
        title = f"{app.texts('help.title')} · {app.texts('help.close')}"
        self.query_one(TextPane).show_notice("help", lines, title=title)
