"""Reading a workspace whose disk is read-only or full."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from calls import ok
from cli.running import as_typed
from pty_driver import Terminal
from watchroom import Workspace

PATIENCE = 30
SCRIPT = str(Path(__file__).with_name("unwritable.py"))


@pytest.fixture(params=["read-only", "full"])
def how(request: pytest.FixtureRequest) -> str:
    kind: str = request.param
    return kind


def unwritable(how: str, *arguments: str) -> list[str]:
    return [sys.executable, SCRIPT, how, *as_typed(*arguments)]


def looked(how: str, *arguments: str) -> str:
    """Return the output of a command that must succeed."""
    done = subprocess.run(
        unwritable(how, *arguments), capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def state(root: Path) -> dict[Path, tuple[int, int]]:
    """Return the size and time of all files, except the empty ones that SQLite creates."""
    found = {path: path.stat() for path in root.rglob("*") if path.is_file()}
    return {path: (each.st_size, each.st_mtime_ns) for path, each in found.items() if each.st_size}


@pytest.fixture
def sealed(root: Path) -> Iterator[Path]:
    """A closed workspace without write permission."""
    with Workspace.open(root, agents=["alice", "bob"]) as workspace:
        write(workspace, "one\n")
    with permissions_taken(root):
        yield root


def write(workspace: Workspace, text: str) -> None:
    ok(workspace.tools("alice"), "collab_write", filepath="plan.md", content=text, message="m")


@contextmanager
def permissions_taken(root: Path) -> Iterator[None]:
    """Remove all write permissions while the context lasts."""
    paths = [root, *root.rglob("*")]
    modes = {path: path.stat().st_mode for path in paths}
    for path in paths:
        path.chmod(modes[path] & ~0o222)
    try:
        yield
    finally:
        for path in paths:
            path.chmod(modes[path])


def test_rows_and_views_are_printed(how: str, sealed: Path) -> None:
    before = state(sealed)
    rows = [json.loads(line) for line in looked(how, "log", str(sealed), "--json").splitlines()]
    assert [row["tool"] for row in rows if row["zone"] == "collab"] == ["collab_write"]
    assert "plan.md" in looked(how, "show", str(sealed), "files")
    assert "plan.md" in looked(how, "show", str(sealed), "files", "--at", str(rows[-1]["seq"]))
    assert state(sealed) == before


def test_the_dashboard_opens_on_an_unwritable_disk(how: str, sealed: Path) -> None:
    before = state(sealed)
    with Terminal(unwritable(how, "open", str(sealed), "--view"), 120, 40) as terminal:
        terminal.wait_for_text("view only", timeout=PATIENCE)
        terminal.send("4")
        terminal.wait_for_text("plan.md", timeout=PATIENCE)
        terminal.send("q")
        assert terminal.wait(PATIENCE) == 0
    assert state(sealed) == before


@pytest.mark.parametrize(
    "how",
    [
        "read-only",
        pytest.param("full", marks=pytest.mark.sqlite("Rows on a server need no room on this disk.")),
    ],
)
def test_the_dashboard_explains_why_it_is_read_only(how: str, sealed: Path) -> None:
    before = state(sealed)
    with Terminal(unwritable(how, "open", str(sealed)), 120, 40) as terminal:
        terminal.wait_for_text("View only: the workspace cannot be opened for writing.", timeout=PATIENCE)
        terminal.wait_for_text("live, view only", timeout=PATIENCE)
        terminal.send("4")
        terminal.wait_for_text("plan.md", timeout=PATIENCE)
        terminal.send("q")
        assert terminal.wait(PATIENCE) == 0
    assert state(sealed) == before


@pytest.mark.sqlite("A server keeps its log elsewhere.")
def test_rows_that_are_only_in_the_wal_are_read(how: str, root: Path) -> None:
    with Workspace.open(root, agents=["alice"]) as workspace:
        write(workspace, "one\n")
        write(workspace, "two\n")
        assert (root / ".watchroom" / "journal.db-wal").stat().st_size > 0
        with permissions_taken(root):
            rows = looked(how, "log", str(root), "--json", "--tool", "collab_write").splitlines()
    assert [json.loads(row)["version"] for row in rows] == [1, 2]


@pytest.mark.sqlite("A server keeps its log elsewhere.")
def test_an_unreadable_wal_is_an_error(root: Path) -> None:
    with Workspace.open(root, agents=["alice"]) as workspace:
        write(workspace, "one\n")
        copy = root.with_name("copy")
        (copy / ".watchroom").mkdir(parents=True)
        for name in ("journal.db", "journal.db-wal"):
            (copy / ".watchroom" / name).write_bytes((root / ".watchroom" / name).read_bytes())
    with permissions_taken(copy):
        done = subprocess.run(
            unwritable("read-only", "log", str(copy)),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    assert (done.returncode, done.stdout) == (1, "")
    assert "journal" in done.stderr
