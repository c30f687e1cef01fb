"""An agent's whole life: it settles in, plays its part in the scenes, then works on for ever."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from watchroom.rules.config import Agent
from watchroom.simulation import board, editing, handoffs, keeping, mistakes, people, private, shared
from watchroom.simulation.desk import STORY_TEAM, AgentContext
from watchroom.simulation.dispute import dispute
from watchroom.simulation.roster import squad_of
from watchroom.simulation.steps import Dropped, Pause, Script, Task, Turn, entries_in, text_in
from watchroom.simulation.story import scene


class _Act(NamedTuple):
    """What an agent may do next, under the name of its task, so often."""

    script: Callable[[AgentContext], Script[None]]
    task: str
    weight: float


_ROLL_BACK: Final = _Act(shared.roll_back, "roll_back", 1.5)
_BOARD: Final = _Act(board.visit, "board", 4)
_GLOBAL: Final = _Act(keeping.tend_global, "global_board", 3)
_ACTS: Final = (
    _Act(shared.update, "update", 34),
    _Act(editing.edit, "edit", 20),
    _Act(private.grow_note, "note", 17),
    _Act(handoffs.inbox, "inbox", 14),
    _Act(handoffs.deliver, "deliver", 8),
    _Act(private.look_around, "look_around", 8),
    _Act(shared.browse, "browse", 5),
    _Act(private.scratch, "scratch", 6),
    _BOARD,
    _Act(keeping.keep, "own_board", 8),
    _GLOBAL,
    _Act(keeping.read_one, "read_board", 2.5),
    _ROLL_BACK,
    _Act(mistakes.make_one, "tidy", 1.8),
)


def life(me: Agent, team: Sequence[Agent], seed: int, *, people_help: bool = False) -> Script[None]:
    """The script of ``me`` in ``team``. The same seed and the same results give the same steps.

    With ``people_help`` it asks people when it is its turn to, and takes nothing back without them.
    """
    desk = AgentContext(me, team, seed)
    yield Task("settle")
    # So that a large team does not start in step.
    yield Pause(desk.rng.uniform(0.0, 1.5))
    yield from _until_dropped(private.settle_in(desk))
    # Whoever has a part in the scenes plays that first; numbered squads come to their boards in time.
    plays = me.id in STORY_TEAM
    if not plays and squad_of(me.id) == 1:
        yield from _until_dropped(keeping.opening(desk))
    yield from _until_dropped(scene(desk))
    yield from _until_dropped(dispute(desk))
    if plays:
        yield from _until_dropped(keeping.opening(desk))
    without = {_ROLL_BACK} if people_help else set[_Act]()
    if me.id in board.MEMBERS:
        if not board.goes_first(desk):
            # So that mostly there is a board when they come.
            yield Task("note")
            yield from _until_dropped(private.grow_note(desk))
        yield Task(_BOARD.task)
        yield from _until_dropped(board.visit(desk))
    else:
        without.add(_BOARD)
    acts = [act for act in _ACTS if act not in without]
    weights = [_weight(desk, act) for act in acts]
    kinds = people.kinds_for(desk) if people_help else ()
    while True:
        news = yield Turn(kinds)
        for said in entries_in(news, "said"):
            yield from _until_dropped(people.heed(desk, text_in(said, "by"), text_in(said, "text")))
        wanted = text_in(news, "asks")
        if wanted:
            yield from _until_dropped(people.ask(desk, wanted))
            continue
        desk.turn += 1
        act = desk.rng.choices(acts, weights)[0]
        yield Task(act.task)
        yield from _until_dropped(act.script(desk))


def _weight(desk: AgentContext, act: _Act) -> float:
    if act.task in ("update", "edit"):
        return act.weight / desk.crowding
    return act.weight * keeping.tends_global(desk) if act is _GLOBAL else act.weight


def _until_dropped(script: Script[None]) -> Script[None]:
    try:
        yield from script
    except Dropped:
        return
