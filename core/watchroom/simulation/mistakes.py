"""What goes wrong with agents, and is refused: the room must show that too."""

from __future__ import annotations

from watchroom.simulation.desk import AgentContext
from watchroom.simulation.private import recall
from watchroom.simulation.steps import Script

_STUBBORN = 0.12
_STUBBORN_TRIES = 3


def make_one(desk: AgentContext) -> Script[None]:
    """One mistake. Most agents read the suggestion; a stubborn one tries the same again and again."""
    roll = desk.rng.random()
    if roll < 0.35:
        yield from _reach_outside(desk)
    elif roll < 0.65:
        yield from _hand_to_nobody(desk)
    elif roll < 0.9:
        missing = desk.rng.choice(desk.material.said.mistakes.missing)
        yield from desk.call("collab_read", filepath=missing)
        yield from desk.call("collab_list")
    else:
        yield from desk.call("collab_write", filepath="plan.md", content="")


def _reach_outside(desk: AgentContext) -> Script[None]:
    if not desk.others or not desk.files:
        return
    filename = desk.rng.choice(sorted(desk.files))
    content = yield from recall(desk, filename)
    tries = _STUBBORN_TRIES if desk.chance(_STUBBORN) else 1
    outside = f"../{desk.colleague()}/{filename}"
    for _ in range(tries):
        yield from desk.call(
            "save_to_my_workspace",
            filename=outside,
            content=content,
            message=desk.material.said.mistakes.outside,
        )


def _hand_to_nobody(desk: AgentContext) -> Script[None]:
    """Deliver to someone who is not here, then to someone who is."""
    if not desk.others or not desk.files:
        return
    filename = desk.rng.choice(sorted(desk.files))
    content = yield from recall(desk, filename)
    name = filename.rsplit("/", 1)[-1]
    message = desk.say("handoff", name=name.rsplit(".", 1)[0])
    for receiver in (desk.rng.choice(desk.material.said.mistakes.nobody), desk.colleague()):
        yield from desk.call(
            "handoff_file", to_agent=receiver, filename=name, content=content, message=message
        )
