"""The base of all widgets that draw their own lines. Every colour stands in a stylesheet, by name."""

from __future__ import annotations

from typing import Final

from rich.segment import Segment
from rich.style import Style
from textual.content import Content
from textual.strip import Strip
from textual.widget import Widget

from watchroom_tui.safe import safe
from watchroom_tui.spans import Line
from watchroom_tui.theme import AGENT_COLOURS

STYLE_NAMES: Final = (
    *("dim", "strong", "title", "key", "ok", "warning", "error", "accent", "human", "outside", "system"),
    *(
        "added",
        "removed",
        "added-line",
        "removed-line",
        "header-line",
        "cursor",
        "cursor-idle",
        "flash",
        "number",
    ),
    *(f"agent-{number}" for number in range(AGENT_COLOURS)),
)
COMPONENTS: Final = frozenset(f"line--{name}" for name in STYLE_NAMES)


class Drawn(Widget):
    """A widget that draws its own lines out of spans."""

    COMPONENT_CLASSES = COMPONENTS  # type: ignore[assignment]  # textual only reads it

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id, classes=classes)
        self._styles: dict[str, Style] = {}
        self._strips: dict[tuple[object, ...], Strip] = {}

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._styles.clear()
        self._strips.clear()

    def style_named(self, name: str) -> Style:
        style = self._styles.get(name)
        if style is None:
            style = self.get_component_rich_style(f"line--{name}", partial=True) if name else self.rich_style
            self._styles[name] = style
        return style

    def strip(self, line: Line, width: int, under: str = "") -> Strip:
        """``line`` in exactly ``width`` cells, on the background of the style ``under``."""
        key = (tuple(line), width, under)
        strip = self._strips.get(key)
        if strip is None:
            base = self.rich_style + self.style_named(under) if under else self.rich_style
            segments = [
                Segment(span.text, base + self.style_named(span.style) if span.style else base)
                for span in line
            ]
            strip = Strip(segments).adjust_cell_length(width, base)
            if len(self._strips) > 1000:
                self._strips.clear()
            self._strips[key] = strip
        return strip


def content(text: str) -> Content:
    """``text`` as something a widget takes as it is: made safe, and never read as markup."""
    return Content(safe(text))
