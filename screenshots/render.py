"""Convert a Textual screenshot (rich's SVG) into one with an exact grid, and that into a small PNG.

rich stretches a run of text to the number of its characters, not of its cells, which squeezes CJK, and leaves
box drawing to the font. Here each cell's text is in the middle of its own cell, and lines and blocks are
shapes. Needs rsvg-convert and the fonts Fira Code, Noto Sans CJK and DejaVu (Debian: librsvg2-bin
fonts-firacode fonts-noto-cjk fonts-dejavu-core, and fonts-symbola for emoji, because librsvg turns coloured
ones into blobs).
"""

from __future__ import annotations

import io
import re
import subprocess
from collections.abc import Iterator
from html import escape
from typing import NamedTuple
from xml.etree import ElementTree

from glyphs import shape
from PIL import Image
from rich.cells import split_graphemes

CELL_WIDTH, CELL_HEIGHT = 10, 20
"""In SVG units. Whole numbers, so that at a whole zoom every cell has the same pixels, which is sharp and
small."""

_RICH_WIDTH, _RICH_HEIGHT = 12.2, 24.4
_FONT_SIZE = CELL_WIDTH / 0.6
_BASELINE = 15
_MARGIN, _TITLE_HEIGHT = 8, 32
_SVG = "{http://www.w3.org/2000/svg}"
_FONTS = "Fira Code, DejaVu Sans Mono, Noto Sans Mono CJK SC, Noto Sans CJK SC, DejaVu Sans, Symbola"
_RULE = re.compile(r"\.terminal-\d+-(r\d+) \{ ([^}]*) \}")
_UNDERLINE = "text-decoration: underline;"
_FILL = re.compile(r"fill: (#[0-9a-f]{6})")


class Picture(NamedTuple):
    """The content of rich's SVG, in cells."""

    title: str
    columns: int
    rows: int
    ground: str
    rules: dict[str, str]
    rects: list[tuple[int, int, int, str]]
    """Row, first column, number of columns, colour."""
    texts: list[tuple[int, int, str, str]]
    """Row, first column, class, text."""


def render(svg: str, zoom: int = 2) -> bytes:
    """Return rich's SVG as an exact PNG with a palette."""
    command = ["rsvg-convert", "--format=png", f"--zoom={zoom}", "--unlimited"]
    drawn = subprocess.run(command, input=exact(svg).encode(), capture_output=True, check=True)
    packed = io.BytesIO()
    with Image.open(io.BytesIO(drawn.stdout)) as image:
        _with_palette(image.convert("RGB")).save(packed, "PNG", optimize=True)
    return packed.getvalue()


def _with_palette(image: Image.Image) -> Image.Image:
    """Return the image in its 256 most frequent colours. Backgrounds and letters are exact, edges of letters
    nearly."""
    counted = image.getcolors(image.width * image.height) or []
    frequent = [colour for _, colour in sorted(counted, reverse=True)[:256] if isinstance(colour, tuple)]
    palette = Image.new("P", (1, 1))
    palette.putpalette([channel for colour in frequent for channel in colour])
    return image.quantize(palette=palette, dither=Image.Dither.NONE)


def exact(svg: str) -> str:
    """Return rich's SVG with every cell in its exact place."""
    return _drawn(_parsed(svg))


def _parsed(svg: str) -> Picture:
    root = ElementTree.fromstring(svg)
    style = root.findtext(f"{_SVG}style") or ""
    terminal = root.find(f".//{_SVG}clipPath/{_SVG}rect")
    chrome = root.find(f"{_SVG}rect")
    if terminal is None or chrome is None:
        raise ValueError("this is no SVG of rich's")
    rects = [
        (_row(rect), _cells(rect, "x"), _cells(rect, "width"), rect.get("fill", ""))
        for rect in root.iterfind(f"{_SVG}g/{_SVG}rect")
    ]
    texts = [
        (_row(text), _cells(text, "x"), text.get("class", "").rpartition("-")[2], text.text or "")
        for text in root.iterfind(f"{_SVG}g/{_SVG}g/{_SVG}text")
    ]
    return Picture(
        title=root.findtext(f"{_SVG}text") or "",
        columns=_cells(terminal, "width"),
        rows=round(float(terminal.get("height", "0")) / _RICH_HEIGHT),
        ground=chrome.get("fill", ""),
        rules=dict(_RULE.findall(style)),
        rects=rects,
        texts=texts,
    )


def _cells(element: ElementTree.Element, name: str) -> int:
    return round(float(element.get(name, "0")) / _RICH_WIDTH)


def _row(element: ElementTree.Element) -> int:
    return int(float(element.get("y", "0")) / _RICH_HEIGHT)


def _drawn(picture: Picture) -> str:
    wide, high = picture.columns * CELL_WIDTH, picture.rows * CELL_HEIGHT
    width, height = wide + 2 * _MARGIN, high + _TITLE_HEIGHT + _MARGIN
    # Lines are drawn as shapes, because a font does not underline spaces.
    rules = "".join(f".{name} {{ {rule.replace(_UNDERLINE, '')} }}" for name, rule in picture.rules.items())
    grounds = "".join(
        f'<rect x="{column * CELL_WIDTH}" y="{row * CELL_HEIGHT}" width="{columns * CELL_WIDTH}"'
        f' height="{CELL_HEIGHT}" fill="{colour}"/>'
        for row, column, columns, colour in picture.rects
    )
    cells = "".join(part for text in picture.texts for part in _cell_parts(picture, *text))
    dots = "".join(
        f'<circle cx="{18 + n * 18}" cy="{_TITLE_HEIGHT // 2}" r="5" fill="{colour}"/>'
        for n, colour in enumerate(("#ff5f57", "#febc2e", "#28c840"))
    )
    return f"""<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}">
<style>text {{ font-family: {_FONTS}; font-size: {_FONT_SIZE:.4f}px; text-anchor: middle; }}{rules}</style>
<rect width="{width}" height="{height}" fill="{picture.ground}"/>{dots}
<text x="{width / 2:g}" y="{_TITLE_HEIGHT // 2 + 6}" fill="#8a8f98">{escape(picture.title)}</text>
<g transform="translate({_MARGIN},{_TITLE_HEIGHT})">
<g shape-rendering="crispEdges">{grounds}</g>
{cells}
</g>
</svg>"""


def _cell_parts(picture: Picture, row: int, column: int, rule: str, text: str) -> Iterator[str]:
    """Yield one element for each cell with a visible character."""
    fill = _FILL.search(picture.rules.get(rule, ""))
    colour = fill.group(1) if fill else "#ffffff"
    underlined = _UNDERLINE in picture.rules.get(rule, "")
    spans, _ = split_graphemes(text)
    for start, end, cells in spans:
        grapheme = text[start:end]
        x, y = column * CELL_WIDTH, row * CELL_HEIGHT
        column += cells
        drawn = shape(grapheme, CELL_WIDTH, CELL_HEIGHT) if len(grapheme) == 1 else None
        if drawn:
            yield f'<g transform="translate({x},{y})" fill="{colour}" stroke="{colour}"'
            yield f' stroke-width="0">{drawn}</g>'
        elif not grapheme.isspace():
            middle = x + cells * CELL_WIDTH / 2
            yield f'<text class="{rule}" x="{middle:g}" y="{y + _BASELINE}">{escape(grapheme)}</text>'
        if underlined:
            yield f'<rect x="{x}" y="{y + _BASELINE + 2}" width="{cells * CELL_WIDTH}" height="1"'
            yield f' fill="{colour}"/>'
