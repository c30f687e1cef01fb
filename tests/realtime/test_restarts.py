"""Agents whose processes end, or who go on in another one, edit a text as they know it, whatever others wrote."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Final

import pytest
from calls import ok
from effort import rounds
from marked import DOC_ID, FIELD, SCHEMA, Edit, Editor, Neighbours, misplaced, remains
from watchroom import Workspace

AGENTS: Final = ("alice", "bob", "charlie")
PROCESSES: Final = 2
STEPS: Final = 120


class Team:
    """Agents at work in workspaces that stand for processes: nothing is shared but the folder."""

    def __init__(self, root: Path, seed: int) -> None:
        self._root = root
        self._chance = Random(seed)
        self._processes = [Workspace.open(root, agents=AGENTS) for _ in range(PROCESSES)]
        ok(self._processes[0].tools("alice"), "realtime_create_document", doc_id=DOC_ID, schema=SCHEMA)
        self._homes = {agent: number % PROCESSES for number, agent in enumerate(AGENTS)}
        self._editors = {
            agent: Editor(self._processes[home].tools(agent), number, seed)
            for number, (agent, home) in enumerate(self._homes.items())
        }
        self._note_readings()
        self.edits: list[Edit] = []
        self.neighbours: list[Neighbours] = []

    def act(self) -> None:
        """One agent edits; before, a process may end and begin anew, or the agent read, here or elsewhere."""
        chance = self._chance
        agent = chance.choice(AGENTS)
        if chance.random() < 0.1:
            self._restart(chance.randrange(PROCESSES))
        if chance.random() < 0.1:
            self._homes[agent] = chance.randrange(PROCESSES)
            self._go_on(agent)
            self._read(agent)
        elif chance.random() < 0.1:
            self._read(agent)
        editor = self._editors[agent]
        plan = editor.plan()
        self.neighbours.append(editor.neighbours(plan))
        self.edits.append(editor.make(plan))

    def texts(self) -> set[str]:
        """The text as each process has it."""
        return {
            ok(process.tools("alice"), "realtime_get_field", doc_id=DOC_ID, field_name=FIELD)["value"]
            for process in self._processes
        }

    def close(self) -> None:
        for process in self._processes:
            process.close()

    def _restart(self, number: int) -> None:
        self._processes[number].close()
        self._processes[number] = Workspace.open(self._root)
        for agent, home in self._homes.items():
            if home == number:
                self._go_on(agent)

    def _go_on(self, agent: str) -> None:
        self._editors[agent].toolbox = self._processes[self._homes[agent]].tools(agent)

    def _read(self, agent: str) -> None:
        self._editors[agent].read()
        self._note_readings()

    def _note_readings(self) -> None:
        """A reading is a row soon: here it is one before another process asks."""
        for process in self._processes:
            process.flush()


@pytest.mark.parametrize("seed", range(rounds(6, 100)))
def test_positions_count_in_the_text_as_each_agent_knows_it(root: Path, seed: int) -> None:
    team = Team(root, seed)
    for _ in range(STEPS):
        # It fails where the length of the text as its writer knows it is told wrongly.
        team.act()
    (text,) = team.texts()
    assert sorted(text) == sorted(remains(team.edits))
    assert misplaced(text, team.neighbours) == []
    team.close()
