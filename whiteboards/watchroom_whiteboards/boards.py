"""The boards of a team and the file of each (spec 3 §2.1, §2.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Self, TypeAlias

from watchroom.names import agent_id

BoardKind: TypeAlias = Literal["global", "top", "mid", "bottom"]


@dataclass(frozen=True, slots=True)
class Board:
    """One board. ``owner`` is the role of a mid-layer board, the agent of a bottom-layer one, else empty."""

    kind: BoardKind
    owner: str = ""

    @classmethod
    def of_role(cls, role: str) -> Self:
        """The mid-layer board of a role. Raises `InvalidAgentId`: roles follow the rules of agent ids."""
        return cls("mid", agent_id(role))

    @classmethod
    def of_agent(cls, agent: str) -> Self:
        """The bottom-layer board of an agent. Raises `InvalidAgentId`."""
        return cls("bottom", agent_id(agent))

    @property
    def path(self) -> str:
        """The board's file, relative to the workspace."""
        if self.kind == "global":
            return "global-whiteboard.md"
        if self.kind == "top":
            return "whiteboards/top-layer.md"
        return f"whiteboards/{self.kind}-layer-{self.owner}.md"
