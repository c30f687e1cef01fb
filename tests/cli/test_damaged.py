"""A journal with one damaged text: everything else is readable, and verify names the row."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from calls import ok, refused
from cli.running import run
from damage import break_text
from watchroom import Agent, Workspace
from watchroom.model import Zone

NOT_UTF8 = b"\xffA\xed\xa0\x80"


@pytest.fixture
def damaged(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A workspace with one damaged text in a row of ``plan.md``, and another file."""
    root = tmp_path / "team"
    with Workspace.open(root, agents=["alice", "bob"]) as workspace:
        for name in ("plan.md", "other.md"):
            ok(
                workspace.tools("alice"),
                "collab_write",
                filepath=name,
                content="x",
                message="The first draft.",
            )
    column, value = request.param
    break_text(root, "plan.md", 1, column, value)
    return root


DAMAGES = [
    *((column, NOT_UTF8) for column in ("message", "actor", "tool", "path", "detail", "error")),
    ("detail", b'{"a": '),
]


@pytest.mark.parametrize("damaged", DAMAGES, indirect=True, ids=lambda damage: damage[0])
def test_every_command_goes_on_and_verify_names_the_row(
    damaged: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = str(damaged)
    for command in (["log"], ["show", "files"], ["show", "needs"], ["show", "agents"]):
        status, out, err = run(capsys, command[0], root, *command[1:])
        assert (status, err) == (0, ""), (command, err)
        assert out or command[-1] == "needs"
    status, out, _ = run(capsys, "call", root, "bob", "collab_read", '{"filepath": "other.md"}')
    assert json.loads(out)["content"] == "x"
    status, out, _ = run(capsys, "call", root, "bob", "collab_list", "{}")
    # An unreadable path cannot be asked for.
    assert "other.md" in {each["filepath"] for each in json.loads(out)["files"]}
    arguments = '{"filepath": "new.md", "content": "y", "message": "m", "expected_version": 0}'
    status, out, _ = run(capsys, "call", root, "bob", "collab_write", arguments)
    assert status == 0, out
    status, out, _ = run(capsys, "verify", root)
    assert status == 1
    assert "cannot be read" in out


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("column", ["detail", "path"])
def test_a_damaged_buffer_hides_no_other_and_is_not_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], column: str, version: int
) -> None:
    root = tmp_path / "team"
    with Workspace.open(root, agents=["alice", "bob"]) as workspace:
        alice = workspace.tools("alice")
        for name in ("plan", "other"):
            ok(alice, "open_buffer", source="collab", path=f"{name}.md")
            for text in ("one\n", "two\n"):
                ok(alice, f"{name}_append", text=text)
    break_text(root, "alice/plan", version, column, NOT_UTF8, zone="buffer")
    with Workspace.open(root) as workspace:
        alice = workspace.tools("alice")
        assert "other_flush" in [each["name"] for each in alice.get_tool_definitions()]
        assert "other" in alice.show_buffers()
        if (column, version) != ("path", 3):
            # Without its last row, a buffer has its earlier state.
            assert refused(alice, "plan_flush")["error"] == "journal_damaged"
        ok(alice, "other_append", text="three\n")
        ok(alice, "open_buffer", source="collab", path="third.md")
        assert ok(alice, "other_flush")["success"]
        assert workspace.verify()
    assert "other" in run(capsys, "show", str(root), "buffers")[1]


@pytest.mark.parametrize(
    ("zone", "version", "column"),
    [("agent", 1, "detail"), ("task", 1, "content"), ("config", 3, "content"), ("config", 2, "content")],
)
def test_a_damaged_row_of_a_society_stops_neither_verify_nor_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], zone: Zone, version: int, column: str
) -> None:
    root = tmp_path / "team"
    with Workspace.open(root) as workspace:
        first = workspace.members.start(workspace.tasks.submit("human:dana", "Build it.", tmp_path / "task"))
        workspace.register([Agent("alice")])
        path = next(workspace.journal.heads(zone)).path
        assert workspace.journal.version(zone, path, version)
    break_text(root, path, version, column, NOT_UTF8, zone=zone)
    status, out, _ = run(capsys, "verify", str(root))
    assert status != 0
    assert path in out
    assert "root" in run(capsys, "show", str(root), "agents")[1]
    with Workspace.open(root, agents=["alice"]) as workspace:
        ok(workspace.tools("alice"), "collab_write", filepath="plan.md", content="x", message="m")
        said = workspace.tools(first.id).dispatch_tool_call("collab_list", {})
        assert said["success"] is True


@pytest.mark.parametrize("content", [NOT_UTF8, None, b"agents = 3"], ids=["no text", "lost", "not valid"])
def test_a_damaged_config_is_a_need_and_views_warn_about_it(
    root: Path, capsys: pytest.CaptureFixture[str], content: bytes | None
) -> None:
    with Workspace.open(root, agents=["alice"]) as workspace:
        workspace.register([Agent("bob")])
        head = workspace.journal.head("config", "config.toml")
        assert head is not None
    break_text(root, "config.toml", head.version or 0, "content", content, zone="config")
    status, out, err = run(capsys, "show", str(root), "agents")
    assert (status, "alice" in out, "bob" in out) == (0, True, False)
    assert "the last valid configuration is active" in err
    status, out, err = run(capsys, "show", str(root), "needs", "--json")
    assert [(each["path"], each["what"]) for each in json.loads(out)] == [
        ("config.toml", "invalid or damaged; the last valid configuration is active")
    ]
    status, out, _ = run(capsys, "verify", str(root))
    assert status == 1
    assert f"v{head.version} is invalid or damaged: the last valid version is in effect" in out
    with Workspace.open(root) as workspace:
        workspace.register([Agent("bob", role="reviewer")])
    assert json.loads(run(capsys, "show", str(root), "needs", "--json")[1]) == []
    assert "bob" in run(capsys, "show", str(root), "agents")[1]
