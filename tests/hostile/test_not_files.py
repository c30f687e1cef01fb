"""Symlinks, pipes, sockets and folders where a file is expected: never followed, replaced or waited for."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from calls import ok, refused
from evidence import all_rows, snapshot
from hostile.calling import PATH_CALLS
from watchroom import Toolbox, Workspace


@pytest.fixture
def elsewhere(tmp_path: Path, settled: Workspace) -> Path:
    """A folder outside of the workspace that holds a secret."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "secret.md").write_text("secret")
    return folder


def test_nothing_is_read_through_a_symlink(settled: Workspace, root: Path, elsewhere: Path) -> None:
    (root / "agents/alice/link").symlink_to(elsewhere)
    (root / "agents/alice/link.md").symlink_to(elsewhere / "secret.md")
    for agent in ("alice", "bob"):
        toolbox = settled.tools(agent)
        for filename in ("link/secret.md", "link.md", "link"):
            result = refused(toolbox, "read_from_workspace", agent_id="alice", filename=filename)
            assert "secret" not in json.dumps(result).replace("link/secret.md", "")
        assert ok(toolbox, "list_workspace_files", agent_id="alice")["files"] == ["notes.md"]
    settled.scan()
    assert "secret" not in {settled.journal.content(row.seq) for row in all_rows(settled.journal)}


@pytest.mark.parametrize("filename", ["link/new.md", "link/secret.md", "link.md", "link"])
@pytest.mark.parametrize("tool", ["save_to_my_workspace", "delete_from_my_workspace"])
def test_nothing_is_written_through_a_symlink(
    settled: Workspace, root: Path, elsewhere: Path, tool: str, filename: str
) -> None:
    (root / "agents/alice/link").symlink_to(elsewhere)
    (root / "agents/alice/link.md").symlink_to(elsewhere / "secret.md")
    before = snapshot(root)
    refused(settled.tools("alice"), tool, **PATH_CALLS[tool](filename))
    assert {file.name: file.read_text() for file in elsewhere.iterdir()} == {"secret.md": "secret"}
    assert snapshot(root) == before


def test_an_own_zone_that_was_swapped_for_a_symlink_leads_nowhere(
    settled: Workspace, root: Path, elsewhere: Path, alice: Toolbox
) -> None:
    """Between two calls: what was a folder at the first is a link at the second."""
    ok(alice, "save_to_my_workspace", filename="folder/a.md", content="a")
    shutil.rmtree(root / "agents/alice/folder")
    (root / "agents/alice/folder").symlink_to(elsewhere)
    refused(alice, "read_from_workspace", agent_id="alice", filename="folder/secret.md")
    refused(alice, "save_to_my_workspace", filename="folder/a.md", content="b")
    (root / "agents/bob/notes.md").unlink()
    (root / "agents/bob").rmdir()
    (root / "agents/bob").symlink_to(elsewhere)
    refused(alice, "read_from_workspace", agent_id="bob", filename="secret.md")
    assert ok(alice, "list_workspace_files", agent_id="bob")["files"] == []
    assert [file.name for file in elsewhere.iterdir()] == ["secret.md"]


@pytest.mark.parametrize("place", ["collaborative/current", "collaborative/.versions", "handoff"])
def test_shared_zones_behind_a_symlink_are_kept_in_the_journal_only(
    settled: Workspace, root: Path, elsewhere: Path, alice: Toolbox, place: str
) -> None:
    """Their files are mere views: the write counts, the view is missing, nothing lands elsewhere."""
    shutil.rmtree(root / place)
    (root / place).symlink_to(elsewhere)
    ok(alice, "collab_write", filepath="new.md", content="x", message="m")
    ok(alice, "handoff_file", to_agent="bob", filename="new.md", content="x", message="m")
    assert ok(alice, "collab_read", filepath="new.md")["content"] == "x"
    settled.flush()
    assert [file.name for file in elsewhere.iterdir()] == ["secret.md"]
    (root / place).unlink()
    settled.repair()
    assert settled.verify() == []


@pytest.fixture(params=["pipe", "folder", "socket"])
def obstacle(request: pytest.FixtureRequest, root: Path, settled: Workspace) -> Iterator[str]:
    """The name of something in alice's workspace that is not a file."""
    path = root / "agents/alice/notes.md"
    path.unlink()
    if request.param == "pipe":
        os.mkfifo(path)
    elif request.param == "folder":
        path.mkdir()
        (path / "inside.md").write_text("inside")
    else:
        import socket

        with socket.socket(socket.AF_UNIX) as listening:
            here = os.getcwd()
            os.chdir(path.parent)
            listening.bind(path.name)
            os.chdir(here)
            yield path.name
            return
    yield path.name


@pytest.mark.parametrize("tool", ["read_from_workspace", "save_to_my_workspace", "delete_from_my_workspace"])
def test_what_is_no_file_is_neither_read_nor_replaced_nor_waited_for(
    settled: Workspace, root: Path, tool: str, obstacle: str
) -> None:
    before = snapshot(root)
    arguments = {**PATH_CALLS[tool](obstacle), **({"agent_id": "alice"} if "read" in tool else {})}
    refused(settled.tools("alice"), tool, **arguments)
    assert snapshot(root) == before
    settled.scan()
    assert snapshot(root) == before


def count_open_files() -> int:
    """Return how many descriptors are open, except sockets: connections to a server come and go."""
    links = []
    for fd in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # the descriptor of the listing
            links.append(os.readlink(f"/proc/self/fd/{fd}"))
    return sum(not link.startswith("socket:") for link in links)


def test_reading_what_is_no_file_uses_nothing_up(settled: Workspace, root: Path, alice: Toolbox) -> None:
    (root / "agents/alice/folder").mkdir()
    refused(alice, "read_from_workspace", agent_id="alice", filename="folder")
    before = count_open_files()
    for _ in range(10):
        refused(alice, "read_from_workspace", agent_id="alice", filename="folder")
    assert count_open_files() == before
