"""``watchroom wait`` ends when the agent's state is reached, and not before."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from calls import ok
from cli.running import Captured, misuse, printed, printed_json, refusal, run
from runtime.scripted import at_work
from runtime.working import HELLO, SAYS, chat
from watchroom import Toolbox, Workspace
from watchroom.agents.clients.events import ClientInfo, PromptSubmitted, SessionEnded, TurnEnded, TurnFailed
from watchroom.agents.clients.session import ClientSession
from watchroom.features.overview.agents import AgentView
from watchroom.features.overview.goals import find_state
from watchroom.features.requests.rows import Answer, Request
from watchroom.kernel.call_context import CallContext
from watchroom.kernel.journal import BACKSTOP_SECONDS, SqliteJournal
from watchroom_cli.main import INTERRUPTED, OK
from watchroom_cli.watch.wait import TIMED_OUT

BOTH = pytest.mark.parametrize(
    "journal_name", ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)], indirect=True
)
Runs = Awaitable[tuple[int, str, str]]


def attached(workspace: Workspace, agent: str = "alice") -> ClientSession:
    return ClientSession(workspace, agent, "s-1", ClientInfo("claude"))


def waiting(capsys: Captured, workspace: Workspace, *options: str, agent: str = "alice") -> Runs:
    """Return the command in a thread that has started to wait."""
    arguments = ("wait", str(workspace.root), agent, "--timeout", "30", *options)
    return asyncio.to_thread(run, capsys, *arguments)


async def reach(capsys: Captured, workspace: Workspace, act: Callable[[], object], *options: str) -> str:
    """Return the output of the command, which must not end before ``act``."""
    task = asyncio.ensure_future(waiting(capsys, workspace, *options))
    await asyncio.sleep(0.2)
    assert not task.done()
    began = time.monotonic()
    act()
    status, out, err = await task
    assert (status, err) == (OK, "")
    assert time.monotonic() - began < BACKSTOP_SECONDS - 1, "it was woken, and did not poll"
    return out


@BOTH
async def test_wait_ends_when_an_attached_agent_is_idle(workspace: Workspace, capsys: Captured) -> None:
    session = attached(workspace)
    session.record(PromptSubmitted("Go"))
    out = await reach(capsys, workspace, lambda: session.record(TurnEnded()), "--until", "idle", "--json")
    reached = json.loads(out)
    assert (reached["agent"], reached["until"], reached["status"]) == ("alice", "idle", "idle")
    assert (reached["session"], reached["ending"], reached["waits_for"]) == ("alice/s-1", None, [])
    assert reached["row"] == workspace.journal.last_seq()


@BOTH
async def test_wait_ends_at_a_request_and_prints_it(workspace: Workspace, capsys: Captured) -> None:
    session = attached(workspace)
    session.record(PromptSubmitted("Go"))
    asked = Request("prompt", "Which month?")
    out = await reach(
        capsys, workspace, lambda: session.ask("c1", asked), "--until", "idle", "--until", "waiting", "--json"
    )
    reached = json.loads(out)
    assert reached["until"] == "waiting"
    # The request's row precedes the session's status.
    assert reached["status"] in ("running", "waiting")
    (what,) = reached["waits_for"]
    head = workspace.journal.head("request", session.request_path("c1"))
    assert head is not None
    assert (what["request"], what["kind"], what["what"]) == (head.seq, "prompt", "Which month?")
    assert (what["since"], what["session"]) == (head.timestamp, "alice/s-1")


def test_a_question_without_a_session_is_waited_for_too(workspace: Workspace, capsys: Captured) -> None:
    call = CallContext("alice")
    asked = workspace.requests.ask(call, "alice/mcp/1", Request("prompt", "Which month?"))
    line = printed(capsys, "wait", workspace.root, "alice", "--until", "waiting")
    assert line.startswith("alice: ")
    assert line.endswith(f": request {asked.seq}: Which month?\n")
    assert run(capsys, "wait", workspace.root, "alice", "--until", "idle", "--timeout", "0")[0] == TIMED_OUT
    workspace.requests.answer(CallContext("human:dana"), asked.seq, Answer(text="May"))
    assert (
        run(capsys, "wait", workspace.root, "alice", "--until", "waiting", "--timeout", "0")[0] == TIMED_OUT
    )


def test_an_expired_question_is_not_a_wait_for_a_person(workspace: Workspace, capsys: Captured) -> None:
    soon = workspace.journal.now() + 10**8
    workspace.requests.ask(CallContext("alice"), "alice/mcp/1", Request("prompt", "When?", expires=soon))
    time.sleep(0.15)
    status, out, err = run(capsys, "wait", workspace.root, "alice", "--until", "waiting", "--timeout", "0")
    assert (status, out) == (TIMED_OUT, "")
    assert err.startswith("alice: ")
    assert "Timeout before: waiting." in err


@pytest.mark.parametrize(
    ("event", "ending"),
    [
        (SessionEnded(), "done"),
        (SessionEnded("cancelled"), "cancelled"),
        (SessionEnded("error", "broken"), "error"),
        (TurnFailed("overloaded"), "error"),
    ],
    ids=["done", "cancelled", "error", "turn failed"],
)
def test_a_session_has_ended_in_any_way(
    workspace: Workspace, capsys: Captured, event: SessionEnded | TurnFailed, ending: str
) -> None:
    session = attached(workspace)
    session.record(PromptSubmitted("Go"))
    assert run(capsys, "wait", workspace.root, "alice", "--until", "ended", "--timeout", "0")[0] == TIMED_OUT
    session.record(event)
    reached = printed_json(capsys, "wait", workspace.root, "alice", "--until", "ended", "--json")
    assert (reached["until"], reached["ending"]) == ("ended", ending)


@BOTH
async def test_a_finished_agent_of_watchroom_is_idle_and_ended(
    workspace: Workspace, capsys: Captured
) -> None:
    async with workspace.sessions.begin("alice", chat(SAYS), messages=HELLO) as session:
        task = asyncio.ensure_future(waiting(capsys, workspace, "--until", "ended", "--json"))
        async with at_work(session):
            status, out, _ = await task
    assert (status, json.loads(out)["ending"]) == (OK, "done")
    reached = await asyncio.to_thread(
        printed_json, capsys, "wait", str(workspace.root), "alice", "--until", "idle", "--json"
    )
    assert (reached["until"], reached["status"]) == ("idle", "done")


def test_a_lost_agent_has_ended_and_is_not_idle(root: Path, capsys: Captured) -> None:
    Workspace.open(root, agents=["alice"]).close()
    program = f"""
