"""A minimal Textual app, the baseline for the dashboard's first paint."""

from __future__ import annotations

from textual.app import App, ComposeResult
from textual.widgets import Static

GREETING = "minimal app is painted"


class MinimalApp(App[None]):
    """One line of text, which the key x changes."""

    def compose(self) -> ComposeResult:
        yield Static(GREETING, id="text")

    def key_x(self) -> None:
        text = self.query_one("#text", Static)
        text.update("changed" if text.content == GREETING else GREETING)


if __name__ == "__main__":
    MinimalApp().run()
