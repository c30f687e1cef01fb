"""Layered whiteboards: the boards of a team, who may do what with them, and what they mean (BOARDS)."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from watchroom_whiteboards.board_parser import parse_board
    from watchroom_whiteboards.boards import Board, BoardKind, list_boards
    from watchroom_whiteboards.items import BoardItems
    from watchroom_whiteboards.permissions import Act, is_allowed
    from watchroom_whiteboards.whiteboards import BoardText, Whiteboards

__all__ = [
    "Act",
    "Board",
    "BoardItems",
    "BoardKind",
    "BoardText",
    "Whiteboards",
    "is_allowed",
    "list_boards",
    "parse_board",
]

_HOMES = {
    "Act": "permissions",
    "Board": "boards",
    "BoardItems": "items",
    "BoardKind": "boards",
    "BoardText": "whiteboards",
    "Whiteboards": "whiteboards",
    "parse_board": "board_parser",
    "list_boards": "boards",
    "is_allowed": "permissions",
}


def __getattr__(name: str) -> object:
    # Looked up on first use: who only shows Markdown needs no boards, and who asks for boards no parser.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
