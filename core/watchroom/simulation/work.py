"""An agent's whole life: it settles in, plays its part in the two scenes, then works on for ever."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from watchroom.simulation import handoffs, mistakes, private, shared
from watchroom.simulation.desk import Desk
from watchroom.simulation.dispute import dispute
from watchroom.simulation.steps import Pause, Script
from watchroom.simulation.story import scene

_ACTS: Final[tuple[tuple[Callable[[Desk], Script[None]], float], ...]] = (
    (shared.update, 36),
    (private.grow_note, 17),
    (handoffs.inbox, 14),
    (handoffs.deliver, 8),
    (private.look_around, 8),
    (shared.browse, 5),
    (private.scratch, 6),
    (shared.roll_back, 1.5),
    (mistakes.make_one, 1.8),
)


def life(me: str, team: Sequence[str], seed: int) -> Script[None]:
    """The script of agent ``me`` in ``team``. The same seed and the same results give the same steps."""
    desk = Desk(me, team, seed)
    acts = [act for act, _ in _ACTS]
    weights = [weight / desk.crowding if act is shared.update else weight for act, weight in _ACTS]
    # So that a large team does not start in step.
    yield Pause(desk.rng.uniform(0.0, 1.5))
    yield from private.settle_in(desk)
    yield from scene(desk)
    yield from dispute(desk)
    while True:
        desk.turn += 1
        yield from desk.rng.choices(acts, weights)[0](desk)
