"""Agents of a task: each spawn, message and end is one row (TASKS-society)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from calls import ok, refused
from watchroom import Agent, Toolbox, Workspace
from watchroom.errors import InvalidRole
from watchroom.features.tasks.rows import TaskLimits
from watchroom.kernel.call_context import CallContext


class Society(NamedTuple):
    workspace: Workspace
    task: str
    root: Toolbox

    def spawn(self, by: Toolbox, role: str = "programmer", **given: str) -> Toolbox:
        made = ok(by, "spawn_agent", role=role, **{"instructions": "Write it.", **given})
        return self.workspace.tools(str(made["agent_id"]))

    def ended(self) -> set[str]:
        return {each.id for each in self.workspace.members.of_task(self.task) if each.ended}


@pytest.fixture
def society(tmp_path: Path, root: Path) -> Iterator[Society]:
    with Workspace.open(root) as workspace:
        limits = TaskLimits(depth=3, agents=4)
        task = workspace.tasks.submit("human:dana", "Build it.", tmp_path / "one", limits)
        first = workspace.members.start(task)
        yield Society(workspace, task.id, workspace.tools(first.id))


def test_the_first_agent_is_made_once_and_is_told_what_was_asked_for(society: Society) -> None:
    task = society.workspace.tasks.find(society.task)
    again = society.workspace.members.start(task)
    assert (again.id, again.layer, again.parent) == ("root", "top", "")
    assert society.workspace.members.instructions_of(again) == "Build it."
    assert [each.id for each in society.workspace.members.of_task(society.task)] == ["root"]


def test_a_child_works_on_the_same_task_one_layer_down(society: Society) -> None:
    architect = society.spawn(society.root, "architect")
    programmer = society.spawn(architect, "Programmer (tests)")
    agents = society.workspace.config.agents
    assert agents["architect"][1:] == ("architect", "mid", "root", society.task)
    assert agents[programmer.actor].layer == "bottom"
    assert programmer.actor == "programmer-tests"
    below = society.spawn(programmer)
    assert agents["architect"].layer == "mid"
    assert society.workspace.config.agents[below.actor].layer == "bottom"
    ok(programmer, "write_file", path="a.py", content="1\n")
    assert ok(architect, "read_file", path="a.py")["content"] == "1\n"


def test_no_agent_is_made_who_could_pass_for_another(society: Society) -> None:
    ada = society.spawn(society.root, "architect", name="ada")
    refusal = refused(society.root, "spawn_agent", role="Ada", instructions="Write it.")
    assert refusal["error"] == "invalid_role"
    # An id that is another agent's role counts as taken.
    assert society.spawn(society.root, "tester", name="architect").actor == "architect-2"
    assert {each.id for each in society.workspace.members.of_task(society.task)} == {
        "root",
        ada.actor,
        "architect-2",
    }
    society.workspace.members.terminate(CallContext("human:dana"), "ada")


def test_a_task_whose_first_agent_could_be_taken_for_another_is_not_begun(tmp_path: Path, root: Path) -> None:
    with Workspace.open(root, agents=[Agent("root", "gardener")]) as workspace:
        task = workspace.tasks.submit("human:dana", "Build it.", tmp_path / "one")
        with pytest.raises(InvalidRole):
            workspace.members.start(task)
        assert list(workspace.config.agents) == ["root"]


def test_no_two_agents_ever_have_one_id(society: Society) -> None:
    first = society.spawn(society.root, name="ada")
    second = society.spawn(society.root, name="ada")
    ok(society.root, "terminate_agent", agent_id="ada")
    third = society.spawn(society.root, name="ada")
    assert [each.actor for each in (first, second, third)] == ["ada", "ada-2", "ada-3"]


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"role": "x", "instructions": "y", "name": "No Such Id"}, "invalid_agent_id"),
        ({"role": "x", "instructions": "y", "name": "user"}, "invalid_agent_id"),
        ({"role": "x", "instructions": ""}, "invalid_arguments"),
        ({"role": "x", "instructions": "a\0b"}, "not_text"),
    ],
)
def test_a_bad_spawn_is_refused(society: Society, given: dict[str, str], error: str) -> None:
    assert refused(society.root, "spawn_agent", **given)["error"] == error
    assert len(society.workspace.members.of_task(society.task)) == 1


def test_a_role_in_any_script_gives_an_id(society: Society) -> None:
    assert society.spawn(society.root, "程序员").actor == "agent"


def test_a_role_is_one_line_that_can_be_seen(society: Society) -> None:
    society.spawn(society.root, "Code\x1b[31m\nreviewer\u202e ")
    society.spawn(society.root, "\x07")
    roles = [each.role for each in society.workspace.members.of_task(society.task)]
    assert roles == ["root", "Code[31m reviewer", "agent"]


def test_depth_and_number_have_limits(society: Society) -> None:
    box = society.root
    for _ in range(3):
        box = society.spawn(box)
    deeper = refused(box, "spawn_agent", role="x", instructions="y")
    assert (deeper["error"], "3" in str(deeper["message"])) == ("society_limit", True)
    wider = refused(society.root, "spawn_agent", role="x", instructions="y")
    assert (wider["error"], "4" in str(wider["message"])) == ("society_limit", True)
    ok(society.root, "terminate_agent", agent_id="programmer-3")
    society.spawn(society.root)


def test_messages_are_rows_and_reach_only_the_own_task(society: Society, tmp_path: Path) -> None:
    architect = society.spawn(society.root, "architect")
    other = society.workspace.tasks.submit("human:dana", "Another.", tmp_path / "other")
    stranger = society.workspace.members.start(other).id
    assert stranger == "root-2"
    number = ok(society.root, "send_message", to="architect", payload={"text": "Begin.\nSoon."})["row"]
    (row,) = society.workspace.journal.rows(int(str(number)) - 1, limit=1)
    assert (row.actor, row.zone, row.path, row.message) == ("root", "agent", "architect", "Begin.")
    assert society.workspace.journal.content(row.seq) == "Begin.\nSoon."
    report = "All of the report. " * 25
    sent = ok(architect, "send_message", to="user", payload={"text": report})["row"]
    (row,) = society.workspace.journal.rows(int(str(sent)) - 1, limit=1)
    assert row.message == report.strip(), "lists show a long message whole"
    outside = refused(architect, "send_message", to=stranger, payload={"text": "Psst."})
    assert (outside["error"], "user, root" in str(outside["suggestion"])) == ("unknown_agent", True)


def test_what_was_said_to_an_agent_that_has_ended_is_kept(society: Society) -> None:
    society.spawn(society.root, name="ada")
    ok(society.root, "terminate_agent", agent_id="ada", reason="Done.")
    assert refused(society.root, "send_message", to="ada", payload={"text": "Hi?"})["error"] == "agent_ended"
    row = society.workspace.journal.rows_before(society.workspace.journal.last_seq() + 1, limit=1)[0]
    assert (row.outcome, row.path, society.workspace.journal.content(row.seq)) == ("failed", "ada", "Hi?")
    person = society.workspace.tools_for_human("dana")
    assert refused(person, "send_message", to="ada", payload={"text": "Hi?"})["error"] == "agent_ended"


def test_with_an_agent_end_all_that_it_made(society: Society) -> None:
    architect = society.spawn(society.root, "architect")
    programmer = society.spawn(architect)
    tester = society.spawn(society.root, "tester")
    assert refused(programmer, "terminate_agent", agent_id="architect")["error"] == "permission_denied"
    assert refused(tester, "terminate_agent", agent_id="programmer")["error"] == "permission_denied"
    assert refused(architect, "terminate_agent", agent_id="architect")["error"] == "permission_denied"
    assert ok(society.root, "terminate_agent", agent_id="architect")["ended"] == ["architect", "programmer"]
    assert society.ended() == {"architect", "programmer"}
    assert refused(society.root, "terminate_agent", agent_id="programmer")["error"] == "agent_ended"
    assert refused(programmer, "write_file", path="late.py", content="x")["error"] == "agent_ended"
    assert refused(programmer, "collab_list")["error"] == "agent_ended"


def test_a_person_may_end_any_agent(society: Society) -> None:
    society.spawn(society.root, "architect")
    person = society.workspace.tools_for_human("dana")
    assert ok(person, "terminate_agent", agent_id="architect")["ended"] == ["architect"]
    assert refused(person, "terminate_agent", agent_id="nobody")["error"] == "unknown_agent"


def test_a_task_is_ended_by_its_first_agent_or_by_a_person(society: Society) -> None:
    architect = society.spawn(society.root, "architect")
    early = refused(architect, "end_task", status="done", report="I say so.")
    assert (early["error"], "root" in str(early["message"])) == ("permission_denied", True)
    other = society.workspace.tasks.submit("human:dana", "Another.").id
    for another in (other, "nothing"):
        wrong = refused(society.root, "end_task", status="done", report="It works.", task_id=another)
        assert (wrong["error"], another in str(wrong["message"])) == ("permission_denied", True)
    assert society.workspace.tasks.is_open(society.task)
    assert society.workspace.tasks.is_open(other)
    given = {"status": "done", "report": "It works.", "task_id": society.task}
    assert ok(society.root, "end_task", **given)["status"] == "done"
    assert society.ended() == {"root", "architect"}
    assert refused(society.root, "spawn_agent", role="x", instructions="y")["error"] == "agent_ended"


def test_a_person_ends_a_task_that_is_named(society: Society) -> None:
    person = society.workspace.tools_for_human("dana")
    given = {"status": "cancelled", "report": "Enough."}
    assert refused(person, "end_task", **given, task_id="nothing")["error"] == "task_not_found"
    assert ok(person, "end_task", **given, task_id=society.task)["status"] == "cancelled"
    assert society.ended() == {"root"}


def test_agents_without_a_task_have_none_of_it(society: Society) -> None:
    society.workspace.register([Agent("alice")])
    alice = society.workspace.tools("alice")
    names = {str(each["name"]) for each in alice.get_tool_definitions()}
    assert not names & {"spawn_agent", "send_message", "list_agents", "end_task", "run_command"}
    assert refused(alice, "send_message", to="root", payload={"text": "Hi."})["error"] == "not_in_task"


def test_who_is_there_is_listed_with_who_made_whom(society: Society) -> None:
    architect = society.spawn(society.root, "architect")
    society.spawn(architect, name="ada")
    ok(architect, "terminate_agent", agent_id="ada")
    listed = ok(architect, "list_agents")["agents"]
    assert listed == [
        {"agent_id": "root", "role": "root", "made_by": "user"},
        {"agent_id": "architect", "role": "architect", "made_by": "root"},
        {"agent_id": "ada", "role": "programmer", "made_by": "architect", "ended": True},
    ]


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("spawn_agent", {"role": "tester", "instructions": "Test it."}),
        ("send_message", {"to": "user", "payload": {"text": "Hello."}}),
        ("end_task", {"status": "done", "report": "It works."}),
    ],
)
def test_a_call_that_was_cut_off_is_not_made_twice(
    society: Society, tool: str, given: dict[str, object]
) -> None:
    first = society.root.dispatch_tool_call(tool, given, call="s1/1/0")  # type: ignore[arg-type]
    seq = society.workspace.journal.last_seq()
    again = society.root.dispatch_tool_call(tool, given, call="s1/1/0", again=True)  # type: ignore[arg-type]
    assert again == first
    assert society.workspace.journal.last_seq() == seq
