"""The runs of routines: one is due at a time, and what becomes of it is recorded. The clock is moved."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import psutil
import pytest
from clock import HOUR, JumpingClock
from routines import routine_program
from routines.plans import make_plan
from runtime.scripted import until
from service_process import PATIENCE
from trees.git_repository import Repository
from watchroom import Agent, Workspace
from watchroom.agents.clients import routine_run
from watchroom.agents.clients.routine_run import RoutineRunner
from watchroom.features.overview.snapshots import read_model
from watchroom.features.routines.rows import BEGIN_RUN, MISS_RUN, Routine, RunBegin, RunState
from watchroom.features.routines.rules import Trigger
from watchroom.features.routines.service import read_state
from watchroom.kernel.call_context import CallContext
from watchroom.model import PRESENCE, SYSTEM, Json, Note, Write
from watchroom.serving.service.workspaces import ServedWorkspaces
from watchroom_tui.formatters.need_texts import need_sentence
from watchroom_tui.presentation.localization import load_texts

PROGRAM: Final = (sys.executable, routine_program.__file__)
DANA: Final = CallContext("human:dana")
MINUTE: Final = 60 * 10**9


class World:
    """A workspace whose service looks when the test says, and a clock that the test moves."""

    def __init__(self, folder: Path, clock: JumpingClock, patch: pytest.MonkeyPatch) -> None:
        self.workspace = Workspace.open(folder / "team", [Agent("alice")])
        self.clock = clock
        self.folder = folder
        self._patch = patch
        self._runners: list[RoutineRunner] = []
        self.runner = self.new_runner()
        patch.setenv("ROUTINE_RAN", str(folder / "ran"))
        patch.setattr(routine_run, "CHECK_SECONDS", 0.1)

    def new_runner(self, workspace: Workspace | None = None) -> RoutineRunner:
        runner = RoutineRunner(workspace or self.workspace, PROGRAM)
        self._runners.append(runner)
        return runner

    def add(self, **changes: Any) -> None:
        plan = make_plan(self.workspace, folder=str(self.folder), **changes)
        self.workspace.routines.add(DANA, "nightly", "Do it.", plan)

    def act(self, what: str) -> None:
        self._patch.setenv("ROUTINE_ACT", what)

    def look(self, nanoseconds: int = 0) -> None:
        """Move the clock, look, and wait for the run."""
        self.clock.ahead += nanoseconds
        self.runner.look()
        self.runner.wait()

    @property
    def routine(self) -> Routine:
        return self.workspace.routines.find("nightly")

    @property
    def ran(self) -> list[str]:
        place = self.folder / "ran"
        return place.read_text().splitlines() if place.exists() else []

    def states(self) -> list[RunState]:
        return [run.state for run in self.routine.runs]

    def wait_for_run(self, count: int = 1) -> None:
        deadline = time.monotonic() + PATIENCE
        while len(self.ran) < count:
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def spend(self, cost: float, unpriced: int = 0) -> None:
        """Begin a session in the routine's folder that has used this."""
        detail: dict[str, Json] = {"cwd": str(self.folder), "cost": cost, "tokens": [100, 10]}
        detail |= {"unpriced": unpriced} if unpriced else {}
        name = f"alice/s{self.workspace.journal.last_seq()}"
        self.workspace.journal.append([Write("alice", "client_event", "session", name, "{}", detail=detail)])

    def close(self) -> None:
        for each in self._runners:
            each.close()
        self.workspace.close()


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    world = World(tmp_path, JumpingClock(monkeypatch), monkeypatch)
    yield world
    world.close()


def test_it_runs_once_each_time_it_is_due(world: World) -> None:
    world.add()
    world.look()
    assert (world.ran, world.routine.last_state) == ([], None)
    world.look(HOUR)
    world.look()
    assert len(world.ran) == 1
    assert world.ran[0].split()[1:] == ["routine", "start", "nightly", "--dir", world.workspace.root]
    world.act("run 3")
    world.look(HOUR)
    assert world.states() == ["done", "failed"]
    end = world.routine.runs[1].end
    assert end is not None
    assert end.status == 3


def test_a_run_whose_folder_is_gone_has_failed(world: World) -> None:
    world.add()
    plan = make_plan(world.workspace, folder=str(world.folder / "gone"))
    world.workspace.routines.add(DANA, "lost", "Do it.", plan)
    world.look(HOUR)
    routine = world.workspace.routines.find("lost")
    assert routine.last is not None
    assert routine.last.end is not None
    assert routine.last.state == routine.last_state == "failed"
    assert str(world.folder / "gone") in routine.last.end.reason
    # Other routines still run.
    assert world.states() == ["done"]
    world.look()
    assert len(world.workspace.routines.find("lost").runs) == 1


def test_after_a_sleep_it_runs_at_most_once_and_says_what_was_missed(world: World) -> None:
    world.add()
    world.look(5 * HOUR + MINUTE)
    world.look()
    assert (len(world.ran), world.routine.missed) == (1, 4)
    world.look(2 * HOUR + 30 * MINUTE)
    assert (len(world.ran), world.routine.missed) == (1, 6)
    assert world.routine.runs[0].begin.slot == world.routine.added.time + 5 * HOUR


