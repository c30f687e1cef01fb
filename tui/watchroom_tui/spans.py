"""Pieces of a line: text with the name of its style. The text is safe already (`watchroom_tui.safe`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias


class Span(NamedTuple):
    """A piece of a line. ``style`` names a component class without its prefix; empty: plain."""

    text: str
    style: str = ""


Line: TypeAlias = Sequence[Span]
