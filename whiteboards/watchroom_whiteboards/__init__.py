"""Layered whiteboards: the boards of a team, who may do what with them, and what they mean (spec 3)."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from watchroom_whiteboards.boards import Board, BoardKind, boards_of
    from watchroom_whiteboards.permissions import Act, may
    from watchroom_whiteboards.whiteboards import BoardText, Whiteboards

__all__ = ["Act", "Board", "BoardKind", "BoardText", "Whiteboards", "boards_of", "may"]

_HOMES = {
    "Act": "permissions",
    "Board": "boards",
    "BoardKind": "boards",
    "BoardText": "whiteboards",
    "Whiteboards": "whiteboards",
    "boards_of": "boards",
    "may": "permissions",
}


def __getattr__(name: str) -> object:
    # Looked up on first use: who only shows Markdown needs no boards, and who asks for boards no parser.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
