"""The permissions of actors to read, write and append to boards (BOARDS-4). Pure.

BOARDS-4.1 (the matrix) and BOARDS-4.2 (the code) overlap. If they differ, the stricter rule applies:

- A mid-layer agent can read the bottom-layer boards of agents that it supervises (matrix), not all boards
  (code).
- A mid-layer agent can read the global board (matrix) and append signed entries to its end (code). Only the
  top layer can write into its sections.

In both, a bottom-layer agent can read only one mid-layer board: its supervisor's. The registry has the direct
supervisor of each agent. No agent can read the boards of a subordinate's subordinates.
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
