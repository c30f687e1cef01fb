"""``watchroom events``: each row of the journal once, in order, as a line of JSON (docs/events.md)."""

from __future__ import annotations

import json
import signal
import subprocess
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from threading import Thread
from typing import Any

import pytest
from calls import ok, refused
from cli.conftest import write
from cli.running import Captured, as_typed, misuse, printed, printed_rows, refusal
from effort import seeds
from people.planted import plant
from watchroom import Json, Toolbox, Workspace
from watchroom.agents.clients.events import CallFinished, CallStarted, ClientInfo, PromptSubmitted, TurnEnded
from watchroom.agents.clients.session import ClientSession
from watchroom.features.requests.rows import Answer, CallDecision, PendingCall, Request
from watchroom.history.events import KINDS, MAX_TEXT
from watchroom.kernel.call_context import CallContext
from watchroom.model import BUDGET_REACHED, SYSTEM, Note, Write
from watchroom_cli.main import INTERRUPTED, OK

BOTH = pytest.mark.parametrize(
    "journal_name", ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)], indirect=True
)
PATIENCE = 30
END = "end.md"
DANA = CallContext("human:dana")
Events = list[dict[str, Any]]


def events(capsys: Captured, root: object, *options: str) -> Events:
    """Return the events without the first line."""
    hello, *found = printed_rows(capsys, "events", str(root), "--json", *options)
    assert (hello["kind"], hello["protocol"]) == ("hello", 1)
    assert all(each["kind"] in KINDS for each in found)
    return found


def kinds(found: Events) -> list[str]:
    return [each["kind"] for each in found]


