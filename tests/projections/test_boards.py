"""Boards in the model: versions, writers, refusals, conflicts, leases."""

from __future__ import annotations

from calls import ok, refused
from projections.folding import folded, needs
from watchroom import Toolbox, Workspace
from watchroom.kernel.call_context import CallContext

MINE = "bottom-layer-alice"


def write(toolbox: Toolbox, text: str, expected: int, board: str = MINE) -> None:
    ok(toolbox, "whiteboard_write", board=board, content=text, message=text, expected_version=expected)


def test_a_board_has_its_current_version_and_its_writers(workspace: Workspace, alice: Toolbox) -> None:
    assert folded(workspace.journal).boards == ()
    write(alice, "one", 0)
    ok(workspace.tools_for_human("sam"), "whiteboard_append", board=MINE, content="two")
    refused(alice, "whiteboard_write", board=MINE, content="x", message="m", expected_version=1)
    (board,) = folded(workspace.journal).boards
    assert (board.name, board.head.version, board.writers) == (MINE, 2, ("human:sam", "alice"))


def test_a_refused_write_of_an_agent_is_a_need_until_it_or_a_person_writes(
    workspace: Workspace, alice: Toolbox
) -> None:
    write(alice, "one", 0)
    ok(workspace.tools_for_human("sam"), "whiteboard_append", board=MINE, content="two")
    late = {"board": MINE, "content": "x", "message": "m", "expected_version": 1}
    refused(alice, "whiteboard_write", **late)
    (need,) = needs(workspace, "conflict")
    assert (need.row.zone, need.row.path, need.against) == ("board", MINE, "human:sam")
    write(alice, "merged", 2)
    assert needs(workspace, "conflict") == []


def test_what_settles_nothing_leaves_a_conflict_on_a_board_open(workspace: Workspace, alice: Toolbox) -> None:
    sam = workspace.tools_for_human("sam")
    write(alice, "# T\n## A\na\n\n## B\nb\n", 0)
    ok(sam, "whiteboard_update_section", board=MINE, section="A", content="sam", expected_version=1)
    late = {"board": MINE, "section": "A", "content": "alice", "expected_version": 1}
    refused(alice, "whiteboard_update_section", **late)
    ok(alice, "whiteboard_append", board=MINE, content="An entry.")
    ok(alice, "whiteboard_update_section", board=MINE, section="B", content="b!", expected_version=-1)
    ok(sam, "whiteboard_write", board=MINE, content="# T\n## A\nsam\n", message="m", expected_version=-1)
    (need,) = needs(workspace, "conflict")
    assert need.row.path == MINE
    ok(alice, "whiteboard_update_section", **{**late, "expected_version": -1})
    assert needs(workspace, "conflict") == []


def test_conflicts_on_a_file_and_a_board_of_one_name_are_two(workspace: Workspace, alice: Toolbox) -> None:
    write(alice, "one", 0)
    ok(alice, "collab_write", filepath=MINE, content="one", message="m", expected_version=0)
    refused(alice, "collab_write", filepath=MINE, content="x", message="m", expected_version=7)
    refused(alice, "whiteboard_write", board=MINE, content="x", message="m", expected_version=7)
    model = folded(workspace.journal)
    assert {each.zone for each in model.conflicts} == {"collab", "board"}
    assert [each.zone for each in model.conflicts_of(model.boards[0].head)] == ["board"]
    write(alice, "two", 1)
    assert [each.zone for each in folded(workspace.journal).conflicts] == ["collab"]
    assert len({need.identity for need in model.needs}) == len(model.needs)


def test_an_unchecked_overwrite_of_a_board_wants_a_look(workspace: Workspace, alice: Toolbox) -> None:
    write(alice, "one", 0)
    ok(workspace.tools_for_human("sam"), "whiteboard_append", board=MINE, content="two")
    write(alice, "all mine", -1)
    (need,) = needs(workspace, "unchecked")
    assert (need.row.path, need.against) == (MINE, "human:sam")
    ok(workspace.tools_for_human("sam"), "mark_as_seen", row=need.row.seq)
    assert needs(workspace, "unchecked") == []


def test_who_holds_a_board_is_known_until_it_is_released(workspace: Workspace) -> None:
    leases = workspace.boards.locks
    lease = leases.acquire(CallContext("alice"), MINE)
    held = folded(workspace.journal).leases
    assert {board: (row.actor, row.detail["until"]) for board, row in held.items()} == {
        MINE: ("alice", lease.expires)
    }
    leases.release(lease)
    assert folded(workspace.journal).leases == {}
