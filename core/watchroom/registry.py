"""The config as the journal has it: who is registered, and the settings of the workspace.

The config file is a view of the journal like any other: registering is a row, and an edit made by hand is
recorded as one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from watchroom import validation
from watchroom.checkout.layout import CONFIG_PATH
from watchroom.errors import ConfigInvalid, JournalDamaged, UnknownAgent
from watchroom.journal import Journal
from watchroom.rules.config import Agent, Config, add_agents, check_role, parse_config, render_config


class Registry:
    """The config as the journal has it now. May be used from any thread."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._known: tuple[int, Config] = (0, Config())
        """The newest version, and what holds by it: always assigned together, for threads read both."""
        self._ever_known: set[str] = set()
        self._looked_through = 0

    def current(self) -> Config:
        """The newest valid config: one that was broken by hand does not count until it is mended, nor does
        one that is damaged, or nobody could so much as look for the damage."""
        return self._newest()[1]

    def _newest(self) -> tuple[int, Config]:
        head = self._journal.head("config", CONFIG_PATH)
        known = self._known
        if head is None or head.version == known[0]:
            return known
        found = (head.version or 0, self._newest_valid(head.version or 0))
        if found[0] > self._known[0]:
            self._known = found
        return found

    def _newest_valid(self, version: int) -> Config:
        while version > 0:
            row = self._journal.version("config", CONFIG_PATH, version)
            try:
                return parse_config(self._journal.content(row.seq) or "" if row else "")
            except (ConfigInvalid, JournalDamaged):
                version -= 1
        return Config()

    def ever_known(self) -> frozenset[str]:
        """The ids of all agents that are or were registered."""
        head = self._journal.head("config", CONFIG_PATH)
        newest = (head.version or 0) if head else 0
        for row in self._journal.history("config", CONFIG_PATH, after_version=self._looked_through):
            try:
                self._ever_known |= parse_config(self._journal.content(row.seq) or "").agents.keys()
            except (ConfigInvalid, JournalDamaged):
                # A version that was broken by hand registered nobody, and of a damaged one nobody can tell.
                continue
        self._looked_through = newest
        return frozenset(self._ever_known)

    def agent(self, agent_id: str) -> Agent:
        """The agent of that id. Raises `InvalidAgentId`, `UnknownAgent`."""
        validation.check_agent_id(agent_id)
        agent = self._known[1].agents.get(agent_id) or self.current().agents.get(agent_id)
        if agent is None:
            raise UnknownAgent(agent=agent_id, known=", ".join(self._known[1].agents) or "-")
        return agent

    def check_role(self, agent: Agent) -> None:
        """Raises `InvalidRole` where the agent could be taken for another one, or another for it."""
        check_role(agent, self.current())

    def add(self, agents: Iterable[Agent], write: Callable[[str, int], None]) -> None:
        """Register agents by handing the new config and the version it follows to ``write``. Raises
        `ConfigInvalid`, `InvalidRole`."""
        version, config = self._newest()
        new = [agent for agent in agents if config.agents.get(agent.id) != agent]
        if new:
            write(render_config(add_agents(config, new)), version)