@contextmanager
def following(root: object, *options: str) -> Iterator[subprocess.Popen[str]]:
    command = as_typed("events", str(root), "--json", "--follow", *options)
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8"
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def next_line(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout is not None
    line: dict[str, Any] = json.loads(process.stdout.readline())
    return line


def test_each_row_is_one_event_in_order(capsys: Captured, team: str) -> None:
    found = events(capsys, team)
    rows = printed_rows(capsys, "log", team, "--json", "--limit", "1000", "--steps")
    assert [each["row"] for each in found] == [row["seq"] for row in rows]
    for name in ("time", "actor", "tool", "zone", "path"):
        assert [each.get(name) for each in found] == [row.get(name) for row in rows]
    # A server's journal also names the folder that its files are in.
    assert [each for each in kinds(found) if each not in ("read", "other")] == [
        *(
            "agent_registered",
            "agent_registered",
            "file_written",
            "file_written",
            "write_refused",
            "handoff_delivered",
            "file_written",
        ),
        "call_refused",
    ]
    by_kind = {each["kind"]: each for each in found}
    assert by_kind["agent_registered"]["agents"] == ["alice", "bob", "charlie"]
    assert (by_kind["write_refused"]["base"], by_kind["write_refused"]["current"]) == (1, 2)
    delivery = by_kind["handoff_delivered"]
    assert (delivery["from"], delivery["to"], delivery["file"]) == ("alice", "bob", "raw.md")
    assert by_kind["call_refused"]["outcome"] == "denied"


def test_events_resume_after_a_row_and_filter_by_agent_and_kind(capsys: Captured, team: str) -> None:
    found = events(capsys, team)
    assert events(capsys, team, "--after", str(found[2]["row"])) == found[3:]
    assert events(capsys, team, "--after", str(found[-1]["row"])) == []
    chosen = events(capsys, team, "--kind", "write_refused", "--kind", "call_refused")
    assert kinds(chosen) == ["write_refused", "call_refused"]
    of_bob = kinds(events(capsys, team, "--agent", "bob"))
    assert of_bob.count("handoff_delivered") == 1, "what an agent receives is about it"
    assert "write_refused" in of_bob
    assert kinds(events(capsys, team, "--agent", "charlie")) == ["agent_registered"]


def test_what_is_wrong_is_refused(capsys: Captured, team: str) -> None:
    assert "--json" in misuse(capsys, "events", team)
    assert "--kind" in misuse(capsys, "events", team, "--json", "--kind", "nothing")
    assert "row 9999 does not exist" in misuse(capsys, "events", team, "--json", "--after", "9999")
    assert "row -1 does not exist" in misuse(capsys, "events", team, "--json", "--after=-1")
    assert "Unknown agent 'nobody'" in refusal(capsys, "events", team, "--json", "--agent", "nobody")


@BOTH
def test_sessions_requests_and_messages(workspace: Workspace, alice: Toolbox, capsys: Captured) -> None:
    begin = workspace.journal.last_seq()
    session = ClientSession(workspace, "alice", "s-1", ClientInfo("claude"))
    session.record(PromptSubmitted("Go"))
    session.record(CallStarted("c1", "Bash", '{"command": "make"}'))
    call = PendingCall("c1", "Bash", '{"command": "make"}')
    path = session.ask("c1", Request("approve", calls=(call,)))
    asked = workspace.journal.head("request", path)
    assert asked is not None
    decision = CallDecision("c1", approved=True)
    workspace.requests.answer(DANA, asked.seq, Answer(decisions=(decision,)))
    session.record(CallFinished("c1", "built", tool="Bash", arguments='{"command": "make"}'))
    session.record(TurnEnded())
    workspace.session_zone.control(DANA.with_tool("send_message"), "alice", None, "Well done")
    workspace.session_zone.control(DANA.with_tool("pause_agent"), "alice", None, "")
    workspace.session_zone.control(DANA.with_tool("resume_agent"), "alice", None, "")
    workspace.session_zone.control(DANA.with_tool("cancel_agent"), "alice", None, "")
    found = events(capsys, workspace.root, "--after", str(begin), "--agent", "alice")
    assert kinds(found) == [
        *("session_started", "session_status", "session_status", "request_opened", "session_status"),
        *("request_answered", "call_finished", "session_status"),
        *("message_sent", "paused", "resumed", "stopped"),
    ]
    opened = found[3]
    assert (opened["asks"], opened["tools"], opened["subjects"]) == ("approve", ["Bash"], ["make"])
    assert (opened["request"], opened["session"]) == (opened["row"], "alice/s-1")
    assert (found[5]["request"], found[5]["answer"]) == (opened["row"], "approved")
    finished = found[6]
    assert (finished["called"], finished["call_kind"], finished["outcome"]) == ("Bash", "command", "ok")
    assert [each["status"] for each in found if each["kind"] == "session_status"] == [
        *("running", "running", "waiting_for_human_input", "idle"),
    ]
    assert (found[8]["to"], found[8]["message"], found[8]["actor"]) == ("alice", "Well done", "human:dana")


def test_requests_end_in_three_ways(workspace: Workspace, capsys: Captured) -> None:
    begin = workspace.journal.last_seq()
    soon = workspace.journal.now() + 10**6
    for number, expires in ((1, None), (2, soon)):
        asked = Request("prompt", "Which month?", expires=expires)
        workspace.requests.ask(CallContext("alice"), f"alice/mcp/{number}", asked)
    workspace.requests.withdraw("alice/mcp/1")
    workspace.requests.expire("alice/mcp/2")
    found = events(capsys, workspace.root, "--after", str(begin))
    assert kinds(found) == ["request_opened", "request_opened", "request_withdrawn", "request_expired"]
    assert "expires" in found[1]
    assert "expires" not in found[0]


def test_files_conflicts_and_external_edits(
    workspace: Workspace, alice: Toolbox, bob: Toolbox, capsys: Captured
) -> None:
    write(alice, "one", 0)
    begin = workspace.journal.last_seq()
    late = refused(bob, "collab_write", filepath="plan.md", content="late", message="m", expected_version=0)
    dana = workspace.tools_for_human("dana")
    ok(dana, "dismiss_conflict", conflict=late["conflict_id"], message="not now")
    Path(workspace.root, "collaborative/current/plan.md").write_text("by hand")
    workspace.scan()
    ok(alice, "save_to_my_workspace", filename="a.md", content="x")
    ok(alice, "delete_from_my_workspace", filename="a.md")
    found = [each for each in events(capsys, workspace.root, "--after", str(begin)) if each["kind"] != "read"]
    assert kinds(found) == [
        *("write_refused", "conflict_settled", "external_edit", "file_written", "file_deleted"),
    ]
    assert found[1]["conflicts"] == [found[0]["row"]]
    assert (found[2]["actor"], found[2]["outcome"], found[2]["size"]) == ("outside", "conflict", 7)


def test_documents_and_handoffs(workspace: Workspace, alice: Toolbox, bob: Toolbox, capsys: Captured) -> None:
    begin = workspace.journal.last_seq()
    ok(alice, "realtime_create_document", doc_id="notes", schema={"body": "rga"})
    given = {"doc_id": "notes", "field_name": "body", "args": {"position": 0, "text": "Hi"}}
    ok(alice, "realtime_edit_text", operation="insert", **given)
    ok(alice, "handoff_file", to_agent="bob", filename="raw.md", content="data", message="for you")
    ok(bob, "read_handoff", from_agent="alice", filename="raw.md")
    ok(bob, "acknowledge_handoff", from_agent="alice", filename="raw.md")
    found = [each for each in events(capsys, workspace.root, "--after", str(begin)) if each["kind"] != "read"]
    assert kinds(found) == [
        *("document_created", "document_changed", "handoff_delivered", "handoff_read"),
        "handoff_acknowledged",
    ]
    assert (found[1]["field"], found[1]["op"], found[1]["added"]) == ("body", "insert", 2)
    assert found[4]["to"] == "bob"


def test_events_of_watchroom_itself_and_of_unnamed_rows(workspace: Workspace, capsys: Captured) -> None:
    begin = workspace.journal.last_seq()
    workspace.journal.append(
        [
            Note(SYSTEM, BUDGET_REACHED, "workspace", "team cost", detail={"request": 3}),
            Note(SYSTEM, "process_lost", "workspace", "lease", "failed", "not_seen_alive"),
            Note(SYSTEM, "send_alert", "workspace", "phone", detail={"event": "new", "needs": []}),
            Note(SYSTEM, "not_yet_known", "workspace", "x"),
        ]
    )
    found = events(capsys, workspace.root, "--after", str(begin))
    assert kinds(found) == ["budget_reached", "process_lost", "alert", "other"]
    assert (found[0]["budget"], found[0]["request"]) == ("team cost", 3)
    assert (found[3]["tool"], found[3]["zone"]) == ("not_yet_known", "workspace")


@pytest.mark.sqlite("Rows are planted into the file of the journal.")
def test_unreadable_and_invalid_rows_are_events(root: Path, workspace: Workspace, capsys: Captured) -> None:
    asked = workspace.requests.ask(CallContext("alice"), "alice/mcp/1", Request("prompt", "Which month?"))
    begin = workspace.journal.last_seq()
    workspace.close()
    plant(root, "alice", "t", "nowhere", "x", outcome="ok")
    plant(root, "alice", "t", "session", "alice/s", version=1, detail='{"status": []}', outcome="ok")
    plant(root, "alice", "t", "collab", "plan.md", detail="{dam", outcome="ok")
    answer: dict[str, Json] = {"request": asked.seq, "outcome": "replied"}
    plant(root, "alice", "answer_request", "request", "alice/mcp/1", version=2, detail=answer, outcome="ok")
    found = events(capsys, root, "--after", str(begin))
    assert [(each["kind"], each.get("rule")) for each in found] == [
        ("damaged", "damage_zone"),
        ("damaged", "damage_fields"),
        ("damaged", "damage_detail"),
        ("forged", "decision_form"),
    ]
    assert found[3]["effect"] == "answer"


@BOTH
def test_a_line_has_no_control_characters_and_says_what_was_written(
    workspace: Workspace, capsys: Captured
) -> None:
    text = "a\x1b[31m\tb\x7f\x9bc\u202ed\u2028e 文件 \U0001f600\U000e0041"
    workspace.journal.append([Note("alice", "t", "collab", "x", message=text)])
    out = printed(capsys, "events", str(workspace.root), "--json")
    lines = out.splitlines()
    assert out == "".join(f"{line}\n" for line in lines)
    assert not any(unicodedata.category(each).startswith("C") for line in lines for each in line)
    assert "文件" in lines[-1]
    assert json.loads(lines[-1])["message"] == text


def test_a_long_text_is_left_out_with_its_size_and_checksum(workspace: Workspace, capsys: Captured) -> None:
    texts = ("x" * MAX_TEXT, "x" * (MAX_TEXT + 1), "文" * MAX_TEXT)
    workspace.journal.append([Note("alice", "t", "collab", "x", message=text) for text in texts])
    fits, *long = events(capsys, workspace.root)[-3:]
    assert fits["message"] == texts[0]
    assert all("message" not in each for each in long)
    assert [each["message_size"] for each in long] == [MAX_TEXT + 1, 3 * MAX_TEXT]
    assert all(len(each["message_sha256"]) == 64 for each in long)
    content = "y" * 100_000
    workspace.journal.append([Write("alice", "t", "collab", "y", content)])
    (written,) = events(capsys, workspace.root)[-1:]
    assert (written["kind"], written["size"]) == ("file_written", 100_000)
    assert "y" * 100 not in json.dumps(written)


@BOTH
def test_following_ends_when_the_reader_closes_the_pipe(root: Path, workspace: Workspace) -> None:
    begin = workspace.journal.last_seq()
    with following(root, "--after", str(begin), "--kind", "file_written") as process:
        assert next_line(process)["after"] == begin
        ok(workspace.tools("alice"), "save_to_my_workspace", filename="a.md", content="x")
        written = next_line(process)
        assert (written["kind"], written["path"]) == ("file_written", "alice/a.md")
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        # No more rows come that would reveal it.
        assert process.wait(PATIENCE) == OK
        assert process.stderr.read() == ""


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, INTERRUPTED), (signal.SIGTERM, -signal.SIGTERM)]
)
def test_signals_end_it(team: str, number: signal.Signals, status: int) -> None:
    with following(team) as process:
        next_line(process)
        next_line(process)
        process.send_signal(number)
        assert process.wait(PATIENCE) == status


