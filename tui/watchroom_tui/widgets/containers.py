"""Textual's containers, of which nothing shows but what is in them.

Textual draws a blank widget at once. Of any other it works out each line whenever anything is painted.
"""

from __future__ import annotations

from textual import containers


class Container(containers.Container):
    """Lays out as its styles say."""

    BLANK = True


class Horizontal(containers.Horizontal):
    """Lays out from the left to the right."""

    BLANK = True


class Vertical(containers.Vertical):
    """Lays out from the top to the bottom."""

    BLANK = True
