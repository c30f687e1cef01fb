"""What commands are fenced in with on this machine: all kinds, the best first, and why one does not work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.app import ComposeResult
from watchroom.texts import Catalogue

from watchroom_tui.columns import fit
from watchroom_tui.safe import safe, safe_lines
from watchroom_tui.screens.sheet import Sheet
from watchroom_tui.spans import Line, Span
from watchroom_tui.widgets.text_view import TextView

if TYPE_CHECKING:
    from watchroom.sandbox.ladder import Ladder


class FencesScreen(Sheet):
    def __init__(self, ladder: Ladder) -> None:
        super().__init__()
        self._ladder = ladder

    def compose(self) -> ComposeResult:
        yield TextView(title="fences.title", empty="empty.detail", id="detail", classes="pane")

    def on_mount(self) -> None:
        words = self.watchroom.words
        title = f"{words('fences.title')} · {words('help.close')}"
        self.query_one(TextView).show_words("fences", fence_lines(self._ladder, words), title=title)


def fence_text(ladder: Ladder, words: Catalogue) -> str:
    """What fences commands in, in a few words."""
    best = ladder.best
    return words("fences.best", name=safe(best.name)) if best else words("fences.none")


def fence_lines(ladder: Ladder, words: Catalogue) -> list[Line]:
    best = ladder.best
    said = words("fences.about") if best else words("fences.refused")
    lines: list[Line] = [[], [Span(" "), Span(said, "" if best else "warning")], []]
    for rung in ladder.rungs:
        if rung.works:
            state = Span(f"✓ {words('fences.works')}", "ok")
        elif rung.installed:
            state = Span(f"✖ {words('fences.broken')}", "error")
        else:
            state = Span(f"– {words('fences.missing')}", "dim")
        lines.append([Span(fit(f" {safe(rung.name)}", 16), "strong"), state])
        why = rung.why.strip()
        lines += [[Span(" " * 16), Span(line, "dim")] for line in safe_lines(why) if why]
    bounded = words("fences.bounded" if ladder.bounded_as_one else "fences.not_bounded")
    return [*lines, [], [Span(" "), Span(bounded, "dim")]]
