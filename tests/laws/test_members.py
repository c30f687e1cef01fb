"""Laws of the agents of tasks: whoever makes, writes to and ends whomever, in any order, the workspace, the
journal laid out, and a simple model agree on who is there and on what is refused."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import NamedTuple

import pytest
from effort import rounds
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from projections.folding import folded
from watchroom import Json, Row, Workspace, Zone
from watchroom.features.tasks.rows import TaskLimits
from watchroom.kernel.call_context import CallContext

DEPTH, MOST = 2, 4
names = st.sampled_from(["ada", "bob", "eve"])
chosen = st.integers(0, 30)


class Known(NamedTuple):
    """An agent as the model has it."""

    task: str
    parent: str
    depth: int


class Members(RuleBasedStateMachine):
    """The model: who was made by whom, and who or which task was ended."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        root = Path(self.folder.name)
        self.workspace = Workspace.open(root / "team")
        # As another process would: what one is told holds for the next call of the other.
        self.both = [self.workspace, Workspace.open(root / "team", scan=False)]
        self.agents: dict[str, Known] = {}
        self.ended: set[str] = set()
        self.over: set[str] = set()
        self.tasks: list[str] = []
        for name in ("one", "two"):
            limits = TaskLimits(depth=DEPTH, agents=MOST)
            task = self.workspace.tasks.submit("human:dana", "Build it.", root / name, limits)
            self.tasks.append(task.id)
            self.agents[self.workspace.members.start(task).id] = Known(task.id, "", 0)

    def teardown(self) -> None:
        assert self.workspace.verify() == []
        for workspace in self.both:
            workspace.close()
        self.folder.cleanup()

    def has_ended(self, agent: str) -> bool:
        known = self.agents[agent]
        above = bool(known.parent) and self.has_ended(known.parent)
        return agent in self.ended or known.task in self.over or above

    def is_above(self, agent: str, other: str) -> bool:
        parent = self.agents[other].parent
        return bool(parent) and (parent == agent or self.is_above(agent, parent))

    def agent(self, number: int) -> str:
        return list(self.agents)[number % len(self.agents)]

    def calls(self, actor: str, tool: str, **given: Json) -> dict[str, Json]:
        self.both.reverse()
        person = actor.startswith("human:")
        box = self.both[0].tools_for_human("dana") if person else self.both[0].tools(actor)
        return dict(box.dispatch_tool_call(tool, given))

    @rule(by=chosen, name=names)
    def spawn(self, by: int, name: str) -> None:
        actor = self.agent(by)
        known = self.agents[actor]
        living = [
            each for each in self.agents if self.agents[each].task == known.task and not self.has_ended(each)
        ]
        result = self.calls(actor, "spawn_agent", role="tester", instructions="Test.", name=name)
        if self.has_ended(actor):
            assert result["error"] == "agent_ended"
        elif known.depth >= DEPTH or len(living) >= MOST:
            assert result["error"] == "society_limit"
        else:
            made = str(result["agent_id"])
            assert made not in self.agents
            self.agents[made] = Known(known.task, actor, known.depth + 1)

    @rule(by=chosen, of=chosen, is_person=st.booleans())
    def terminate(self, by: int, of: int, is_person: bool) -> None:
        actor, agent = self.agent(by), self.agent(of)
        result = self.calls("human:dana" if is_person else actor, "terminate_agent", agent_id=agent)
        if not is_person and self.has_ended(actor):
            assert result["error"] == "agent_ended"
        elif not is_person and self.agents[actor].task != self.agents[agent].task:
            assert result["error"] == "unknown_agent"
        elif self.has_ended(agent):
            assert result["error"] == "agent_ended"
        elif not is_person and not self.is_above(actor, agent):
            assert result["error"] == "permission_denied"
        else:
            before = {each for each in self.agents if self.has_ended(each)}
            if self.agents[agent].parent:
                self.ended.add(agent)
            else:
                self.over.add(self.agents[agent].task)
            after = {each for each in self.agents if self.has_ended(each)}
            assert set(result["ended"]) == after - before  # type: ignore[arg-type]  # a list of ids

    @rule(by=chosen, to=chosen)
    def send(self, by: int, to: int) -> None:
        actor, receiver = self.agent(by), self.agent(to)
        result = self.calls(actor, "send_message", to=receiver, payload={"text": "Hello."})
        if self.has_ended(actor):
            assert result["error"] == "agent_ended"
        elif actor == receiver or self.agents[actor].task != self.agents[receiver].task:
            assert result["error"] == "unknown_agent"
        elif self.has_ended(receiver):
            assert result["error"] == "agent_ended"
        else:
            newest = folded(self.workspace.journal).messages[0]
            assert (newest.row.seq, newest.sender, newest.receiver) == (result["row"], actor, receiver)

    @rule(by=chosen)
    def end_task(self, by: int) -> None:
        actor = self.agent(by)
        result = self.calls(actor, "end_task", status="done", report="Done.")
        if self.has_ended(actor):
            assert result["error"] == "agent_ended"
        elif self.agents[actor].parent:
            assert result["error"] == "permission_denied"
        else:
            assert result["status"] == "done"
            self.over.add(self.agents[actor].task)

    @invariant()
    def all_agree(self) -> None:
        expected = {each: (*known, self.has_ended(each)) for each, known in self.agents.items()}
        members = [each for task in self.tasks for each in self.workspace.members.of_task(task)]
        found = {each.id: (each.task, each.parent, each.depth, bool(each.ended)) for each in members}
        assert found == expected
        views = {view.id: view for view in folded(self.workspace.journal).tasks}
        for task in self.tasks:
            own = self.workspace.members.of_task(task)
            assert [(each.id, each.ended, each.depth) for each in own] == [
                (each.id, each.ended, each.depth) for each in views[task].members
            ]
        assert {each.id for each in members} == self.workspace.config.agents.keys()


def test_who_is_there_is_the_same_to_all() -> None:
    run_state_machine_as_test(Members, settings=settings(max_examples=rounds(10, 15), stateful_step_count=20))


def test_who_is_spawned_while_the_members_are_asked_for_has_its_instructions(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    task = workspace.tasks.submit("human:dana", "Build it.", tmp_path / "work")
    first = workspace.members.start(task)
    open_items, wanted = workspace.journal.open_items, ["ada"]

    def open_items_before_a_spawn(zone: Zone, holder: str = "") -> list[Row]:
        found = open_items(zone, holder)
        if wanted and holder == task.id:
            workspace.members.spawn(CallContext(first.id), "programmer", "Write it.", wanted.pop())
        return found

    monkeypatch.setattr(workspace.journal, "open_items", open_items_before_a_spawn)
    assert all(each.spawned for each in workspace.members.of_task(task.id))
    assert [each.id for each in workspace.members.of_task(task.id)] == ["root", "ada"]
