"""The style class of an actor, and the colour of each agent. Separate from the themes, so that commands do
not import Textual."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable
from typing import Final, Literal

AGENT_COLOURS: Final = 12
"""Number of colours for agents in each theme."""

_DISTINCT: Final = (3, 6, AGENT_COLOURS)
"""Numbers of distinct agent colours: in a light terminal of 16 colours, in a dark terminal of 16 colours, and
in any other terminal. Each number divides the next."""


class AgentColours:
    """The colours of agents. No colour is used twice while there are fewer agents than colours.

    The colour of an agent depends on its id and on the agents registered before it, and does not change. So
    all views, earlier moments and later runs show the same colours, unless an agent was removed from the
    configuration.
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._uses = {distinct: Counter[int]() for distinct in _DISTINCT}

    def assign(self, agents: Iterable[str]) -> bool:
        """Assign colours to new ``agents``, ids in the order of registration. Return whether any colour
        differs from the earlier result of `number_of`."""
        before = {agent: self.number_of(agent) for agent in agents if agent not in self._numbers}
        for agent in before:
            number = min(range(AGENT_COLOURS), key=lambda each: self._rank(each, _preferred(agent)))
            self._numbers[agent] = number
            for distinct, uses in self._uses.items():
                uses[number % distinct] += 1
        return any(self._numbers[agent] != number for agent, number in before.items())

    def number_of(self, agent: str) -> int:
        """Return the number of the agent's colour, from 0. The colour of an unregistered agent depends only
        on its id."""
        return self._numbers.get(agent, _preferred(agent))

    def _rank(self, number: int, preferred: int) -> tuple[int, ...]:
        """Return the cost of a colour: the numbers of its uses, then its distance from ``preferred``."""
        uses = (self._uses[distinct][number % distinct] for distinct in _DISTINCT)
        return (*uses, (number - preferred) % AGENT_COLOURS)

    def find_class(self, name: str) -> str:
        """Return the style class for a style from `agent_class`. Return other names unchanged."""
        agent, is_agent, suffix = name.rpartition(":agent")
        return f"agent-{self.number_of(agent)}{suffix}" if is_agent else name


def agent_class(actor: str, state: Literal["", "-new"] = "") -> str:
    """Return the style of an actor. The style of an agent contains its id, for `AgentColours`.

    ``state``: ``-new`` for new text.
    """
    if actor.startswith("human:"):
        return "human"
    if actor in ("outside", "system"):
        return actor
    # Styles are joined with spaces, so a style cannot contain an id with spaces.
    return f"{actor}:agent{state}" if actor.split() == [actor] else f"agent-{_preferred(actor)}{state}"


def _preferred(agent: str) -> int:
    return zlib.crc32(agent.encode()) % AGENT_COLOURS
