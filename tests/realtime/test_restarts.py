"""Agents edit the text that they know after their process restarts or changes, whatever others wrote."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest
from calls import ok
from effort import seeds
from marked import DOC_ID, FIELD, SCHEMA, Edit, Editor, Neighbours, misplaced, remains
from watchroom import Toolbox, Workspace

AGENTS: Final = ("alice", "bob", "charlie")
PROCESSES: Final = 2
STEPS: Final = 120


class Team:
    """Agents in workspaces that represent processes: they share only the folder."""

    def __init__(self, root: Path, chance: Random) -> None:
        self._root = root
        self._chance = chance
        self._processes = [Workspace.open(root, agents=AGENTS) for _ in range(PROCESSES)]
        self._homes = {agent: number % PROCESSES for number, agent in enumerate(AGENTS)}
        self.toolboxes: dict[str, Toolbox] = {}
        for agent in AGENTS:
            self._go_on(agent)

    def move(self, agent: str) -> None:
        """Sometimes restart a process, or move the agent to another one."""
        chance = self._chance
        if chance.random() < 0.1:
            number = chance.randrange(PROCESSES)
            self._processes[number].close()
            self._processes[number] = Workspace.open(self._root)
            for each, home in self._homes.items():
                if home == number:
                    self._go_on(each)
        if chance.random() < 0.1:
            self._homes[agent] = chance.randrange(PROCESSES)
            self._go_on(agent)

    def note_readings(self) -> None:
        """Write a reading to the journal now, so that other processes see it."""
        for process in self._processes:
            process.flush()

    def values(self, doc_id: str, field: str) -> list[Any]:
        """Return a field as each process sees it."""
        return [
            ok(each.tools("alice"), "realtime_get_field", doc_id=doc_id, field_name=field)["value"]
            for each in self._processes
        ]

    def close(self) -> None:
        for process in self._processes:
            process.close()

    def _go_on(self, agent: str) -> None:
        self.toolboxes[agent] = self._processes[self._homes[agent]].tools(agent)


@contextmanager
def team_at(root: Path, chance: Random) -> Iterator[Team]:
    team = Team(root, chance)
    try:
        yield team
    finally:
        team.close()


@pytest.mark.parametrize("seed", seeds(6, 100))
def test_positions_count_in_the_text_as_each_agent_knows_it(root: Path, seed: int) -> None:
    chance = Random(seed)
    edits: list[Edit] = []
    neighbours: list[Neighbours] = []
    with team_at(root, chance) as team:
        ok(team.toolboxes["alice"], "realtime_create_document", doc_id=DOC_ID, schema=SCHEMA)
        editors = {agent: Editor(team.toolboxes[agent], n, seed) for n, agent in enumerate(AGENTS)}
        team.note_readings()
        for _ in range(STEPS):
            agent = chance.choice(AGENTS)
            team.move(agent)
            editor = editors[agent]
            editor.toolbox = team.toolboxes[agent]
            if chance.random() < 0.2:
                editor.read()
                team.note_readings()
            plan = editor.plan()
            neighbours.append(editor.neighbours(plan))
            # This fails if the known length of the text is wrong.
            edits.append(editor.make(plan))
        text, *others = team.values(DOC_ID, FIELD)
    assert others == [text] * (PROCESSES - 1)
    assert sorted(text) == sorted(remains(edits))
    assert misplaced(text, neighbours) == []


@pytest.mark.parametrize("seed", seeds(6, 100))
def test_what_an_agent_does_not_know_of_stays_in_sets_and_maps(root: Path, seed: int) -> None:
    chance = Random(seed)
    additions: defaultdict[str, set[int]] = defaultdict(set)
    removed = set[int]()
    keys: dict[str, int] = {}
    known_additions: dict[str, dict[str, set[int]]] = {agent: {} for agent in AGENTS}
    known_keys: dict[str, set[str]] = {agent: set() for agent in AGENTS}
    in_set, in_map = {"doc_id": DOC_ID, "field_name": "set"}, {"doc_id": DOC_ID, "field_name": "map"}

    with team_at(root, chance) as team:
        ok(
            team.toolboxes["alice"],
            "realtime_create_document",
            doc_id=DOC_ID,
            schema={"set": "or_set", "map": "lww_map"},
        )
        for agent in AGENTS:
            ok(team.toolboxes[agent], "realtime_get_document_snapshot", doc_id=DOC_ID)
        team.note_readings()
        for step in range(STEPS):
            agent, element = chance.choice(AGENTS), chance.choice("abcdef")
            team.move(agent)
            toolbox, mine = team.toolboxes[agent], known_additions[agent]
            match chance.choice(("read", "add", "add", "remove", "set key", "replace map")):
                case "read":
                    shown = ok(toolbox, "realtime_get_document_snapshot", doc_id=DOC_ID)["snapshot"]
                    team.note_readings()
                    assert shown["set"] == sorted(each for each, made in additions.items() if made - removed)
                    assert shown["map"] == keys
                    known_additions[agent] = {each: set(made) for each, made in additions.items()}
                    known_keys[agent] = set(keys)
                case "add":
                    ok(toolbox, "realtime_edit_set", **in_set, operation="add", element=element)
                    additions[element].add(step)
                    mine.setdefault(element, set()).add(step)
                case "remove":
                    ok(toolbox, "realtime_edit_set", **in_set, operation="remove", element=element)
                    removed |= mine.get(element, set())
                case "set key":
                    ok(toolbox, "realtime_set_field", **in_map, key=element, value=step)
                    keys[element] = step
                    known_keys[agent].add(element)
                case "replace map":
                    ok(toolbox, "realtime_set_field", **in_map, value={element: step})
                    keys = {key: each for key, each in keys.items() if key not in known_keys[agent]}
                    keys[element] = step
                    known_keys[agent] = {element}
        expected = sorted(each for each, made in additions.items() if made - removed)
        assert team.values(DOC_ID, "set") == [expected] * PROCESSES
        assert team.values(DOC_ID, "map") == [keys] * PROCESSES
