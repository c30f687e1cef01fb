"""The boards of a team: their names, owners and files (BOARDS-2.1, BOARDS-2.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Self, TypeAlias

from watchroom.errors import InvalidName
from watchroom.features.config.rows import Agent, Config, board_owner
from watchroom.kernel.checkout.layout import place
from watchroom.validation import BOTTOM_BOARD, GLOBAL_BOARD, MID_BOARD, TOP_BOARD, check_board_name

BoardKind: TypeAlias = Literal["global", "top", "mid", "bottom"]


@dataclass(frozen=True, slots=True)
class Board:
    """A board of the team.

    - ``kind``: its layer.
    - ``owner``: the role of a mid-layer board, or the agent of a bottom-layer board. Empty for the global and
      the top-layer board.
    """

    kind: BoardKind
    owner: str = ""

    @classmethod
    def named(cls, name: str) -> Self:
        """Return the board called ``name``, e.g. ``global`` or ``bottom-layer-alice``.

        Raise `InvalidPath` or `InvalidAgentId` if no board can have that name.
        """
        name = check_board_name(name)
        if name == GLOBAL_BOARD:
            return cls("global")
        if name == TOP_BOARD:
            return cls("top")
        if name.startswith(MID_BOARD):
            return cls("mid", name.removeprefix(MID_BOARD))
        return cls("bottom", name.removeprefix(BOTTOM_BOARD))

    @classmethod
    def find(cls, name: str) -> Self | None:
        """Return the board called ``name``, None if no board can have that name."""
        try:
            return cls.named(name)
        except InvalidName:
            return None

    @classmethod
    def of(cls, agent: Agent) -> Self:
        """Return the board of ``agent``: the top-layer board, its role's board, or its own board."""
        if agent.layer == "top":
            return cls("top")
        return cls("mid", board_owner(agent)) if agent.layer == "mid" else cls("bottom", agent.id)

    @property
    def name(self) -> str:
        """The board's name in tools and in the journal."""
        if self.kind == "global":
            return GLOBAL_BOARD
        if self.kind == "top":
            return TOP_BOARD
        return (MID_BOARD if self.kind == "mid" else BOTTOM_BOARD) + self.owner

    @property
    def path(self) -> str:
        """The board's file, relative to the workspace."""
        return "/".join(place("board", self.name))

    def owners(self, config: Config) -> tuple[Agent, ...]:
        """Return the agents of ``config`` that own the board. A role can have several agents. The top layer
        owns the global board."""
        if self.kind == "global":
            return tuple(agent for agent in config.agents.values() if agent.layer == "top")
        return tuple(agent for agent in config.agents.values() if Board.of(agent) == self)


def list_boards(config: Config) -> tuple[Board, ...]:
    """Return the boards of the team in ``config``, upper layers first: the global board, the top-layer board,
    and one for each lower agent or role."""
    found = dict.fromkeys([Board("global"), Board("top"), *map(Board.of, config.agents.values())])
    return tuple(sorted(found, key=lambda board: ("global", "top", "mid", "bottom").index(board.kind)))
