"""Races in a society: simultaneous messages, ends during work, and agents that a person registered."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from calls import ok, refused
from requirements.tasks.test_society_at_work import (
    END,
    Answer,
    Minds,
    at_work,
    begun,
    call,
    folder,
    forever,
    said_to,
    spawn,
    state_of,
    workspace,
)
from runtime.scripted import say, until
from watchroom import Agent, Row, Workspace
from watchroom.agents.society import Society
from watchroom.features.sessions.runtime.models import Reply, SimulatedModel
from watchroom.features.tasks.rules import Member

__all__ = ["folder", "workspace"]


def rows(workspace: Workspace, tool: str) -> list[Row]:
    return [row for row in workspace.journal.rows(limit=100_000) if row.tool == tool]


class TestMaking:
    async def test_a_long_name_that_is_taken_is_cut(self, workspace: Workspace, folder: Path) -> None:
        society, task = begun(workspace, Minds(), folder)
        root = workspace.tools("root")
        made = [
            ok(root, "spawn_agent", role="p", instructions="x", name="a" * 64)["agent_id"] for _ in range(2)
        ]
        assert made == ["a" * 64, "a" * 62 + "-2"]
        async with asyncio.timeout(30):
            await society.run(task, stay=False)

    def test_a_task_has_one_first_agent_whoever_begins_it(self, workspace: Workspace, folder: Path) -> None:
        task = workspace.tasks.submit("human:dana", "Build it.", folder)
        barrier = threading.Barrier(4)

        def begin(_: int) -> str:
            barrier.wait()
            return workspace.members.start(task).id

        with ThreadPoolExecutor(4) as pool:
            assert set(pool.map(begin, range(4))) == {"root"}
        assert len(workspace.members.of_task(task.id)) == 1

    def test_agents_that_are_registered_at_once_are_all_registered(self, workspace: Workspace) -> None:
        barrier = threading.Barrier(8)

        def register(number: int) -> None:
            barrier.wait()
            for each in range(6):
                workspace.register([Agent(f"a{number}-{each}")])

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(register, range(8)))
        assert len(workspace.config.agents) == 48

    async def test_one_whose_model_cannot_be_had_leaves_the_others_at_work(
        self, workspace: Workspace, folder: Path
    ) -> None:
        minds = Minds(root=[spawn("ada"), Reply("Waiting."), END, Reply()])

        def models(member: Member) -> SimulatedModel:
            if member.id == "ada":
                raise KeyError("no model for ada")
            return minds(member)

        society = Society(workspace, models)
        task = society.submit_requirement("Build it.", folder, by="human:dana")
        async with asyncio.timeout(30):
            assert (await society.run(task.id)).status == "done"
        assert "no model for ada" in said_to(workspace, "root")[1][1]


class TestByHand:
    async def test_what_is_said_to_an_agent_that_somebody_registered_is_heard(
        self, workspace: Workspace, folder: Path
    ) -> None:
        society, task = begun(workspace, Minds(), folder)
        workspace.register([Agent("helper", "helper", "bottom", "", task)])
        ok(workspace.tools("root"), "send_message", to="helper", payload={"text": "Do it."})
        async with asyncio.timeout(30):
            await society.run(task, stay=False)
        assert said_to(workspace, "helper")[0] == ("root", "Do it.")

    def test_it_may_not_end_the_task_of_others(self, workspace: Workspace, folder: Path) -> None:
        _, task = begun(workspace, Minds(), folder)
        workspace.register([Agent("helper", "helper", "bottom", "", task)])
        assert refused(workspace.tools("helper"), "end_task", status="done", report="x")["error"] == (
            "permission_denied"
        )

    def test_its_end_is_not_taken_for_a_birth(self, workspace: Workspace, folder: Path) -> None:
        task = workspace.tasks.submit("human:dana", "Build it.", folder)
        workspace.register([Agent("helper", "helper", "bottom", "", task.id)])
        assert say(workspace, "terminate_agent", agent_id="helper")["ended"] == ["helper"]
        assert workspace.members.start(task).id == "root"

    def test_one_without_a_task_is_ended_by_nobody(self, workspace: Workspace) -> None:
        workspace.register([Agent("alice"), Agent("bob", supervisor="alice")])
        assert say(workspace, "terminate_agent", agent_id="alice")["error"] == "not_in_task"

    def test_registering_an_agent_anew_is_no_way_out_of_its_end(
        self, workspace: Workspace, folder: Path
    ) -> None:
        begun(workspace, Minds(), folder)
        root = workspace.tools("root")
        ok(root, "spawn_agent", role="p", instructions="x", name="ada")
        ok(root, "terminate_agent", agent_id="ada")
        workspace.register([Agent("ada", "programmer")])
        assert refused(workspace.tools("ada"), "collab_list")["error"] == "agent_ended"


class TestEnding:
    @pytest.mark.parametrize("by", ["person", "root"])
    async def test_a_command_that_runs_when_its_task_ends_has_its_last_rows(
        self, workspace: Workspace, folder: Path, by: str
    ) -> None:
        if workspace.commands.sandbox.best is None:
            pytest.skip("no sandbox works here, so no command runs: bubblewrap is to be installed")
        slow = call("run_command", command="echo x > made.txt; echo begun; sleep 600")
        minds = Minds(root=[spawn("ada"), Reply("Waiting.")], ada=[slow])
        society, task = begun(workspace, minds, folder)
        async with at_work(society, task) as work:
            await until(lambda: bool(rows(workspace, "command_output")))
            if by == "person":
                say(workspace, "end_task", status="cancelled", report="Enough.", task_id=task)
            else:
                ok(workspace.tools("root"), "end_task", status="done", report="Enough.")
            async with asyncio.timeout(30):
                await work
        await until(lambda: bool(rows(workspace, "end_command")))
        head = workspace.journal.head("file", f"{task}/made.txt")
        assert head is not None
        assert (head.actor, head.deleted) == ("ada", False)

    async def test_two_ends_at_once_are_one(self, workspace: Workspace, folder: Path) -> None:
        minds = Minds(root=[spawn("ada"), Reply("Waiting.")], ada=[spawn("bob"), forever()], bob=[forever()])
        society, task = begun(workspace, minds, folder)
        async with at_work(society, task) as work:
            await until(lambda: "bob" in minds.asked and len(minds.asked["ada"]) >= 2)
            say(workspace, "cancel_agent", agent_id="ada")
            say(workspace, "cancel_agent", agent_id="bob")
            say(workspace, "terminate_agent", agent_id="bob")
            await until(lambda: len(minds.asked["root"]) >= 3)
            assert not work.done()

    @pytest.mark.parametrize("then", ["asks", "calls", "is paused"])
    async def test_who_ended_the_task_is_done_with_one_more_word(
        self, workspace: Workspace, folder: Path, then: str
    ) -> None:
        hold = asyncio.Event()

        async def last() -> Reply:
            await hold.wait()
            return Reply("Good.")

        question = call("ask_person", question="Happy?", options=None, several=None)
        more: list[Answer] = [question] if then == "asks" else [call("list_agents")] * 100
        minds = Minds(root=[END, *([last()] if then == "is paused" else more)])
        society = Society(workspace, minds, asks=True)
        task = society.submit_requirement("Build it.", folder, by="human:dana").id
        async with at_work(society, task) as work:
            await until(lambda: len(minds.asked.get("root", ())) >= 2)
            if then == "is paused":
                say(workspace, "pause_agent", agent_id="root")
            hold.set()
            async with asyncio.timeout(30):
                assert (await work).status == "done"
        assert len(minds.asked["root"]) < 100, "a few at most, until it has heard"
        assert state_of(workspace, "root").status in ("done", "cancelled")

    async def test_its_maker_is_told_once_however_often_it_starts(
        self, workspace: Workspace, folder: Path
    ) -> None:
        minds = Minds(root=[spawn("ada"), Reply("Waiting.")], ada=[forever()])
        society, task = begun(workspace, minds, folder)
        async with at_work(society, task):
            await until(lambda: "ada" in minds.asked)
            say(workspace, "terminate_agent", agent_id="ada", reason="slow")
            await until(lambda: len(minds.asked["root"]) >= 3)
        for _ in range(2):
            async with asyncio.timeout(30):
                await Society(workspace, Minds()).run(task, stay=False)
        told = [text for author, text in said_to(workspace, "root") if author == "system"]
        assert len([text for text in told if "slow" in text]) == 1
        assert len([text for text in told if "end_task" in text]) == 1


class TestWaiting:
    @pytest.mark.parametrize("why", ["asks", "is paused"])
    async def test_who_does_not_stay_leaves_when_all_wait_for_people(
        self, workspace: Workspace, folder: Path, why: str
    ) -> None:
        question = call("ask_person", question="Which?", options=None, several=None)
        minds = Minds(root=[question if why == "asks" else forever()])
        society = Society(workspace, minds, asks=True)
        task = society.submit_requirement("Build it.", folder, by="human:dana").id
        work = asyncio.create_task(society.run(task, stay=False))
        await until(lambda: "root" in minds.asked)
        if why == "is paused":
            say(workspace, "pause_agent", agent_id="root")
        async with asyncio.timeout(30):
            assert (await work).status == "open"

    async def test_who_does_not_stay_waits_for_the_one_that_was_reminded(
        self, workspace: Workspace, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It began to work before the row of the reminder was known."""
        heard, hold = threading.Event(), asyncio.Event()

        async def thinks() -> Reply:
            heard.set()
            await hold.wait()
            return Reply("Nothing to do.")

        minds = Minds(root=[spawn("ada"), Reply("Waiting."), thinks()])
        society, task = begun(workspace, minds, folder)
        tell = workspace.members.notify

        def tell_and_wait(task: str, to: str, text: str, about: int | None = None) -> None:
            tell(task, to, text, about)
            assert heard.wait(20)

        monkeypatch.setattr(workspace.members, "notify", tell_and_wait)
        work = asyncio.create_task(society.run(task, stay=False))
        await until(heard.is_set)
        done, _ = await asyncio.wait({work}, timeout=0.5)
        assert not done, "root is at work"
        hold.set()
        async with asyncio.timeout(30):
            assert (await work).status == "open"
        assert state_of(workspace, "root").status == "done"

    async def test_nobody_writes_to_itself(self, workspace: Workspace, folder: Path) -> None:
        begun(workspace, Minds(), folder)
        mine = refused(workspace.tools("root"), "send_message", to="root", payload={"text": "Me."})
        assert mine["error"] == "unknown_agent"

    async def test_a_child_called_root_is_not_told_that_it_is_the_first(
        self, workspace: Workspace, folder: Path
    ) -> None:
        minds = Minds(root=[call("spawn_agent", role="root", instructions="Go.", name="ada"), Reply()])
        society, task = begun(workspace, minds, folder)
        async with asyncio.timeout(30):
            await society.run(task, stay=False)
        assert "You are the first agent" not in minds.asked["ada"][0].messages[0].content
