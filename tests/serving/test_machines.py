"""Workspaces on other machines: their agents and needs are shown here, and answered from here."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from calls import ok
from machine_links import PLAN, PROGRAM, Near, Ssh, ask, machine_at, near, ssh
from people.conftest import close
from watchroom import Workspace
from watchroom.features.requests.rows import Option, Request, RequestState, request_state
from watchroom.features.requests.service import find_request_end
from watchroom.model import ANSWER, Row
from watchroom.platform import detect_platform
from watchroom.serving.machines.address import AddressProblem, Machine, parse_machine
from watchroom.serving.machines.connection import SILENCE_SECONDS
from watchroom.serving.machines.messages import (
    ANSWER_SECONDS,
    MAX_ANSWER,
    MAX_LINE,
    PROTOCOL,
    BadLineError,
    Beat,
    FarNeed,
    FarSummary,
    Hello,
    NeedAnswer,
    dump_line,
    parse_from_far,
    parse_from_near,
)

__all__ = ["ssh"]
pytestmark = pytest.mark.slow(30)


def end_of(workspace: Workspace, number: int) -> Row | None:
    asked = workspace.journal.row(number)
    assert asked is not None
    return find_request_end(workspace.journal, workspace.people, asked.path)


def state_of(workspace: Workspace, number: int) -> RequestState:
    return request_state(end_of(workspace, number))


def answers(workspace: Workspace) -> list[Row]:
    return [each for each in workspace.journal.rows(0) if each.tool == ANSWER]


# -- addresses


@pytest.mark.parametrize(
    ("address", "rule"),
    [
        ("http://lab/team", "form"),
        ("ssh://lab/team?x=1", "form"),
        ("ssh://lab:70000/team", "form"),
        ("ssh://lab/te\nam", "form"),
        ("ssh://-oProxyCommand=touch/team", "host"),
        ("ssh://-oProxyCommand=touch@lab/team", "host"),
        ("ssh://la$(b)/team", "host"),
        ("ssh:///team", "host"),
        ("ssh://dana:secret@lab/team", "password"),
        ("ssh://lab", "path"),
        ("ssh://lab/", "path"),
        ("ssh://lab/a%00b", "path"),
        ("ssh://lab/a%0ab", "path"),
    ],
)
def test_an_invalid_address_is_refused(address: str, rule: str) -> None:
    with pytest.raises(AddressProblem) as refused:
        parse_machine("lab", address)
    assert refused.value.rule == rule


@pytest.mark.parametrize("name", ["", "-x", "a b", "a/b", "x" * 33, "\x1b[1m", "é"])
def test_an_invalid_name_is_refused(name: str) -> None:
    with pytest.raises(AddressProblem):
        parse_machine(name, "ssh://lab/team")


@pytest.mark.parametrize("program", ["-x", "a b", "$(touch x)", "../x", "x;y"])
def test_an_invalid_program_is_refused(program: str) -> None:
    with pytest.raises(AddressProblem):
        parse_machine("lab", "ssh://lab/team", program)


def test_the_command_line_of_ssh() -> None:
    command = parse_machine("lab", "ssh://dana@Lab.example:2222/~/my%20team's").command("dana", "en")
    remote = "exec watchroom machine serve './my team'\"'\"'s' --as dana --language en"
    assert command[-7:] == ("-p", "2222", "-l", "dana", "--", "Lab.example", remote)
    assert not [each for each in command if "HostKey" in each or "KnownHosts" in each]
    assert parse_machine("lab", "ssh://[fe80::1%25eth0]/team").host == "fe80::1%25eth0"


# -- lines


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\xff\xfe",
        b"Welcome to lab",
        b"[]",
        b'{"type": "nothing"}',
        b'{"type": "beat"}',
        b'{"type": "beat", "time": -1}',
        b'{"type": "beat", "time": "\\ud800"}',
        b'{"type": "summary", "time": 1, "agents": [{"id": "a", "status": "fine"}]}',
        b'{"type": "summary", "time": 1, "needs": [{"row": 1, "kind": "k", "party": "p"}]}',
        b'{"type": "summary", "time": 1, "agents": [' + b'{"id":"a","status":"idle"},' * 201 + b"{}]}",
        b'{"type": "result", "key": "x", "state": "accepted"}',
        b"[" * 100_000,
    ],
)
def test_a_line_that_is_no_message_is_refused(line: bytes) -> None:
    with pytest.raises(BadLineError):
        parse_from_far(line)
    with pytest.raises(BadLineError):
        parse_from_near(line)


def test_unknown_fields_are_ignored() -> None:
    assert parse_from_far(b'{"type": "beat", "time": 1, "more": [1]}') == Beat(time=1)


# -- two machines


def test_agents_of_two_machines_are_shown(ssh: Ssh, root: Path, workspace: Workspace, tmp_path: Path) -> None:
    ok(workspace.tools("alice"), "save_to_my_workspace", filename="a.md", content="x")
    with Workspace.open(tmp_path / "other", agents=["zoe"]) as other:
        ask(workspace)
        with near(machine_at(root), machine_at(other.root, "attic")) as found:
            found.until(lambda: all(each.is_connected for each in found.machines.views), "both")
            lab, attic = found.machines.views
            assert [each.id for each in lab.agents][:1] == ["alice"]
            assert {each.id for each in lab.agents} == {"alice", "bob", "charlie"}
            assert [each.id for each in attic.agents] == ["zoe"]
            assert (lab.place, attic.place) == ("team", "other")
            (need,) = lab.needs
            assert (need.agent, need.kind, need.answers) == ("alice", "approve", ("approve", "reject"))
            assert any("+ two" in line for line in need.details)
            assert attic.needs == ()


def test_a_permission_is_answered_on_the_other_machine(ssh: Ssh, root: Path, workspace: Workspace) -> None:
    number = ask(workspace)
    with near(machine_at(root)) as found:
        need = found.need()
        found.machines.answer("lab", need, "approve")
        found.until(lambda: found.fates, "its fate")
        assert [(each.fate, each.message) for each in found.outcomes] == [("accepted", "approved")]
        found.until(lambda: not found.view.needs, "no need")
    ended = end_of(workspace, number)
    assert ended is not None
    assert (ended.actor, ended.detail["outcome"]) == ("human:dana", "approved")


def test_questions_and_choices_are_answered(ssh: Ssh, root: Path, workspace: Workspace) -> None:
    with near(machine_at(root)) as found:
        number = ask(workspace, Request("prompt", "Which month?"))
        found.machines.answer("lab", found.need(), "reply", "May")
        found.until(lambda: found.fates == ["accepted"], "the reply")
        found.until(lambda: not found.view.needs, "no need")
        options = (Option("Today", "now"), Option("Later", "later"))
        choice = ask(workspace, Request("select", "When?", options=options), "2")
        need = found.need()
        assert [(each.label, each.value) for each in need.options] == [("Today", "now"), ("Later", "later")]
        found.machines.answer("lab", need, "choose", values=["never"])
        found.until(lambda: len(found.fates) == 2, "an invalid choice")
        found.machines.answer("lab", need, "choose", values=["later"])
        found.until(lambda: len(found.fates) == 3, "the choice")
        assert found.fates == ["accepted", "refused", "accepted"]
    assert (state_of(workspace, number), state_of(workspace, choice)) == ("answered", "answered")


def test_a_need_is_marked_as_seen(ssh: Ssh, root: Path, workspace: Workspace) -> None:
    fields = {"filepath": "plan.md", "message": "m"}
    ok(workspace.tools("alice"), "collab_write", content="one\n", expected_version=0, **fields)
    ok(workspace.tools("bob"), "collab_write", content="two\n", expected_version=-1, **fields)
    with near(machine_at(root)) as found:
        need = found.need()
        assert need.answers == ("seen",)
        found.machines.answer("lab", need, "seen")
        found.until(lambda: found.fates == ["accepted"] and not found.view.needs, "seen")


def test_an_answer_that_is_too_long_is_not_sent(ssh: Ssh, root: Path, workspace: Workspace) -> None:
    number = ask(workspace, Request("prompt", "Which month?"))
    with near(machine_at(root)) as found:
        need = found.need()
        for text in ("x" * (MAX_ANSWER + 1), "\ud800"):
            found.machines.answer("lab", need, "reply", text)
        found.until(lambda: found.fates == ["refused", "refused"], "refused here")
        found.machines.answer("lab", need, "reply", "May")
        found.until(lambda: found.fates[2:] == ["accepted"], "accepted")
    assert state_of(workspace, number) == "answered"


def test_an_answered_request_is_refused_with_the_reason(ssh: Ssh, root: Path, workspace: Workspace) -> None:
    number = ask(workspace)
    with near(machine_at(root)) as found:
        need = found.need()
        person = workspace.tools_for_human("erin")
        ok(person, "answer_request", request=number, approved=False)
        found.machines.answer("lab", need, "approve")
        found.until(lambda: found.fates, "its fate")
        (outcome,) = found.outcomes
        assert outcome.fate == "refused"
        assert "human:erin" in outcome.message
    assert len([each for each in answers(workspace) if each.outcome == "ok"]) == 1


def test_what_has_changed_since_it_was_shown_is_not_approved(
    ssh: Ssh, root: Path, workspace: Workspace
) -> None:
    number = ask(workspace)
    with near(machine_at(root)) as found:
        need = found.need()
        ok(
            workspace.tools("bob"),
            "collab_write",
            filepath="plan.md",
            content="bob\n",
            message="m",
            expected_version=0,
        )
        found.machines.answer("lab", need, "approve")
        found.until(lambda: found.fates == ["refused"], "refused")
        assert "has changed" in found.outcomes[0].message
        assert state_of(workspace, number) == "open"
        found.until(lambda: found.view.needs[0].shown != need.shown, "the new page")
        found.machines.answer("lab", found.view.needs[0], "approve")
        found.until(lambda: len(found.fates) == 2, "its fate")
    assert state_of(workspace, number) == "answered"


def test_a_closed_workspace_takes_no_unsigned_answer(ssh: Ssh, root: Path, workspace: Workspace) -> None:
    close(workspace)
    number = ask(workspace)
    with near(machine_at(root)) as found:
        found.machines.answer("lab", found.need(), "approve")
        found.until(lambda: found.fates == ["refused"], "refused")
        assert "sign" in found.outcomes[0].message
    assert state_of(workspace, number) == "open"


def test_a_long_request_cannot_be_approved_from_here(ssh: Ssh, root: Path, workspace: Workspace) -> None:
    text = "".join(f"line {number}\n" for number in range(500))
    arguments = json.dumps({"filepath": "plan.md", "content": text, "message": "m"})
    ask(workspace, Request("approve", calls=(replace(PLAN, arguments=arguments),)))
    with near(machine_at(root)) as found:
        need = found.need()
        assert (need.is_cut, need.answers) == (True, ("reject",))


def test_a_frozen_machine_is_reported_and_returns(ssh: Ssh, root: Path, workspace: Workspace) -> None:
    with near(machine_at(root)) as found:
        found.until(lambda: found.view.is_connected, "connected")
        ssh.signal(signal.SIGSTOP)
        waited = found.until(lambda: found.view.state == "lost", "lost")
        assert waited < 15
        assert found.view.reason == ""
        assert time.time_ns() - found.view.since > (SILENCE_SECONDS - 1) * 1e9
        assert {each.id for each in found.view.agents} == {"alice", "bob", "charlie"}, "the last known ones"
        found.until(lambda: found.view.is_connected, "connected again")


def test_a_closed_connection_is_reported_with_its_reason(ssh: Ssh, root: Path, workspace: Workspace) -> None:
    ask(workspace)
    with near(machine_at(root)) as found:
        need = found.need()
        ssh.block(True)
        ssh.signal(signal.SIGKILL)
        found.until(lambda: "No route to host" in found.view.reason, "the reason")
        assert found.view.state == "lost"
        found.machines.answer("lab", need, "approve")
        found.until(lambda: found.fates == ["unsent"], "not sent")
        ssh.block(False)
        found.until(lambda: found.view.is_connected, "connected again")


def test_no_workspace_is_reported(ssh: Ssh, tmp_path: Path) -> None:
    with near(machine_at(tmp_path / "nothing")) as found:
        found.until(lambda: "is not a workspace" in found.view.reason, "the reason")


def test_an_answer_of_unknown_fate_is_never_carried_out_later(
    ssh: Ssh, root: Path, workspace: Workspace
) -> None:
    """The far end freezes with the answer in its pipe."""
    number = ask(workspace)
    with near(machine_at(root)) as found:
        need = found.need()
        frozen = ssh.processes[-1]
        ssh.signal(signal.SIGSTOP)
        found.machines.answer("lab", need, "approve")
        found.until(lambda: found.fates == ["unknown"], "unknown")
        assert found.view.sent == {number: True}
        found.until(lambda: found.view.is_connected, "connected again")
        found.until(lambda: found.fates == ["unknown", "absent"], "the truth")
        assert state_of(workspace, number) == "open"
        assert detect_platform().process(frozen) is None
        found.machines.answer("lab", found.need(), "approve")
        found.until(lambda: found.fates[2:] == ["accepted"], "answered again")
    assert len(answers(workspace)) == 1


def test_an_answer_that_arrived_is_found_after_a_lost_result(
    ssh: Ssh, root: Path, workspace: Workspace
) -> None:
    number = ask(workspace)
    with near(machine_at(root)) as found:
        need = found.need()
        found.machines.answer("lab", need, "approve")
        # The row is written, and the far end is killed before or after it reports it.
        while end_of(workspace, number) is None:
            time.sleep(0.001)
        ssh.signal(signal.SIGKILL)
        found.until(lambda: "accepted" in found.fates, "the truth")
    assert len(answers(workspace)) == 1


# -- machines that do not behave


def far_program(folder: Path, text: str) -> str:
    """Return the path of a program that speaks for the other machine. ``text``: in Python."""
    path = folder / "program"
    path.write_text(f"#!{sys.executable}\nimport sys, time\nsys.stdin.readline()\n{text}\n")
    path.chmod(0o755)
    return str(path)


HELLO = json.dumps({"type": "hello", "protocol": PROTOCOL, "version": "9"})
SUMMARY = json.dumps({"type": "summary", "time": 2**63 - 1, "agents": [{"id": "x", "status": "idle"}]})


def test_another_version_is_reported(ssh: Ssh, tmp_path: Path) -> None:
    hello = json.dumps({"type": "hello", "protocol": PROTOCOL + 1, "version": "9.1"})
    program = far_program(
        tmp_path, f"print({hello!r}, flush=True)\nprint({SUMMARY!r}, flush=True)\ntime.sleep(60)"
    )
    with near(parse_machine("lab", "ssh://lab/x", program)) as found:
        found.until(lambda: found.view.state == "refused", "refused")
        assert (found.view.version, found.view.agents) == ("9.1", ())


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("print('Welcome to lab', flush=True); time.sleep(60)", "Welcome to lab"),
        (f"print({SUMMARY!r}, flush=True); time.sleep(60)", "summary"),
        (f"print({HELLO!r}, flush=True); print('x' * 3_000_000, flush=True); time.sleep(60)", "limit"),
        ("sys.exit('it failed')", "it failed"),
        ("sys.exit(3)", "ssh: 3"),
    ],
)
def test_a_machine_that_does_not_speak_the_protocol_is_lost(
    ssh: Ssh, tmp_path: Path, text: str, reason: str
) -> None:
    program = far_program(tmp_path, text)
    with near(parse_machine("lab", "ssh://lab/x", program)) as found:
        found.until(lambda: reason in found.view.reason, reason)
        assert (found.view.state, found.view.agents) == ("lost", ())


def test_a_flood_is_slowed_down(ssh: Ssh, tmp_path: Path) -> None:
    program = far_program(
        tmp_path, f"print({HELLO!r}, flush=True)\nwhile True: print({SUMMARY!r}, flush=True)"
    )
    with near(parse_machine("lab", "ssh://lab/x", program)) as found:
        found.until(lambda: found.view.agents, "an agent")
        before, used = len(found.views), time.process_time()
        time.sleep(3)
        assert len(found.views) - before < 40
        assert time.process_time() - used < 1
        # Its clock is as wrong as possible, and an answer is sent all the same.
        need = FarNeed(row=1, kind="k", party="p", matter="m", answers=("seen",))
        found.machines.answer("lab", need, "seen")
        found.until(lambda: found.fates == ["unknown"], "no answer")


# -- the far end alone


class _Far:
    """The far end, with a near end that speaks line by line."""

    def __init__(self, root: Path) -> None:
        command = [PROGRAM, "machine", "serve", str(root), "--as", "dana"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._source, self._target = self.process.stdout, self.process.stdin

    def send(self, line: bytes) -> None:
        self._target.write(line)
        self._target.flush()

    def read(self, kind: str) -> dict[str, object]:
        for line in self._source:
            message: dict[str, object] = json.loads(line)
            if message["type"] == kind:
                return message
        raise AssertionError(f"no {kind}")

    def close(self) -> None:
        self._target.close()
        assert self.process.wait(20) == 0
        self._source.close()


def test_the_same_answer_counts_once(root: Path, workspace: Workspace) -> None:
    number = ask(workspace)
    far = _Far(root)
    far.send(dump_line(Hello(protocol=PROTOCOL, version="0")))
    (need,) = FarSummary.model_validate(far.read("summary")).needs
    answer = NeedAnswer(
        key="a" * 32,
        row=number,
        shown=need.shown,
        decision="approve",
        until=time.time_ns() + int(ANSWER_SECONDS * 1e9),
    )
    for _ in range(2):
        far.send(dump_line(answer))
        assert far.read("result")["state"] == "accepted"
    rejected = answer.model_copy(update={"decision": "reject"})
    far.send(dump_line(rejected))
    result = far.read("result")
    assert (result["state"], result["message"]) == ("accepted", "approved")
    late = answer.model_copy(update={"key": "b" * 32, "until": 1})
    far.send(dump_line(late))
    assert far.read("result")["state"] == "refused"
    far.close()
    assert len(answers(workspace)) == 1


def test_another_protocol_is_not_served(root: Path, workspace: Workspace) -> None:
    far = _Far(root)
    far.send(dump_line(Hello(protocol=PROTOCOL + 1, version="9")))
    assert far.read("hello")["protocol"] == PROTOCOL
    far.close()


def test_a_line_without_end_ends_the_far_end(root: Path, workspace: Workspace) -> None:
    far = _Far(root)
    far.send(dump_line(Hello(protocol=PROTOCOL, version="0")))
    far.send(b"x" * (MAX_LINE + 100_000))
    far.close()


# -- hostile machines


HELLO = '{"type": "hello", "protocol": 1, "version": "0", "place": "lab"}'
FLOOD = """\
echo '{hello}'
line='{{"type": "summary", "time": 1, "agents": [], "needs": []}}'
while echo "$line"; do :; done
"""
SURPLUS = """\
echo '{hello}'
echo '{{"type": "summary", "time": 1}}'
sleep 1
echo nonsense
exec head -c 100000000 /dev/zero
"""
LEFT_OPEN = """\
setsid sleep 20 &
echo '{hello}'
"""


def hostile(ssh: Ssh, code: str) -> Machine:
    """Let the far end be ``code``, a program of a shell."""
    ssh.replace(code)
    return parse_machine("lab", "ssh://lab/team", PROGRAM)


@pytest.mark.parametrize("code", [FLOOD, SURPLUS, LEFT_OPEN])
def test_a_hostile_machine_holds_up_no_attempt_and_no_end(ssh: Ssh, code: str) -> None:
    found = Near([hostile(ssh, code.format(hello=HELLO))])
    found.machines.start()
    if code is not FLOOD:
        found.until(lambda: len(ssh.processes) > 1, "another attempt", 20)
    else:
        found.until(lambda: found.view.is_connected, "connected")
        reported = len(found.views)
        time.sleep(1)
        assert len(found.views) - reported < 50, "the dashboard draws each of them"
    began = time.monotonic()
    found.machines.close()
    assert time.monotonic() - began < 5


def test_an_answer_by_a_clock_far_ahead_is_sent(ssh: Ssh) -> None:
    need = {"row": 1, "kind": "k", "party": "p", "matter": "m", "answers": ["approve"], "deadline": 1}
    summary = json.dumps({"type": "summary", "time": 2**63 - 1, "needs": [need, need]})
    code = f"echo '{HELLO}'\nwhile echo '{summary}'; do read -r line; sleep 0.3; done"
    with near(hostile(ssh, code)) as found:
        found.until(lambda: found.view.needs, "a need")
        found.machines.answer("lab", found.view.needs[0], "approve")
        found.until(lambda: found.fates == ["unknown"], "its fate", 20)
        time.sleep(5)
        assert found.view.is_connected
        assert len(ssh.processes) == 1


@pytest.mark.parametrize("seconds", [0.0, 0.001, 0.002, 0.003, 0.005, 0.008, 0.012, 0.02])
def test_an_end_during_the_start_of_ssh_is_not_held_up(ssh: Ssh, seconds: float) -> None:
    found = Near([hostile(ssh, LEFT_OPEN.format(hello=HELLO))])
    found.machines.start()
    time.sleep(seconds)
    began = time.monotonic()
    found.machines.close()
    assert time.monotonic() - began < 5
