"""Layered whiteboards: the boards of a team, who may do what with them, and what they mean (spec 3)."""

from importlib import import_module
from typing import TYPE_CHECKING

from watchroom_whiteboards.boards import Board, BoardKind, boards_of, role_name
from watchroom_whiteboards.permissions import Act, may

if TYPE_CHECKING:
    from watchroom_whiteboards.whiteboards import BoardText, Whiteboards

__all__ = ["Act", "Board", "BoardKind", "BoardText", "Whiteboards", "boards_of", "may", "role_name"]

_WITH_MARKDOWN = ("BoardText", "Whiteboards")


def __getattr__(name: str) -> object:
    # What reads Markdown is slow to load: whoever does not ask for it does without.
    if name not in _WITH_MARKDOWN:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.whiteboards"), name)
