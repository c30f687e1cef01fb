"""Layered whiteboards: the boards of a team, who may do what with them, and what they mean (spec 3)."""

from watchroom_whiteboards.boards import Board, BoardKind, boards_of, role_name
from watchroom_whiteboards.permissions import Act, may
from watchroom_whiteboards.whiteboards import BoardText, Whiteboards

__all__ = ["Act", "Board", "BoardKind", "BoardText", "Whiteboards", "boards_of", "may", "role_name"]