def test_a_clock_that_is_put_back_starts_nothing_again(world: World) -> None:
    world.add()
    world.look(HOUR)
    world.look(-HOUR)
    world.look(-24 * HOUR)
    world.look(24 * HOUR)
    assert len(world.ran) == 1


def test_it_ends_at_its_date(world: World) -> None:
    world.add(until=world.workspace.journal.now() + 2 * HOUR + MINUTE)
    world.look(HOUR)
    world.look(2 * HOUR)
    assert len(world.ran) == 1
    assert not world.runner.is_active


def test_a_person_runs_it_now(world: World) -> None:
    world.add()
    world.workspace.routines.run_now(DANA, "nightly")
    world.look()
    world.look()
    assert world.states() == ["done"]


def test_only_one_run_is_open_however_many_services_look(world: World) -> None:
    world.add()
    world.act("hang")
    world.clock.ahead += HOUR
    with Workspace.open(world.workspace.root, create=False) as second:
        other = world.new_runner(second)
        for each in (world.runner, other) * 3:
            each.look()
        world.wait_for_run()
        world.clock.ahead += HOUR
        for each in (world.runner, other) * 3:
            each.look()
        assert (len(world.ran), world.routine.is_running, world.routine.last_state) == (1, True, "running")
        for each in (world.runner, other):
            each.close()
    assert len(world.workspace.journal.notes("workspace", "routine/nightly", SYSTEM, BEGIN_RUN)) == 1
    assert world.states() == ["interrupted"]


def test_a_run_whose_process_was_killed_is_interrupted(world: World) -> None:
    world.add()
    detail: dict[str, Json] = {"slot": world.routine.added.time + 1, "folder": str(world.folder)}
    world.workspace.journal.append([Note(SYSTEM, BEGIN_RUN, "workspace", "routine/nightly", detail=detail)])
    world.spend(0.5)
    assert world.routine.last_state == "interrupted"
    world.look()
    assert (world.states(), world.routine.spent, world.ran) == (["interrupted"], 0.5, [])


def test_a_person_stops_it_while_it_runs(world: World) -> None:
    world.add()
    world.act("hang")
    world.clock.ahead += HOUR
    world.runner.look()
    world.wait_for_run()
    world.workspace.routines.stop(DANA, "nightly")
    world.runner.wait()
    world.look(3 * HOUR)
    assert (world.states(), world.routine.stopped, len(world.ran)) == (["stopped"], "person", 1)
    assert read_model(world.workspace.journal, world.workspace.journal.last_seq()).needs == ()


@pytest.mark.parametrize(("cost", "unpriced", "reason"), [(10.0, 0, "budget"), (0.0, 50, "unpriced")])
def test_a_used_up_budget_ends_it_with_one_need(
    world: World, cost: float, unpriced: int, reason: str
) -> None:
    world.add()
    world.act("hang")
    world.clock.ahead += HOUR
    world.runner.look()
    world.wait_for_run()
    world.spend(cost, unpriced)
    world.runner.wait()
    world.look(HOUR)
    assert (world.states(), world.routine.stopped, len(world.ran)) == (["budget"], reason, 1)
    needs = read_model(world.workspace.journal, world.workspace.journal.last_seq()).needs
    assert [(need.kind, need.row.path) for need in needs] == [("budget", "routine/nightly")]
    assert need_sentence(needs[0], load_texts("en")).startswith("the routine nightly has ended: ")


def test_the_budget_of_a_run_ends_only_that_run(world: World) -> None:
    world.add()
    world.act("hang")
    world.clock.ahead += HOUR
    world.runner.look()
    world.wait_for_run()
    world.spend(1.5)
    world.runner.wait()
    assert (world.states(), world.routine.stopped, world.routine.spent) == (["budget"], None, 1.5)


def test_a_session_that_a_run_continues_counts_from_the_begin_of_the_run(world: World) -> None:
    world.add()
    journal = world.workspace.journal

    def record(session: str, cost: float, status: str) -> None:
        detail: dict[str, Json] = {"cwd": str(world.folder), "cost": cost, "status": status}
        detail |= {PRESENCE: journal.presence.hold() if session == "open" else "killed"}
        journal.append([Write("alice", "client_event", "session", f"alice/{session}", "{}", detail=detail)])

    for session, status in (("continued", "done"), ("ended", "done"), ("open", "idle"), ("lost", "running")):
        record(session, 7.0, status)
    run = world.workspace.routines.begin(world.routine, RunBegin(1, str(world.folder)))
    record("continued", 8.5, "running")
    record("open", 9.0, "running")
    record("lost", 7.5, "running")
    record("new", 0.25, "running")
    end = world.workspace.routines.end(world.routine, run, "done")
    assert {*end.sessions} == {"alice/continued", "alice/lost", "alice/new"}
    assert world.routine.spent == 2.25


