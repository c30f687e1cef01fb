"""The base of widgets that draw their own lines. Stylesheets define the colours by style name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Protocol, cast

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.content import Content
from textual.dom import DOMNode
from textual.filter import ANSIToTruecolor, DimFilter, LineFilter, NoColor
from textual.geometry import Region, Size
from textual.strip import Strip
from textual.widget import Widget

from watchroom_tui.formatters.actor_class import AGENT_COLOURS, AgentColours
from watchroom_tui.formatters.styled_text import Line
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.textual_compat import attach, clear_dirty_regions, has_dirty_regions

STYLE_NAMES: Final = (
    *("dim", "strong", "title", "key", "ok", "warning", "error", "accent", "human", "outside", "system"),
    *(
        "added",
        "removed",
        "added-line",
        "removed-line",
        "added-word",
        "removed-word",
        "missing-line",
        "header-line",
        "cursor",
        "cursor-idle",
        "flash",
        "number",
        "past",
    ),
    *("em", "strike", "code", "block", "link", "target", "html", "quote", "quote-bar", "rule", "bullet"),
    *("heading", "heading-3", "heading-4", "heading-6", "match", "match-here"),
    *(f"syntax-{name}" for name in ("comment", "keyword", "string", "number", "name")),
    *(f"agent-{number}" for number in range(AGENT_COLOURS)),
    *(f"agent-{number}-new" for number in range(AGENT_COLOURS)),
)
NOTHING_FOR_US: Final = (ANSIToTruecolor, DimFilter)


class LineWidget(Widget):
    """A widget that draws its own lines from spans."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id, classes=classes)
        self._mixed: dict[tuple[str, str], Style] = {}
        self._plain: Style | None = None
        self._sides: tuple[Segment, Segment] | None = None
        self._drawing_in: Size | None = None
        self._painted: tuple[tuple[Region, Size], list[Strip]] | None = None

    def strip(self, line: Line, width: int, under: str = "") -> Strip:
        """Return ``line`` in exactly ``width`` cells, on the background of the style ``under``."""
        segments = []
        used = 0
        for text, style in line:
            segments.append(Segment(text, self._style(style, under)))
            used += len(text) if text.isascii() else cell_len(text)
        if used > width:
            return Strip(segments, used).adjust_cell_length(width)
        if used < width:
            segments.append(Segment(" " * (width - used), self._style("", under)))
        return Strip(segments, width)

    @property
    def content_area(self) -> Size:
        """The cells for lines, without the scrollbars."""
        # Textual computes it on each access, which is too slow for every line.
        return self._drawing_in or self.scrollable_content_region.size

    def render_lines(self, crop: Region) -> list[Strip]:
        """Draw the frame with Textual. Draw the lines without Textual's handling of unused styles.

        This halves the cost when hundreds of rows arrive.
        """
        part = (crop, self.outer_size)
        if any(not isinstance(each, NoColor) for each in self.get_line_filters()):
            # A dialog above this widget dims it.
            self._painted = None
            return super().render_lines(crop)
        if self._painted is not None and self._painted[0] == part and self._is_as_painted():
            return self._painted[1]
        clear_dirty_regions(self)
        strips = self._render_crop(crop)
        self._painted = (part, strips)
        return strips

    def _is_as_painted(self) -> bool:
        """Return whether nothing changed since the last paint. Textual requests all lines of every widget of
        the screen on each paint."""
        return not has_dirty_regions(self)

    def _render_crop(self, crop: Region) -> list[Strip]:
        top, right, bottom, left = self.styles.gutter
        width, height = self.outer_size
        if max(left, right) > 1:
            return super().render_lines(crop)
        strips: list[Strip] = []
        self._drawing_in = self.content_area
        for y in crop.line_range:
            if top <= y < height - bottom:
                strips.append(self._between_sides(self.render_line(y - top), width, bool(left), bool(right)))
            else:
                strips.extend(super().render_lines(Region(0, y, width, 1)))
        self._drawing_in = None
        if crop.column_span != (0, width):
            return [strip.crop(*crop.column_span) for strip in strips]
        return strips

    def _between_sides(self, strip: Strip, width: int, has_left: bool, has_right: bool) -> Strip:
        """Add the sides of the frame. A scrollbar covers the free cells."""
        free = width - has_left - has_right - strip.cell_length
        if not (has_left or has_right or free):
            return strip
        if self._sides is None:
            drawn = list(super().render_lines(Region(0, self.styles.gutter.top, width, 1))[0])
            self._sides = (drawn[0], drawn[-1])
        segments = [self._sides[0], *strip] if has_left else [*strip]
        if free:
            segments.append(Segment(" " * free, self._style("", "")))
        if has_right:
            segments.append(self._sides[1])
        return Strip(segments, width)

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Return the line filters without the filters for 16 colours and dim text, because lines have
        neither."""
        return [each for each in super().get_line_filters() if not isinstance(each, NOTHING_FOR_US)]

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._mixed.clear()
        self._plain = self._sides = self._painted = None

    def _style(self, name: str, under: str) -> Style:
        style = self._mixed.get((name, under))
        if style is None:
            style = self._mixed[name, under] = self._mix(name, under)
        return style

    def _mix(self, name: str, under: str) -> Style:
        if self._plain is None:
            self._plain = self.rich_style
        style = self._plain
        for each in (*under.split(), *name.split()):
            style += style_named(self, each)
        if self.app.no_color or (self.app.native_ansi_color and under == "cursor"):
            # Without colours the reversed cursor line is one stripe. Otherwise each colour would be a
            # background.
            return style.without_color
        return style


class StyleRegistry(Widget):
    """An invisible widget that computes each named style on first use.

    Textual would match component classes against every rule before the first paint, and again with each
    change of the screen's classes.
    """

    DEFAULT_CSS = "StyleRegistry { display: none; }"

    def notify_style_update(self) -> None:
        super().notify_style_update()
        styled_app(self).line_styles.clear()

    def style_of(self, name: str) -> Style:
        """Return the stylesheets' style for ``line--NAME``. Raise KeyError if the name is unknown."""
        if name not in STYLE_NAMES:
            raise KeyError(name)
        node = DOMNode(classes=f"line--{name}")
        # As Textual does for component classes: attach a node with the class below this widget.
        attach(node, self)
        self.app.stylesheet.apply(node, animate=False)
        return node.styles.partial_rich_style


class StyledApp(Protocol):
    """An app that caches styles, and has a `StyleRegistry` in its lowest screen."""

    line_styles: dict[str, Style]
    agent_colours: AgentColours

    @property
    def screen_stack(self) -> Sequence[Widget]: ...


def styled_app(widget: Widget) -> StyledApp:
    return cast("StyledApp", widget.app)


def style_named(widget: Widget, name: str) -> Style:
    """Return the style called ``name`` in the current theme."""
    app = styled_app(widget)
    style = app.line_styles.get(name)
    if style is None:
        palette = app.screen_stack[0].query_one(StyleRegistry)
        style = app.line_styles[name] = palette.style_of(app.agent_colours.find_class(name))
    return style


def assign_colours(app: StyledApp, agents: Iterable[str]) -> None:
    """Assign colours to ``agents``, ids in the order of registration. Draw the widgets again if a colour
    changed."""
    if app.agent_colours.assign(agents):
        app.line_styles.clear()
        for widget in (each for screen in app.screen_stack for each in screen.query(LineWidget)):
            widget.notify_style_update()
            widget.refresh()


def content(text: str) -> Content:
    """Return ``text`` as widget content: sanitized, without interpreting markup."""
    return Content(sanitize(text))
