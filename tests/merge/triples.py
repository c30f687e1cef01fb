"""Triples of texts for merges: a base, and two sides made from it."""

from __future__ import annotations

import random
from typing import Final, NamedTuple

ALPHABETS: Final = (
    ["a\n", "b\n", "c\n", "d\n"],
    ["\n", "x\n", "y y\n"],
    ["港口\n", "吞吐量 12 %\n", "e\u0301\n", "\u2028\n", "\x0c\n"],
    ["a\r\n", "b\r\n", "a\n", "\r\n"],
)


class Triple(NamedTuple):
    base: str
    current: str
    incoming: str


def triple(seed: int) -> Triple:
    """Return a triple; equal seeds give equal triples."""
    chance = random.Random(seed)
    lines = chance.choice(ALPHABETS)
    base = [chance.choice(lines) for _ in range(chance.randrange(14))]
    sides = [base, _changed(base, lines, chance), _changed(base, lines, chance)]
    if chance.random() < 0.1:
        sides[0] = []
    return Triple(*(_ended("".join(side), chance) for side in sides))


def _changed(base: list[str], lines: list[str], chance: random.Random) -> list[str]:
    side = list(base)
    for _ in range(chance.randrange(4)):
        at = chance.randrange(len(side) + 1)
        span = chance.randrange(4)
        side[at : at + chance.randrange(3)] = [chance.choice(lines) for _ in range(span)]
    return side


def _ended(text: str, chance: random.Random) -> str:
    return text.removesuffix("\n") if chance.random() < 0.2 else text