def test_a_run_that_cannot_be_measured_is_ended(world: World) -> None:
    world.add()
    world.act("hang")
    world.clock.ahead += HOUR
    world.runner.look()
    world.wait_for_run()
    client = psutil.Process(int(world.ran[0].split()[0]))
    with closing(sqlite3.connect(world.folder / "team/.watchroom/journal.db")) as database:
        database.execute("ALTER TABLE rows RENAME TO unreadable")
        gone, _ = psutil.wait_procs([client], PATIENCE)
        database.execute("ALTER TABLE unreadable RENAME TO rows")
    assert gone == [client]


def test_it_ends_after_its_timeout(world: World) -> None:
    world.add(timeout=0.3)
    world.act("hang")
    world.look(HOUR)
    assert world.states() == ["timeout"]


def test_a_file_that_changes_often_starts_one_run(world: World) -> None:
    watched = world.folder / "spec.md"
    watched.write_text("0")
    trigger = Trigger("file", target="spec.md")
    world.add(trigger=trigger, seen=read_state(trigger, str(world.folder)))
    world.look()
    world.look()
    for number in range(100):
        watched.write_text(str(number))
        if number % 20 == 0:
            world.look()
    assert world.ran == []
    for _ in range(4):
        world.look()
    assert len(world.ran) == 1
    watched.write_text("again")
    for _ in range(4):
        world.look()
    # Not within five minutes of the last one.
    assert len(world.ran) == 1
    world.look(6 * MINUTE)
    assert len(world.ran) == 2


@pytest.mark.parametrize("is_changed", [True, False])
def test_a_change_after_the_service_was_killed_starts_one_run(world: World, is_changed: bool) -> None:
    watched = world.folder / "spec.md"
    watched.write_text("0")
    trigger = Trigger("file", target="spec.md")
    seen = read_state(trigger, str(world.folder))
    world.add(trigger=trigger, seen=seen)
    detail: dict[str, Json] = {"slot": 1, "folder": str(world.folder), "seen": seen}
    world.workspace.journal.append([Note(SYSTEM, BEGIN_RUN, "workspace", "routine/nightly", detail=detail)])
    if is_changed:
        watched.write_text("1")
    for _ in range(2):
        for _ in range(3):
            world.look()
        world.look(6 * MINUTE)
    assert world.states() == ["interrupted", "done"][: 1 + is_changed]


def test_a_ref_that_moves_starts_a_run(world: World) -> None:
    repository = Repository(world.folder / "project")
    repository.commit(a__txt="one\n")
    trigger = Trigger("ref", target="HEAD")
    plan = make_plan(world.workspace, folder=str(repository.folder), trigger=trigger)
    plan = plan._replace(seen=world.workspace.routines.read_state(plan))
    world.workspace.routines.add(DANA, "nightly", "Do it.", plan)
    for _ in range(3):
        world.look()
    assert world.ran == []
    repository.write("new.txt", "new\n")
    repository.commit()
    for _ in range(3):
        world.look()
    assert len(world.ran) == 1


def test_what_an_agent_writes_itself_runs_nothing(world: World) -> None:
    plan = make_plan(world.workspace, folder=str(world.folder))
    world.workspace.journal.append(
        [Write("alice", "add_routine", "workspace", "routine/forged", "Go.", detail=plan.detail)]
    )
    answer = world.workspace.tools("alice").dispatch_tool_call("stop_routine", {"routine": "forged"})
    assert answer["error"] == "permission_denied"
    world.look(HOUR)
    assert (world.workspace.routines.list(), world.ran) == ([], [])


@pytest.mark.parametrize(
    "changes",
    [
        {"trigger": Trigger("every", 0)},
        {"trigger": Trigger("daily", at="07:00", zone="../../etc/passwd")},
        {"trigger": Trigger("daily", at="7", zone="UTC")},
        {"until": 2**62},
    ],
)
def test_a_row_that_no_tool_writes_is_no_routine(world: World, changes: dict[str, Any]) -> None:
    plan = make_plan(world.workspace, folder=str(world.folder), **changes)
    draft = Write("human:dana", "add_routine", "workspace", "routine/odd", "Go.", detail=plan.detail)
    world.workspace.journal.append([draft])
    world.look(HOUR)
    assert (world.workspace.routines.list(), world.ran) == ([], [])


async def test_the_service_keeps_a_workspace_with_an_active_routine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routine_run, "CHECK_SECONDS", 0.1)
    Workspace.open(tmp_path / "team").close()
    served = ServedWorkspaces(lambda workspace: None, PROGRAM)
    open_one = await served.get(str(tmp_path / "team"))
    routines = open_one.workspace.routines
    routines.add(DANA, "nightly", "Do it.", make_plan(open_one.workspace, folder=str(tmp_path)))
    await until(lambda: open_one.is_used)
    await asyncio.sleep(0.2)
    await served.close_unused(0.2)
    assert (served.all, open_one.has_clients) == ([open_one], False)
    routines.stop(DANA, "nightly")
    await until(lambda: not open_one.is_used)
    await served.close_unused(0)
    assert served.all == []


def test_missed_runs_have_a_row(world: World) -> None:
    world.add()
    world.look(HOUR + 30 * MINUTE)
    (row,) = world.workspace.journal.notes("workspace", "routine/nightly", SYSTEM, MISS_RUN)
    assert row.detail["count"] == 1
