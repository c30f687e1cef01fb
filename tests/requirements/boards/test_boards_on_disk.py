"""Boards as files: edited by hand, compared with the journal, mended, and laid out as they stood."""

from __future__ import annotations

from pathlib import Path

import pytest
from calls import ok, refused
from requirements.boards.conftest import ToolsOf
from watchroom import Row, Workspace
from watchroom.features.config.rows import Agent
from watchroom.kernel.call_context import CallContext

GLOBAL = "global"


@pytest.fixture
def file(root: Path, tools_of: ToolsOf) -> Path:
    """The global board, written twice."""
    for number, text in enumerate(("# One\n", "# Two\n")):
        ok(
            tools_of("ceo"),
            "whiteboard_write",
            board=GLOBAL,
            content=text,
            message="m",
            expected_version=number,
        )
    return root / "global-whiteboard.md"


def edit(workspace: Workspace, file: Path, text: str) -> Row:
    file.write_text(text, encoding="utf-8")
    (row,) = workspace.check([file])
    return row


def test_an_edit_by_hand_is_kept_as_a_conflict_and_changes_no_version(
    workspace: Workspace, tools_of: ToolsOf, file: Path
) -> None:
    row = edit(workspace, file, "# By hand\n")
    assert (row.actor, row.zone, row.path, row.outcome, row.base) == (
        "outside",
        "board",
        GLOBAL,
        "conflict",
        2,
    )
    assert workspace.journal.content(row.seq) == "# By hand\n"
    assert ok(tools_of("ada"), "whiteboard_read", board=GLOBAL)["content"] == "# Two\n"
    assert workspace.scan() == [], "once is enough"


def test_a_person_takes_an_edit_by_hand_over(workspace: Workspace, tools_of: ToolsOf, file: Path) -> None:
    row = edit(workspace, file, "# By hand\n")
    resolution = {"filepath": GLOBAL, "content": "# Both\n", "message": "m", "expected_version": 2}
    ok(tools_of("human:sam"), "resolve_conflict", conflicts=[row.seq], **resolution)
    assert file.read_text(encoding="utf-8") == "# Both\n"
    head = workspace.journal.head("board", GLOBAL)
    assert head is not None
    assert (head.zone, head.version, head.actor) == ("board", 3, "human:sam")
    assert workspace.verify() == []


def test_a_person_puts_the_board_back(workspace: Workspace, tools_of: ToolsOf, file: Path) -> None:
    row = edit(workspace, file, "# By hand\n")
    ok(tools_of("human:sam"), "revert_outside_edit", filepath=GLOBAL, conflict=row.seq)
    assert file.read_text(encoding="utf-8") == "# Two\n"
    assert workspace.verify() == []


def test_an_agents_write_over_an_edit_by_hand_keeps_it(
    workspace: Workspace, tools_of: ToolsOf, file: Path
) -> None:
    file.write_text("# By hand\n", encoding="utf-8")
    ok(tools_of("anna"), "whiteboard_append", board=GLOBAL, content="An entry.")
    kept = [row for row in workspace.journal.refused("board", GLOBAL) if row.actor == "outside"]
    assert [workspace.journal.content(row.seq) for row in kept] == ["# By hand\n"]


def test_people_settle_the_conflicts_of_agents_and_these_are_told(
    workspace: Workspace, tools_of: ToolsOf, file: Path
) -> None:
    late = {"board": GLOBAL, "content": "# Late\n", "message": "m", "expected_version": 1}
    number = refused(tools_of("cfo"), "whiteboard_write", **late)["conflict_id"]
    assert (
        refused(
            tools_of("human:sam"),
            "resolve_conflict",
            filepath="other",
            content="x",
            message="m",
            expected_version=2,
            conflicts=[number],
        )["error"]
        == "not_a_conflict"
    )
    resolution = {"filepath": GLOBAL, "content": "# Both\n", "message": "taken in", "expected_version": 2}
    ok(tools_of("human:sam"), "resolve_conflict", conflicts=[number], **resolution)
    assert "taken in" in ok(tools_of("cfo"), "whiteboard_read", board=GLOBAL)["notice"]
    assert "notice" not in ok(tools_of("cfo"), "whiteboard_read", board=GLOBAL)


def test_a_persons_resolution_waits_for_a_lock_like_every_write(
    workspace: Workspace, tools_of: ToolsOf, file: Path
) -> None:
    row = edit(workspace, file, "# By hand\n")
    workspace.boards.locks.acquire(CallContext("ceo"), GLOBAL, seconds=0.05)
    resolution = {"filepath": GLOBAL, "content": "# Both\n", "message": "m", "expected_version": 2}
    ok(tools_of("human:sam"), "resolve_conflict", conflicts=[row.seq], **resolution)


