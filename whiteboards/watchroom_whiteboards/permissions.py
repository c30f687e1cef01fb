"""Which actor can read, write and append to which board (BOARDS-4). Pure.

BOARDS-4.1 (the matrix) and BOARDS-4.2 (the code) overlap. If they differ, the stricter one applies:

- A mid-layer agent reads the bottom-layer boards of agents that it supervises (matrix), not all (code).
- A mid-layer agent reads the global board (matrix) and appends signed entries to its end (code). Only the top
  layer writes into its sections.

In both, the only mid-layer board that a bottom-layer agent reads is its supervisor's. The registry names the
direct supervisor of each agent. Nobody reads the boards of a subordinate's subordinates.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from watchroom.features.config.rows import Agent, Config
from watchroom.model import HUMAN_PREFIX

from watchroom_whiteboards.boards import Board

Act: TypeAlias = Literal["read", "write", "append"]


def is_allowed(act: Act, actor: str, board: Board, config: Config) -> bool:
    """Return whether an actor has permission for a board. People have all permissions.

    - ``act``: the kind of access.
    - ``actor``: an agent's id, or ``human:NAME``.
    - ``config``: the team.
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
