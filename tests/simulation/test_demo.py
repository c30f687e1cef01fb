"""The built-in scenario, played: everything happens that a reader of the screen is to see, and ends in order."""

from __future__ import annotations

import json
from collections import Counter
from functools import partial
from pathlib import Path
from threading import Thread

import psutil
import pytest
from child_processes import children
from simulation.playing import (
    PATIENCE,
    all_rows,
    answer,
    is_whole,
    run_until,
    scenario_from,
    states,
    team,
    text_of,
)
from watchroom import Json, Row, Workspace
from watchroom.agents.simulation import Simulation, Summary, demo, roster
from watchroom.algorithms.merge import merge
from watchroom.features.sessions.runtime import AssistantMessage, ToolMessage, UserMessage
from watchroom.model import ASK, ENDED
from watchroom.texts import Language
from watchroom_whiteboards.board_parser import parse_board
from watchroom_whiteboards.boards import Board

DISPUTED = "release-notes.md"


def conflicts(workspace: Workspace, path: str) -> list[Row]:
    return [row for row in workspace.journal.refused("collab", path) if row.outcome == "conflict"]


def has_gone_on(workspace: Workspace, most: int, left: set[str]) -> bool:
    """Whether there are more rows, and the sessions that were left have ended."""
    if workspace.journal.last_seq() <= most:
        return False
    return left <= {head.id for head in workspace.sessions.list() if head.status in ENDED}


def started() -> set[psutil.Process]:
    """The processes that this one has started, but for the one that commands of tests are forked from."""
    return children() - children("forkserver.py")


class Played:
    """The demo at full speed, until all has happened that comes of itself."""

    def __init__(self, root: Path) -> None:
        others = started()
        with team(root) as (workspace, agents):
            simulation = Simulation(workspace, agents, seed=3, speed=0, apart=["tester"])
            self.summary: Summary = run_until(workspace, simulation, lambda: self._has_happened(workspace))
            assert started() <= others
            self.rows = all_rows(workspace)
            self.problems = workspace.verify()
            self.states = states(workspace)
            self.heads = workspace.sessions.list()
            journal = workspace.journal
            self.boards = {head.path: journal.content(head.seq) or "" for head in journal.heads("board")}
            self.conflicts = {
                path: conflicts(workspace, path) for path in (DISPUTED, "calculator/evaluate.py")
            }
            self.evaluate = text_of(journal, "collab", "calculator/evaluate.py")
            base = journal.version("collab", DISPUTED, 1)
            current = journal.version("collab", DISPUTED, 2)
            assert base is not None
            assert current is not None
            refused = self.conflicts[DISPUTED][0]
            self.sides = [journal.content(row.seq) or "" for row in (base, current, refused)]
            self.last = journal.last_seq()
            self.has_sandbox = workspace.commands.sandbox.best is not None

    @staticmethod
    def _has_happened(workspace: Workspace) -> bool:
        journal = workspace.journal
        report, sprint = journal.head("collab", "test-report.md"), journal.head("realtime", "sprint")
        return (
            bool(conflicts(workspace, DISPUTED))
            and report is not None
            and sprint is not None
            and (sprint.version or 0) > 20
            and len(list(journal.heads("board"))) >= 6
            and journal.last_seq() > 800
        )


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    return Played(tmp_path_factory.mktemp("demo") / "calculator")


def test_it_ends_clean_and_counts_what_happened(played: Played) -> None:
    summary = played.summary
    assert summary.errors == ()
    assert played.problems == []
    tools = Counter(row.tool for row in played.rows if row.outcome == "ok")
    assert summary.handoffs_sent == tools["handoff_file"]
    assert summary.handoffs_acknowledged == tools["acknowledge_handoff"]
    assert summary.sessions == sum(head.status == "done" for head in played.heads)
    assert summary.calls == sum(summary.outcomes.values())
    assert summary.recoveries + summary.abandoned <= summary.conflicts <= summary.writes
    assert summary.recoveries >= 1, "evaluate.py"
    assert summary.abandoned >= 1, "the release notes"
    assert 0 < summary.recovery_rate <= 1
    assert summary.edits > 10
    assert summary.board_versions >= 6


def test_no_call_is_cut_in_two_and_none_is_invalid(played: Played) -> None:
    results = [each for state in played.states for each in state.messages if isinstance(each, ToolMessage)]
    assert len(results) == played.summary.calls
    assert all(is_whole(state.messages) for state in played.states)
    errors = {str(json.loads(each.content).get("error", "")) for each in results}
    assert not errors & {
        "invalid_arguments",
        "unknown_tool",
        "tool_failed",
        "internal_error",
        "permission_denied",
    }


