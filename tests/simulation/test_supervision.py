"""People supervise simulated agents as any others: they pause them, correct them, end their task."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from simulation.playing import all_rows, run_until, scenario_from, states, text_of
from watchroom import Json, Row, Workspace
from watchroom.agents.simulation import Scenario, Simulation
from watchroom.features.calls.toolbox import Toolbox
from watchroom.features.sessions.runtime import ToolMessage
from watchroom.kernel.call_context import CallTrace
from watchroom.model import ASK
from watchroom.texts import Language

TEAM = """name = "team"
[[agent]]
id = "ada"
first = %s
[[agent]]
id = "bob"
first = ["look"]
then = { look = 1 }
[routine.look]
steps = [{ call = "collab_list", repeat = 3, on_error = "continue" }]
[routine.publish]
approve = ["collab_write"]
steps = [{ call = "collab_write", args = { filepath = "news.md", content = "Draft", expected_version = 0, message = "News" } }]
"""


def scenario(path: Path, first: str) -> Scenario:
    return scenario_from(path / "team.toml", TEAM % first)


def steer(workspace: Workspace, tool: str, agent: str) -> None:
    assert workspace.tools_for_human("dana").dispatch_tool_call(tool, {"agent_id": agent})["success"]


def steps(workspace: Workspace, agent: str, after: int = 0) -> list[Row]:
    return [row for row in workspace.journal.rows(after, limit=1_000_000) if row.actor == agent]


def status(workspace: Workspace, agent: str) -> str:
    """The status of its newest session: those of one second are in no order."""
    heads = workspace.sessions.list(agent)
    return max(heads, key=lambda head: head.row.seq).status if heads else ""


def test_a_paused_team_makes_no_step_until_each_is_resumed(root: Path, tmp_path: Path) -> None:
    team = scenario(tmp_path, '["look"]\nthen = { look = 1 }')
    with Workspace.open(root, team.roster()) as workspace:
        paused: list[int] = []
        resumed: list[int] = []

        def all_paused_and_one_resumed() -> bool:
            if not paused and all(len(steps(workspace, each)) > 10 for each in ("ada", "bob")):
                for each in ("ada", "bob"):
                    steer(workspace, "pause_agent", each)
                paused.append(workspace.journal.last_seq())
            if paused and not resumed and status(workspace, "ada") == status(workspace, "bob") == "paused":
                resumed.append(workspace.journal.last_seq())
                steer(workspace, "resume_agent", "bob")
            if len(resumed) == 1 and len(steps(workspace, "bob", resumed[0])) > 20:
                assert steps(workspace, "ada", resumed[0]) == []
                resumed.append(workspace.journal.last_seq())
                steer(workspace, "resume_agent", "ada")
            return bool(resumed) and len(steps(workspace, "ada", resumed[0])) > 10

        simulation = Simulation(workspace, team.roster(), scenario=team, speed=0)
        assert run_until(workspace, simulation, all_paused_and_one_resumed).errors == ()


def test_who_is_paused_between_two_sessions_stays_paused_when_the_demo_goes_on(
    root: Path, tmp_path: Path
) -> None:
    once = scenario(tmp_path, '["look"]')
    with Workspace.open(root, once.roster()) as workspace:
        simulation = Simulation(workspace, once.roster(), scenario=once, speed=0)
        run_until(workspace, simulation, lambda: status(workspace, "ada") == "done")
        steer(workspace, "pause_agent", "ada")
        twice = scenario(tmp_path, '["look", "look"]')
        left: list[int] = []

        def only_bob_went_on() -> bool:
            return status(workspace, "ada") == "paused" and len(steps(workspace, "bob", left[-1])) > 20

        for _ in range(2):
            left.append(workspace.journal.last_seq())
            simulation = Simulation(workspace, once.roster(), scenario=twice, speed=0)
            run_until(workspace, simulation, only_bob_went_on)
            assert {head.status for head in workspace.sessions.list("ada")} == {"done", "paused"}
            assert len(workspace.sessions.list("ada")) == 2
        steer(workspace, "resume_agent", "ada")
        simulation = Simulation(workspace, once.roster(), scenario=twice, speed=0)
        run_until(workspace, simulation, lambda: status(workspace, "ada") == "done")


def test_what_a_person_corrected_before_approval_is_written(root: Path, tmp_path: Path) -> None:
    team = scenario(tmp_path, '["publish"]')
    with Workspace.open(root, team.roster()) as workspace:
        asked: list[int] = []

        def published() -> bool:
            for row in all_rows(workspace):
                if row.tool == ASK and not asked:
                    asked.append(row.seq)
                    (call,) = workspace.requests.find(row.seq).calls
                    arguments = {**json.loads(call.arguments), "content": "Corrected"}
                    decision: dict[str, Json] = {
                        "call_id": call.id,
                        "approved": True,
                        "arguments": json.dumps(arguments),
                    }
                    given: dict[str, Json] = {"request": row.seq, "decisions": [decision]}
                    dana = workspace.tools_for_human("dana")
                    assert dana.dispatch_tool_call("answer_request", given)["outcome"] == "edited"
            return status(workspace, "ada") == "done"

        run_until(
            workspace, Simulation(workspace, team.roster(), scenario=team, speed=0, people=True), published
        )
        assert text_of(workspace.journal, "collab", "news.md") == "Corrected"


class BrokenToolbox(Toolbox):
    """Raises where it should list files."""

    def dispatch_tool_call(
        self,
        tool_name: str,
        arguments: Mapping[str, Json] | str,
        *,
        call: str = "",
        again: bool = False,
        approved: str = "",
        trace: CallTrace | None = None,
    ) -> dict[str, Json]:
        if tool_name == "collab_list":
            raise RuntimeError("the list is broken")
        return super().dispatch_tool_call(
            tool_name, arguments, call=call, again=again, approved=approved, trace=trace
        )


class BrokenWorkspace(Workspace):
    def tools(self, agent: str, *, language: Language | None = None) -> Toolbox:
        return BrokenToolbox(agent, self._store, self._services, language or self.config.language)


def test_a_tool_that_raises_is_a_failed_call_after_which_its_agent_goes_on(
    root: Path, tmp_path: Path
) -> None:
    team = scenario(tmp_path, '["look", "look"]')
    with BrokenWorkspace.open(root, team.roster()) as workspace:
        simulation = Simulation(workspace, team.roster(), scenario=team, speed=0)

        def went_on() -> bool:
            heads = workspace.sessions.list("ada")
            return [head.status for head in heads] == ["done", "done"]

        summary = run_until(workspace, simulation, went_on)
        assert summary.errors == ()
        assert summary.outcomes.keys() == {"tool_failed"}
        (result, *_) = (
            each for each in states(workspace, "ada")[0].messages if isinstance(each, ToolMessage)
        )
        assert "the list is broken" in result.content


def test_a_demo_whose_task_was_ended_begins_a_new_one(root: Path, tmp_path: Path) -> None:
    team = scenario_from(tmp_path / "team.toml", TEAM % '["look"]' + '[task]\ntext = "Look around."\n')
    with Workspace.open(root, team.roster()) as workspace:

        def bob_went_on(seq: int) -> bool:
            return len(steps(workspace, "bob", seq)) > 10

        for number in (1, 2):
            last = workspace.journal.last_seq()
            run_until(
                workspace,
                Simulation(workspace, team.roster(), scenario=team, speed=0),
                partial(bob_went_on, last),
            )
            tasks = list(workspace.tasks.list())
            assert len(tasks) == number
            (open_task,) = (task for task in tasks if task.status == "open")
            given: Mapping[str, Json] = {"task_id": open_task.id, "status": "cancelled", "report": ""}
            assert workspace.tools_for_human("dana").dispatch_tool_call("end_task", given)["success"]
