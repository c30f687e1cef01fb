"""A society at work: sessions follow the rows that spawn agents, send messages, and end agents."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TypeAlias

import pytest
from calls import ok
from runtime.scripted import say, until
from tasking import machine_sandbox
from watchroom import Json, Workspace
from watchroom.agents.society import Society
from watchroom.errors import TaskInUse
from watchroom.features.sessions.runtime import AgentState, ModelPayload, ToolMessage, UserMessage
from watchroom.features.sessions.runtime.models import Reply, SimulatedModel
from watchroom.features.tasks.rows import Task, TaskLimits
from watchroom.features.tasks.rules import Member
from watchroom.texts import Language

Answer: TypeAlias = "Reply | Awaitable[Reply] | Exception"


class Minds:
    """Models with scripted replies for each agent. After the last reply they do not answer."""

    def __init__(self, **replies: Sequence[Answer]) -> None:
        self.replies = {agent: list(each) for agent, each in replies.items()}
        self.asked: dict[str, list[ModelPayload]] = {}

    def __call__(self, member: Member) -> SimulatedModel:
        return SimulatedModel(partial(self._answer, member.id))

    async def _answer(self, agent: str, payload: ModelPayload) -> Reply:
        self.asked.setdefault(agent, []).append(payload)
        waiting = self.replies.get(agent, [])
        answer = waiting.pop(0) if waiting else Reply("Nothing to do.")
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, Reply) else await answer


async def forever() -> Reply:
    await asyncio.Event().wait()
    raise AssertionError("it was waited for in vain")


def call(tool: str, **arguments: Json) -> Reply:
    return Reply(calls=((tool, arguments),))


def spawn(name: str, instructions: str = "Write it.") -> Reply:
    return call("spawn_agent", role="programmer", instructions=instructions, name=name)


def tell(to: str, text: str) -> Reply:
    return call("send_message", to=to, payload={"text": text})


END = call("end_task", status="done", report="It works.")


@pytest.fixture
def workspace(root: Path) -> Iterator[Workspace]:
    with Workspace.open(root, sandbox=machine_sandbox()) as opened:
        yield opened


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "one"


def begun(workspace: Workspace, minds: Minds, folder: Path, **limits: int) -> tuple[Society, str]:
    society = Society(workspace, minds)
    given = TaskLimits(**limits)
    return society, society.submit_requirement("Build it.", folder, by="human:dana", limits=given).id


@asynccontextmanager
async def at_work(society: Society, task: str) -> AsyncIterator[asyncio.Task[Task]]:
    work = asyncio.create_task(society.run(task))
    try:
        yield work
    finally:
        work.cancel()
        await asyncio.wait({work})


def state_of(workspace: Workspace, agent: str) -> AgentState:
    (head,) = workspace.sessions.list(agent)
    return workspace.sessions.state(agent, head.id)


def said_to(workspace: Workspace, agent: str) -> list[tuple[str, str]]:
    messages = state_of(workspace, agent).messages
    return [(each.author, each.content) for each in messages if isinstance(each, UserMessage)]


async def test_agents_make_others_write_to_each_other_and_end_the_task(
    workspace: Workspace, folder: Path
) -> None:
    minds = Minds(root=[spawn("ada"), Reply("Waiting.")], ada=[tell("root", "Done."), Reply("Over.")])
    minds.replies["root"] += [END, Reply("Good.")]
    society, task = begun(workspace, minds, folder)
    async with asyncio.timeout(30):
        ended = await society.run(task)
    assert ended.status == "done"
    assert said_to(workspace, "root") == [("human:dana", "Build it."), ("ada", "Done.")]
    assert said_to(workspace, "ada") == [("root", "Write it.")]
    assert state_of(workspace, "root").status == "done"
    # The task can end before her last reply.
    assert state_of(workspace, "ada").status in ("done", "cancelled")
    system = minds.asked["ada"][0].messages[0].content
    assert "`ada`" in system
    assert "You are a programmer" in system
    assert not workspace.verify()


@pytest.mark.parametrize(("of_workspace", "given"), [("zh", None), ("en", "zh")])
async def test_prompts_are_in_the_language_of_the_workspace_unless_another_is_given(
    root: Path, folder: Path, of_workspace: Language, given: Language | None
) -> None:
    minds = Minds(root=[END, Reply("That is all.")])
    with Workspace.open(root, language=of_workspace, sandbox=machine_sandbox()) as workspace:
        society = Society(workspace, minds, language=given)
        task = society.submit_requirement("做一个计算器", folder, by="human:dana")
        await society.run(task.id)
    system = minds.asked["root"][0].messages[0].content
    assert "你是任务的第一个 Agent" in system
    assert "$" not in system


async def test_what_is_said_before_the_receiver_began_is_heard(workspace: Workspace, folder: Path) -> None:
    minds = Minds(ada=[tell("user", "I know."), Reply("That is all.")])
    society, task = begun(workspace, minds, folder)
    root = workspace.tools("root")
    ok(root, "spawn_agent", role="programmer", instructions="Write it.", name="ada")
    ok(root, "send_message", to="ada", payload={"text": "In Rust."})
    async with at_work(society, task):
        await until(lambda: "ada" in minds.asked and len(minds.asked["ada"]) >= 2)
    assert said_to(workspace, "ada") == [("root", "Write it."), ("root", "In Rust.")]


async def test_with_an_agent_that_a_person_ends_its_model_falls_silent_and_its_maker_knows(
    workspace: Workspace, folder: Path
) -> None:
    minds = Minds(root=[spawn("ada"), Reply("Waiting.")], ada=[spawn("bob"), forever()], bob=[forever()])
    society, task = begun(workspace, minds, folder)
    async with at_work(society, task):
        await until(lambda: {"ada", "bob"} <= minds.asked.keys() and len(minds.asked["ada"]) >= 2)
        assert say(workspace, "terminate_agent", agent_id="ada", reason="Too slow")["success"]
        await until(lambda: len(minds.asked["root"]) >= 3)
        await until(lambda: {state_of(workspace, each).status for each in ("ada", "bob")} == {"cancelled"})
    # The report that all agents have stopped may follow.
    told = [text for author, text in said_to(workspace, "root") if author == "system"]
    assert any("ada" in text and "Too slow" in text for text in told), told


async def test_an_agent_whose_session_is_ended_has_ended(workspace: Workspace, folder: Path) -> None:
    minds = Minds(root=[spawn("ada"), Reply("Waiting.")], ada=[forever()])
    society, task = begun(workspace, minds, folder)
    async with at_work(society, task):
        await until(lambda: "ada" in minds.asked)
        say(workspace, "cancel_agent", agent_id="ada")
        await until(lambda: workspace.members.has_ended("ada"))
        await until(lambda: len(minds.asked["root"]) >= 3)


async def test_with_its_first_agent_the_task_is_cancelled(workspace: Workspace, folder: Path) -> None:
    minds = Minds(root=[spawn("ada"), Reply("Waiting.")], ada=[forever()])
    society, task = begun(workspace, minds, folder)
    async with at_work(society, task) as work:
        await until(lambda: "ada" in minds.asked)
        say(workspace, "terminate_agent", agent_id="root")
        async with asyncio.timeout(20):
            assert (await work).status == "cancelled"
    assert state_of(workspace, "ada").status == "cancelled"


async def test_a_task_that_a_person_ends_is_over_for_all(workspace: Workspace, folder: Path) -> None:
    minds = Minds(root=[spawn("ada"), forever()], ada=[forever()])
    society, task = begun(workspace, minds, folder)
    async with at_work(society, task) as work:
        await until(lambda: "ada" in minds.asked and len(minds.asked["root"]) >= 2)
        say(workspace, "end_task", status="cancelled", report="Enough.", task_id=task)
        async with asyncio.timeout(20):
            assert (await work).status == "cancelled"
    assert {state_of(workspace, each).status for each in ("root", "ada")} == {"cancelled"}


async def test_of_an_error_its_maker_is_told_and_a_message_lets_it_try_again(
    workspace: Workspace, folder: Path
) -> None:
    minds = Minds(
        root=[spawn("ada"), Reply("Waiting."), tell("ada", "Again."), Reply("Waiting.")],
        ada=[OSError("the line is dead"), tell("root", "Done."), Reply("That is all.")],
    )
    minds.replies["root"] += [END, Reply("That is all.")]
    society, task = begun(workspace, minds, folder)
    async with asyncio.timeout(30):
        assert (await society.run(task)).status == "done"
    said = said_to(workspace, "root")
    assert [author for author, _ in said] == ["human:dana", "system", "ada"]
    assert "the line is dead" in said[1][1]


async def test_an_agent_that_never_comes_to_an_end_is_stopped(workspace: Workspace, folder: Path) -> None:
    endless = [call("list_agents") for _ in range(50)]
    minds = Minds(root=[spawn("ada"), Reply("Waiting."), END, Reply("That is all.")], ada=[*endless])
    society, task = begun(workspace, minds, folder, steps=8)
    async with asyncio.timeout(30):
        await society.run(task)
    assert state_of(workspace, "ada").step_count <= 9
    assert "8 steps" in said_to(workspace, "root")[1][1]


async def test_who_does_not_stay_leaves_when_nobody_has_anything_to_do(
    workspace: Workspace, folder: Path
) -> None:
    minds = Minds(root=[spawn("ada"), Reply("Waiting."), tell("user", "Which one?"), Reply("That is all.")])
    society, task = begun(workspace, minds, folder)
    async with asyncio.timeout(30):
        left = await society.run(task, stay=False)
    assert left.status == "open"
    author, reminder = said_to(workspace, "root")[1]
    assert (author, "end_task" in reminder) == ("system", True)
    assert len(minds.asked["root"]) == 4


async def test_what_was_left_goes_on_where_it_was(workspace: Workspace, folder: Path) -> None:
    minds = Minds(root=[spawn("ada"), Reply("Waiting.")], ada=[tell("user", "Hm."), forever()])
    society, task = begun(workspace, minds, folder)
    async with at_work(society, task):
        await until(lambda: len(minds.asked.get("ada", ())) >= 2)
    later = Minds(root=[END, Reply("That is all.")], ada=[tell("root", "Done."), Reply()])
    with Workspace.open(workspace.root) as other:
        async with asyncio.timeout(30):
            assert (await Society(other, later).run(task)).status == "done"
    assert [each.id for each in workspace.members.of_task(task)] == ["root", "ada"]
    given = [each for each in state_of(workspace, "ada").messages if isinstance(each, ToolMessage)]
    assert len(given) == 2, "no call was made twice"


async def test_the_agents_of_a_task_work_in_one_place_alone(workspace: Workspace, folder: Path) -> None:
    minds = Minds(root=[forever()])
    society, task = begun(workspace, minds, folder)
    async with at_work(society, task):
        await until(lambda: "root" in minds.asked)
        with Workspace.open(workspace.root) as other, pytest.raises(TaskInUse, match="already running"):
            await Society(other, Minds()).run(task)
    async with asyncio.timeout(30):
        ended = await Society(workspace, Minds(root=[END, Reply("That is all.")])).run(task)
    assert ended.status == "done"


@pytest.mark.parametrize("word", ["terminate_agent", "cancel_agent"])
async def test_a_command_is_ended_with_its_agent(workspace: Workspace, folder: Path, word: str) -> None:
    if workspace.commands.sandbox.best is None:
        pytest.skip("no sandbox works here, so no command runs: bubblewrap is to be installed")
    slow = call("run_command", command="echo begun; sleep 600")
    minds = Minds(root=[spawn("ada"), Reply("Waiting.")], ada=[slow])
    society, task = begun(workspace, minds, folder)

    def rows(tool: str) -> int:
        return sum(row.tool == tool for row in workspace.journal.rows(limit=10_000))

    async with at_work(society, task):
        await until(lambda: bool(rows("command_output")))
        say(workspace, word, agent_id="ada")
        await until(lambda: bool(rows("end_command")))
        await until(lambda: state_of(workspace, "ada").status == "cancelled")


async def test_tasks_keep_to_themselves(workspace: Workspace, tmp_path: Path) -> None:
    minds = Minds(
        root=[call("write_file", path="a.md", content="one"), END, Reply("That is all.")],
        **{"root-2": [call("write_file", path="a.md", content="two"), END, Reply("That is all.")]},
    )
    society = Society(workspace, minds)
    folders = [tmp_path / "one", tmp_path / "two"]
    tasks = [society.submit_requirement("Build it.", each, by="human:dana") for each in folders]
    async with asyncio.timeout(30):
        ended = await asyncio.gather(*(society.run(each.id) for each in tasks))
    assert [each.status for each in ended] == ["done", "done"]
    assert [(each / "a.md").read_text() for each in folders] == ["one", "two"]
