"""Layered whiteboards of a team (BOARDS): permissions, templates, sections and items.

`Whiteboards` reads and writes boards for an actor, and `tools.py` has the tools. A `Board` has the name and
the owner of a board, `is_allowed` decides permissions, and `parse_board` returns the `BoardItems` of a text.
Versions and locks are in the core (`watchroom.features.boards`). Start with `Whiteboards`.
"""

from typing import TYPE_CHECKING

from watchroom.platform.deferred_imports import defer_imports

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

# Deferred, because rendering Markdown needs no boards, and listing boards needs no parser.
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
