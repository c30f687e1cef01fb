"""Lists the kinds of sandbox on this machine, the best first, and why one does not work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.app import ComposeResult
from watchroom.texts import Catalogue

from watchroom_tui.dialogs.base import Dialog
from watchroom_tui.formatters.columns import fit
from watchroom_tui.formatters.styled_text import Line, Span
from watchroom_tui.presentation.sanitize import sanitize, sanitize_lines
from watchroom_tui.widgets.text_pane import TextPane

if TYPE_CHECKING:
    from watchroom.platform.sandbox.probe import SandboxProbe


class SandboxDialog(Dialog):
    def __init__(self, probe: SandboxProbe) -> None:
        super().__init__()
        self._probe = probe

    def compose(self) -> ComposeResult:
        yield TextPane(title="sandbox.title", empty="empty.detail", id="detail", classes="pane")

    def on_mount(self) -> None:
        texts = self.dashboard.texts
        title = f"{texts('sandbox.title')} · {texts('help.close')}"
        self.query_one(TextPane).show_notice("sandbox", sandbox_lines(self._probe, texts), title=title)


def sandbox_text(probe: SandboxProbe, texts: Catalogue) -> str:
    """The best sandbox in a few texts."""
    best = probe.best
    return texts("sandbox.best", name=sanitize(best.name)) if best else texts("sandbox.none")


def sandbox_lines(probe: SandboxProbe, texts: Catalogue) -> list[Line]:
    best = probe.best
    said = texts("sandbox.about") if best else texts("sandbox.refused")
    lines: list[Line] = [[], [Span(" "), Span(said, "" if best else "warning")], []]
    for result in probe.results:
        if result.works:
            state = Span(f"✓ {texts('sandbox.works')}", "ok")
        elif result.installed:
            state = Span(f"✖ {texts('sandbox.broken')}", "error")
        else:
            state = Span(f"– {texts('sandbox.missing')}", "dim")
        lines.append([Span(fit(f" {sanitize(result.name)}", 16), "strong"), state])
        why = result.reason.strip()
        lines += [[Span(" " * 16), Span(line, "dim")] for line in sanitize_lines(why) if why]
    bounded = texts("sandbox.bounded" if probe.limits_processes_together else "sandbox.not_bounded")
    return [*lines, [], [Span(" "), Span(bounded, "dim")]]
