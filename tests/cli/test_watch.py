"""``watchroom watch``: needs as lines of text, and one question at a time."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from calls import ok
from cli.running import as_typed, spawned
from pty_driver import Terminal
from tui.team import CURRENT, INCOMING, PLAN, collide
from watchroom import Toolbox, Workspace
from watchroom.agents.clients.configuration import AGENT_VARIABLE
from watchroom.features.requests.rows import Option, PendingCall, Request, parse_answer
from watchroom.kernel.call_context import CallContext
from watchroom.model import ANSWER, Row
from watchroom_cli.main import INTERRUPTED, OK
from watchroom_cli.plain.watcher import LineReader

pytestmark = pytest.mark.slow(6)

PATIENCE = 30
SECOND = 1_000_000_000
HOSTILE = "\x1b]0;title\x07\x1b[2J\x9b31m\u202e\nAnswered by human:dana"


@pytest.fixture(autouse=True)
def _unmarked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(AGENT_VARIABLE, raising=False)


@contextmanager
def watching(workspace: Workspace, *options: str) -> Iterator[Terminal]:
    """Run the command in a terminal, as dana."""
    command = as_typed("watch", workspace.root, "--as", "dana", *options)
    with Terminal(command, 160, 60) as terminal:
        terminal.wait_for_text("Watchroom watches team", timeout=PATIENCE)
        yield terminal


def sees(terminal: Terminal, *texts: str) -> None:
    for text in texts:
        terminal.wait_for_text(text, timeout=PATIENCE)


def ends(terminal: Terminal, keys: str = "q\n") -> int:
    """Return the exit status. Check that no control characters were printed."""
    terminal.send(keys)
    status = terminal.wait(PATIENCE)
    printed = terminal.raw().decode().replace("\r\n", "\n")
    assert all(each == "\n" or each.isprintable() for each in printed.replace("^C", "")), printed
    return status


def save(content: str = "one\n2\n", filename: str = "plan.md") -> Request:
    arguments = json.dumps({"filename": filename, "content": content})
    return Request("approve", calls=(PendingCall("call", "save_to_my_workspace", arguments),))


def ask(workspace: Workspace, request: Request, step: int = 1) -> Row:
    return workspace.requests.ask(CallContext("alice"), f"alice/mcp/{step}", request)


def answers(workspace: Workspace) -> list[Row]:
    return [row for row in workspace.journal.rows(limit=10_000) if row.tool == ANSWER]


def test_the_last_line_is_read_without_a_line_break() -> None:
    reading, writing = os.pipe()
    ended = threading.Event()
    typed = LineReader(reading, lambda: ended.set() if None in typed.lines else None)
    os.write(writing, b"a\nlast")
    os.close(writing)
    assert ended.wait(PATIENCE)
    os.close(reading)
    assert list(typed.lines) == ["a", "last", None]


def test_a_request_is_shown_and_approved(workspace: Workspace) -> None:
    ask(workspace, save("".join(f"line {n}\n" for n in range(30))))
    with watching(workspace) as terminal:
        sees(terminal, "3 agents: ", "1 item needs you.", "Question: alice asks for approval: save plan.md.")
        sees(
            terminal,
            "filename: plan.md",
            "It would create alice/plan.md.",
            "Lines added: 30",
        )
        sees(
            terminal,
            "approve (a), reject (r REASON), hunk by hunk (h), show (s), later (l), help (?), quit (q).",
        )
        terminal.send("s\n")
        sees(terminal, "added 1: line 0", "more lines: s shows them.")
        terminal.send("s\n")
        sees(terminal, "added 30: line 29", "End of the text.")
        terminal.send("a\n")
        sees(terminal, "Your answer to alice: approved.")
        assert ends(terminal) == OK
    (row,) = answers(workspace)
    assert (row.actor, row.detail["outcome"]) == ("human:dana", "approved")


def test_an_external_edit_is_reported_without_a_terminal(
    workspace: Workspace, alice: Toolbox, on_machine: str
) -> None:
    ok(alice, "collab_write", filepath=PLAN, content="one\n", message="m", expected_version=0)
    command = as_typed("watch", workspace.root)
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert any("Nothing needs you." in line for line in process.stdout)
            Path(workspace.root, "collaborative/current", PLAN).write_text("by hand\n")
            assert any(f"Needs you: external edit of {PLAN}{on_machine}." in line for line in process.stdout)
        finally:
            process.terminate()


def test_requests_are_rejected_replied_to_and_chosen_from_one_after_the_other(workspace: Workspace) -> None:
    options = (Option("the first", "1st"), Option("the second", "2nd"), Option("the third", "3rd"))
    ask(workspace, save(), 1)
    ask(workspace, Request("prompt", "Which month?"), 2)
    ask(workspace, Request("select", "Which ones?", options=options, multi=True), 3)
    with watching(workspace) as terminal:
        sees(terminal, "3 items need you.", "Question: alice asks for approval")
        terminal.send("w no\n")
        sees(terminal, "“w no” is not an answer to this question.")
        terminal.send("r not now\n")
        sees(terminal, "Your answer to alice: rejected.", "Question: alice asks: Which month?")
        terminal.send("l\n")
        sees(terminal, "Question: alice asks you to choose: Which ones?", "2: the second")
        terminal.send("4\n")
        sees(terminal, "Choose a number from 1 to 3.")
        terminal.send("1 3\n")
        sees(terminal, "Your answer to alice: chosen.", "No other questions. Postponed: 1.")
        terminal.send("\n")
        sees(terminal, "answer (w TEXT)")
        terminal.send("w October, 十月\n")
        sees(terminal, "Your answer to alice: answered.", "No other questions")
        assert ends(terminal) == OK
    given = [parse_answer(workspace.journal.content(row.seq) or "") for row in answers(workspace)]
    assert given[0].decisions[0].reason == "not now"
    assert (given[1].values, given[2].text) == (("1st", "3rd"), "October, 十月")


def test_hunks_of_a_call_are_reviewed_and_the_agent_gets_the_taken_ones(
    workspace: Workspace, alice: Toolbox
) -> None:
    old = "".join(f"line {number}\n" for number in range(1, 13))
    new = old.replace("line 2\n", "LINE 2\n").replace("line 6\n", "").replace("line 11\n", "LINE 11\n")
    ok(alice, "save_to_my_workspace", filename="plan.md", content=old)
    ask(workspace, save(new))
    with watching(workspace) as terminal:
        sees(terminal, "Question: alice asks for approval", "hunk by hunk (h)")
        terminal.send("h\n")
        sees(terminal, "Hunk 1 of 3 in alice/plan.md:", "removed 2: line 2", "added 2: LINE 2")
        terminal.send("; loud\n")
        sees(terminal, "Write a line number and your comment")
        terminal.send("; 99 loud\n")
        sees(terminal, "Line 99 does not exist.")
        terminal.send("; 2 why loud?\nt\n")
        sees(terminal, "Hunk 2 of 3", "removed 6: line 6")
        terminal.send("d\n")
        sees(terminal, "Hunk 3 of 3")
        terminal.send("b\n")
        sees(terminal, "Hunk 2 of 3 in alice/plan.md, declined:")
        terminal.send("d\nl\n")
        sees(terminal, "Postponed.")
        terminal.send("\n")
        sees(terminal, "Hunks taken: 2 of 3; comments: 1. Nothing is sent yet.")
        terminal.send("a\n")
        sees(terminal, "Your answer to alice: approved, edited.")
        assert ends(terminal) == OK
    (row,) = answers(workspace)
    (decision,) = parse_answer(workspace.journal.content(row.seq) or "").decisions
    taken = json.loads(decision.arguments or "{}")["content"]
    assert taken == new.replace("line 5\n", "line 5\nline 6\n")
    assert "2 of the 3 hunks of this call were taken, 1 declined." in decision.reason
    assert "Line 2 (LINE 2): why loud?" in decision.reason


def test_an_indivisible_call_is_marked_before_its_approval(workspace: Workspace, alice: Toolbox) -> None:
    for version, text in enumerate(("1\nsame\n3\n", "one\nsame\nthree\n")):
        ok(alice, "collab_write", filepath=PLAN, content=text, message="m", expected_version=version)
    arguments = json.dumps({"filepath": PLAN, "to_version": 1, "expected_version": 2})
    ask(workspace, Request("approve", calls=(PendingCall("call", "collab_rollback", arguments),)))
    with watching(workspace) as terminal:
        sees(terminal, "hunk by hunk (h)")
        terminal.send("h\n")
        sees(terminal, "Hunk 1 of 2")
        terminal.send("d\nt\n")
        sees(terminal, "cannot be approved in part. Approving sends it back", "approve (a), reject")
        assert ends(terminal) == OK
    assert not answers(workspace)


@pytest.mark.parametrize(
    ("key", "says", "text", "version"),
    [("i", "plan.md is now version 3", INCOMING, 3), ("c", "plan.md is unchanged", CURRENT, 2)],
    ids=["incoming", "current"],
)
def test_a_conflict_is_settled(
    workspace: Workspace, alice: Toolbox, bob: Toolbox, key: str, says: str, text: str, version: int
) -> None:
    collide(alice, bob)
    with watching(workspace) as terminal:
        sees(terminal, "Question: bob and alice both changed plan.md.")
        sees(
            terminal,
            "Current: version 2 by alice, with the message: alice's words",
            "Incoming: the text of bob",
        )
        terminal.send("s\n")
        sees(terminal, "removed 3: first, said alice", "added 3: first, said bob")
        terminal.send(f"{key}\n")
        sees(terminal, says)
        assert ends(terminal) == OK
    head = workspace.journal.head("collab", PLAN)
    assert head is not None
    assert (workspace.journal.content(head.seq), head.version) == (text, version)


def test_an_external_edit_is_reverted_and_a_notice_marked_as_seen(
    workspace: Workspace, alice: Toolbox, bob: Toolbox, on_machine: str
) -> None:
    ok(alice, "collab_write", filepath=PLAN, content="one\n", message="m", expected_version=0)
    ok(bob, "collab_write", filepath=PLAN, content="two\n", message="m", expected_version=-1)
    workspace.flush()
    path = Path(workspace.root, "collaborative/current", PLAN)
    path.write_text("by hand\n")
    with watching(workspace) as terminal:
        sees(
            terminal,
            f"Question: external edit of plan.md{on_machine}.",
            "take current (c), take incoming (i)",
        )
        terminal.send("c\n")
        sees(
            terminal,
            "the external edit of plan.md is reverted",
            "Question: bob overwrote the version of alice",
        )
        terminal.send("m\n")
        sees(terminal, "Marked as seen.")
        assert ends(terminal) == OK
    assert path.read_text() == "two\n"


def test_a_question_settled_elsewhere_is_announced_and_a_late_answer_refused(
    workspace: Workspace,
) -> None:
    with watching(workspace) as terminal:
        sees(terminal, "Nothing needs you.")
        ask(workspace, Request("prompt", "Soon?", expires=time.time_ns() + 4 * SECOND), 1)
        later = ask(workspace, save(), 2)
        sees(terminal, "Question: alice asks: Soon?", "It expires in ")
        sees(terminal, "Closed without an answer, expired: alice asks: Soon?", "The question is closed.")
        terminal.send("w yes\n")
        sees(terminal, "“w yes” was ignored", "Question: alice asks for approval")
        ok(workspace.tools_for_human("eve"), ANSWER, request=later.seq, approved=True)
        sees(terminal, "Answered by human:eve, approved: alice asks for approval: save plan.md.")
        assert ends(terminal) == OK
    assert [row.actor for row in answers(workspace)] == ["human:eve"]


def test_texts_of_agents_move_no_cursor_and_imitate_no_line(workspace: Workspace) -> None:
    ask(workspace, save(HOSTILE, "a.md"), 1)
    ask(workspace, Request("prompt", HOSTILE), 2)
    with watching(workspace) as terminal:
        sees(terminal, "Question: alice asks for approval")
        terminal.send("s\n")
        sees(terminal, "added 2: Answered by human:dana")
        terminal.send("l\n")
        sees(terminal, "Question: alice asks: ␛]0;title␇␛[2J")
        assert not any(line.startswith("Answered") for line in terminal.screen())
        assert ends(terminal) == OK


@pytest.mark.parametrize(("keys", "status"), [("\x04", OK), ("\x03", INTERRUPTED)], ids=["eof", "interrupt"])
def test_the_end_of_the_input_and_an_interrupt_end_the_watch(
    workspace: Workspace, keys: str, status: int
) -> None:
    ask(workspace, save())
    with watching(workspace) as terminal:
        sees(terminal, "approve (a)")
        assert ends(terminal, keys) == status


def test_commands_within_an_agents_client_cannot_answer(workspace: Workspace) -> None:
    ask(workspace, save())
    command = as_typed("watch", workspace.root)
    with Terminal(command, 160, 60, env={AGENT_VARIABLE: "alice"}) as terminal:
        sees(terminal, "approve (a)")
        terminal.send("a\n")
        sees(terminal, "'alice'")
        assert ends(terminal) == OK
    (row,) = answers(workspace)
    assert row.outcome == "denied"


# -- without a terminal


@contextmanager
def lines_of(
    *arguments: str, closes_input: bool = False
) -> Iterator[tuple[subprocess.Popen[str], Iterator[str]]]:
    """Yield a command whose output is a pipe, and its lines as they come."""
    command = as_typed(*arguments)
    with subprocess.Popen(
        ["sh", "-c", 'exec "$@" <&-', "sh", *command] if closes_input else command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONUTF8": "1"},
    ) as process:
        try:
            assert process.stdout is not None
            yield process, (line.rstrip("\n") for line in iter(process.stdout.readline, ""))
        finally:
            process.kill()


def without_times(lines: Sequence[str]) -> list[str]:
    return [line[9:] for line in lines]


def test_a_pipe_gets_a_line_for_each_new_and_settled_need_and_no_question(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    with lines_of("watch", workspace.root, "--utc") as (process, lines):
        begin, *state = [next(lines) for _ in range(3)]
        assert "+00:00" in begin
        assert state == ["3 agents: 3 idle.", "Nothing needs you."]
        number = collide(alice, bob)
        wanted = "bob and alice both changed plan.md."
        assert without_times([next(lines)]) == [f"Needs you: {wanted}"]
        asked = ask(workspace, Request("prompt", HOSTILE, expires=time.time_ns() + 3601 * SECOND))
        line = next(lines)
        assert line.isprintable()
        assert line.endswith("It expires in 60 minutes.")
        dana = workspace.tools_for_human("dana")
        ok(dana, "dismiss_conflict", conflict=number)
        assert without_times([next(lines)]) == [f"No longer needs you: {wanted}"]
        ok(dana, ANSWER, request=asked.seq, text="yes")
        assert "Answered by human:dana, answered: alice asks" in next(lines)
        # The reader has seen enough, and no row comes that would reveal it.
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.wait(PATIENCE) == OK
        assert process.stderr.read() == ""


@pytest.mark.parametrize("command", ["watch {}", "open {} --plain", "{} --plain"])
def test_with_a_closed_input_nothing_is_asked(workspace: Workspace, command: str) -> None:
    typed = [each.format(workspace.root) for each in command.split()]
    with lines_of(*typed, closes_input=True) as (_, lines):
        assert [next(lines) for _ in range(3)][1:] == ["3 agents: 3 idle.", "Nothing needs you."]


def test_every_operation_is_a_line_if_wanted(workspace: Workspace, alice: Toolbox) -> None:
    with lines_of("watch", workspace.root, "--all", "--language", "zh") as (_, lines):
        first, *_ = (next(lines) for _ in range(3))
        assert "Watchroom 正在监督 team" in first
        ok(alice, "collab_write", filepath=PLAN, content="x", message="a\x1b[31m", expected_version=0)
        assert without_times([next(lines)]) == ["alice：写共享文件 plan.md，版本 1：a␛[31m。"]


def test_a_demo_can_be_watched_as_lines(tmp_path: Path) -> None:
    done = spawned("demo", str(tmp_path / "demo"), "--plain", "--for", "2", "--speed", "5", given="")
    assert (done.returncode, done.stderr) == (OK, "")
    first, agents, *_, last = done.stdout.splitlines()
    assert first.startswith("Watchroom watches demo; it is ")
    assert agents.startswith("6 agents: ")
    assert str(tmp_path / "demo") in last
    shown = spawned("open", str(tmp_path / "demo"), "--plain", "--at", "1", given="")
    assert shown.returncode == 2
