"""The boards of a team: which there are, whose each is, and its file (BOARDS-2.1, BOARDS-2.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Self, TypeAlias

from watchroom.checkout.layout import place
from watchroom.errors import InvalidName
from watchroom.rules.config import Agent, Config, board_owner
from watchroom.validation import BOTTOM_BOARD, GLOBAL_BOARD, MID_BOARD, TOP_BOARD, check_board_name

BoardKind: TypeAlias = Literal["global", "top", "mid", "bottom"]


@dataclass(frozen=True, slots=True)
class Board:
    """A board of the team.

    ``kind`` is its layer. ``owner`` is the role of a mid-layer board, the agent of a bottom-layer board, and
    empty for the global and the top board.
    """

    kind: BoardKind
    owner: str = ""

    @classmethod
    def named(cls, name: str) -> Self:
        """The board called ``name``, e.g. ``global`` or ``bottom-layer-alice``.

        Raises `InvalidPath` or `InvalidAgentId` if no board can have that name.
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
        """The board that ``agent`` keeps: the top layer's, its role's, or its own."""
        if agent.layer == "top":
            return cls("top")
        return cls("mid", board_owner(agent)) if agent.layer == "mid" else cls("bottom", agent.id)

    @property
    def name(self) -> str:
        """What tools and the journal call it."""
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
        """The agents of ``config`` who own the board: a role may have several, the global board has the top
        layer."""
        if self.kind == "global":
            return tuple(agent for agent in config.agents.values() if agent.layer == "top")
        return tuple(agent for agent in config.agents.values() if Board.of(agent) == self)


def list_boards(config: Config) -> tuple[Board, ...]:
    """The boards of the team in ``config``, upper layers first: the global board, then one for each agent or
    role."""
    found = dict.fromkeys([Board("global"), Board("top"), *map(Board.of, config.agents.values())])
    return tuple(sorted(found, key=lambda board: ("global", "top", "mid", "bottom").index(board.kind)))
