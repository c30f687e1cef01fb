"""The texts of the dashboard and the command line, in a language."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, cast

from watchroom.texts import Catalogue, Language, catalogue

if TYPE_CHECKING:
    from textual.dom import DOMNode


class Worded(Protocol):
    """An app that has its texts with it."""

    words: Catalogue


def wording(language: Language) -> Catalogue:
    return catalogue(language, "watchroom_tui.texts")


def words_of(node: DOMNode) -> Catalogue:
    """The texts of the app that ``node`` is in."""
    return cast("Worded", node.app).words
