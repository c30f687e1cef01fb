"""Routines on screen 9: when they run, what they have spent, and their end."""

from __future__ import annotations

from pathlib import Path

from routines.plans import make_plan
from tui.driver import WIDE, dashboard
from watchroom import Agent, Workspace
from watchroom.features.routines.rows import RunBegin
from watchroom.features.routines.rules import Trigger
from watchroom.kernel.call_context import CallContext


async def test_a_person_sees_the_routines_and_stops_one(tmp_path: Path) -> None:
    with Workspace.open(tmp_path / "team", [Agent("alice")]) as workspace:
        routines, dana = workspace.routines, CallContext("human:dana")
        daily = Trigger("daily", at="07:00", zone="UTC")
        routines.add(dana, "deps", "Update.", make_plan(workspace, trigger=daily))
        routine = routines.find("deps")
        run = routines.begin(routine, RunBegin(workspace.journal.now(), "/"))
        routines.end(routine, run, "failed", 1)
        async with dashboard(workspace, size=WIDE) as user:
            await user.goes_to("9", "tasks")
            await user.sees("Routines", "deps", "daily 07:00 UTC", "the service is not running")
            await user.sees("failed", "$0.00 of $10.00")
            user.list("routines").focus()
            await user.press("X")
            await user.sees("Stop the routine deps?")
            await user.press("enter")
            await user.until(lambda: routines.find("deps").stopped == "person", "the stop")
            await user.until(
                lambda: "the service is not running" not in user.words_in("#routines"), "no next run"
            )


async def test_a_watched_file_is_shown_as_seen_from_the_folder(tmp_path: Path) -> None:
    with Workspace.open(tmp_path / "team", [Agent("alice")]) as workspace:
        for name, file in (("inside", tmp_path / "src/a.txt"), ("outside", Path("/elsewhere/b.txt"))):
            trigger = Trigger("file", target=str(file))
            plan = make_plan(workspace, trigger=trigger, folder=str(tmp_path))
            workspace.routines.add(CallContext("human:dana"), name, "Look.", plan)
        async with dashboard(workspace, size=WIDE) as user:
            await user.goes_to("9", "tasks")
            await user.sees("when src/a.txt changes", "when /elsewhere/b.txt changes")


async def test_without_routines_there_is_no_list(tmp_path: Path) -> None:
    with Workspace.open(tmp_path / "team", [Agent("alice")]) as workspace:
        async with dashboard(workspace, size=WIDE) as user:
            await user.goes_to("9", "tasks")
            assert not user.list("routines").display
