"""The simulated agents need people now and then: each kind of request soon, never many at once, and used."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread

import pytest
from simulating import PATIENCE, Meddled, ToolCall, all_rows, open_team, run_for, run_until
from watchroom import Json, Row, Workspace
from watchroom.model import ASK, Zone
from watchroom.rules.requests import Request
from watchroom.simulation import Simulation
from watchroom.simulation.people import needs
from watchroom.simulation.turns import MOST_OPEN, Turns

DECISIONS, RELEASE = needs().answers.path, needs().release.path
Answering = Callable[[Request], dict[str, Json]]


def kind(request: Request) -> str:
    return "several" if request.multi else request.kind


def agree(request: Request) -> dict[str, Json]:
    """Approves, writes, chooses the last option, or all."""
    if request.kind == "approve":
        return {"approved": True}
    if request.kind == "prompt":
        return {"text": "Ask for Ms Ito, weekdays from eight to ten."}
    values: list[Json] = [option.value for option in request.options]
    return {"values": values if request.multi else values[-1:]}


def asked(workspace: Workspace) -> list[Row]:
    return [row for row in all_rows(workspace) if row.tool == ASK]


def text_of(workspace: Workspace, zone: Zone, path: str) -> str:
    head = workspace.journal.head(zone, path)
    return (workspace.journal.content(head.seq) or "") if head else ""


def written(workspace: Workspace, path: str) -> list[str]:
    """What agents wrote to a shared file, those texts included that came too late."""
    journal = workspace.journal
    rows = [*journal.history("collab", path), *journal.refused("collab", path)]
    return [journal.content(row.seq) or "" for row in rows]


class Person:
    """Answers what is asked, as soon as it is."""

    def __init__(self, workspace: Workspace, answering: Answering) -> None:
        self.answered: list[tuple[Row, Request]] = []
        self._workspace = workspace
        self._tools = workspace.tools_for_human("dana")
        self._answering = answering

    def answers(self) -> None:
        for row in asked(self._workspace)[len(self.answered) :]:
            request = self._workspace.requests.find(row.seq)
            self.answered.append((row, request))
            given: dict[str, Json] = {"request": row.seq, **self._answering(request)}
            assert self._tools.dispatch_tool_call("answer_request", given)["success"]

    def acted_on(self) -> list[tuple[Row, Request]]:
        """What was answered to agents who have gone on to another task since."""
        heads = {head.row.path: head.status for head in self._workspace.sessions.list()}
        return [
            (row, request) for row, request in self.answered if heads[row.path.rpartition("/")[0]] == "done"
        ]

    def is_done_with(self, *kinds: str) -> bool:
        """Whether those who asked for these kinds have gone on to another task since."""
        self.answers()
        return {kind(request) for _, request in self.acted_on()}.issuperset(kinds)


def test_each_kind_comes_among_the_first_and_answers_are_used(root: Path) -> None:
    workspace, team = open_team(root, 5)
    with workspace:
        person = Person(workspace, agree)
        kinds = ("select", "prompt", "approve", "several")
        simulation = Simulation(workspace, team, seed=8, speed=12, people=True)
        summary = run_until(workspace, simulation, lambda: person.is_done_with(*kinds))
        assert summary.errors == ()
        assert sorted(kind(request) for _, request in person.answered[:4]) == sorted(kinds)
        decided, released = written(workspace, DECISIONS), written(workspace, RELEASE)
        for row, request in person.acted_on():
            if request.kind == "approve":
                (call,) = request.calls
                assert (row.actor, call.name) == ("writer", "collab_write")
                assert json.loads(call.arguments)["content"] in released
            elif request.kind == "select":
                chosen = agree(request)["values"]
                assert isinstance(chosen, list)
                lists = [mark.join(map(str, chosen)) for mark in (", ", "、")]
                assert any(each in text for text in decided for each in lists)
            else:
                assert any("Ask for Ms Ito, weekdays from eight to ten" in text for text in decided)


def test_what_is_asked_to_publish_is_worth_a_look(root: Path) -> None:
    workspace, team = open_team(root, 3)
    with workspace:
        person = Person(workspace, agree)
        simulation = Simulation(workspace, team, seed=1, speed=12, people=True)
        run_until(workspace, simulation, lambda: person.is_done_with("approve"))
        draft, published = workspace.journal.history("collab", RELEASE)[:2]
        before = (workspace.journal.content(draft.seq) or "").splitlines()
        after = (workspace.journal.content(published.seq) or "").splitlines()
        assert len(set(before) & set(after)) >= 2
        assert len(set(after) - set(before)) >= 5
        row = next(row for row, request in person.answered if request.kind == "approve")
        assert draft.seq < row.seq < published.seq


def test_a_rejected_text_stays_away_and_the_reason_is_noted(root: Path) -> None:
    def reject(request: Request) -> dict[str, Json]:
        rejected: dict[str, Json] = {"approved": False, "reason": "The council meets on Tuesday first"}
        return rejected if request.kind == "approve" else agree(request)

    workspace, team = open_team(root, 4)
    with workspace:
        person = Person(workspace, reject)
        simulation = Simulation(workspace, team, seed=2, speed=12, people=True)
        run_until(workspace, simulation, lambda: person.is_done_with("approve"))
        assert text_of(workspace, "collab", RELEASE) == needs().release.text.lstrip("\n")
        assert "The council meets on Tuesday first" in text_of(workspace, "private", "writer/log.md")


def test_a_text_that_a_person_corrects_is_published_as_corrected(root: Path) -> None:
    def correct(request: Request) -> dict[str, Json]:
        if request.kind != "approve":
            return agree(request)
        (call,) = request.calls
        given = {**json.loads(call.arguments), "content": "# No train this year\n"}
        return {"decisions": [{"call_id": call.id, "approved": True, "arguments": json.dumps(given)}]}

    workspace, team = open_team(root, 4)
    with workspace:
        person = Person(workspace, correct)
        simulation = Simulation(workspace, team, seed=2, speed=12, people=True)
        run_until(workspace, simulation, lambda: person.is_done_with("approve"))
        assert text_of(workspace, "collab", RELEASE) == "# No train this year\n"
        row, _ = next(each for each in person.answered if each[1].kind == "approve")
        agent, session, _ = row.path.split("/")
        assert "corrected" in workspace.sessions.state(agent, session).messages[-1].content


def test_a_call_that_is_approved_while_the_last_calls_end_is_not_begun(root: Path) -> None:
    asking, held, late, over = Event(), Event(), Event(), Event()
    begun: list[str] = []

    def meddle(agent: str, call: ToolCall) -> dict[str, Json]:
        """Another's call lasts while the simulation ends; the approved one would last longer than that."""
        begun.append(agent)
        if asking.is_set() and agent == "writer":
            late.set()
            over.wait(0.5)
        elif asking.is_set() and not held.is_set():
            held.set()
            late.wait(0.5)
        return call()

    workspace, team = open_team(root, 4)
    with workspace:
        simulation = Simulation(Meddled(workspace, meddle), team, seed=2, speed=12, people=True)
        committed = Event()
        workspace.subscribe(committed.set)
        simulation.start()
        while not (found := [row.seq for row in asked(workspace) if row.detail["kind"] == "approve"]):
            assert committed.wait(PATIENCE)
            committed.clear()
        asking.set()
        assert held.wait(PATIENCE)
        stopping = Thread(target=simulation.stop)
        stopping.start()
        dana = workspace.tools_for_human("dana")
        assert dana.dispatch_tool_call("answer_request", {"request": found[0], "approved": True})["success"]
        stopping.join()
        counted = simulation.summary().calls
        over.set()
    assert counted == len(begun)


