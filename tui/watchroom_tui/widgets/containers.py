"""Textual's containers, as blank widgets.

Textual draws a blank widget at once. For any other, it computes every line on every paint.
"""

from __future__ import annotations

from textual import containers


class Container(containers.Container):
    """Arranges its children as its styles say."""

    BLANK = True


class Horizontal(containers.Horizontal):
    """Arranges its children from left to right."""

    BLANK = True


class Vertical(containers.Vertical):
    """Arranges its children from top to bottom."""

    BLANK = True
