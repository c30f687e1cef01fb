"""Box drawing and block characters as shapes that fill their cell exactly, as terminals draw them.

A font's own leave gaps between lines and columns. Other characters are left to the fonts.
"""

from __future__ import annotations

import unicodedata
from functools import cache
from typing import NamedTuple

Arms = dict[str, int]
"""The thickness of the line in each direction from the middle of the cell."""

_LIGHT, _HEAVY = 1, 2
_WAYS = {
    "UP": ("UP",),
    "DOWN": ("DOWN",),
    "LEFT": ("LEFT",),
    "RIGHT": ("RIGHT",),
    "VERTICAL": ("UP", "DOWN"),
    "HORIZONTAL": ("LEFT", "RIGHT"),
}
_SHADES = {"░": 0.25, "▒": 0.5, "▓": 0.75}
_QUADRANTS = {
    "▖": "c",
    "▗": "d",
    "▘": "a",
    "▙": "acd",
    "▚": "ad",
    "▛": "abc",
    "▜": "abd",
    "▝": "b",
    "▞": "bc",
    "▟": "bcd",
}


class Box(NamedTuple):
    """A part of a cell, in eighths of its width and height from its top left corner."""

    left: int
    top: int
    right: int
    bottom: int


@cache
def shape(character: str, width: float, height: float) -> str | None:
    """Return the SVG elements that draw the character in a cell at the origin, None for other characters."""
    if character in _SHADES:
        return f'<rect width="{width:g}" height="{height:g}" fill-opacity="{_SHADES[character]}"/>'
    boxes = _boxes(character)
    if boxes:
        x, y = width / 8, height / 8
        return "".join(
            f'<rect x="{box.left * x:g}" y="{box.top * y:g}"'
            f' width="{(box.right - box.left) * x:g}" height="{(box.bottom - box.top) * y:g}"/>'
            for box in boxes
        )
    arms = _arms(character)
    if not arms:
        return None
    if "ARC" in unicodedata.name(character):
        return _arc(arms, width, height)
    return "".join(_line(way, arms, width, height) for way in arms)


def _boxes(character: str) -> list[Box]:
    code = ord(character)
    if character in _QUADRANTS:
        corners = {"a": Box(0, 0, 4, 4), "b": Box(4, 0, 8, 4), "c": Box(0, 4, 4, 8), "d": Box(4, 4, 8, 8)}
        return [corners[corner] for corner in _QUADRANTS[character]]
    if character == "▀":
        return [Box(0, 0, 8, 4)]
    if 0x2581 <= code <= 0x2588:
        return [Box(0, 8 - (code - 0x2580), 8, 8)]
    if 0x2589 <= code <= 0x258F:
        return [Box(0, 0, 0x2590 - code, 8)]
    edges = {"▐": Box(4, 0, 8, 8), "▔": Box(0, 0, 8, 1), "▕": Box(7, 0, 8, 8)}
    return [edges[character]] if character in edges else []


def _arms(character: str) -> Arms:
    """Return the arms by the character's name, such as BOX DRAWINGS DOWN HEAVY AND RIGHT UP LIGHT."""
    name = unicodedata.name(character, "")
    if not name.startswith("BOX DRAWINGS ") or {"DOUBLE", "DASH", "DIAGONAL"} & set(name.split()):
        return {}
    arms: Arms = {}
    thickness = _LIGHT
    for clause in name.removeprefix("BOX DRAWINGS ").split(" AND "):
        words = clause.split()
        if "HEAVY" in words or "LIGHT" in words:
            thickness = _HEAVY if "HEAVY" in words else _LIGHT
        for word in words:
            arms.update(dict.fromkeys(_WAYS.get(word, ()), thickness))
    return arms


def _line(way: str, arms: Arms, width: float, height: float) -> str:
    """Return a line from the cell's edge to just past its middle, so that lines meet there without a
    notch."""
    half = arms[way] / 2
    past = max(arms.values()) / 2 if len(arms) > 1 else 0
    x, y = width / 2, height / 2
    left, top, right, bottom = {
        "UP": (x - half, 0.0, x + half, y + past),
        "DOWN": (x - half, y - past, x + half, height),
        "LEFT": (0.0, y - half, x + past, y + half),
        "RIGHT": (x - past, y - half, width, y + half),
    }[way]
    return f'<rect x="{left:g}" y="{top:g}" width="{right - left:g}" height="{bottom - top:g}"/>'


def _arc(arms: Arms, width: float, height: float) -> str:
    x, y, radius = width / 2, height / 2, width / 2
    down, right = "DOWN" in arms, "RIGHT" in arms
    turn_y = y + radius if down else y - radius
    end_y, end_x = (height if down else 0), (width if right else 0)
    return (
        f'<path d="M{x:g} {end_y:g}V{turn_y:g}Q{x:g} {y:g} {end_x:g} {y:g}"'
        f' style="fill: none; stroke-width: {_LIGHT}"/>'
    )