def test_who_only_watches_sees_each_kind_and_never_more_than_three(root: Path) -> None:
    workspace, team = open_team(root, 5)
    with workspace:
        simulation = Simulation(workspace, team, seed=3, speed=60, people=True)

        def requests() -> list[Request]:
            return [workspace.requests.find(row.seq) for row in asked(workspace)]

        def each_kind() -> bool:
            return {kind(request) for request in requests()} >= {"select", "prompt", "approve", "several"}

        assert run_until(workspace, simulation, each_kind).errors == ()
        assert all(request.expires for request in requests())
        still_open: set[str] = set()
        for row in (row for row in all_rows(workspace) if row.zone == "request"):
            still_open ^= {row.path}
            assert len(still_open) <= MOST_OPEN


def test_a_request_that_nobody_answers_holds_nobody_up_for_ever(root: Path) -> None:
    workspace, team = open_team(root, 4)
    with workspace:
        simulation = Simulation(workspace, team, seed=3, speed=200, people=True)

        def given_up() -> bool:
            expired = {row.path for row in all_rows(workspace) if row.detail.get("outcome") == "expired"}
            heads = workspace.sessions.list()
            return len(expired) >= 5 and not any(
                head.status == "waiting_for_human_input" for head in heads if head.row.path in expired
            )

        summary = run_until(workspace, simulation, given_up)
        assert summary.errors == ()