def test_a_conflict_is_recovered_by_rereading(played: Played) -> None:
    refused = played.conflicts["calculator/evaluate.py"][0]
    assert (refused.actor, refused.base) == ("architect", 1)
    assert "powers first, from the right" in played.evaluate, "what the architect wrote"
    assert "value -= self._product()" in played.evaluate, "what the coder wrote meanwhile"


def test_another_stays_for_a_person(played: Played) -> None:
    (refused,) = played.conflicts[DISPUTED]
    assert (refused.actor, refused.base) == ("architect", 1)
    kinds = [region.kind for region in merge(*played.sides) if region.kind != "unchanged"]
    assert kinds == ["current", "conflict", "conflict", "incoming"]


def test_tests_are_run_in_the_sandbox_or_the_report_says_why_not(played: Played) -> None:
    ran = [row for row in played.rows if row.tool == "end_command"]
    reports = [row.message for row in played.rows if row.path == "test-report.md" and row.version]
    if played.has_sandbox:
        assert {row.detail["exit_code"] for row in ran} <= {0, 1}
        assert all("tests pass" in report or "FAILED" in report for report in reports)
    else:
        assert not ran
        assert reports
    assert {row.actor for row in ran} <= {"tester"}


def test_the_whiteboards_are_understood(played: Played) -> None:
    found = {name: parse_board(text) for name, text in played.boards.items()}
    assert {Board.named(name).kind for name in found} == {"global", "top", "mid", "bottom"}
    assert {name: each.problems for name, each in found.items() if each.problems} == {}
    assert found["global"].decisions
    assert {each.done for each in found["global"].milestones} == {True, False}
    assert all(each.tasks for name, each in found.items() if name != "global")


def test_a_session_says_what_it_is_about_and_how_it_went(played: Played) -> None:
    done = [state for state in played.states if state.status == "done"]
    assert len({state.messages[0].content for state in done}) > 12
    for state in done:
        task, *_, last = state.messages
        assert isinstance(task, UserMessage)
        assert isinstance(last, AssistantMessage)
        assert not last.tool_calls
        said = [each.content for each in state.messages if not isinstance(each, ToolMessage)]
        assert all(0 < len(text) < 500 and "${" not in text for text in said), said
    supervisors = {agent.id: agent.supervisor for agent in roster(6)}
    for state, head in zip(played.states, played.heads, strict=True):
        assert isinstance(state.messages[0], UserMessage)
        assert state.messages[0].author == supervisors[head.agent]


def test_it_goes_on_where_it_was_and_opens_once(root: Path) -> None:
    left: set[str] = set()
    for seed in range(2):
        with team(root, 3) as (workspace, agents):
            simulation = Simulation(workspace, agents, seed=seed, speed=0)
            most = workspace.journal.last_seq() + 200
            run_until(workspace, simulation, partial(has_gone_on, workspace, most, left))
            heads = workspace.sessions.list()
            left = {head.id for head in heads if head.status not in ENDED}
            assert all(is_whole(state.messages) for state in states(workspace))
            assert len(workspace.journal.history("collab", "plan.md")[:1]) == 1
            firsts = [row for row in all_rows(workspace) if row.message == "Plan the calculator"]
            assert len([row for row in firsts if row.version == 1]) <= 1


def test_stop_does_not_wait_for_pauses(root: Path) -> None:
    with team(root, 3) as (workspace, agents):
        simulation = Simulation(workspace, agents, speed=1e-9)
        simulation.start()
        stopping = Thread(target=simulation.stop)
        stopping.start()
        stopping.join(PATIENCE)
        assert not stopping.is_alive()
        simulation.stop()
        with pytest.raises(RuntimeError, match="only once"):
            simulation.start()


def test_requests_of_all_kinds_come_wait_long_and_are_used(root: Path) -> None:
    seen: dict[str, Row] = {}
    open_requests = 0

    with team(root) as (workspace, agents):

        def all_used() -> bool:
            nonlocal open_requests
            asked = [row for row in all_rows(workspace) if row.zone == "request"]
            still_open: set[str] = set()
            for row in asked:
                still_open ^= {row.path}
                open_requests = max(open_requests, len(still_open))
            for row in asked:
                if row.tool == ASK and row.path not in seen:
                    seen[row.path] = row
                    answer(workspace, row, **self_consistent(workspace, row))
            journal = workspace.journal
            decided = text_of(journal, "collab", "decisions.md")
            return all(
                each in decided for each in ("512", "nothing by zero", "Units")
            ) and "Tuesday first" in text_of(journal, "private", f"{rejected_by(seen)}/notes.md")

        summary = run_until(workspace, Simulation(workspace, agents, seed=8, speed=0, people=True), all_used)
        assert summary.errors == ()
        assert open_requests <= demo().open_requests
        for row in seen.values():
            request = workspace.requests.find(row.seq)
            assert request.expires is not None
            assert request.expires - row.time >= 300e9, "whatever the speed"
        assert not any(row.detail.get("outcome") == "expired" for row in all_rows(workspace))
        assert workspace.journal.head("collab", "announcement.md") is None, "it was rejected"


