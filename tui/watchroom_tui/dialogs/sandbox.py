"""The kinds of sandbox on this machine, the best first, and the reason for each kind that does not work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from watchroom.texts import Catalogue

from watchroom_tui.dialogs.base import LinesDialog
from watchroom_tui.formatters.columns import fit
from watchroom_tui.formatters.styled_text import Line, Span
from watchroom_tui.presentation.sanitize import sanitize, sanitize_lines

if TYPE_CHECKING:
    from watchroom.platform.sandbox.probe import SandboxProbe


class SandboxDialog(LinesDialog):
    TITLE_KEY = "sandbox.title"

    def __init__(self, probe: SandboxProbe) -> None:
        super().__init__()
        self._probe = probe

    def on_mount(self) -> None:
        self.show_lines(sandbox_lines(self._probe, self.dashboard.texts))


def sandbox_text(probe: SandboxProbe, texts: Catalogue) -> str:
    """Return the displayed name of the best sandbox."""
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
