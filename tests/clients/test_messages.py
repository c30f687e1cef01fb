"""A message to an agent is delivered once, whichever session and kind of client the agent has next."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
from clients.attached import AttachedClient, attendant, told, wait_for
from clients.test_acp import PATIENCE, Run, says
from runtime.scripted import say
from runtime.working import HELLO, SAYS, chat
from watchroom import Workspace
from watchroom.agents.clients.attachment import Attachment
from watchroom.agents.clients.events import TurnEnded
from watchroom.features.overview.fold import Fold
from watchroom.features.requests.rows import Answer
from watchroom.features.sessions.messages import Messages
from watchroom.features.tasks.view import MessageView
from watchroom.kernel.call_context import CallContext
from watchroom.model import CANCEL, Note, Write

KINDS = ("claude", "codex", "run", "stepped")
TAKING = """
import os, sys
from watchroom import Workspace
with Workspace.open(sys.argv[1], scan=False) as workspace, workspace.messages.hand_over() as handover:
    print([each.text for each in handover.take("alice")], flush=True)
    if sys.argv[2] == "crash":
        os._exit(0)
    handover.record()
    print("recorded", flush=True)
    sys.stdin.read()
"""


def send(workspace: Workspace, text: str, to: str = "alice") -> None:
    assert say(workspace, "send_message", to=to, payload={"text": text})["success"]


def messages(workspace: Workspace) -> dict[str, MessageView]:
    """The messages as people see them, by their texts."""
    fold = Fold(workspace.journal.content, workspace.journal.row)
    fold.apply(workspace.journal.rows(limit=10_000))
    return {each.row.message: each for each in fold.model().messages}


async def work(workspace: Workspace, folder: Path, kind: str, session: str, *, resume: bool = False) -> str:
    """Have alice work in a session of this kind, which is begun, or resumed if it is a client's. Returns all
    that its model was given."""
    if kind == "stepped":
        async with workspace.sessions.begin("alice", chat(SAYS), messages=HELLO, session_id=session) as begun:
            state = await begun.run()
        return "\n".join(each.content for each in state.messages)
    if kind == "run":
        (folder / session).mkdir(exist_ok=True)
        run = Run(workspace, folder / session, [says("Done")])
        before = len(prompts(run)) if run.log.exists() else 0
        await run.once("Go", resume="scripted-1" if resume else "")
        return "\n".join(prompts(run)[before:])
    client = "codex" if kind == "codex" else "claude"
    attached = Attachment(workspace, "alice", client)

    async def hook(name: str, **more: str) -> str:
        return (await attached.handle({**told(name), "session_id": session, **more})).dump()

    given = [await hook("SessionStart", source="resume" if resume else "startup")]
    given += [await hook("UserPromptSubmit", prompt="Go"), await hook("SessionEnd", reason="exit")]
    return "\n".join(given)


def prompts(run: Run) -> list[str]:
    """The texts that the client was given."""
    return [block["text"] for each in run.sent("session/prompt") for block in each["prompt"]]


@pytest.mark.parametrize("later", KINDS)
@pytest.mark.parametrize("first", KINDS)
async def test_what_waited_is_delivered_once_in_the_next_session(
    workspace: Workspace, tmp_path: Path, first: str, later: str
) -> None:
    await work(workspace, tmp_path, first, "s1")
    send(workspace, "Never deploy")
    workspace.journal.append([Note("bob", "send_message", "agent", "alice", content="Tests pass")])
    assert messages(workspace)["Never deploy"].delivered is None
    given = await work(workspace, tmp_path, later, "s2")
    assert (given.count("Never deploy"), given.count("Tests pass")) == (1, 1)
    shown = messages(workspace)["Never deploy"]
    assert shown.delivered is not None
    assert shown.read is not None
    for kind in KINDS:
        assert "Never deploy" not in await work(workspace, tmp_path, kind, f"s3-{kind}")


@pytest.mark.parametrize("kind", ["claude", "codex", "run"])
async def test_what_waited_is_delivered_once_when_the_session_is_resumed(
    workspace: Workspace, tmp_path: Path, kind: str
) -> None:
    path = "scripted-1" if kind == "run" else "s1"
    await work(workspace, tmp_path, kind, "s1")
    send(workspace, "To the agent")
    send(workspace, "To the session", f"alice/{path}")
    given = await work(workspace, tmp_path, kind, "s1", resume=True)
    assert (given.count("To the agent"), given.count("To the session")) == (1, 1)
    again = await work(workspace, tmp_path, kind, "s1", resume=True)
    assert given.count("Go") == again.count("Go")
    assert "To the" not in again
    assert all(each.read is not None for each in messages(workspace).values())


async def test_what_is_for_one_session_is_given_to_no_other(workspace: Workspace, tmp_path: Path) -> None:
    await work(workspace, tmp_path, "claude", "s1")
    send(workspace, "Only here", "alice/s1")
    assert "Only here" not in await work(workspace, tmp_path, "claude", "s2")
    assert "Only here" in await work(workspace, tmp_path, "claude", "s1", resume=True)


async def test_a_session_that_was_cancelled_leaves_its_messages_to_the_next(
    workspace: Workspace, tmp_path: Path
) -> None:
    async with workspace.sessions.begin("alice", chat(SAYS), session_id="s1") as session:
        say(workspace, "cancel_agent", agent_id="alice")
        await session.run()
    send(workspace, "Once more")
    assert "Once more" in await work(workspace, tmp_path, "stepped", "s2")


async def test_a_session_of_watchroom_gets_no_message_that_a_client_was_given(
    workspace: Workspace, tmp_path: Path
) -> None:
    async with workspace.sessions.begin("alice", chat(SAYS), session_id="s1") as session:
        pass
    send(workspace, "To either")
    assert "To either" in await work(workspace, tmp_path, "claude", "s2")
    async with workspace.sessions.resume("alice", "s1", chat(SAYS)) as session:
        assert not await workspace.sessions.has_controls(session)
        assert "To either" not in str((await session.run()).messages)


async def test_many_messages_come_in_parts_and_whole(workspace: Workspace, tmp_path: Path) -> None:
    await work(workspace, tmp_path, "claude", "s1")
    texts = [f"{number} {'x' * 300}\nand more of {number}." for number in range(25)]
    for text in texts:
        send(workspace, text)
    attached = Attachment(workspace, "alice", "claude")
    call = {"tool_name": "Bash", "tool_input": {}, "tool_use_id": "t1", "tool_response": "ok"}
    given = [(await attached.handle(told("PostToolUse", **call))).dump() for _ in range(3)]
    assert [sum(f"and more of {number}." in each for number in range(25)) for each in given] == [20, 5, 0]
    long = "y" * 40_000
    send(workspace, long)
    send(workspace, long)
    given = [(await attached.handle(told("PostToolUse", **call))).dump() for _ in range(3)]
    assert [each.count(long) for each in given] == [1, 1, 0]


def test_messages_that_an_earlier_version_has_delivered_are_not_given_again(workspace: Workspace) -> None:
    def step(version: int) -> Write:
        return Write("alice", "client_event", "session", "alice/s1", "{}", "", version, {"status": "idle"})

    workspace.journal.append([step(0)])
    for to in ("alice", "alice/s1"):
        send(workspace, "Delivered", to)
    workspace.journal.append([step(1)])
    for to in ("alice", "alice/s1"):
        send(workspace, "Waits", to)
    prompt = {**told("UserPromptSubmit", prompt="Go"), "session_id": "s1"}
    said = [asyncio.run(Attachment(workspace, "alice", "claude").handle(prompt)).dump() for _ in range(2)]
    assert [each.count("Waits") for each in said] == [2, 0]
    assert "Delivered" not in said[0]


class Taking:
    """Another process that hands over what waits for alice."""

    def __init__(self, root: Path, how: str) -> None:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            [sys.executable, "-c", TAKING, str(root), how], stdin=pipe, stdout=pipe, text=True
        )

    def says(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def end(self) -> None:
        self._process.communicate(timeout=PATIENCE)


def taken(messages: Messages) -> list[str]:
    with messages.hand_over() as handover:
        found = [each.text for each in handover.take("alice")]
        handover.record()
    return found


@pytest.mark.slow
async def test_a_message_is_given_again_after_a_crash_before_it_was_recorded(
    root: Path, workspace: Workspace, tmp_path: Path
) -> None:
    await work(workspace, tmp_path, "claude", "s1")
    send(workspace, "Never deploy")
    crashing = Taking(root, "crash")
    assert crashing.says() == "['Never deploy']"
    crashing.end()
    assert messages(workspace)["Never deploy"].delivered is None
    other = Taking(root, "record")
    assert (other.says(), other.says()) == ("['Never deploy']", "recorded")
    assert taken(workspace.messages) == []
    other.end()
    assert messages(workspace)["Never deploy"].read is not None


async def test_of_two_processes_one_hands_over(workspace: Workspace, root: Path, tmp_path: Path) -> None:
    await work(workspace, tmp_path, "claude", "s1")
    send(workspace, "Never deploy")
    with Workspace.open(root, scan=False) as other:
        with workspace.messages.hand_over() as handover:
            assert len(handover.take("alice")) == 1
            assert taken(other.messages) == []
        # It was not recorded.
        assert taken(other.messages) == ["Never deploy"]
    assert taken(workspace.messages) == []


@pytest.mark.slow
def test_a_hook_that_its_client_kills_delivers_nothing(root: Path, workspace: Workspace) -> None:
    with attendant(root):
        client = AttachedClient(root)
        client.hook("UserPromptSubmit", prompt="Go")
        # A terminal is left open: the hook of the idle client waits for messages.
        idle = client.begin("Stop", background_tasks=[])
        idle.kill()
        idle.communicate(timeout=PATIENCE)
        send(workspace, "Never deploy")
        said = client.hook("UserPromptSubmit", prompt="On")
        assert said is not None
        assert "Never deploy" in str(said)
        assert client.hook("UserPromptSubmit", prompt="Again") is None
        wait_for(workspace, lambda _: messages(workspace)["Never deploy"].read is not None)


async def test_a_client_that_dies_with_its_prompt_gets_the_message_again(
    workspace: Workspace, tmp_path: Path
) -> None:
    await work(workspace, tmp_path, "run", "s1")
    send(workspace, "Never deploy")
    (tmp_path / "dies").mkdir()
    dying = Run(workspace, tmp_path / "dies", [{"exit": 3}])
    await dying.once("Go", resume="scripted-1")
    assert messages(workspace)["Never deploy"].delivered is None
    assert "Never deploy" in await work(workspace, tmp_path, "run", "s1", resume=True)
    assert messages(workspace)["Never deploy"].read is not None


async def test_a_message_amid_a_turn_is_the_next_prompt(workspace: Workspace, tmp_path: Path) -> None:
    run = Run(workspace, tmp_path, [says("One")], [says("Two", "m2")])
    running = run.start()
    await run.until(lambda: count_turns(run) == 1)
    send(workspace, "Now this")
    send(workspace, "And that", "alice/scripted-1")
    await run.until(lambda: count_turns(run) >= 2)
    await until_read(workspace, "Now this", "And that")
    workspace.session_zone.control(CallContext("human:ann", CANCEL), "alice", None, "")
    await asyncio.wait_for(running, PATIENCE)
    assert prompts(run) == ["Do it", "Now this", "And that"]


async def test_a_message_that_a_budget_held_waits_if_the_agent_is_stopped(
    workspace: Workspace, tmp_path: Path
) -> None:
    run = Run(workspace, tmp_path, [says("One")])
    running = run.start()
    await run.until(lambda: count_turns(run) == 1)
    workspace.budgets.set_budget(CallContext("human:ann"), "session", "", "steps", 1)
    send(workspace, "Now this")
    asked = await run.asked("")
    workspace.requests.answer(CallContext("human:ann"), asked.seq, Answer(values=("stop",)))
    await asyncio.wait_for(running, PATIENCE)
    assert prompts(run) == ["Do it"]
    assert messages(workspace)["Now this"].delivered is None


def count_turns(run: Run) -> int:
    return sum(isinstance(each, TurnEnded) for each in run.events)


async def until_read(workspace: Workspace, *texts: str) -> None:
    changes = workspace.journal.changes()
    try:
        async with asyncio.timeout(PATIENCE):
            while any(messages(workspace)[text].read is None for text in texts):
                await asyncio.to_thread(changes.wait, 1.0)
    finally:
        changes.close()
