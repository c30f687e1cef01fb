"""Simulated agents: the opening scene, determinism, recovery, bounds, an orderly end."""

from __future__ import annotations

import ast
import csv
from collections import Counter
from pathlib import Path
from random import Random
from threading import Event, Thread

import pytest
from simulating import PATIENCE, Meddled, ToolCall, all_rows, open_team, run_for, run_until
from watchroom import Json, Row, validation
from watchroom.merge import merge
from watchroom.rules.config import LAYERS
from watchroom.simulation import Simulation, growing, roster
from watchroom.simulation.growing import Author
from watchroom.simulation.material import Document, material
from watchroom.simulation.reconcile import reconcile
from watchroom.simulation.steps import Call, Step
from watchroom.simulation.work import life
from watchroom.zones.buffers.sources import FLUSH


@pytest.mark.parametrize("count", [3, 4, 12, 13, 40, 200])
def test_a_roster_is_a_sensible_team(count: int) -> None:
    team = roster(count)
    assert len({agent.id for agent in team}) == len(team) == count
    assert [(agent.id, agent.layer, agent.supervisor) for agent in team[:3]] == [
        ("researcher", "mid", ""),
        ("analyst", "mid", ""),
        ("writer", "bottom", "analyst"),
    ]
    earlier: dict[str, int] = {}
    for agent in team:
        assert validation.check_agent_id(agent.id) == agent.id
        assert agent.role
        height = LAYERS.index(agent.layer)
        if agent.layer == "bottom":
            assert agent.supervisor
        if agent.supervisor:
            assert earlier[agent.supervisor] < height
        earlier[agent.id] = height


@pytest.mark.parametrize("count", [-1, 0, 2])
def test_a_team_has_at_least_three(count: int) -> None:
    with pytest.raises(ValueError, match="at least 3"):
        roster(count)


def test_K_1_is_played_first(root: Path) -> None:
    workspace, team = open_team(root, 5)
    with workspace:

        def merged() -> bool:
            head = workspace.journal.head("collab", "report.md")
            return head is not None and (head.version or 0) >= 3

        summary = run_until(workspace, Simulation(workspace, team, seed=3, speed=0), merged)
        rows = all_rows(workspace)
        written = {
            (row.actor, row.path): row for row in reversed(rows) if row.tool == "handoff_file" and row.version
        }
        taken = {(row.actor, row.path): row for row in reversed(rows) if row.tool == "acknowledge_handoff"}
        survey, brief = "researcher_to_analyst/survey.md", "analyst_to_writer/brief.md"
        saved = next(row for row in rows if row.path == "researcher/survey.md")
        assert saved.seq < written["researcher", survey].seq < taken["analyst", survey].seq
        assert written["analyst", brief].seq < taken["writer", brief].seq

        history = workspace.journal.history("collab", "report.md")
        assert [row.actor for row in history[:3]] == ["analyst", "writer", "analyst"]
        assert taken["analyst", survey].seq < history[0].seq < written["analyst", brief].seq
        (conflict,) = [
            row
            for row in workspace.journal.refused("collab", "report.md")
            if row.outcome == "conflict" and row.seq < history[2].seq
        ]
        assert (conflict.actor, conflict.base) == ("analyst", 1)
        assert history[1].seq < conflict.seq < history[2].seq
        final = workspace.journal.content(history[2].seq) or ""
        assert "Every Friday at 23:30 the hospital shift ends" in final
        assert "| October | 9 | 104 | 65 % |" in final
        assert "Crew on night rates" in final
        assert summary.recoveries >= 1
        assert not summary.errors