def test_a_stalled_reader_delays_no_other(root: Path, workspace: Workspace) -> None:
    alice = workspace.tools("alice")
    with following(root) as process:
        next_line(process)
        for number in range(400):
            # More than the buffer of a pipe.
            ok(alice, "save_to_my_workspace", filename=f"{number % 3}.md", content="x", message="m" * 900)
        workspace.flush()
        newest = workspace.journal.last_seq()
        found = [next_line(process)["row"]]
        while found[-1] < newest:
            found.append(next_line(process)["row"])
    assert found == [*range(1, newest + 1)]


def act_at_random(workspace: Workspace, random: Random, count: int) -> None:
    """Make random calls as all agents: writes, stale writes, handoffs, private files, reads and refusals. The
    last row writes `END`."""
    tools = [workspace.tools(agent) for agent in ("alice", "bob", "charlie")]
    for _ in range(count):
        name, version = f"{random.randrange(4)}.md", random.randrange(6)
        message, content = "m" * random.randrange(1, 300), str(random.random())
        calls: list[tuple[str, dict[str, Json]]] = [
            ("save_to_my_workspace", {"filename": name, "content": content}),
            ("save_to_my_workspace", {"filename": "../x", "content": ""}),
            ("collab_read", {"filepath": name}),
            ("handoff_file", {"to_agent": "bob", "filename": name, "content": content, "message": "文"}),
            (
                "collab_write",
                {"filepath": name, "content": content, "message": message, "expected_version": version},
            ),
        ]
        random.choice(tools).dispatch_tool_call(*random.choice(calls))
    workspace.flush()
    ok(tools[0], "save_to_my_workspace", filename=END, content="")


