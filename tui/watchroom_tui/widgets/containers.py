"""Textual's containers, as blank widgets.

Textual draws a blank widget at once. Every line of other widgets is computed on every paint.
"""

from __future__ import annotations

from textual import containers


class Container(containers.Container):
    """Container that arranges its children by its styles."""

    BLANK = True


class Horizontal(containers.Horizontal):
    """Container that arranges its children from left to right."""

    BLANK = True


class Vertical(containers.Vertical):
    """Container that arranges its children from top to bottom."""

    BLANK = True
