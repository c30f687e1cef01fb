"""Whiteboards (spec 3): each agent keeps its layer's; the top layer leads the global one, the middle layer
signs entries there, and all read it."""

from __future__ import annotations

from functools import partial
from typing import Final

from watchroom.rules.config import Agent
from watchroom.simulation.desk import AgentContext
from watchroom.simulation.page import ENTRY, parts_of
from watchroom.simulation.pen import MOST_UPDATES, Kind, Pen
from watchroom.simulation.steps import Pause, Script, Task
from watchroom.simulation.whiteboard import Changes, Whiteboard, at, bodies, is_blank
from watchroom.validation import BOTTOM_BOARD, GLOBAL_BOARD, MID_BOARD, TOP_BOARD

_OPENING_STEPS: Final = 8
_HELD_STEPS: Final = 2
_DELIBERATION: Final = (1.0, 2.2)
"""So many seconds pass while the top layer holds the global board: less than a lease lasts."""

_FEW: Final = 5
"""So many of the middle layer sign as often as they like; more of them take turns."""

_LEADING: Final = 8.0
"""So many times as often as one of the middle layer signs, the top layer leads: it mostly is one agent."""

_PARTS: Final[tuple[Kind, ...]] = ("goals", "decisions", "milestones", "risks", "update_log")


def opening(desk: AgentContext) -> Script[None]:
    """The first visit, at a brisk pace, so that there is something to look at."""
    desk.rhythm.hurry(_OPENING_STEPS)
    if desk.agent.layer == "top":
        yield Task("global_board")
        yield from _set_up_global(desk)
    yield Task("own_board")
    yield from keep(desk)


def keep(desk: AgentContext) -> Script[None]:
    """Bring one's own board up to date: its tasks, what else there is to say, its log."""
    board = yield from at(desk, board_of(desk.agent))
    parts = yield from board.read()
    if parts is None:
        return
    pen = board.pen
    if is_blank(parts, "tasks"):
        yield from board.set_up(parts, _layer_changes(pen))
        return
    stands = bodies(parts)
    note = yield from board.bring_on("tasks", pen.tasks, stands.get("tasks"))
    if pen.leads and desk.chance(0.3):
        yield from board.bring_on("negotiations", pen.negotiation, stands.get("negotiations"))
    elif desk.chance(0.2):
        yield from board.bring_on("knowledge", pen.insight, stands.get("knowledge"))
    if note:
        logged = partial(pen.logged, note=note)
        yield from board.bring_on("execution_log", logged, stands.get("execution_log"))


def tend_global(desk: AgentContext) -> Script[None]:
    """What an agent does for the global board."""
    if desk.agent.layer == "top":
        yield from _lead(desk)
    else:
        yield from _sign(desk)


def tends_global(desk: AgentContext) -> float:
    """How often an agent does that: a large middle layer signs no more than a small one."""
    if desk.agent.layer == "bottom":
        return 0.0
    layer = [agent for agent in desk.team if agent.layer == desk.agent.layer]
    return _LEADING if desk.agent.layer == "top" else min(1.0, _FEW / max(1, len(layer)))


def read_one(desk: AgentContext) -> Script[None]:
    """Look at another's board, as far as one may, or at a part of the global one."""
    if desk.chance(0.5):
        board = yield from at(desk, desk.rng.choice(_near(desk)))
        yield from board.read()
    else:
        board = yield from at(desk, GLOBAL_BOARD)
        yield from board.read_section(desk.rng.choice(_PARTS))


def board_of(agent: Agent) -> str:
    """The board that an agent keeps."""
    if agent.layer == "top":
        return TOP_BOARD
    role = "-".join(agent.role.casefold().split())
    return MID_BOARD + (role or agent.id) if agent.layer == "mid" else BOTTOM_BOARD + agent.id


def _near(desk: AgentContext) -> list[str]:
    """The boards of others that an agent reads: its people's or its supervisor's, and the top layer's."""
    near = {
        "top": [agent for agent in desk.team if agent.layer != "top"],
        "mid": [agent for agent in desk.team if (agent.supervisor, agent.layer) == (desk.me, "bottom")],
        "bottom": [agent for agent in desk.team if (agent.id, agent.layer) == (desk.agent.supervisor, "mid")],
    }
    return sorted({TOP_BOARD, *map(board_of, near[desk.agent.layer])})


def _layer_changes(pen: Pen) -> Changes:
    return {
        "basics": pen.duties,
        "tasks": pen.tasks,
        "negotiations": pen.negotiation if pen.leads else pen.nothing_yet,
        "knowledge": pen.insight,
        "execution_log": partial(pen.logged, note=pen.phrases.settled),
    }


def _set_up_global(desk: AgentContext) -> Script[None]:
    """Set the global board up unless that was done; held, so that nobody signs an entry meanwhile."""
    board = yield from at(desk, GLOBAL_BOARD)
    parts = yield from board.read(hold=True)
    if parts is None or not is_blank(parts, "decisions"):
        return
    pen = board.pen
    changes: Changes = {
        "overview": pen.overview,
        "goals": pen.goals,
        "decisions": pen.decision,
        "milestones": pen.first_milestones,
        "team": pen.team,
        "risks": pen.risks,
        "update_log": partial(pen.led, note=pen.phrases.settled),
    }
    yield from board.set_up(parts, changes)


def _lead(desk: AgentContext) -> Script[None]:
    """Decide something, or go through milestones or risks and tell of it."""
    board = yield from at(desk, GLOBAL_BOARD)
    if desk.chance(0.35):
        yield from _decide(desk, board)
        return
    pen = board.pen
    kind: Kind = "milestones" if desk.chance(0.7) else "risks"
    change = pen.milestones if kind == "milestones" else pen.risks
    body = yield from board.read_section(kind)
    note = yield from board.bring_on(kind, change, body)
    if note:
        desk.rhythm.hurry(_HELD_STEPS)
        log = yield from board.read_section("update_log", hold=True)
        yield from board.bring_on("update_log", partial(pen.led, note=note), log)


def _decide(desk: AgentContext, board: Whiteboard) -> Script[None]:
    """Put a decision on record, with the board held while it is thought over."""
    desk.rhythm.hurry(_HELD_STEPS)
    body = yield from board.read_section("decisions", hold=True)
    if body is not None:
        yield Pause(desk.rng.uniform(*_DELIBERATION))
        yield from board.bring_on("decisions", board.pen.decision, body)


def _sign(desk: AgentContext) -> Script[None]:
    """Put an entry under one's name, unless so many wait for the top layer that none would read it."""
    board = yield from at(desk, GLOBAL_BOARD)
    log = yield from board.read_section("update_log")
    if log is not None and len(parts_of(log, ENTRY)) <= MOST_UPDATES:
        yield from board.sign(board.pen.update())
