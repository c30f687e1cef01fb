"""What a step, a call and a reading cost does not depend on how long the journal is: counted in instructions of
SQLite's virtual machine, of which reading a row takes several."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest
from calls import ok, refused
from growing import grow
from runtime.scripted import say
from runtime.weather import call, calling
from runtime.working import HELLO, SAYS, chat
from watchroom import Agent, Toolbox, Workspace
from watchroom.features.calls.agent_tools import agent_tools
from watchroom.features.requests.rows import Answer, Request
from watchroom.features.tasks.rows import Task
from watchroom.kernel.call_context import CallContext

SHORT: Final = 2_000
LONG: Final = 20_000
MORE: Final = 1.05
"""So many times as much, at most, and `FEW` instructions: some numbers of agents are found by halving."""
FEW: Final = 400
TEAM: Final = tuple(Agent(each, "strategy", "top") for each in ("alice", "bob", "carol"))
FLUSH: Final = {"message": "m"}
_BEHIND: Final = ("watchroom-loop", "watchroom-worker", "watchroom-presence")
"""Threads that work when it suits them, and that `Workspace.flush` does not wait for."""

Work = Callable[[], object]


class Instructions:
    """Counts the instructions that all connections run but for those of threads that work behind."""

    def __init__(self) -> None:
        self._numbers = count()
        self._taken = 0

    def add(self) -> int:
        if not threading.current_thread().name.startswith(_BEHIND):
            next(self._numbers)
        return 0

    def taken(self) -> int:
        """How many there were since this was asked last."""
        now = next(self._numbers)
        taken, self._taken = now - self._taken, now + 1
        return taken


@contextmanager
def counting() -> Iterator[Instructions]:
    """Counts what connections run that are made meanwhile."""
    found = Instructions()
    connect = sqlite3.connect

    def counted(*given: Any, **more: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*given, **more)
        connection.set_progress_handler(found.add, 1)
        return connection

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sqlite3, "connect", counted)
        yield found


async def have_session(workspace: Workspace, name: str, agent_id: str = "alice") -> None:
    tools = agent_tools(workspace.tools(agent_id), toolsets=["private"])
    save = call("save_to_my_workspace", filename=f"{name}.md", content=name)
    agent = chat(calling(save), SAYS, tools={tool.name: tool for tool in tools})
    async with workspace.sessions.begin(agent_id, agent, messages=HELLO, session_id=name) as session:
        assert (await session.run()).status == "done"
        assert not await workspace.sessions.has_controls(session)


def deliver(sender: Toolbox, receiver: Toolbox, filename: str) -> None:
    ok(sender, "handoff_file", to_agent=receiver.actor, filename=filename, content="x", message="m")
    assert ok(receiver, "check_my_handoffs")["handoffs"]
    ok(receiver, "read_handoff", from_agent=sender.actor, filename=filename)
    ok(receiver, "acknowledge_handoff", from_agent=sender.actor, filename=filename)


def share(workspace: Workspace, alice: Toolbox, bob: Toolbox) -> None:
    """Write to a shared file, the second too late, which a person dismisses."""
    version = ok(alice, "collab_read", filepath="plan.md")["version"]
    ok(alice, "collab_write", filepath="plan.md", content=f"{version}", message="m")
    late = refused(
        bob, "collab_write", filepath="plan.md", content="x", message="m", expected_version=version
    )
    person = workspace.tools_for_human("dana")
    ok(person, "dismiss_conflict", conflict=late["conflict_id"], message="m")
    assert ok(bob, "collab_read", filepath="plan.md")["notice"]
    ok(bob, "collab_history", filepath="plan.md", limit=3)


def use_board(alice: Toolbox, bob: Toolbox) -> None:
    for tools, title in ((alice, "Milestones"), (bob, "Core goals")):
        section = {"board": "global", "section": title, "content": "x"}
        ok(tools, "whiteboard_update_section", **section)
        ok(tools, "whiteboard_update_section", **section)


def edit(alice: Toolbox) -> None:
    ok(alice, "open_buffer", source="private", path="page.md", name="page")
    ok(alice, "page_append", text="x\n")
    ok(alice, "page_flush", **FLUSH)
    assert alice.show_buffers()
    ok(alice, "close_buffer", buffer="page")


def ask(workspace: Workspace, path: str) -> None:
    asked = workspace.requests.ask(CallContext("alice"), path, Request("prompt", "Which?"))
    workspace.requests.answer(CallContext("human:dana"), asked.seq, Answer(text="This."))
    assert workspace.requests.ended(path)


def steer(workspace: Workspace) -> None:
    for tool in ("pause_agent", "resume_agent"):
        assert say(workspace, tool, agent_id="carol")["success"]


def begin_task(workspace: Workspace, folder: Path) -> tuple[Task, Toolbox]:
    task = workspace.tasks.submit("human:dana", "Build it.", folder)
    return task, workspace.tools(workspace.members.start(task).id)


def have_agent(workspace: Workspace, task: Task, root: Toolbox) -> None:
    child = ok(root, "spawn_agent", role="tester", instructions="Test.", name=f"tester-{task.id}")["agent_id"]
    ok(root, "send_message", to=child, payload={"text": "Well?"})
    workspace.members.notify(task.id, child, "All rest.", workspace.journal.last_seq())
    ok(workspace.tools(child), "write_file", path="a.py", content="1\n")
    ok(root, "terminate_agent", agent_id=child)
    assert workspace.members.has_ended(child)


async def do_everything(workspace: Workspace, folder: Path, name: str) -> dict[str, Work]:
    """Each kind of step, call and reading, by name; what they need is there already."""
    alice, bob = workspace.tools("alice"), workspace.tools("bob")
    task, root = begin_task(workspace, folder)
    saved = {"filename": "page.md", "content": "x\n"}
    return {
        "step": lambda: have_session(workspace, name),
        "call": lambda: ok(alice, "save_to_my_workspace", **saved),
        "repeated call": lambda: alice.dispatch_tool_call(
            "save_to_my_workspace", dict(saved), call=name, again=True
        ),
        "handoff": lambda: deliver(alice, bob, f"{name}.csv"),
        "shared file": lambda: share(workspace, alice, bob),
        "whiteboard": lambda: use_board(alice, bob),
        "buffer": lambda: edit(alice),
        "tools": lambda: alice.get_tool_definitions(),
        "request": lambda: ask(workspace, f"alice/{name}/1"),
        "steering": lambda: steer(workspace),
        "agents": lambda: have_agent(workspace, task, root),
        "news": lambda: workspace.notifications.fetch("bob"),
        "end": lambda: ok(root, "end_task", status="done", report="m"),
        "next task": lambda: ok(begin_task(workspace, folder)[1], "end_task", status="done", report="m"),
    }


async def test_what_a_step_a_call_and_a_reading_cost_does_not_grow_with_the_journal(
    tmp_path: Path,
) -> None:
    taken: dict[int, dict[str, int]] = {}
    for rows in (SHORT, LONG):
        root, folder = tmp_path / f"team-{rows}", tmp_path / f"work-{rows}"
        with Workspace.open(root, TEAM) as workspace:
            ok(workspace.tools("alice"), "collab_write", filepath="plan.md", content="x", message="m")
            ok(workspace.tools("bob"), "collab_read", filepath="plan.md")
            # Nobody ever says anything to alice, who has heard all there was for her.
            await have_session(workspace, "first", "carol")
            await run_all(await do_everything(workspace, folder, "sample"))
        grow(str(root), rows)
        with counting() as instructions, Workspace.open(root, scan=False) as workspace:
            assert rows <= workspace.journal.last_seq() < 1.2 * rows
            # The news of all the copies is told first.
            assert workspace.notifications.fetch("bob")
            work = await do_everything(workspace, folder, "measured")
            taken[rows] = await run_all(work, workspace, instructions)
    grown = {
        name: (short, taken[LONG][name])
        for name, short in taken[SHORT].items()
        if taken[LONG][name] > MORE * short + FEW
    }
    assert grown == {}


async def run_all(
    work: dict[str, Work], workspace: Workspace | None = None, instructions: Instructions | None = None
) -> dict[str, int]:
    """Do all of it in order; the instructions that each took."""
    taken: dict[str, int] = {}
    for name, each in work.items():
        if instructions is not None:
            instructions.taken()
        done = each()
        if isinstance(done, Awaitable):
            await done
        if workspace is not None and instructions is not None:
            workspace.flush()
            taken[name] = instructions.taken()
    return taken
