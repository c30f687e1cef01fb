"""The style class of an actor, and the colour of each agent. Separate from the themes, so that commands do
not import Textual."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable
from typing import Final, Literal

AGENT_COLOURS: Final = 12
"""Colours for agents in each theme."""

_DISTINCT: Final = (3, 6, AGENT_COLOURS)
"""Number of distinct colours in a light and in a dark terminal of 16 colours, and in any other. Each number
divides the next."""


class AgentColours:
    """Assigns colours to agents. No colour is used twice while there are fewer agents than colours.

    A colour depends on the agent's id and on the agents registered before it, and does not change. So all
    views, earlier moments and later runs show the same colours, unless an agent was removed from the
    configuration.
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._uses = {distinct: Counter[int]() for distinct in _DISTINCT}

    def assign(self, agents: Iterable[str]) -> bool:
        """Assign colours to new ``agents``, ids in the order of registration. Return whether a colour differs
        from what `number_of` returned before."""
        before = {agent: self.number_of(agent) for agent in agents if agent not in self._numbers}
        for agent in before:
            number = min(range(AGENT_COLOURS), key=lambda each: self._rank(each, _preferred(agent)))
            self._numbers[agent] = number
            for distinct, uses in self._uses.items():
                uses[number % distinct] += 1
        return any(self._numbers[agent] != number for agent, number in before.items())

    def number_of(self, agent: str) -> int:
        """Return the number of the agent's colour, from 0. The colour of an unregistered agent depends on its
        id only."""
        return self._numbers.get(agent, _preferred(agent))

    def _rank(self, number: int, preferred: int) -> tuple[int, ...]:
        """Return the cost of a colour: how often it is used, then its distance from ``preferred``."""
        uses = (self._uses[distinct][number % distinct] for distinct in _DISTINCT)
        return (*uses, (number - preferred) % AGENT_COLOURS)

    def find_class(self, name: str) -> str:
        """Return the style class for a style of `agent_class`. Other names are returned unchanged."""
        agent, is_agent, suffix = name.rpartition(":agent")
        return f"agent-{self.number_of(agent)}{suffix}" if is_agent else name


def agent_class(actor: str, state: Literal["", "-new"] = "") -> str:
    """Return the style of an actor. An agent's style contains its id, for `AgentColours`.

    ``state``: ``-new`` for new text.
    """
    if actor.startswith("human:"):
        return "human"
    if actor in ("outside", "system"):
        return actor
    # Styles are joined with spaces, so an id with spaces cannot be in one.
    return f"{actor}:agent{state}" if actor.split() == [actor] else f"agent-{_preferred(actor)}{state}"


def _preferred(agent: str) -> int:
    return zlib.crc32(agent.encode()) % AGENT_COLOURS
