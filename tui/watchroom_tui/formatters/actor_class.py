"""The component class that colours an actor, and which colour each agent has. Apart from the themes, so that
commands do without Textual."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable
from typing import Final, Literal

AGENT_COLOURS: Final = 12
"""So many colours of agents does each theme have."""

_DISTINCT: Final = (3, 6, AGENT_COLOURS)
"""So many of them differ in a light and a dark terminal of 16 colours, and in any other: each of these
numbers divides the next."""


class AgentColours:
    """Which colour each agent has: none that another one has while there are fewer agents than colours.

    An agent keeps what it was given. It depends on its id and on those that are registered before it, so
    that every view and every earlier moment show the same, and so does another run, unless one of those was
    removed from the configuration in between.
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._uses = {distinct: Counter[int]() for distinct in _DISTINCT}

    def assign(self, agents: Iterable[str]) -> bool:
        """Give a colour to those of ``agents``, ids in the order of their registration, that have none;
        whether one of them got another than `number_of` gave before."""
        before = {agent: self.number_of(agent) for agent in agents if agent not in self._numbers}
        for agent in before:
            number = min(range(AGENT_COLOURS), key=lambda each: self._rank(each, _preferred(agent)))
            self._numbers[agent] = number
            for distinct, uses in self._uses.items():
                uses[number % distinct] += 1
        return any(self._numbers[agent] != number for agent, number in before.items())

    def number_of(self, agent: str) -> int:
        """The number of the colour of ``agent``, counted from 0: of one that is not registered, which its id
        alone decides."""
        return self._numbers.get(agent, _preferred(agent))

    def _rank(self, number: int, preferred: int) -> tuple[int, ...]:
        """How little speaks for a colour: how often it is taken, then how far it is from ``preferred``."""
        uses = (self._uses[distinct][number % distinct] for distinct in _DISTINCT)
        return (*uses, (number - preferred) % AGENT_COLOURS)

    def find_class(self, name: str) -> str:
        """The component class for a style that `agent_class` names; any other name as it is."""
        agent, is_agent, suffix = name.rpartition(":agent")
        return f"agent-{self.number_of(agent)}{suffix}" if is_agent else name


def agent_class(actor: str, state: Literal["", "-new"] = "") -> str:
    """The style that colours an actor: of an agent, the one that its id stands for in `AgentColours`;
    with ``state``, where its text is new."""
    if actor.startswith("human:"):
        return "human"
    if actor in ("outside", "system"):
        return actor
    # Styles are written one after the other with blanks between them.
    return f"{actor}:agent{state}" if actor.split() == [actor] else f"agent-{_preferred(actor)}{state}"


def _preferred(agent: str) -> int:
    return zlib.crc32(agent.encode()) % AGENT_COLOURS