@pytest.mark.parametrize("speed", [0, 40])
def test_two_agents_leave_a_conflict_about_two_lines_to_a_person(root: Path, speed: float) -> None:
    workspace, team = open_team(root, 5)
    with workspace:

        def refused() -> Row | None:
            return next(iter(workspace.journal.refused("collab", "announcement.md")), None)

        run_until(workspace, Simulation(workspace, team, seed=2, speed=speed), lambda: refused() is not None)
        row, head = refused(), workspace.journal.head("collab", "announcement.md")
        assert row is not None
        assert head is not None
        assert (row.actor, row.base, head.actor, head.version) == ("analyst", 1, "writer", 2)
        base = workspace.journal.version("collab", "announcement.md", 1)
        assert base is not None
        texts = [workspace.journal.content(each.seq) or "" for each in (base, head, row)]
        regions = merge(*texts)
        kinds = [region.kind for region in regions if region.kind != "unchanged"]
        assert kinds == ["current", "conflict", "conflict", "incoming"]


def decisions(root: Path, seed: int, steps: int) -> list[Step]:
    """What a single agent does, alone with the files, without a runtime."""
    workspace, team = open_team(root, 5)
    taken: list[Step] = []
    with workspace:
        reviewer = workspace.tools("reviewer")
        script = life(team[3], team, seed)
        step = next(script)
        for _ in range(steps):
            taken.append(step)
            result: dict[str, Json] = {}
            if isinstance(step, Call):
                result = reviewer.dispatch_tool_call(step.tool, step.arguments)
            step = script.send(result)
    return taken


def test_the_seed_decides(tmp_path: Path) -> None:
    first = decisions(tmp_path / "first", 11, 500)
    assert first == decisions(tmp_path / "again", 11, 500)
    assert first != decisions(tmp_path / "other", 12, 500)
    tools = {step.tool for step in first if isinstance(step, Call)}
    assert {"save_to_my_workspace", "collab_write", "handoff_file", "check_my_handoffs"} <= tools
    assert {"whiteboard_read", "whiteboard_write", "whiteboard_append", "whiteboard_update_section"} <= tools


def test_eight_agents_at_full_speed_leave_all_in_order(root: Path) -> None:
    workspace, team = open_team(root, 8)
    with workspace:
        simulation = Simulation(workspace, team, seed=5, speed=0)
        summary = run_until(
            workspace,
            simulation,
            lambda: simulation.summary().calls >= 1000 and simulation.summary().recoveries > 3,
        )
        assert summary.errors == ()
        assert workspace.verify() == []
        rows = all_rows(workspace)
        assert summary.calls == sum(summary.outcomes.values())
        # A flush that comes too late is told of by its buffer's row; the file's row keeps what it would write.
        told = [row for row in rows if row.tool != FLUSH]
        outcomes = Counter(row.error or row.outcome for row in told if row.outcome != "ok")
        assert summary.outcomes["version_conflict"] == outcomes["version_conflict"]
        # Where a text stands several times the call changes nothing, and what waits for a choice is kept.
        asked = summary.outcomes.get("multi_match", 0)
        assert summary.refused == outcomes.total() - outcomes["version_conflict"] + asked
        tools = Counter(row.tool for row in rows if row.outcome == "ok")
        assert summary.handoffs_sent == tools["handoff_file"]
        assert summary.handoffs_acknowledged == tools["acknowledge_handoff"]
        assert summary.recoveries + summary.abandoned <= summary.conflicts <= summary.writes
        assert 0.5 < summary.recovery_rate <= 1
        for head in workspace.journal.heads("collab"):
            assert (workspace.journal.content(head.seq) or "").count("\n") <= 200


def test_stop_does_not_wait_for_pauses(root: Path) -> None:
    workspace, team = open_team(root, 3)
    with workspace:
        simulation = Simulation(workspace, team, speed=1e-9)
        simulation.start()
        stopping = Thread(target=simulation.stop)
        stopping.start()
        stopping.join(PATIENCE)
        assert not stopping.is_alive()
        simulation.stop()
        with pytest.raises(RuntimeError, match="only once"):
            simulation.start()


def test_the_scene_is_not_played_twice(root: Path) -> None:
    for session in range(2):
        workspace, team = open_team(root, 3)
        with workspace:
            run_for(workspace, Simulation(workspace, team, seed=session, speed=0), 200)
            rows = all_rows(workspace)
            assert len([row for row in rows if row.path == "researcher/survey.md" and row.version]) == 1
            assert len([row for row in rows if row.path == "report.md" and row.version == 1]) == 1


