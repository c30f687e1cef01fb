"""Who may do what with which board: every cell of the matrix, every rule (BOARDS-4)."""

from __future__ import annotations

from pathlib import Path

import pytest
from calls import ok, refused
from requirements.boards.conftest import TEAM, ToolsOf
from watchroom import Workspace

LAYER_OF = {agent.id: agent.layer for agent in TEAM}
GLOBAL, TOP = "global", "top-layer"
ARCHITECT, PM = "mid-layer-architect", "mid-layer-pm"
ADA, TIM, ZOE = "bottom-layer-ada", "bottom-layer-tim", "bottom-layer-zoe"
BOARDS = (GLOBAL, TOP, ARCHITECT, PM, ADA, TIM, ZOE)

MATRIX = {
    # BOARDS-4.1, a row for each layer: read, write, append, by board.
    "ceo": {GLOBAL: "rwa", TOP: "rwa", ARCHITECT: "r", PM: "r", ADA: "r", TIM: "r", ZOE: "r"},
    "cfo": {GLOBAL: "rwa", TOP: "rwa", ARCHITECT: "r", PM: "r", ADA: "r", TIM: "r", ZOE: "r"},
    # BOARDS-4.2: the middle layer may append to the global board. Of the bottom boards it reads its own people's.
    "anna": {GLOBAL: "ra", TOP: "r", ARCHITECT: "rwa", PM: "r", ADA: "r", TIM: "", ZOE: ""},
    "paul": {GLOBAL: "ra", TOP: "r", ARCHITECT: "r", PM: "rwa", ADA: "", TIM: "r", ZOE: ""},
    # BOARDS-4.2: a bottom agent reads its supervisor's board, and of the bottom only its own.
    "ada": {GLOBAL: "r", TOP: "r", ARCHITECT: "r", PM: "", ADA: "rwa", TIM: "", ZOE: ""},
    "tim": {GLOBAL: "r", TOP: "r", ARCHITECT: "", PM: "r", ADA: "", TIM: "rwa", ZOE: ""},
    "zoe": {GLOBAL: "r", TOP: "r", ARCHITECT: "", PM: "", ADA: "", TIM: "", ZOE: "rwa"},
    # A person may do all.
    "human:sam": dict.fromkeys(BOARDS, "rwa"),
}
CELLS = [(actor, board, may) for actor, cells in MATRIX.items() for board, may in cells.items()]


@pytest.mark.parametrize(("actor", "board", "may"), CELLS, ids=lambda value: str(value) or "nothing")
def test_each_cell_of_the_matrix(
    root: Path, workspace: Workspace, tools_of: ToolsOf, actor: str, board: str, may: str
) -> None:
    tools = tools_of(actor)
    tries: dict[str, tuple[str, dict[str, object]]] = {
        "r": ("whiteboard_read", {}),
        "a": ("whiteboard_append", {"content": "An entry."}),
        "w": ("whiteboard_write", {"content": "# All anew", "message": "m", "expected_version": -1}),
    }
    for act, (tool, arguments) in tries.items():
        before = workspace.journal.head("board", board)
        if act in may:
            ok(tools, tool, board=board, **arguments)
            assert (workspace.journal.head("board", board) == before) is (act == "r")
            continue
        refusal = refused(tools, tool, board=board, **arguments)
        assert refusal["error"] == "permission_denied"
        assert board in refusal["message"]
        assert workspace.journal.head("board", board) == before
        (row, *_) = workspace.journal.refused("board", board)
        assert (row.actor, row.tool, row.outcome) == (actor, tool, "denied")
        assert workspace.journal.content(row.seq) == arguments.get("content"), "what was refused is kept"


@pytest.mark.parametrize("actor", [*LAYER_OF, "human:sam"])
def test_what_follows_the_right_to_write(tools_of: ToolsOf, actor: str) -> None:
    """Rewriting a section, adding to one, and bringing a version back need it; the history is for readers."""
    for board in BOARDS:
        ok(tools_of("human:ben"), "whiteboard_append", board=board, content="First.")
        ok(
            tools_of("human:ben"),
            "whiteboard_write",
            board=board,
            content="# T\n## S\nx",
            message="m",
            expected_version=-1,
        )
        tools, may = tools_of(actor), MATRIX[actor][board]
        changes = (
            ("whiteboard_update_section", {"section": "S", "content": "y", "expected_version": -1}),
            ("whiteboard_append", {"section": "S", "content": "z"}),
            ("whiteboard_restore", {"version": 1}),
        )
        for tool, arguments in changes:
            if "w" in may:
                ok(tools, tool, board=board, **arguments)
            else:
                assert refused(tools, tool, board=board, **arguments)["error"] == "permission_denied"
            ok(tools_of("human:ben"), "whiteboard_restore", board=board, version=2)
        if "r" in may:
            assert ok(tools, "whiteboard_history", board=board)["count"] >= 2
        else:
            assert refused(tools, "whiteboard_history", board=board)["error"] == "permission_denied"


def test_the_lock_of_a_board_is_for_those_who_may_add_to_it(tools_of: ToolsOf) -> None:
    ok(tools_of("anna"), "whiteboard_read", board=GLOBAL, hold=True)
    assert (
        refused(tools_of("ada"), "whiteboard_read", board=GLOBAL, hold=True)["error"] == "permission_denied"
    )


def test_a_refusal_tells_the_rule_and_ones_own_board(tools_of: ToolsOf) -> None:
    refusal = refused(tools_of("ada"), "whiteboard_read", board=PM)
    assert "own supervisor" in refusal["message"]
    assert ADA in refusal["suggestion"]


def test_a_board_that_nobody_keeps_is_not_made_by_reading_or_writing(
    tools_of: ToolsOf, workspace: Workspace
) -> None:
    for board in ("bottom-layer-nobody", "mid-layer-nobody"):
        for actor in ("ceo", "human:sam"):
            refusal = refused(tools_of(actor), "whiteboard_append", board=board, content="x")
            assert refusal["error"] == "board_not_found"
            assert TOP in refusal["suggestion"]
    assert list(workspace.journal.heads("board")) == []


def test_only_the_boards_that_an_agent_may_read_are_named_to_it(tools_of: ToolsOf) -> None:
    refusal = refused(tools_of("zoe"), "whiteboard_read", board="mid-layer-nobody")
    named = refusal["suggestion"]
    assert all(board in named for board in (GLOBAL, TOP, ZOE))
    assert not any(board in named for board in (ARCHITECT, PM, ADA, TIM))


@pytest.mark.parametrize(
    "name",
    [
        "",
        "Global",
        "top",
        "mid-layer-",
        "bottom-layer-../ada",
        "../global",
        "mid-layer-A",
        "x" * 3000,
        "global\x1b",
    ],
)
def test_a_name_that_no_board_can_have_is_answered_with_those_that_there_are(
    tools_of: ToolsOf, name: str
) -> None:
    refusal = refused(tools_of("ceo"), "whiteboard_read", board=name)
    if len(name) < 3000:
        assert refusal["error"] == "board_not_found"
        assert TOP in refusal["suggestion"]
