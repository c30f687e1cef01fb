"""What a revert means and would do, by the rows alone: which versions are selected, and from where on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from memory_journal import MemoryJournal
from watchroom import Agent, Workspace
from watchroom.errors import RevertNotFound, RevertTooLarge, UnknownAgent
from watchroom.features.reverts.rules import RevertPlan, RevertSelection
from watchroom.model import Draft, Note, Write


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with Workspace.open(tmp_path / "team", ["alice", "bob"], journal=MemoryJournal()) as opened:
        yield opened


def version(actor: str, path: str, content: str | None) -> Write:
    return Write(actor, "collab_write", "collab", path, content)


def made(workspace: Workspace, *drafts: Draft) -> list[int]:
    return [each.row.seq for each in workspace.journal.append(drafts)]


def told(plan: RevertPlan) -> list[tuple[str, str, str | None, str | None, int]]:
    return [(each.path, each.plan.kind, each.current, each.plan.content, each.base) for each in plan.paths]


def test_what_an_agent_wrote_goes_back_to_the_version_before_it(workspace: Workspace) -> None:
    made(
        workspace,
        version("bob", "a.md", "one\n"),
        version("alice", "a.md", "two\n"),
        version("alice", "a.md", "three\n"),
        version("alice", "b.md", "new\n"),
        version("bob", "c.md", "kept\n"),
        version("human:dana", "d.md", "hers\n"),
    )
    plan = workspace.reverts.plan(RevertSelection(("alice",)))
    assert told(plan) == [
        ("a.md", "clean", "three\n", "one\n", 1),
        ("b.md", "clean", "new\n", None, 0),
    ]
    assert (plan.agents, plan.until, plan.items) == (("alice",), workspace.journal.last_seq(), ())
    everybody = workspace.reverts.plan(RevertSelection())
    assert [path for path, *_ in told(everybody)] == ["a.md", "b.md", "c.md"]
    assert everybody.agents == ("alice", "bob")
    assert workspace.reverts.plan(RevertSelection(("nobody",))).paths == ()


def test_only_what_is_between_two_rows_and_not_left_out_is_selected(workspace: Workspace) -> None:
    seqs = made(workspace, *(version("alice", path, f"{n}\n") for n, path in enumerate("abaca")))

    def selected(**more: object) -> list[tuple[str, int]]:
        plan = workspace.reverts.plan(RevertSelection(("alice",))._replace(**more))  # type: ignore[arg-type]
        return [(each.path, each.base) for each in plan.paths]

    assert selected() == [("a", 0), ("b", 0), ("c", 0)]
    assert selected(after=seqs[0]) == [("a", 1), ("b", 0), ("c", 0)]
    assert selected(after=seqs[2], until=seqs[4]) == [("a", 2), ("c", 0)]
    assert selected(until=seqs[1]) == [("a", 0), ("b", 0)]
    assert selected(after=seqs[4]) == []
    assert selected(left_out=(("collab", "a"), ("private", "b"))) == [("b", 0), ("c", 0)]


def test_refused_rows_and_notes_are_nothing_to_revert(workspace: Workspace) -> None:
    made(
        workspace,
        version("bob", "a", "one\n"),
        version("alice", "a", "stale\n")._replace(expected=7),
        Note("alice", "collab_read", "collab", "a", base=1),
    )
    plan = workspace.reverts.plan(RevertSelection(("alice",)))
    assert (plan.paths, plan.items, plan.agents) == ((), (), ())


def test_newer_lines_of_others_stay_and_people_decide_where_they_meet(workspace: Workspace) -> None:
    made(
        workspace,
        version("bob", "a", "1\n2\n3\n4\n5\n"),
        version("alice", "a", "one\n2\n3\n4\n5\n"),
        version("bob", "a", "one\n2\n3\n4\nfive\n"),
        version("bob", "b", "1\n"),
        version("alice", "b", "alice\n"),
        version("bob", "b", "alice and bob\n"),
    )
    clean, conflict = workspace.reverts.plan(RevertSelection(("alice",))).paths
    assert (clean.plan.kind, clean.plan.content, clean.base) == ("clean", "1\n2\n3\n4\nfive\n", 1)
    assert (conflict.plan.kind, conflict.base) == ("conflict", 1)
    assert conflict.plan.content == "alice and bob\n"


def test_more_than_10_000_paths_are_not_reverted_at_once(workspace: Workspace) -> None:
    made(workspace, *(Write("alice", "write_file", "file", f"t1/{n}", "x") for n in range(10_001)))
    with pytest.raises(RevertTooLarge) as refused:
        workspace.reverts.plan(RevertSelection(("alice",)))
    assert refused.value.values == {"most": 10_000}


def test_a_revert_that_never_was_cannot_be_undone(workspace: Workspace) -> None:
    with pytest.raises(RevertNotFound):
        workspace.reverts.plan(RevertSelection(undo="r1"))


def test_others_may_have_written_to_an_agent_since_it_was_spawned(workspace: Workspace) -> None:
    task = workspace.tasks.submit("human:dana", "Build it.")
    workspace.register([Agent("charlie", task=task.id)])
    first = workspace.members.start(task)
    spawned = workspace.journal.version("agent", first.id, 1)
    assert spawned is not None
    sessions = workspace.session_zone
    assert sessions.first_message_after(first.id) == spawned.seq
    assert [sessions.first_message_after(name) for name in ("charlie", "alice")] == [0, None]
    with pytest.raises(UnknownAgent):
        sessions.first_message_after("nobody")


@pytest.mark.parametrize(
    ("actor", "tool", "is_switch"),
    [
        ("human:dana", "revert_work", True),
        ("system", "revert_work", True),
        ("human:dana", "collab_write", False),
        ("bob", "revert_work", False),
    ],
)
def test_only_a_revert_of_a_person_or_of_watchroom_has_switched_versions_off(
    workspace: Workspace, actor: str, tool: str, is_switch: bool
) -> None:
    made(
        workspace,
        version("bob", "a", "1\n2\n3\n"),
        version("alice", "a", "one\n2\n3\n"),
        Write(actor, tool, "collab", "a", "1\n2\n3\n", detail={"took": [2]}),
        version("alice", "a", "1\n2\nthree\n"),
    )
    # What was off already is not reverted once more; else its lines are those of whoever wrote them anew.
    (planned,) = workspace.reverts.plan(
        RevertSelection(("alice",), after=workspace.journal.last_seq() - 1)
    ).paths
    assert planned.plan.content == "1\n2\n3\n"
    (planned,) = workspace.reverts.plan(RevertSelection(("alice",))).paths
    assert (planned.plan.content, planned.plan.took) == ("1\n2\n3\n", (4,) if is_switch else (2, 4))