import os, signal
from watchroom import Workspace
from watchroom.agents.clients.events import ClientInfo, PromptSubmitted
from watchroom.agents.clients.session import ClientSession
workspace = Workspace.open({str(root)!r})
ClientSession(workspace, "alice", "s-1", ClientInfo("claude", attachment="run")).record(PromptSubmitted("Go"))
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", program], check=False)
    assert done.returncode == -signal.SIGKILL
    reached = printed_json(capsys, "wait", str(root), "alice", "--until", "ended", "--json")
    assert (reached["status"], reached["ending"]) == ("lost", "lost")
    line = printed(capsys, "wait", str(root), "alice", "--until", "ended")
    assert line == "alice: ended: not seen alive: process ended\n"
    assert run(capsys, "wait", str(root), "alice", "--until", "idle", "--timeout", "0")[0] == TIMED_OUT


def test_an_agent_that_never_worked_is_idle_and_has_not_ended(workspace: Workspace, capsys: Captured) -> None:
    assert printed(capsys, "wait", workspace.root, "bob", "--until", "idle") == "bob: idle\n"
    assert run(capsys, "wait", workspace.root, "bob", "--until", "ended", "--timeout", "0")[0] == TIMED_OUT


def test_a_silent_agent_becomes_idle_without_a_row(
    workspace: Workspace, alice: Toolbox, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    ok(alice, "save_to_my_workspace", filename="a.md", content="x")
    heard = workspace.journal.now()
    monkeypatch.setattr("watchroom.features.overview.goals.IDLE_SECONDS", 0.6)
    status = AgentView.status
    monkeypatch.setattr(AgentView, "status", lambda view, now: status(view, now, 0.6))
    assert printed(capsys, "wait", workspace.root, "alice", "--until", "idle") == "alice: idle\n"
    assert 0.5e9 < workspace.journal.now() - heard < (BACKSTOP_SECONDS - 1) * 1e9


@BOTH
def test_a_row_between_the_first_look_and_the_wait_is_not_missed(
    workspace: Workspace, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = attached(workspace)
    session.record(PromptSubmitted("Go"))
    looks = []

    def look(*arguments):  # type: ignore[no-untyped-def]  # those of `find_state`
        state = find_state(*arguments)
        looks.append(state)
        if len(looks) == 1:
            session.record(TurnEnded())
        return state

    monkeypatch.setattr("watchroom_cli.watch.wait.find_state", look)
    began = time.monotonic()
    assert printed(capsys, "wait", workspace.root, "alice", "--until", "idle") == "alice: idle\n"
    assert time.monotonic() - began < BACKSTOP_SECONDS - 1
    assert looks[0] is not None
    assert looks[0].reached is None


def test_the_journal_is_not_polled_and_not_written(
    workspace: Workspace, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    attached(workspace).record(PromptSubmitted("Go"))
    workspace.flush()
    newest = workspace.journal.last_seq()
    reads = []
    rows = SqliteJournal.rows

    def counted(self, *arguments, **options):  # type: ignore[no-untyped-def]  # those of `rows`
        reads.append(arguments)
        return rows(self, *arguments, **options)

    monkeypatch.setattr(SqliteJournal, "rows", counted)
    began = time.monotonic()
    status, _, _ = run(capsys, "wait", workspace.root, "alice", "--until", "ended", "--timeout", "0.7")
    assert (status, time.monotonic() - began >= 0.7) == (TIMED_OUT, True)
    assert len(reads) < 10
    assert workspace.journal.last_seq() == newest


def test_what_is_wrong_is_refused(workspace: Workspace, capsys: Captured) -> None:
    assert "Unknown agent 'nobody'" in refusal(capsys, "wait", workspace.root, "nobody", "--until", "idle")
    assert "--until" in misuse(capsys, "wait", workspace.root, "alice")
    assert "--until" in misuse(capsys, "wait", workspace.root, "alice", "--until", "asleep")
    for seconds in ("-1", "nan", "inf"):
        assert "--timeout must be" in misuse(
            capsys, "wait", workspace.root, "alice", "--until", "idle", f"--timeout={seconds}"
        )


def test_ctrl_c_ends_it_at_once(
    workspace: Workspace, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    attached(workspace).record(PromptSubmitted("Go"))
    main_thread = threading.main_thread().ident or 0
    interrupt = threading.Timer(0.2, lambda: signal.pthread_kill(main_thread, signal.SIGINT))

    def look(*arguments):  # type: ignore[no-untyped-def]  # those of `find_state`
        if not interrupt.is_alive():
            interrupt.start()
        return find_state(*arguments)

    monkeypatch.setattr("watchroom_cli.watch.wait.find_state", look)
    began = time.monotonic()
    assert run(capsys, "wait", workspace.root, "alice", "--until", "ended") == (INTERRUPTED, "", "")
    assert time.monotonic() - began < BACKSTOP_SECONDS - 1


def test_wait_prints_chinese(workspace: Workspace, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WATCHROOM_LANGUAGE", "zh")
    assert printed(capsys, "wait", workspace.root, "bob", "--until", "idle") == "bob：空闲\n"
