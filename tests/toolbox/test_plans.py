"""Agents declare what they plan to change: overlaps, recent changes, notices, needs, and how plans end."""

from __future__ import annotations

import itertools

import pytest
from calls import ok, refused
from effort import rounds
from hypothesis import given, settings
from hypothesis import strategies as st
from projections.folding import folded, needs, write
from watchroom import Toolbox, Workspace
from watchroom.features.plans.rules import covers, may_overlap
from watchroom.model import SessionStatus

NAMES = st.text("ab*?.", min_size=1, max_size=3)
PATTERNS = st.lists(st.one_of(NAMES, st.just("**")), min_size=1, max_size=3).map("/".join)
FILES = ["".join(name) for size in (1, 2, 3) for name in itertools.product("ab.", repeat=size)]
PATHS = ["/".join(names) for size in (1, 2) for names in itertools.product(FILES[:12], repeat=size)] + FILES


@settings(max_examples=rounds(300, 5000))
@given(one=PATTERNS, other=PATTERNS)
def test_no_overlap_is_missed(one: str, other: str) -> None:
    shared = [path for path in PATHS if covers(one, path) and covers(other, path)]
    assert may_overlap(one, other) or not shared
    assert may_overlap(one, other) == may_overlap(other, one)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("src/api/**", "src/api/users.py", True),
        ("src/api", "src/api/users.py", True),
        ("src/api", "src/apis/users.py", False),
        ("src/*.py", "src/api/users.py", False),
        ("**/users.py", "src/api/**", True),
        ("**/users.py", "src/api/teams.py", False),
        ("src/a*.py", "src/*z.py", True),
        ("src/a*.py", "src/b*.py", False),
        ("src/*.md", "src/*.py", False),
        ("**", "anything", True),
        ("docs/a.md", "docs/a.md/b", False),
    ],
)
def test_overlaps_of_usual_patterns(one: str, other: str, expected: bool) -> None:
    assert may_overlap(one, other) is expected


def declare(toolbox: Toolbox, *paths: str, intent: str = "") -> dict[str, object]:
    return ok(toolbox, "declare_plan", paths=list(paths), intent=intent)


def planners(workspace: Workspace) -> list[str]:
    """The agents with active plans: the tool and the dashboard must agree."""
    listed = ok(workspace.tools("charlie"), "list_plans")["plans"]
    workspace.flush()
    plans = folded(workspace.journal).plans
    assert {each["agent"]: each["paths"] for each in listed} == {
        agent: list(plan.paths) for agent, plan in plans.items()
    }
    return [each["agent"] for each in listed]


def told(workspace: Workspace, agent: str) -> list[str]:
    return [each.text for each in workspace.messages.find_waiting(agent)]


def step(workspace: Workspace, agent: str, version: int, status: SessionStatus) -> None:
    """A step of the agent's session, the first one if ``version`` is 0."""
    sessions = workspace.session_zone
    if version:
        sessions.step(f"{agent}/s-1", version, "call_llm", "", "", {"status": status})
    else:
        sessions.begin(agent, "s-1", "go", "go", {"status": status})


def test_both_agents_are_told_once_about_an_overlap(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    assert declare(alice, "src/api/**", intent="rename the fields")["overlaps"] == []
    result = declare(bob, "./src/api/users.py", "docs/", intent="fix a bug")
    assert result["paths"] == ["src/api/users.py", "docs/**"]
    assert result["overlaps"] == [
        {"agent": "alice", "paths": ["src/api/users.py"], "intent": "rename the fields"}
    ]
    (text,) = told(workspace, "alice")
    assert text.startswith("bob also plans to change")
    assert "src/api/users.py" in text
    assert "fix a bug" in text
    declare(bob, "src/api/users.py")
    assert len(told(workspace, "alice")) == 1
    assert told(workspace, "bob") == []
    declare(bob, "src/api/users.py", "src/api/teams.py")
    assert len(told(workspace, "alice")) == 2


def test_a_plan_names_recent_changes_of_others(alice: Toolbox, bob: Toolbox) -> None:
    write(bob, "one", 0, "src/a.py")
    write(bob, "two", 1, "src/a.py")
    write(bob, "one", 0, "docs/a.md")
    write(alice, "one", 0, "src/own.py")
    result = declare(alice, "src")
    assert result["recent_changes"] == [{"path": "src/a.py", "version": 2, "by": ["bob"]}]


def test_an_overlap_is_a_need_until_one_plan_is_cleared(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    declare(alice, "src/api/**")
    assert needs(workspace) == []
    declare(bob, "src/api/**")
    (need,) = needs(workspace)
    assert (need.kind, need.agent, need.against, need.times) == ("overlap", "bob", "alice", 1)
    assert need.answers == ("message", "seen")
    declare(alice)
    assert needs(workspace) == []
    assert planners(workspace) == ["bob"]
    declare(alice, "src/api/users.py")
    (need,) = needs(workspace)
    assert (need.agent, need.against) == ("alice", "bob")


def test_a_person_lets_both_go_on(workspace: Workspace, alice: Toolbox, bob: Toolbox) -> None:
    declare(alice, "src/api/**")
    declare(bob, "src/api/**")
    (need,) = needs(workspace)
    ok(workspace.tools_for_human("dana"), "mark_as_seen", row=need.row.seq)
    assert needs(workspace) == []
    assert planners(workspace) == ["alice", "bob"]
    declare(bob, "src/**")
    assert [each.kind for each in needs(workspace)] == ["overlap"]


def test_a_plan_ends_with_its_session(workspace: Workspace, alice: Toolbox, bob: Toolbox) -> None:
    step(workspace, "alice", 0, "running")
    declare(alice, "src/api/**")
    declare(bob, "src/api/**")
    step(workspace, "alice", 1, "idle")
    assert planners(workspace) == ["alice", "bob"], "it has changed nothing yet"
    step(workspace, "alice", 2, "done")
    assert planners(workspace) == ["bob"]
    assert needs(workspace) == []


def test_a_plan_ends_when_its_agent_begins_another_session(workspace: Workspace, alice: Toolbox) -> None:
    declare(alice, "src/api/**")
    step(workspace, "alice", 0, "running")
    assert planners(workspace) == []


def test_a_plan_ends_when_its_agent_has_changed_the_files_and_stops(
    workspace: Workspace, alice: Toolbox
) -> None:
    step(workspace, "alice", 0, "running")
    declare(alice, "src/api/**")
    write(alice, "text", 0, "docs/a.md")
    step(workspace, "alice", 1, "idle")
    assert planners(workspace) == ["alice"], "it has changed another file"
    step(workspace, "alice", 2, "running")
    write(alice, "text", 0, "src/api/a.py")
    assert planners(workspace) == ["alice"], "it is still at work"
    step(workspace, "alice", 3, "idle")
    assert planners(workspace) == []


def test_bounds_of_plans(workspace: Workspace, alice: Toolbox) -> None:
    for path in ("../x", "/etc/*", "a//b", "", "/", "a/" * 30 + "b"):
        assert refused(alice, "declare_plan", paths=[path])["error"] == "invalid_path"
    too_many = [str(number) for number in range(51)]
    assert refused(alice, "declare_plan", paths=too_many)["error"] == "invalid_arguments"
    dana = workspace.tools_for_human("dana")
    assert refused(dana, "declare_plan", paths=["a"])["error"] == "permission_denied"
    assert planners(workspace) == []
