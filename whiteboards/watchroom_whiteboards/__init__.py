"""Layered whiteboards: the boards of a team, who may do what with them, and what they mean (BOARDS)."""

from typing import TYPE_CHECKING

from watchroom.deferred_imports import defer_imports

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

# Who only shows Markdown needs no boards, and who asks for boards no parser.
__getattr__ = defer_imports(
    __name__,
    {
        "board_parser": "parse_board",
        "boards": "Board BoardKind list_boards",
        "items": "BoardItems",
        "permissions": "Act is_allowed",
        "whiteboards": "BoardText Whiteboards",
    },
)
