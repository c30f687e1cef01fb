"""The base of all widgets that draw their own lines. Every colour stands in a stylesheet, by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol, cast

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

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id, classes=classes)
        self._mixed: dict[tuple[str, str], Style] = {}

    def strip(self, line: Line, width: int, under: str = "") -> Strip:
        """``line`` in exactly ``width`` cells, on the background of the style ``under``."""
        segments = [Segment(span.text, self._style(span.style, under)) for span in line]
        return Strip(segments).adjust_cell_length(width, self._style("", under))

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._mixed.clear()

    def _style(self, name: str, under: str) -> Style:
        style = self._mixed.get((name, under))
        if style is None:
            style = self.rich_style
            for each in filter(None, (under, name)):
                style += style_named(self, each)
            self._mixed[name, under] = style
        return style


class Palette(Widget):
    """Shows nothing: the one widget in which the named styles are worked out.

    Textual matches every component class of every widget against every rule, so one of these stands for all.
    """

    COMPONENT_CLASSES = COMPONENTS  # type: ignore[assignment]  # textual only reads it
    DEFAULT_CSS = "Palette { display: none; }"

    def notify_style_update(self) -> None:
        super().notify_style_update()
        styled_app(self).line_styles.clear()


class StyledApp(Protocol):
    """An app that keeps the styles that were worked out, and has a `Palette` in its lowest screen."""

    line_styles: dict[str, Style]
    screen_stack: Sequence[Widget]


def styled_app(widget: Widget) -> StyledApp:
    return cast("StyledApp", widget.app)


def style_named(widget: Widget, name: str) -> Style:
    """The style of a name, as the theme has it now."""
    app = styled_app(widget)
    style = app.line_styles.get(name)
    if style is None:
        palette = app.screen_stack[0].query_one(Palette)
        style = palette.get_component_rich_style(f"line--{name}", partial=True)
        app.line_styles[name] = style
    return style


def content(text: str) -> Content:
    """``text`` as something a widget takes as it is: made safe, and never read as markup."""
    return Content(safe(text))
