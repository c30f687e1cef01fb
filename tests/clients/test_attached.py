"""An attached agent is supervised: what its client tells is rows, and people answer, hold and stop it."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import pytest
from cli.running import as_typed
from clients.attached import (
    HELLO,
    PATIENCE,
    SESSION,
    AttachedClient,
    attendant,
    hook_command,
    relay,
    told,
    wait_for,
)
from people.conftest import close
from platforms.unanswered import NO_PROC
from watchroom import Workspace
from watchroom.agents.clients.acp_runner import namespace_command
from watchroom.agents.clients.client_traces import find_process
from watchroom.agents.clients.registry import HOOKED_CLIENTS
from watchroom.agents.clients.stopping import STOP, check_paused, end_agents
from watchroom.errors import RequestClosed
from watchroom.features.budgets.reads import summarize_usage
from watchroom.features.budgets.rows import UsageTotal, usage_of
from watchroom.features.requests.rows import Answer, decide_all
from watchroom.features.sessions.rows import presence_of
from watchroom.kernel.call_context import CallContext
from watchroom.kernel.checkout.layout import CONTROL
from watchroom.kernel.rules.row_files import CONFIG_PATH
from watchroom.model import ASK, CANCEL, CONTINUE, MESSAGE, PAUSE, RESUME, WITHDRAW, Row

pytestmark = pytest.mark.slow(4)

CALL = {"tool_name": "Bash", "tool_input": {"command": "make test"}, "tool_use_id": "toolu_1"}
PATH = f"alice/{SESSION}"


@pytest.fixture
def workspace(root: Path) -> Iterator[Workspace]:
    with Workspace.open(root, agents=["alice", "bob"]) as opened:
        yield opened


@pytest.fixture(params=["attendant", "hook alone"])
def client(root: Path, workspace: Workspace, request: pytest.FixtureRequest) -> Iterator[AttachedClient]:
    """With the server that the client starts, and without."""
    if request.param == "hook alone":
        yield AttachedClient(root)
        return
    with attendant(root):
        yield AttachedClient(root)


@pytest.fixture
def attended(root: Path, workspace: Workspace) -> Iterator[AttachedClient]:
    with attendant(root):
        yield AttachedClient(root)


def ask(client: AttachedClient, workspace: Workspace) -> tuple[subprocess.Popen[str], Row]:
    """A hook that waits for a permission, and the row of the request."""
    assert client.hook("PreToolUse", **CALL) is None
    given = {key: CALL[key] for key in ("tool_name", "tool_input")}
    waiting = client.begin("PermissionRequest", **given)
    wait_for(workspace, lambda row: row.detail.get("status") == "waiting_for_human_input")
    return waiting, wait_for(workspace, lambda row: row.tool == ASK and row.version == 1)


def answer(workspace: Workspace, asked: Row, approved: bool, reason: str = "", **edited: str) -> None:
    request = workspace.requests.read(asked)
    changed = {request.calls[0].id: json.dumps(edited)} if edited else None
    workspace.requests.answer(
        CallContext("human:ann"), asked.seq, decide_all(request, approved, reason, changed)
    )


def decision(said: dict[str, Any] | None) -> dict[str, Any]:
    assert said is not None
    found: dict[str, Any] = said["hookSpecificOutput"]["decision"]
    return found


def test_what_the_client_does_is_its_session(client: AttachedClient, workspace: Workspace) -> None:
    client.hook("SessionStart", source="startup")
    client.hook("UserPromptSubmit", prompt="Fix it", prompt_id="p1")
    client.hook("MessageDisplay", message_id="m1", index=0, final=True, delta="I test.")
    client.hook("PreToolUse", **CALL)
    client.hook("PostToolUse", **CALL, tool_response={"stdout": "ok"})
    state = workspace.sessions.state("alice", SESSION)
    assert [each.role for each in state.messages] == ["user", "assistant", "assistant", "tool"]
    assert (state.status, state.spent.tool_calls) == ("running", 1)
    assert state.metadata["client"] == "claude"


def test_a_permission_is_answered_in_the_dashboard(client: AttachedClient, workspace: Workspace) -> None:
    waiting, asked = ask(client, workspace)
    answer(workspace, asked, True)
    assert decision(client.answer(waiting)) == {"behavior": "allow"}


def test_changed_arguments_are_what_runs(attended: AttachedClient, workspace: Workspace) -> None:
    waiting, asked = ask(attended, workspace)
    answer(workspace, asked, True, command="make check")
    assert decision(attended.answer(waiting)) == {
        "behavior": "allow",
        "updatedInput": {"command": "make check"},
    }


def test_the_reason_of_a_refusal_reaches_the_model(attended: AttachedClient, workspace: Workspace) -> None:
    waiting, asked = ask(attended, workspace)
    answer(workspace, asked, False, "Not on a Friday.")
    assert decision(attended.answer(waiting)) == {"behavior": "deny", "message": "Not on a Friday."}


def test_what_was_answered_at_the_client_waits_no_more(
    attended: AttachedClient, workspace: Workspace
) -> None:
    waiting, asked = ask(attended, workspace)
    attended.hook("PostToolUse", **CALL, tool_response="ok")
    attended.answer(waiting)
    ended = workspace.requests.ended(asked.path)
    assert ended is not None
    assert (ended.row.actor, ended.answer is not None and ended.answer.decisions[0].approved) == (
        "human:at-alice",
        True,
    )


def test_in_a_closed_workspace_the_clients_word_is_no_answer(
    attended: AttachedClient, workspace: Workspace
) -> None:
    close(workspace)
    waiting, asked = ask(attended, workspace)
    attended.hook("PostToolUse", **CALL, tool_response="ok")
    attended.answer(waiting)
    ended = workspace.requests.ended(asked.path)
    assert ended is not None
    assert (ended.row.actor, ended.answer) == ("system", None)


def test_a_hook_that_the_client_ends_takes_its_question_back(
    client: AttachedClient, workspace: Workspace
) -> None:
    waiting, asked = ask(client, workspace)
    waiting.terminate()
    waiting.communicate(timeout=PATIENCE)
    ended = wait_for(workspace, lambda row: row.path == asked.path and row.version == 2)
    assert ended.tool == WITHDRAW


ASKING = """
import shlex, subprocess, sys
hook = subprocess.Popen(["sh", "-c", shlex.join(sys.argv[1:]) + "; true"], stdin=subprocess.PIPE)
hook.stdin.write(sys.stdin.buffer.read())
hook.stdin.close()
hook.wait()
"""


def test_a_hook_whose_client_is_gone_takes_its_question_back(root: Path, workspace: Workspace) -> None:
    command = [sys.executable, "-c", ASKING, *hook_command(root)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, text=True) as client:
        assert client.stdin is not None
        client.stdin.write(json.dumps(told("PermissionRequest", **CALL)))
        client.stdin.close()
        asked = wait_for(workspace, lambda row: row.tool == ASK and row.version == 1)
        client.kill()
    ended = wait_for(workspace, lambda row: row.path == asked.path and row.version == 2)
    assert ended.tool == WITHDRAW


def test_a_paused_agent_is_held_until_it_is_resumed(client: AttachedClient, workspace: Workspace) -> None:
    client.hook("UserPromptSubmit", prompt="Go")
    workspace.session_zone.control(CallContext("human:ann", PAUSE), "alice", None, "")
    held = client.begin("PreToolUse", **CALL)
    wait_for(workspace, lambda row: row.path == PATH and row.detail.get("status") == "paused")
    said = client.hook("UserPromptSubmit", prompt="And this")
    assert said is not None
    assert said["decision"] == "block"
    workspace.session_zone.control(CallContext("human:ann", RESUME), "alice", None, "")
    assert client.answer(held) is None
    assert workspace.sessions.state("alice", SESSION).status == "running"


def test_a_stopped_agent_calls_nothing_until_it_is_asked_anew(root: Path, workspace: Workspace) -> None:
    # Without a service, which would stop the client: this process.
    client = AttachedClient(root)
    client.hook("UserPromptSubmit", prompt="Go")
    workspace.session_zone.control(CallContext("human:ann", CANCEL), "alice", None, "")
    for _ in range(2):
        said = client.hook("PreToolUse", **CALL)
        assert said is not None
        assert (said["continue"], said["hookSpecificOutput"]["permissionDecision"]) == (False, "deny")
    client.hook("SessionEnd", reason="other")
    assert workspace.sessions.state("alice", SESSION).status == "cancelled"
    client.hook("UserPromptSubmit", prompt="Go on")
    assert client.hook("PreToolUse", **CALL) is None


def test_a_message_wakes_an_idle_agent(attended: AttachedClient, workspace: Workspace) -> None:
    attended.hook("UserPromptSubmit", prompt="Go")
    idle = attended.begin("Stop", background_tasks=[])
    wait_for(workspace, lambda row: row.path == PATH and row.detail.get("status") == "idle")
    workspace.session_zone.control(CallContext("human:ann", MESSAGE), "alice", None, "Now the docs.")
    _, err = idle.communicate(timeout=PATIENCE)
    assert idle.returncode == 2
    assert "human:ann writes: Now the docs." in err
    working = attended.hook("PostToolUse", **CALL, tool_response="ok")
    assert working is None, "it is told once"


def test_a_client_without_a_terminal_is_not_kept_from_ending(
    root: Path, attended: AttachedClient, workspace: Workspace
) -> None:
    client = AttachedClient(root, has_terminal=False)
    client.hook("UserPromptSubmit", prompt="Go")
    assert client.hook("Stop", background_tasks=[]) is None


def test_usage_comes_from_the_transcript_once_for_each_message(
    attended: AttachedClient, workspace: Workspace, tmp_path: Path
) -> None:
    transcript = tmp_path / "transcript.jsonl"
    usage = {"input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": 100}
    blocks: list[dict[str, Any]] = [
        {"type": "text", "text": "I test."},
        {"type": "tool_use", "id": "toolu_1"},
    ]
    message = {"id": "msg_1", "model": "a-model", "usage": usage}
    lines = [{"type": "assistant", "message": {**message, "content": [block]}} for block in blocks]
    refused = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "no", "is_error": True}
    lines.append({"type": "user", "message": {"content": [refused]}})
    attended.hook("UserPromptSubmit", prompt="Go", transcript_path=str(transcript))
    attended.hook("PreToolUse", **CALL)
    transcript.write_text("".join(json.dumps(line) + "\n" for line in [*lines, *lines]) + '{"cut')
    wait_for(workspace, lambda row: usage_of(row) is not None)
    attended.hook("Notification")
    state = workspace.sessions.state("alice", SESSION)
    assert (state.spent.input_tokens, state.spent.cache_read_tokens) == (10, 100)
    assert [each.role for each in state.messages] == ["user", "assistant", "assistant", "tool"]


def test_the_last_line_of_a_message_has_its_usage(root: Path, workspace: Workspace, tmp_path: Path) -> None:
    transcript = tmp_path / "transcript.jsonl"
    model = "claude-sonnet-4-5"
    # The first line is written while the message is received; lines of others stand between.
    counts = [("m1", 100, 1), ("m2", 50, 10), ("m1", 100, 900), ("m1", 100, 900), ("m2", 50, 20)]
    usages = [(name, {"input_tokens": sent, "output_tokens": came}) for name, sent, came in counts]
    lines = [
        {"type": "assistant", "message": {"id": name, "model": model, "content": [], "usage": usage}}
        for name, usage in usages
    ]

    def count(lines: list[dict[str, Any]]) -> UsageTotal:
        with attendant(root):
            client = AttachedClient(root)
            client.hook("UserPromptSubmit", prompt="Go", transcript_path=str(transcript))
            transcript.write_text("".join(json.dumps(line) + "\n" for line in lines))
            client.hook("Notification")
            return summarize_usage(workspace.journal, "agent", day_of=str).total

    assert count(lines[:1])[:2] == (100, 1)
    total = count(lines)
    assert total[:2] == (150, 920)
    assert total.cost == pytest.approx(150 * 3e-6 + 920 * 15e-6)
    assert (total.unpriced, total.priced_by) == (0, "table")
    # A server that starts later reads the transcript from its beginning.
    assert count(lines) == total


def test_a_message_that_hook_and_transcript_tell_is_one_whichever_is_first(
    attended: AttachedClient, workspace: Workspace, tmp_path: Path
) -> None:
    transcript = tmp_path / "transcript.jsonl"
    attended.hook("UserPromptSubmit", prompt="Go", transcript_path=str(transcript))
    with transcript.open("a") as file:
        for number in range(3):
            usage = {"input_tokens": 1}
            message = {"id": f"m{number}", "content": [{"type": "text", "text": "Done."}], "usage": usage}
            if number == 1:
                attended.hook("MessageDisplay", message_id="d1", index=0, final=True, delta="Done.")
            file.write(json.dumps({"type": "assistant", "message": message}) + "\n")
            file.flush()
            wait_for(workspace, lambda row, key=f"usage m{number}": key in str(row.detail))  # type: ignore[misc]
            if number != 1:
                attended.hook("MessageDisplay", message_id=f"d{number}", index=0, final=True, delta="Done.")
    said = [each.content for each in workspace.sessions.state("alice", SESSION).messages]
    assert said == ["Go", "Done.", "Done.", "Done."]


def test_what_was_said_before_a_session_was_resumed_is_not_told_again(
    root: Path, workspace: Workspace, tmp_path: Path
) -> None:
    """Its transcript has it, but the hook told it first."""
    transcript = tmp_path / "transcript.jsonl"

    def say(text: str, key: str, model: str = "a-model") -> None:
        content = [{"type": "text", "text": text}]
        message = {"id": key, "model": model, "content": content, "usage": {"input_tokens": 1}}
        line = {"type": "assistant", "timestamp": datetime.now(UTC).isoformat(), "message": message}
        with transcript.open("a") as file:
            file.write(json.dumps(line) + "\n")

    client = AttachedClient(root)
    with attendant(root):
        client.hook("UserPromptSubmit", prompt="Go", transcript_path=str(transcript))
        client.hook("MessageDisplay", message_id="d1", index=0, final=True, delta="Done.")
        say("Done.", "m1")
        client.hook("SessionEnd", reason="other")
    with attendant(root):
        client.hook("SessionStart", source="resume", transcript_path=str(transcript))
        say("No response requested.", "s1", "<synthetic>")
        say("Here again.", "m2")
        wait_for(workspace, lambda row: "usage m2" in str(row.detail))
    said = [each.content for each in workspace.sessions.state("alice", SESSION).messages]
    assert said == ["Go", "Done.", "Here again."]


def test_a_session_that_its_client_resumes_is_idle(root: Path, workspace: Workspace) -> None:
    client = AttachedClient(root)
    client.hook("SessionStart", source="startup")
    client.hook("UserPromptSubmit", prompt="Go")
    client.hook("SessionEnd", reason="other")
    assert workspace.sessions.state("alice", SESSION).status == "done"
    client.hook("SessionStart", source="resume")
    assert workspace.sessions.state("alice", SESSION).status == "idle"


def test_a_subagent_is_a_session_below(attended: AttachedClient, workspace: Workspace) -> None:
    attended.hook("UserPromptSubmit", prompt="Go")
    own = {"agent_id": "a1b2c3d4e5f6a7b8c", "agent_type": "Explore"}
    attended.hook("SubagentStart", **own)
    attended.hook("PreToolUse", **CALL, **own)
    attended.hook("SubagentStop", **own)
    child = workspace.journal.head("session", f"{PATH}.a1b2c3d4e5f6a7b8c")
    assert child is not None
    assert (child.detail["parent"], child.detail["status"]) == (PATH, "done")


def test_a_subagent_is_held_by_the_budget_of_the_session_that_started_it(
    attended: AttachedClient, workspace: Workspace
) -> None:
    workspace.budgets.set_budget(CallContext("human:ann"), "session", "", "steps", 2)
    attended.hook("UserPromptSubmit", prompt="Go")
    own = {"agent_id": "a1b2c3d4e5f6a7b8c", "agent_type": "Explore"}
    attended.hook("SubagentStart", **own)
    waiting = attended.begin("PreToolUse", **CALL, **own)
    asked = wait_for(workspace, lambda row: row.tool == ASK)
    assert asked.path.startswith(f"{PATH}/budget-")
    workspace.requests.answer(CallContext("human:ann"), asked.seq, Answer(values=("stop",)))
    said = attended.answer(waiting)
    assert said is not None
    assert said["hookSpecificOutput"]["permissionDecision"] == "deny"


def test_the_policy_decides_before_people(attended: AttachedClient, workspace: Workspace) -> None:
    config = Path(workspace.root, CONTROL, CONFIG_PATH)
    rules = [
        '[[policy.rules]]\nname = "no push"\ntool = ["Bash"]\ncommand = ["git push*"]\nverdict = "deny"\n',
        '[[policy.rules]]\ntool = ["Read"]\nverdict = "allow"\n',
        '[[policy.rules]]\ntool = ["Bash"]\nverdict = "ask"\n',
    ]
    config.write_text(config.read_text() + "\n" + "\n".join(rules))
    workspace.scan()
    push = {"tool_name": "Bash", "tool_input": {"command": "git push"}, "tool_use_id": "toolu_2"}
    said = attended.hook("PreToolUse", **push)
    assert said is not None
    assert "no push" in said["hookSpecificOutput"]["permissionDecisionReason"]
    said = attended.hook("PreToolUse", tool_name="Read", tool_input={}, tool_use_id="toolu_3")
    assert said is not None
    assert said["hookSpecificOutput"]["permissionDecision"] == "allow"
    waiting = attended.begin("PreToolUse", **CALL)
    wait_for(workspace, lambda row: row.detail.get("status") == "waiting_for_human_input")
    asked = wait_for(workspace, lambda row: row.tool == ASK)
    answer(workspace, asked, False, "later")
    said = attended.answer(waiting)
    assert said is not None
    assert said["hookSpecificOutput"]["permissionDecisionReason"] == "later"


def test_what_a_person_changes_is_checked_as_well(attended: AttachedClient, workspace: Workspace) -> None:
    config = Path(workspace.root, CONTROL, CONFIG_PATH)
    rule = '[[policy.rules]]\nname = "no push"\ntool = ["Bash"]\ncommand = ["git push*"]\nverdict = "deny"\n'
    config.write_text(config.read_text() + "\n" + rule)
    workspace.scan()
    waiting, asked = ask(attended, workspace)
    answer(workspace, asked, True, command="git push --force")
    said = decision(attended.answer(waiting))
    assert said["behavior"] == "deny"
    assert "no push" in said["message"]


def test_of_two_answers_at_the_same_moment_one_counts(attended: AttachedClient, workspace: Workspace) -> None:
    waiting, asked = ask(attended, workspace)
    together, refused = Barrier(2), []

    def answer_here() -> None:
        together.wait(PATIENCE)
        try:
            answer(workspace, asked, False, "no")
        except RequestClosed as error:
            refused.append(error)

    answering = Thread(target=answer_here)
    answering.start()
    together.wait(PATIENCE)
    attended.hook("PostToolUse", **CALL, tool_response="made")
    answering.join(PATIENCE)
    said = attended.answer(waiting)
    answers = [
        row for row in workspace.journal.rows(limit=1000) if row.zone == "request" and row.version == 2
    ]
    assert len(answers) == 1
    is_at_client = answers[0].actor == "human:at-alice"
    assert is_at_client == bool(refused)
    # What the client has decided it is not told again.
    assert said is None if is_at_client else decision(said)["behavior"] == "deny"


CLIENT = """
import json, subprocess, sys
server, hook, event = (json.loads(each) for each in sys.argv[1:4])
with subprocess.Popen(server, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as serving:
    serving.stdin.write((json.dumps(json.loads(sys.argv[4])) + "\\n").encode())
    serving.stdin.flush()
    serving.stdout.readline()
    subprocess.run(hook, input=json.dumps(event).encode(), check=True)
    print("ready", flush=True)
    sys.stdin.read()
"""


@pytest.mark.usefixtures("service")
@pytest.mark.parametrize("stopping", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_a_client_that_is_gone_is_seen_to_be(
    root: Path, workspace: Workspace, stopping: signal.Signals
) -> None:
    server = as_typed("mcp", str(root), "--agent", "alice", "--client", "claude")
    event = told("UserPromptSubmit", prompt="Loop")
    given = [json.dumps(each) for each in (server, hook_command(root), event, HELLO)]
    with subprocess.Popen(
        [sys.executable, "-c", CLIENT, *given], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as client:
        assert client.stdout is not None
        assert client.stdout.readline() == "ready\n"
        first = workspace.journal.version("session", PATH, 1)
        assert first is not None
        assert first.detail["pid"] == client.pid
        os.kill(client.pid, stopping)
        client.wait(PATIENCE)
    ended = wait_for(workspace, lambda row: row.path == PATH and row.detail.get("status") == "cancelled")
    assert ended.version is not None


LOOPING = """
import subprocess, sys
subprocess.run(["sh", "-c", sys.argv[1]], input=sys.argv[2], text=True, check=True)
print("ready", flush=True)
sys.stdin.read()
"""


def test_a_client_is_stopped_of_which_hooks_alone_have_told(root: Path, workspace: Workspace) -> None:
    hook, event = shlex.join(hook_command(root)), json.dumps(told("UserPromptSubmit", prompt="Loop"))
    with subprocess.Popen(
        [sys.executable, "-c", LOOPING, hook, event], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as client:
        assert client.stdout is not None
        assert client.stdout.readline() == "ready\n"
        assert not check_paused(workspace, "alice").is_proven
        (proof,) = end_agents(workspace, ["alice"], "human:ann", patience=PATIENCE)
        assert proof.is_proven
        assert client.wait(PATIENCE) == -signal.SIGINT


WAITING = """
import signal

def leave(*_):
    signal.signal(signal.SIGTERM, lambda *_: None)
    serving.send_signal(signal.SIGINT)
    print(serving.wait(), flush=True)
    sys.exit()

signal.signal(signal.SIGINT, lambda *_: None)
signal.signal(signal.SIGTERM, leave)
"""


@pytest.mark.usefixtures("service")
def test_a_client_that_waits_for_its_server_is_not_kept_waiting(root: Path, workspace: Workspace) -> None:
    """As Claude Code does, which is no more patient than half a second."""
    server = as_typed("mcp", str(root), "--agent", "alice", "--client", "claude")
    event = told("UserPromptSubmit", prompt="Loop")
    given = [json.dumps(each) for each in (server, hook_command(root), event, HELLO)]
    with subprocess.Popen(
        [sys.executable, "-c", WAITING + CLIENT, *given],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as client:
        assert client.stdout is not None
        assert client.stdout.readline() == "ready\n"
        (proof,) = end_agents(workspace, ["alice"], "human:ann", patience=PATIENCE)
        assert proof.is_proven
        assert client.stdout.readline() == "0\n"
    (said,) = [row for row in workspace.journal.rows(limit=1000) if row.tool == STOP]
    assert said.detail["is_gone"] is True
    wait_for(workspace, lambda row: row.path == PATH and row.detail.get("status") == "cancelled")


@pytest.mark.usefixtures("service")
def test_the_end_of_a_session_is_recorded_once(root: Path, workspace: Workspace) -> None:
    """The hook of an ended client can come after the service has seen that the client has ended."""
    test_a_client_that_is_gone_is_seen_to_be(root, workspace, signal.SIGKILL)
    last = workspace.journal.last_seq()
    assert AttachedClient(root).hook("SessionEnd", reason="other") is None
    assert [row.path for row in workspace.journal.rows(last) if row.path == PATH] == []


def test_a_service_goes_on_with_what_hooks_began_without_it(root: Path, workspace: Workspace) -> None:
    AttachedClient(root).hook("UserPromptSubmit", prompt="Go")
    with attendant(root):
        taken = wait_for(workspace, lambda row: row.tool == CONTINUE and row.path == PATH)
        assert any(
            each.id == presence_of(taken) and each.is_alive for each in workspace.journal.presence.all()
        )


def test_a_new_service_goes_on_with_the_sessions_of_the_last_one(root: Path, workspace: Workspace) -> None:
    for is_first in (True, False):
        with attendant(root):
            if is_first:
                AttachedClient(root).hook("UserPromptSubmit", prompt="Go")
            assert AttachedClient(root).hook("PreToolUse", **CALL) is None
    assert workspace.sessions.state("alice", SESSION).status == "running"


def test_where_watchroom_cannot_be_reached_strict_keeps_the_call_from_being_made(tmp_path: Path) -> None:
    for more, status in ((("--client", "claude", "--strict"), 2), (("--client", "claude"), 1)):
        command = hook_command(tmp_path / "nowhere", *more)
        command[4:7] = [str(tmp_path / "no-program")]
        event = json.dumps(told("PreToolUse", **CALL))
        ended = subprocess.run(
            command, input=event, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
        assert (ended.returncode, "no-program" in ended.stderr) == (status, True)


@pytest.mark.parametrize("client", HOOKED_CLIENTS)
def test_a_workspace_that_cannot_be_opened_denies_calls_if_strict(tmp_path: Path, client: str) -> None:
    command = as_typed("hook", str(tmp_path / "nowhere"), "--agent", "alice", "--client", client)
    event = json.dumps(told("PreToolUse", **CALL))
    for more in ((), ("--strict",)):
        ended = subprocess.run(
            [*command, *more], input=event, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
        said = ended.stdout + ended.stderr
        assert ended.returncode == (0 if more else 1)
        assert ("deny" in ended.stdout) == bool(more)
        assert "is not a workspace" in said


def test_two_agents_of_one_client_are_told_apart(root: Path, workspace: Workspace) -> None:
    with attendant(root), relay(root, agent="bob"):
        for agent in ("alice", "bob"):
            AttachedClient(root, agent=agent).hook("UserPromptSubmit", prompt="Go")
        assert all(workspace.sessions.state(each, SESSION).status == "running" for each in ("alice", "bob"))


def test_a_hook_without_proc_is_of_its_own_client(root: Path, workspace: Workspace) -> None:
    if not namespace_command():
        pytest.skip("bubblewrap, which takes /proc away, does not work here")
    with attendant(root):
        AttachedClient(root, within=NO_PROC).hook("UserPromptSubmit", prompt="Go")
    process = find_process(workspace, PATH)
    assert process is not None
    assert process.pid == os.getpid()


def test_a_hook_without_proc_and_without_a_service_lets_no_question_through(
    root: Path, workspace: Workspace
) -> None:
    """It cannot see whether its client still runs."""
    if not namespace_command():
        pytest.skip("bubblewrap, which takes /proc away, does not work here")
    config = Path(workspace.root, CONTROL, CONFIG_PATH)
    config.write_text(config.read_text() + '\n[[policy.rules]]\ntool = ["Bash"]\nverdict = "ask"\n')
    workspace.scan()
    hook = AttachedClient(root, within=NO_PROC).begin("PreToolUse", **CALL)
    out, _ = hook.communicate(timeout=PATIENCE)
    assert (hook.returncode, out) == (2, "")
    assert wait_for(workspace, lambda row: row.tool == WITHDRAW).path == f"{PATH}/toolu_1"
    assert workspace.sessions.state("alice", SESSION).status == "running"


def test_a_transcript_that_is_a_pipe_holds_no_call(client: AttachedClient, tmp_path: Path) -> None:
    pipe = tmp_path / "transcript.jsonl"
    os.mkfifo(pipe)
    assert client.hook("PreToolUse", transcript_path=str(pipe), **CALL) is None
