"""All texts are readable: the contrast of each pair of colours by WCAG 2.2 (1.4.3)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.color import Color, ColorSystem
from textual.theme import Theme
from watchroom_tui.presentation import theme

STYLES = Path(theme.__file__).parents[1]
LEAST = 4.5
NAMED = ("primary", "secondary", "accent", "foreground", "background", "surface", "panel")
STATES = ("success", "warning", "error")
LINES_LIE_ON = (
    *("background", "panel", "cursor", "cursor-idle", "added-back", "removed-back", "missing-back"),
)
"""Backgrounds of lists and texts: a pane, a bar, the cursor, a line of a difference."""
DECORATION = {"line"}
"""Frames, rules and bars beside quotations, which carry no information."""
OWN_GROUND = [(depth, each) for depth, themes in theme.THEMES.items() if depth != "16" for each in themes]
SYSTEMS = {"full": ColorSystem.TRUECOLOR, "256": ColorSystem.EIGHT_BIT}
XTERM = {
    "red": "#cd0000",
    "green": "#00cd00",
    "blue": "#0000ee",
    "magenta": "#cd00cd",
    "cyan": "#00cdcd",
    "bright_red": "#ff0000",
    "bright_green": "#00ff00",
    "bright_yellow": "#ffff00",
    "black": "#000000",
    "bright_magenta": "#ff00ff",
    "bright_cyan": "#00ffff",
}
VGA = {
    "red": "#aa0000",
    "green": "#00aa00",
    "blue": "#0000aa",
    "magenta": "#aa00aa",
    "cyan": "#00aaaa",
    "bright_red": "#ff5555",
    "bright_green": "#55ff55",
    "bright_yellow": "#ffff55",
    "black": "#000000",
    "bright_magenta": "#ff55ff",
    "bright_cyan": "#55ffff",
}
"""The 16 colours in two kinds of terminals, by default."""


def tokens(of: Theme) -> dict[str, str]:
    """Return the colours of a theme, by their names in the stylesheets."""
    return {**{name: getattr(of, name) for name in (*NAMED, *STATES)}, **of.variables}


def luminance(colour: str) -> float:
    parts = (int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5))
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def pairs() -> Iterator[tuple[str, str]]:
    """Yield the names of a text colour and its background: both from a rule, or each background of lines."""
    for file in sorted(STYLES.rglob("*.tcss")):
        for rule in re.findall(r"\{([^{}]*)", file.read_text("utf-8")):
            colour = re.search(r"(?<![-\w])color: \$([\w-]+)", rule)
            back = re.search(r"(?<![-\w])background: \$([\w-]+)", rule)
            if colour and colour[1] not in DECORATION:
                yield from ((colour[1], each) for each in ([back[1]] if back else LINES_LIE_ON))
            elif back:
                yield "foreground", back[1]


def shown(colour: str, depth: theme.ColorDepth) -> str:
    """Return the colour that a terminal shows, the nearest of 256."""
    return Color.parse(colour).downgrade(SYSTEMS[depth]).get_truecolor().hex


@pytest.mark.parametrize(
    ("depth", "of"), OWN_GROUND, ids=[f"{each.name}-{depth}" for depth, each in OWN_GROUND]
)
def test_every_text_is_readable_on_its_background(depth: theme.ColorDepth, of: Theme) -> None:
    colours = {name: shown(value, depth) for name, value in tokens(of).items()}
    found = sorted(set(pairs()))
    assert len(found) > 100
    weak = {
        f"{text} on {back}": round(contrast(colours[text], colours[back]), 2)
        for text, back in found
        if contrast(colours[text], colours[back]) < LEAST
    }
    assert weak == {}


@pytest.mark.parametrize("palette", [XTERM, VGA], ids=["xterm", "vga"])
@pytest.mark.parametrize("ground", ["#000000", "#ffffff"], ids=["dark", "light"])
def test_only_readable_colours_of_16_are_used(ground: str, palette: dict[str, str]) -> None:
    of = theme.THEMES["16"][ground == "#ffffff"]
    used = {name: value.removeprefix("ansi_") for name, value in tokens(of).items() if name not in DECORATION}
    weak = {
        name: value
        for name, value in used.items()
        if value != "default" and name != "block-cursor-text-style"
        if contrast(palette[value], ground) < LEAST
    }
    assert weak == {}


def test_the_contrast_formula_matches_the_standard() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)