def self_consistent(workspace: Workspace, row: Row) -> dict[str, Json]:
    """Rejects what is to be approved, writes, and chooses the first option or the last two."""
    request = workspace.requests.find(row.seq)
    if request.kind == "approve":
        return {"approved": False, "reason": "The council meets on Tuesday first"}
    if request.kind == "prompt":
        return {"text": "You cannot divide nothing by zero."}
    values: list[Json] = [option.value for option in request.options]
    return {"values": values[-2:] if request.multi else values[:1]}


def rejected_by(seen: dict[str, Row]) -> str:
    return next((row.actor for row in seen.values() if row.message.startswith("collab_write")), "nobody")


SLOW_ANSWERS = """name = "asks"
answer_within = 0.3
on_message = "keep"
[[agent]]
id = "ada"
first = ["ask"]
then = { look = 1 }
[routine.ask]
steps = [{ call = "ask_person", args = { question = "Which?" } }]
[routine.look]
limit = { steps = %d }
steps = [{ call = "collab_list", repeat = 5 }]
[routine.keep]
steps = [{ call = "save_to_my_workspace", args = { filename = "heard.md", content = "${who}: ${said}" } }]
[texts]
no_answer = "Nobody answered."
"""


def test_who_gets_no_answer_goes_on_and_so_does_whoever_is_ended_or_told(root: Path, tmp_path: Path) -> None:
    scenario = scenario_from(tmp_path / "asks.toml", SLOW_ANSWERS % 0)
    with Workspace.open(root, scenario.roster()) as workspace:
        dana = workspace.tools_for_human("dana")
        ended: list[str] = []

        def went_on() -> bool:
            heads = workspace.sessions.list("ada")
            if len(heads) >= 3 and not ended:
                ended.append(heads[-1].id)
                dana.dispatch_tool_call("cancel_agent", {"agent_id": "ada"})
            if len(heads) >= 5:
                given: dict[str, Json] = {"to": "ada", "payload": {"text": "Be brief"}}
                dana.dispatch_tool_call("send_message", given)
            return "dana: Be brief" in text_of(workspace.journal, "private", "ada/heard.md")

        summary = run_until(
            workspace, Simulation(workspace, scenario.roster(), scenario=scenario, speed=0), went_on
        )
        assert summary.errors == ()
        assert "Nobody answered." in {state.messages[-1].content for state in states(workspace, "ada")}
        assert all(is_whole(state.messages) for state in states(workspace))


def test_a_session_stops_at_its_limit_until_a_person_lets_it_go_on(root: Path, tmp_path: Path) -> None:
    scenario = scenario_from(tmp_path / "limit.toml", SLOW_ANSWERS.replace('"ask"', '"look"', 1) % 4)
    with Workspace.open(root, scenario.roster()) as workspace:
        resumed: list[str] = []

        def done() -> bool:
            heads = workspace.sessions.list("ada")
            for head in heads:
                if head.status == "error":
                    resumed.append(head.id)
                    workspace.tools_for_human("dana").dispatch_tool_call("resume_agent", {"agent_id": "ada"})
            return any(head.status == "done" and head.id in resumed for head in heads)

        simulation = Simulation(workspace, scenario.roster(), scenario=scenario, speed=0, people=True)
        assert run_until(workspace, simulation, done).errors == ()


@pytest.mark.parametrize("language", ["zh"])
def test_in_chinese_all_that_is_said_is_chinese(root: Path, language: Language) -> None:
    with Workspace.open(root, roster(3), language=language) as workspace:
        run_until(
            workspace,
            Simulation(workspace, roster(3), seed=1, speed=0),
            lambda: bool(conflicts(workspace, DISPUTED)) and workspace.journal.last_seq() > 200,
        )
        said = [
            each.content
            for state in states(workspace)
            for each in state.messages
            if isinstance(each, AssistantMessage | UserMessage)
        ]
        assert [text for text in said if text.isascii()] == []
        assert "# 计划" in text_of(workspace.journal, "collab", "plan.md")
        assert workspace.verify() == []
