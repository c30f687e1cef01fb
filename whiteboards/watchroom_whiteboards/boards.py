"""The boards of a team: which there are, whose each is, and its file (spec 3 §2.1, §2.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Self, TypeAlias

from watchroom.checkout.layout import place
from watchroom.rules.config import Agent, Config, board_owner
from watchroom.validation import BOTTOM_BOARD, GLOBAL_BOARD, MID_BOARD, TOP_BOARD, check_board_name

BoardKind: TypeAlias = Literal["global", "top", "mid", "bottom"]


@dataclass(frozen=True, slots=True)
class Board:
    """One board. ``owner`` is the role of a mid-layer board, the agent of a bottom-layer one, else empty."""

    kind: BoardKind
    owner: str = ""

    @classmethod
    def named(cls, name: str) -> Self:
        """The board of a name. Raises `InvalidPath` or `InvalidAgentId` where no board can be named so."""
        name = check_board_name(name)
        if name == GLOBAL_BOARD:
            return cls("global")
        if name == TOP_BOARD:
            return cls("top")
        if name.startswith(MID_BOARD):
            return cls("mid", name.removeprefix(MID_BOARD))
        return cls("bottom", name.removeprefix(BOTTOM_BOARD))

    @classmethod
    def of(cls, agent: Agent) -> Self:
        """The board that an agent keeps: the top layer's, its role's, or its own."""
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
        """The agents whose board it is; of the global board the top layer. A role may have several."""
        if self.kind == "global":
            return tuple(agent for agent in config.agents.values() if agent.layer == "top")
        return tuple(agent for agent in config.agents.values() if Board.of(agent) == self)


def boards_of(config: Config) -> tuple[Board, ...]:
    """The boards that a team has, the upper layers first: each agent's, and the global one."""
    found = dict.fromkeys([Board("global"), Board("top"), *map(Board.of, config.agents.values())])
    return tuple(sorted(found, key=lambda board: ("global", "top", "mid", "bottom").index(board.kind)))