def read_lines(process: subprocess.Popen[str], count: int) -> Iterator[str]:
    """Yield ``count`` lines after the first one, and all complete lines until the process is killed."""
    assert process.stdout is not None
    for _ in range(count):
        line = process.stdout.readline()
        yield line
        if json.loads(line)["path"] == f"alice/{END}":
            return
    process.kill()
    yield from (line for line in process.stdout if line.endswith("\n"))


@BOTH
@pytest.mark.parametrize("seed", seeds(2, 20))
def test_killed_and_resumed_readers_get_each_event_once_in_order(
    root: Path, workspace: Workspace, capsys: Captured, seed: int
) -> None:
    random = Random(seed)
    writer = Thread(target=act_at_random, args=(workspace, Random(seed), 150))
    writer.start()
    lines: list[str] = []
    while not lines or json.loads(lines[-1])["path"] != f"alice/{END}":
        after = json.loads(lines[-1])["row"] if lines else 0
        with following(root, "--after", str(after)) as process:
            assert next_line(process)["after"] == after
            lines += read_lines(process, random.randrange(1, 60))
    writer.join()
    _, *whole = printed(capsys, "events", str(root), "--json").splitlines(keepends=True)
    assert lines == whole[: len(lines)]
    numbers = [json.loads(line)["row"] for line in lines]
    assert numbers == sorted({*numbers})
    rows = printed_rows(capsys, "log", str(root), "--json", "--steps", "--limit", "10000")
    assert numbers == [row["seq"] for row in rows][: len(numbers)]