def test_an_agent_that_breaks_is_told_of_and_the_others_go_on(root: Path) -> None:
    def meddle(agent: str, call: ToolCall) -> dict[str, Json]:
        if agent == "reviewer":
            raise LookupError("out of order")
        return call()

    workspace, team = open_team(root, 4)
    with workspace:
        simulation = Simulation(Meddled(workspace, meddle), team, speed=0)
        summary = run_until(
            workspace,
            simulation,
            lambda: bool(simulation.summary().errors) and simulation.summary().calls >= 50,
        )
    (error,) = summary.errors
    assert error.startswith("reviewer: ToolBroke: ")
    assert "LookupError: out of order" in error


def test_what_an_agent_decides_on_while_the_last_calls_end_is_not_begun(root: Path) -> None:
    held, stopping, late, over = Event(), Event(), Event(), Event()
    begun: list[str] = []

    def meddle(agent: str, call: ToolCall) -> dict[str, Json]:
        """One call lasts while the simulation ends; those that would begin meanwhile last longer than that."""
        begun.append(agent)
        if agent == "researcher" and len(begun) > 10:
            held.set()
            late.wait(0.5)
        elif stopping.is_set():
            late.set()
            over.wait(0.5)
        return call()

    workspace, team = open_team(root, 8)
    with workspace:
        simulation = Simulation(Meddled(workspace, meddle), team, seed=5, speed=4)
        simulation.start()
        assert held.wait(PATIENCE)
        stopping.set()
        simulation.stop()
        counted = simulation.summary().calls
        over.set()
    assert counted == len(begun)


@pytest.mark.parametrize("document", [*material().documents, *material().notes], ids=lambda each: each.path)
def test_texts_grow_within_bounds_and_stay_what_they_are(document: Document) -> None:
    team = [agent.id for agent in roster(12)]
    roles = [role for role in team if document.is_for(role)]
    authors = [Author(role, Random(role), material(), tuple(team)) for role in roles]
    change = growing.start(document, authors[0])
    for turn in range(250):
        change = growing.grow(document, change.content, authors[turn % len(authors)])
        assert change.message
        assert change.content.count("\n") <= 200
        assert "{" not in change.content + change.message
        if document.path.endswith(".csv"):
            assert {len(fields) for fields in csv.reader(change.content.splitlines())} == {6}
    if document.path.endswith(".py"):
        ast.parse(change.content)


def test_every_slot_of_the_material_can_be_filled() -> None:
    filling = material().filling(Random(1), role="writer")
    for slot in material().words:
        for word in material().words[slot]:
            assert "{" not in filling(word)


BASE = "# Plan\n\n## Costs\n\n- crew\n\n## Risks\n\n- tunnel\n"


def test_a_merge_keeps_both() -> None:
    theirs = BASE.replace("- crew\n", "- crew\n- track\n").replace("tunnel", "tunnel, three weeks")
    mine = BASE.replace("- crew\n", "- crew\n- light\n").replace("- tunnel\n", "- tunnel\n- ferry\n")
    merged = reconcile(BASE, theirs, mine)
    costs, risks = merged.split("## Risks")
    assert {"- crew", "- track", "- light"} <= set(costs.splitlines())
    assert risks.split("\n") == ["", "", "- tunnel, three weeks", "- ferry", ""]


def test_a_merge_replaces_what_only_i_changed_and_keeps_what_both_did() -> None:
    mine = BASE.replace("- crew", "- crew at night")
    assert reconcile(BASE, BASE.replace("tunnel", "ferry"), mine) == mine.replace("tunnel", "ferry")
    theirs = BASE.replace("- crew", "- two crews")
    both = reconcile(BASE, theirs, mine)
    assert "- two crews\n" in both
    assert "- crew at night\n" in both


def test_a_line_that_both_added_is_there_once() -> None:
    added = BASE.replace("- crew\n", "- crew\n- light\n")
    assert reconcile(BASE, added, added) == added
    assert reconcile("", BASE, BASE) == BASE
    assert reconcile("", "", BASE) == BASE
