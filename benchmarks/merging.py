"""Texts to merge: a short and a long one."""

from __future__ import annotations

from typing import NamedTuple

_KINDS = ("conflict", "current", "conflict", "incoming", "conflict")
"""The sides that change the regions, in turn."""


class Size(NamedTuple):
    lines: int
    regions: int

    @property
    def name(self) -> str:
        return f"{self.lines:,} lines"


SHORT, LONG = Size(100, 10), Size(10_000, 200)


def make_texts(size: Size) -> tuple[str, str, str]:
    """Return the base, and the texts of two sides."""
    base = [
        [f"line {n} of the report, about as long as a line of text mostly is\n"] for n in range(size.lines)
    ]
    current, incoming = base.copy(), base.copy()
    apart = size.lines // size.regions
    for region in range(size.regions):
        at = region * apart + apart // 2
        # One to three lines in place of one.
        count = region % 3 + 1
        kind = _KINDS[region % len(_KINDS)]
        if kind != "incoming":
            current[at] = [f"line {at} as it stands, {n} of the report\n" for n in range(count)]
        if kind != "current":
            incoming[at] = [f"line {at} as it comes in, {n} of the report\n" for n in range(count)]
    return _joined(base), _joined(current), _joined(incoming)


def _joined(parts: list[list[str]]) -> str:
    return "".join(line for part in parts for line in part)
