"""The boards of a team as a tree, with their owners and locks. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from watchroom.features.boards.view import BoardView
from watchroom.features.config.rows import Config
from watchroom.features.overview.model import Model
from watchroom.kernel.rules.details import lease_end
from watchroom.model import Row
from watchroom_whiteboards import Board, list_boards


class BoardItem(NamedTuple):
    """A board and its place in the tree.

    - ``board``: None for a name that is invalid for a board. Only rows that bypass the tools have such names.
    - ``guides``: the lines that lead to the board.
    - ``view``: None if the board was never written.
    - ``lease``: the row of the board's lock. The lock may have expired.
    """

    name: str
    board: Board | None
    guides: str
    owners: tuple[str, ...]
    view: BoardView | None
    lease: Row | None
    conflicts: int

    @property
    def version(self) -> int:
        return (self.view.head.version or 0) if self.view else 0

    def holder(self, now: int) -> str:
        """Return the holder of the board's lock at ``now`` (nanoseconds since the epoch), empty if the lock
        is free."""
        return self.lease.actor if self.lease and lease_end(self.lease) > now else ""


def board_config(model: Model) -> Config:
    """Return the team at the moment of the model. The model does not contain the language."""
    return Config().with_agents(view.agent for view in model.agents)


def board_tree(model: Model) -> tuple[BoardItem, ...]:
    """Return all boards of the team and all written boards, parents first. Names that are invalid for boards
    come last."""
    config = board_config(model)
    written = {view.name: view for view in model.boards}
    disputed = [each.path for each in model.conflicts if each.zone == "board"]
    names = dict.fromkeys([*written, *disputed])
    found = {name: Board.find(name) for name in names}
    known = dict.fromkeys([*list_boards(config), *(board for board in found.values() if board is not None)])
    below: dict[Board, list[Board]] = defaultdict(list)
    for board in known:
        if board.kind != "global":
            below[_above(board, config)].append(board)

    def item(name: str, board: Board | None, guides: str) -> BoardItem:
        has_owners = board is not None and board.kind != "global"
        return BoardItem(
            name,
            board,
            guides,
            tuple(agent.id for agent in board.owners(config)) if board is not None and has_owners else (),
            written.get(name),
            model.leases.get(name),
            disputed.count(name),
        )

    def branch(board: Board, guides: str, lead: str) -> Iterator[BoardItem]:
        yield item(board.name, board, guides)
        children = below[board]
        for index, child in enumerate(children):
            is_last = index == len(children) - 1
            yield from branch(child, lead + ("╰ " if is_last else "├ "), lead + ("  " if is_last else "│ "))

    unknown = (item(name, None, "") for name, board in found.items() if board is None)
    return (*branch(Board("global"), "", ""), *unknown)


def _above(board: Board, config: Config) -> Board:
    """Return the parent of a board: the board of its owner's supervisor."""
    if board.kind == "top":
        return Board("global")
    if board.kind == "mid":
        return Board("top")
    owner = config.agents.get(board.owner)
    supervisor = config.agents.get(owner.supervisor) if owner else None
    above = Board.of(supervisor) if supervisor else Board("global")
    return above if above.kind != "bottom" else Board("global")