def test_at_full_speed_requests_wait_for_people(root: Path) -> None:
    workspace, team = open_team(root, 6)
    with workspace:
        summary = run_for(workspace, Simulation(workspace, team, seed=3, speed=0, people=True), 400)
        assert summary.errors == ()
        assert 0 < len(asked(workspace)) <= MOST_OPEN
        assert not any(row.detail.get("outcome") for row in all_rows(workspace) if row.zone == "request")


@pytest.mark.parametrize("people", [True, False])
def test_what_was_asked_is_settled_when_the_demo_begins_anew(root: Path, people: bool) -> None:
    workspace, team = open_team(root, 4)
    with workspace:
        run_until(
            workspace,
            Simulation(workspace, team, seed=3, speed=0, people=True),
            lambda: len(asked(workspace)) == MOST_OPEN,
        )
        left = [head for head in workspace.sessions.list() if head.status == "waiting_for_human_input"]
        assert left
        person = Person(workspace, agree)

        def settled() -> bool:
            person.answers()
            heads = {head.row.path: head.status for head in workspace.sessions.list()}
            return all(heads[head.row.path] == "done" for head in left)

        run_until(workspace, Simulation(workspace, team, seed=3, speed=30, people=people), settled)


def test_without_people_nothing_is_asked(root: Path) -> None:
    workspace, team = open_team(root, 5)
    with workspace:
        run_for(workspace, Simulation(workspace, team, seed=3, speed=0), 300)
        assert asked(workspace) == []


class TestTurns:
    def test_a_chance_that_was_not_used_comes_again(self) -> None:
        now = [4.0]
        turns = Turns(lambda: now[0])
        assert turns.take("writer", ("publish",)) is None
        chance = turns.take("analyst", ("choose", "write"))
        assert chance is not None
        assert chance.kind == "choose"
        turns.ends("analyst", used=False)
        assert turns.take("analyst", ("choose", "write")) is None
        now[0] = 9.0
        assert turns.take("analyst", ("choose", "write")) is not None

    def test_a_chance_that_nobody_takes_makes_way_for_others(self) -> None:
        now = [30.0]
        turns = Turns(lambda: now[0])
        now[0] = 400.0
        assert turns.take("analyst", ("several",)) is None
        kinds = ("choose", "write", "publish", "several", "roll_back")
        now[0] = 470.0
        assert turns.take("analyst", kinds) is not None

    def test_three_at_once_and_then_one_a_minute(self) -> None:
        now = [100.0]
        turns = Turns(lambda: now[0])
        kinds = ("choose", "write", "publish", "several", "roll_back")
        taken = [turns.take(agent, kinds) for agent in "abcd"]
        assert [chance.kind for chance in taken if chance] == ["choose", "write", "publish"]
        for agent in "abc":
            turns.ends(agent)
        fourth = turns.take("d", kinds)
        assert fourth is not None
        assert fourth.kind == "several"
        turns.ends("d")
        assert turns.take("a", kinds) is None
        now[0] += 59
        assert turns.take("a", kinds) is None
        now[0] += 2
        assert turns.take("a", kinds) is not None
