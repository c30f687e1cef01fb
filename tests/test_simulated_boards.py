"""The simulated agents keep their whiteboards: all three layers, in the form that boards are understood in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest
from calls import ok
from simulating import all_rows, open_team, rows_so_far, run_until
from watchroom import Row, Toolbox, Workspace
from watchroom.rules.config import Agent, Config
from watchroom.simulation import Simulation, keeping, roster
from watchroom.simulation.desk import AgentContext
from watchroom.simulation.growing import Author
from watchroom.simulation.material import material
from watchroom.simulation.page import ENTRY, SECTION, joined, parts_of
from watchroom.simulation.pen import Pen, book
from watchroom.simulation.steps import Call, Now, Result, Script
from watchroom.texts import LANGUAGES, Language
from watchroom_whiteboards.board_parser import parse_board
from watchroom_whiteboards.boards import Board, list_boards
from watchroom_whiteboards.items import BoardItems
from watchroom_whiteboards.templates import render_template
from watchroom_whiteboards.vocabulary import FIELDS, HEADINGS, NOTHING

NOW = "2031-03-07T23:50:00Z"
VISITS = 50
LARGEST = 8_000
"""Bytes of any board of a team of six."""


class Room(NamedTuple):
    """A team whose agents do one thing after the other, without a runtime."""

    workspace: Workspace
    team: list[Agent]
    desks: dict[str, AgentContext]
    tools: dict[str, Toolbox]

    def does(
        self, agent: str, script: Script[None], meanwhile: Callable[[Call], Result | None] = lambda call: None
    ) -> list[Call]:
        """Follow a script to its end, and give its calls. Something may happen before each of them, which may
        even answer it."""
        taken: list[Call] = []
        result: Result = {}
        try:
            step = next(script)
            while True:
                result = {"time": NOW} if isinstance(step, Now) else {}
                if isinstance(step, Call):
                    taken.append(step)
                    answer = meanwhile(step)
                    result = answer or self.tools[agent].dispatch_tool_call(step.tool, step.arguments)
                step = script.send(result)
        except StopIteration:
            return taken

    def text(self, board: str) -> str:
        head = self.workspace.journal.head("board", board)
        assert head is not None, board
        return self.workspace.journal.content(head.seq) or ""


def room(root: Path, count: int, seed: int = 1, language: Language = "en") -> Room:
    team = roster(count)
    workspace = Workspace.open(root, agents=team, language=language)
    desks = {agent.id: AgentContext(agent, team, seed) for agent in team}
    return Room(workspace, team, desks, {agent.id: workspace.tools(agent.id) for agent in team})


def board_rows(workspace: Workspace) -> list[Row]:
    return [row for row in all_rows(workspace) if row.zone == "board"]


def said_on(workspace: Workspace) -> dict[str, BoardItems]:
    heads = workspace.journal.heads("board")
    return {head.path: parse_board(workspace.journal.content(head.seq) or "") for head in heads}


def test_all_three_layers_keep_boards_that_are_understood(root: Path) -> None:
    workspace, team = open_team(root, 6)
    with workspace:
        simulation = Simulation(workspace, team, seed=3, speed=0)

        so_far = rows_so_far(workspace)

        def all_do() -> bool:
            rows = [row for row in so_far() if row.zone == "board"]
            writers = {row.actor for row in rows if row.tool == "whiteboard_update_section"}
            signed = any(row.tool == "whiteboard_append" and row.path == "global" for row in rows)
            return signed and len(writers) == len(team) and some_are_reached()

        def some_are_reached() -> bool:
            found = said_on(workspace).get("global")
            return found is not None and {each.done for each in found.milestones} == {True, False}

        summary = run_until(workspace, simulation, all_do)
        assert summary.errors == ()
        rows = board_rows(workspace)
        assert summary.board_versions == sum(
            bool(row.version) and row.tool != "whiteboard_read" for row in rows
        )
        assert {row.error for row in rows} <= {"", "version_conflict", "board_leased"}
        found = said_on(workspace)
        assert {Board.named(name).kind for name in found} == {"global", "top", "mid", "bottom"}
        assert {name: each.problems for name, each in found.items() if each.problems} == {}
        shared = found.pop("global")
        assert shared.decisions
        assert shared.risks
        assert shared.log
        for each in found.values():
            assert len(each.tasks) >= 2
            assert any(0 < task.progress <= 100 for task in each.tasks)
            assert each.log
        assert all(found[name].negotiations for name in found if not name.startswith("bottom"))
        assert workspace.verify() == []


def test_the_top_layer_holds_the_global_board_for_a_decision(root: Path) -> None:
    workspace, team = open_team(root, 6)
    with workspace:
        so_far = rows_so_far(workspace)

        def decided() -> list[Row]:
            return [row for row in so_far() if row.message.startswith("### Decision")]

        run_until(workspace, Simulation(workspace, team, seed=4, speed=0), lambda: bool(decided()))
        (row, *_) = decided()
        leases = [each for each in all_rows(workspace) if each.zone == "lease" and each.seq < row.seq]
        assert (row.actor, row.path) == ("planner", "global")
        assert [each.tool for each in leases if each.actor == "planner"][-1] == "hold_board"


@pytest.mark.parametrize("language", LANGUAGES)
def test_boards_stay_small_however_often_they_are_visited(root: Path, language: Language) -> None:
    there = room(root, 6, language=language)
    with there.workspace:
        for agent in ("planner", "writer", "translator", "reviewer"):
            there.does(agent, keeping.opening(there.desks[agent]))
        progress: list[dict[str, int]] = []
        for _ in range(VISITS):
            for agent in ("writer", "translator"):
                there.does(agent, keeping.keep(there.desks[agent]))
            for agent in ("planner", "reviewer"):
                there.does(agent, keeping.keep(there.desks[agent]))
                there.does(agent, keeping.tend_global(there.desks[agent]))
            progress.append(
                {task.id: task.progress for task in parse_board(there.text("bottom-layer-writer")).tasks}
            )
        found = said_on(there.workspace)
        assert {name: each.problems for name, each in found.items() if each.problems} == {}
        for name in found:
            assert len(there.text(name).encode()) <= LARGEST
        for before, after in pairwise(progress):
            assert all(after[task] >= before[task] for task in before.keys() & after.keys())
        assert {100} < {percent for each in progress for percent in each.values()}
        assert max(int(task) for task in progress[-1]) > 8
        shared = found["global"]
        assert int(shared.decisions[-1].id) > len(shared.decisions)
        assert len(shared.updates) < 20
        assert [
            (row.tool, row.path, row.error, row.detail)
            for row in board_rows(there.workspace)
            if row.outcome != "ok"
        ] == []


def test_an_agent_reads_again_when_somebody_was_faster(root: Path) -> None:
    there = room(root, 6)
    board = "bottom-layer-writer"
    with there.workspace:
        there.does("writer", keeping.opening(there.desks["writer"]))
        dana = there.workspace.tools_for_human("dana")

        def mends(call: Call) -> None:
            if call.tool == "whiteboard_update_section" and not call.attempt:
                text = there.text(board).replace("### Task #1\n", "### Task #1\n- **Since**: Monday\n")
                ok(dana, "whiteboard_write", board=board, content=text, message="Mend", expected_version=-1)

        calls = there.does("writer", keeping.keep(there.desks["writer"]), mends)
        tried = [call for call in calls if call.arguments.get("section") == "Current tasks"]
        first, again, last = tried
        assert (first.tool, again.tool) == ("whiteboard_update_section", "whiteboard_read")
        assert last.tool != "whiteboard_read"
        assert "- **Since**: Monday\n" in there.text(board)
        assert there.workspace.verify() == []


@pytest.mark.parametrize("error", ["board_leased", "board_not_found", "section_not_found"])
@pytest.mark.parametrize("act", [keeping.keep, keeping.tend_global, keeping.read_one])
def test_a_board_that_cannot_be_had_is_left(
    root: Path, act: Callable[[AgentContext], Script[None]], error: str
) -> None:
    there = room(root, 6)
    with there.workspace:
        refusal: Result = {"success": False, "error": error, "message": "Not now."}
        for agent in ("planner", "reviewer"):
            calls = there.does(agent, act(there.desks[agent]), lambda call: refusal)
            assert [call.tool for call in calls] == ["whiteboard_read"]


def test_nobody_reads_what_it_may_not(root: Path) -> None:
    there = room(root, 24)
    with there.workspace:
        for agent in there.team:
            for _ in range(12):
                there.does(agent.id, keeping.read_one(there.desks[agent.id]))
        there.workspace.flush()
        rows = board_rows(there.workspace)
        assert {row.outcome for row in rows} == {"ok"}
        read = {(row.actor, row.path.partition(" > ")[0]) for row in rows}
        assert {("analyst", "bottom-layer-writer"), ("writer", "mid-layer-analyst")} <= read
        assert {agent.id for agent in there.team} == {row.actor for row in rows}


@pytest.mark.parametrize("count", [6, 12, 200])
def test_each_agent_has_a_board_of_its_own(count: int, root: Path) -> None:
    there = room(root, count)
    with there.workspace:
        names = {board.name for board in list_boards(there.workspace.config)}
        assert Counter(map(keeping.board_of, there.team)).most_common(1)[0][1] == 1
        assert {keeping.board_of(agent) for agent in there.team} | {"global"} == names


def test_a_large_team_says_no_more_on_the_global_board() -> None:
    def signing(count: int) -> float:
        team = roster(count)
        return sum(
            keeping.tends_global(AgentContext(agent, team, 0)) for agent in team if agent.layer == "mid"
        )

    assert signing(200) == pytest.approx(signing(40))
    assert signing(200) < 2 * signing(6)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_words_are_those_that_boards_are_read_with(language: Language) -> None:
    place = LANGUAGES.index(language)
    for kind, titles in book().headings.items():
        assert titles[place] == HEADINGS[kind][language]
    for name, words in book().fields.items():
        assert words[place] == FIELDS[name][language]
    assert book().states["none"][place] in NOTHING


@pytest.mark.parametrize("chinese", [False, True])
@pytest.mark.parametrize("leads", [False, True])
def test_every_phrase_makes_an_entry_that_is_understood(chinese: bool, leads: bool) -> None:
    language: Language = "zh" if chinese else "en"
    team = roster(6)
    author = Author("planner", Random(5), material(), tuple(agent.id for agent in team))
    pen = Pen("planner", author, NOW, leads=leads, chinese=chinese)
    text = joined(
        parts_of("\n\n".join(f"## {titles[language]}" for titles in HEADINGS.values()), SECTION), SECTION
    )
    assert parse_board(text) == BoardItems()
    kinds = {"decisions": pen.decision, "milestones": pen.milestones, "risks": pen.risks, "tasks": pen.tasks}
    bodies = dict.fromkeys((*kinds, "negotiations", "knowledge", "update_log"), "")
    for _ in range(100):
        for kind, change in kinds.items():
            bodies[kind] = change(bodies[kind]).body
        bodies["negotiations"] = pen.negotiation(bodies["negotiations"]).body
        bodies["knowledge"] = pen.insight(bodies["knowledge"]).body
        bodies["update_log"] = pen.led(bodies["update_log"], pen.update().partition("\n")[0]).body
        whole = "\n\n".join(f"## {HEADINGS[kind][language]}\n\n{body}" for kind, body in bodies.items())  # type: ignore[index]
        found = parse_board(whole)
        assert found.problems == ()
        assert "{" not in whole
        assert len(found.tasks) >= 2
        assert found.decisions
        assert found.negotiations


def test_what_an_agent_does_not_know_it_leaves_as_it_is(root: Path) -> None:
    there = room(root, 6)
    with there.workspace:
        there.does("writer", keeping.opening(there.desks["writer"]))
        board = "bottom-layer-writer"
        dana = there.workspace.tools_for_human("dana")
        mine = "## Lunch\n\n```\n## not a heading\n```\n"
        text = there.text(board).replace("## Execution log", f"{mine}\n## Execution log")
        text = text.replace("### Task #1\n", "### A word\nKeep this.\n\n### Task #1\n- **Since**: Monday\n")
        ok(dana, "whiteboard_write", board=board, content=text, message="Mine", expected_version=-1)
        for _ in range(5):
            there.does("writer", keeping.keep(there.desks["writer"]))
        text = there.text(board)
        assert mine in text
        assert "### A word\nKeep this.\n" in text
        assert "### Task #1\n- **Since**: Monday\n" in text


def test_a_template_is_put_together_as_it_was() -> None:
    team = roster(6)
    for agent in team:
        for language in LANGUAGES:
            text = render_template(Board.of(agent), Config().with_agents(team), language)
            assert parse_board(joined(parts_of(text, SECTION), SECTION)) == parse_board(text)
            assert joined(parts_of(text, ENTRY), ENTRY).split() == text.split()
