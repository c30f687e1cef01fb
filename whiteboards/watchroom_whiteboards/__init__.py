"""Layered whiteboards: which boards there are and where they lie (spec 3 §2)."""

from watchroom_whiteboards.boards import Board, BoardKind

__all__ = ["Board", "BoardKind"]
