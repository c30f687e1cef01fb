"""The texts of the dashboard and the command line, by language."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Protocol, cast

from watchroom.texts import Catalogue, Language, catalogue

from watchroom_tui.presentation.charset import terminal_charset

if TYPE_CHECKING:
    from textual.dom import DOMNode

_CHINESE: Final = "\u4e2d"


class LocalizedApp(Protocol):
    """An app with texts, a keymap and a clock."""

    texts: Catalogue
    keymap: Mapping[str, tuple[str, ...]]

    def now(self) -> int: ...


def load_texts(language: Language) -> Catalogue:
    return catalogue(language, "watchroom_tui.texts")


def readable_language(language: Language) -> Language:
    """Return ``language``, or English if the terminal cannot show it."""
    charset = terminal_charset()
    return language if charset is None or charset.can_show(_CHINESE) else "en"


def now_of(node: DOMNode) -> int:
    """Return the moment shown by the app of ``node``, in nanoseconds since the epoch."""
    return cast("LocalizedApp", node.app).now()


def keymap_of(node: DOMNode) -> Mapping[str, tuple[str, ...]]:
    """Return the custom keys of the person, by action id."""
    return cast("LocalizedApp", node.app).keymap


def texts_of(node: DOMNode) -> Catalogue:
    """Return the texts of the app of ``node``."""
    return cast("LocalizedApp", node.app).texts