def test_a_shared_file_of_a_boards_name_is_another_thing(
    workspace: Workspace, tools_of: ToolsOf, file: Path
) -> None:
    sam, ceo = tools_of("human:sam"), tools_of("ceo")
    ok(ceo, "collab_write", filepath=GLOBAL, content="a\n", message="m", expected_version=0)
    write = {"content": "b\n", "message": "m", "expected_version": 5}
    of_file = refused(ceo, "collab_write", filepath=GLOBAL, **write)["conflict_id"]
    of_board = refused(ceo, "whiteboard_write", board=GLOBAL, **write)["conflict_id"]
    ok(
        sam,
        "resolve_conflict",
        filepath=GLOBAL,
        content="c\n",
        message="m",
        expected_version=2,
        conflicts=[of_board],
    )
    assert file.read_text(encoding="utf-8") == "c\n"
    assert ok(ceo, "collab_read", filepath=GLOBAL)["content"] == "a\n"
    ok(sam, "dismiss_conflict", conflict=of_file)


@pytest.mark.parametrize("name", ["notes.md", "mid-layer-X.md", "global.md"])
def test_a_file_among_the_boards_that_is_none_is_no_version(
    root: Path, workspace: Workspace, name: str
) -> None:
    (root / "whiteboards" / name).write_text("strange\n", encoding="utf-8")
    assert all(row.outcome == "failed" for row in workspace.scan())
    assert list(workspace.journal.heads("board")) == []
    assert (root / "whiteboards" / name).exists()


def test_what_is_no_text_is_noticed_and_left_where_it_is(workspace: Workspace, file: Path) -> None:
    file.write_bytes(b"\xff\xfe")
    (row,) = workspace.check([file])
    assert (row.outcome, row.error) == ("failed", "not_text")
    assert file.read_bytes() == b"\xff\xfe"


def test_verify_tells_of_every_file_that_differs_and_repair_mends_it(
    root: Path, workspace: Workspace, tools_of: ToolsOf, file: Path
) -> None:
    workspace.flush()
    history = root / "whiteboard-history"
    (history / "global-whiteboard-v1.md").unlink()
    (history / "global-whiteboard-v2.md").write_text("torn", encoding="utf-8")
    file.unlink()
    problems = {(each.kind, each.zone, each.what) for each in workspace.verify()}
    assert problems == {
        ("file", "board", "differs"),
        ("version", "board", "v1 is missing"),
        ("version", "board", "v2 differs"),
    }
    assert workspace.repair() == []
    assert file.read_text(encoding="utf-8") == "# Two\n"
    assert (history / "global-whiteboard-v2.md").read_text(encoding="utf-8") == "# Two\n"


def test_a_workspace_is_laid_out_with_its_boards_as_they_stood(
    tmp_path: Path, workspace: Workspace, tools_of: ToolsOf, file: Path
) -> None:
    first = workspace.journal.history("board", GLOBAL)[0]
    workspace.export(first.seq, tmp_path / "then")
    then = tmp_path / "then"
    assert (then / "global-whiteboard.md").read_text(encoding="utf-8") == "# One\n"
    assert [path.name for path in (then / "whiteboard-history").iterdir()] == ["global-whiteboard-v1.md"]


def test_a_removed_agents_board_stays_for_those_above_and_for_people(root: Path, tools_of: ToolsOf) -> None:
    ok(tools_of("ada"), "whiteboard_append", board="bottom-layer-ada", content="Mine.")
    config = root / ".watchroom/config.toml"
    text = config.read_text(encoding="utf-8")
    start = text.index("[agents.ada]")
    end = text.index("[", start + 1)
    config.write_text(text[:start] + text[end:], encoding="utf-8")
    with Workspace.open(root) as again:
        assert "ada" not in again.config.agents
        assert "Mine." in ok(again.tools("ceo"), "whiteboard_read", board="bottom-layer-ada")["content"]
        refusal = refused(again.tools("anna"), "whiteboard_read", board="bottom-layer-ada")
        assert refusal["error"] == "permission_denied"
        ok(again.tools_for_human("sam"), "whiteboard_append", board="bottom-layer-ada", content="Closed.")


def test_roles_that_no_file_can_be_called_by_give_the_agents_id(tmp_path: Path) -> None:
    team = [Agent("m1", "Lead Architect", "mid"), Agent("m2", "架构师", "mid"), Agent("m3", "../x", "mid")]
    with Workspace.open(tmp_path / "w", agents=team) as workspace:
        for agent, board in (
            ("m1", "mid-layer-lead-architect"),
            ("m2", "mid-layer-m2"),
            ("m3", "mid-layer-m3"),
        ):
            ok(workspace.tools(agent), "whiteboard_append", board=board, content="x")


def test_agents_of_one_role_keep_one_board(tmp_path: Path) -> None:
    team = [Agent("m1", "pm", "mid"), Agent("m2", "pm", "mid"), Agent("b1", "", "bottom", "m2")]
    with Workspace.open(tmp_path / "w", agents=team) as workspace:
        for agent in ("m1", "m2"):
            ok(workspace.tools(agent), "whiteboard_append", board="mid-layer-pm", content="x")
        text = ok(workspace.tools("b1"), "whiteboard_read", board="mid-layer-pm")["content"]
        assert text.count("**Author**") == 2
