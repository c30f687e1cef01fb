"""Who may do what with which board (BOARDS-4). Pure.

BOARDS-4.1 (the matrix) and BOARDS-4.2 overlap. Where they differ the stricter holds:

- A mid-layer agent reads the bottom-layer boards of those whom it supervises (matrix), not all (code).
- To the global board a mid-layer agent may only append: the matrix lets it read, the code's special rule adds
  the appending. An entry goes to the end, signed; into a section of its own choice only the top layer writes.

In both, a bottom-layer agent reads no other mid-layer board than its supervisor's. Whoever supervises is told
by the registry, one step up: nobody inherits the boards of a subordinate's subordinates.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from watchroom.model import HUMAN_PREFIX
from watchroom.rules.config import Agent, Config

from watchroom_whiteboards.boards import Board

Act: TypeAlias = Literal["read", "write", "append"]


def is_allowed(act: Act, actor: str, board: Board, config: Config) -> bool:
    """Whether ``actor`` (an agent's id, or ``human:NAME``) may do ``act`` with ``board``, by the team in
    ``config``.

    People may do everything.
    """
    if actor.startswith(HUMAN_PREFIX):
        return True
    agent = config.agents.get(actor)
    if agent is None:
        return False
    if act == "read":
        return _may_read(agent, board, config)
    if act == "append" and board.kind == "global":
        return agent.layer in ("top", "mid")
    return _may_write(agent, board)


def _may_read(agent: Agent, board: Board, config: Config) -> bool:
    if board.kind in ("global", "top") or agent.layer == "top":
        return True
    if board.kind == "mid":
        supervisor = config.agents.get(agent.supervisor)
        return agent.layer == "mid" or (supervisor is not None and Board.of(supervisor) == board)
    if agent.layer == "mid":
        owner = config.agents.get(board.owner)
        return owner is not None and owner.layer == "bottom" and owner.supervisor == agent.id
    return Board.of(agent) == board


def _may_write(agent: Agent, board: Board) -> bool:
    if board.kind == "global":
        return agent.layer == "top"
    return Board.of(agent) == board
