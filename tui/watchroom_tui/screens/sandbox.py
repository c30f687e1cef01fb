"""Lists the kinds of sandbox on this machine, the best first, and why one does not work."""

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
    from watchroom.sandbox.probe import SandboxProbe


class SandboxScreen(Sheet):
    def __init__(self, probe: SandboxProbe) -> None:
        super().__init__()
        self._probe = probe

    def compose(self) -> ComposeResult:
        yield TextView(title="sandbox.title", empty="empty.detail", id="detail", classes="pane")

    def on_mount(self) -> None:
        words = self.watchroom.words
        title = f"{words('sandbox.title')} · {words('help.close')}"
        self.query_one(TextView).show_words("sandbox", sandbox_lines(self._probe, words), title=title)


def sandbox_text(probe: SandboxProbe, words: Catalogue) -> str:
    """The best sandbox in a few words."""
    best = probe.best
    return words("sandbox.best", name=safe(best.name)) if best else words("sandbox.none")


def sandbox_lines(probe: SandboxProbe, words: Catalogue) -> list[Line]:
    best = probe.best
    said = words("sandbox.about") if best else words("sandbox.refused")
    lines: list[Line] = [[], [Span(" "), Span(said, "" if best else "warning")], []]
    for result in probe.results:
        if result.works:
            state = Span(f"✓ {words('sandbox.works')}", "ok")
        elif result.installed:
            state = Span(f"✖ {words('sandbox.broken')}", "error")
        else:
            state = Span(f"– {words('sandbox.missing')}", "dim")
        lines.append([Span(fit(f" {safe(result.name)}", 16), "strong"), state])
        why = result.reason.strip()
        lines += [[Span(" " * 16), Span(line, "dim")] for line in safe_lines(why) if why]
    bounded = words("sandbox.bounded" if probe.limits_processes_together else "sandbox.not_bounded")
    return [*lines, [], [Span(" "), Span(bounded, "dim")]]
