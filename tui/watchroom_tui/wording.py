"""The dashboard's texts, in the language that its app was made with."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from textual.app import App
from watchroom.texts import Catalogue, Language, catalogue

if TYPE_CHECKING:
    from textual.dom import DOMNode


class WordedApp(App[None]):
    """An app that has its texts with it."""

    def __init__(self, language: Language) -> None:
        super().__init__()
        self.words = wording(language)


def wording(language: Language) -> Catalogue:
    return catalogue(language, "watchroom_tui.texts")


def words_of(node: DOMNode) -> Catalogue:
    """The texts of the app that ``node`` is in."""
    return cast("WordedApp", node.app).words
