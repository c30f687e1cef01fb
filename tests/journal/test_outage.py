"""The server goes away while a dashboard is open: it says so, still shows what it has, and goes on by itself."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from cli.running import as_typed, printed_json, run
from evidence import all_rows
from journal.server import Server, running_server
from tui.driver import MIDDLE, dashboard
from watchroom import Workspace
from watchroom.kernel.journal import open_journal
from watchroom.kernel.journal.postgres.local_server import LocalServer
from watchroom.model import LOST
from watchroom_cli.main import REFUSED

pytestmark = [pytest.mark.postgres, pytest.mark.slow(25)]


@pytest.fixture
def own_server() -> Iterator[Server]:
    """One that nobody else uses, to be stopped."""
    with running_server() as server:
        yield server


@pytest.fixture
def reachable() -> Iterator[Path]:
    """A folder that the server's user can reach, too."""
    folder = Path(tempfile.mkdtemp(prefix="wr-pg-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


async def test_the_dashboard_says_since_when_the_server_is_not_reached(
    own_server: Server, tmp_path: Path
) -> None:
    url = own_server.create("team")
    with Workspace.open(url, ["alice"], checkout=tmp_path / "here") as workspace:
        alice = workspace.tools("alice")
        write = {"filepath": "plan.md", "content": "one", "message": "m"}
        assert alice.dispatch_tool_call("collab_write", write)["success"]
        async with dashboard(workspace, size=MIDDLE) as user:
            await user.sees("plan.md", "● live")
            own_server.stop()
            await user.sees("server unreachable since")
            # What is in the model can be looked at; what would have to be read is told to be out of reach.
            await user.press("4")
            await user.sees("plan.md")
            assert user.app.is_running
            refused = alice.dispatch_tool_call("collab_write", write | {"expected_version": 1})
            assert refused["error"] in ("journal_unreachable", "outcome_unknown")
            own_server.start()
            await user.sees("● live")
            again = {"filepath": "later.md", "content": "two", "message": "m"}
            assert alice.dispatch_tool_call("collab_write", again)["success"]
            await user.sees("later.md")


def test_a_server_of_one_s_own_is_started_for_a_first_try(
    reachable: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, root = str(reachable / "server"), str(tmp_path / "team")
    assert run(capsys, "server", "status", "--folder", folder)[0] == 1
    try:
        address = printed_json(capsys, "server", "start", "--folder", folder, "--json")["address"]
        assert "@127.0.0.1:" in address
        run(capsys, "init", root, "--agent", "alice", "--database", address)
        shown = printed_json(capsys, "call", root, "alice", "collab_list", "{}")
        assert shown["success"]
        host = printed_json(capsys, "host", root, "--show", "--json")
        assert (host["folder"], host["here"]) == (root, True)
    finally:
        run(capsys, "server", "stop", "--folder", folder)
    status, _, error = run(capsys, "call", root, "alice", "collab_list", "{}")
    assert status == REFUSED
    assert "does not answer" in error
    stopped = run(capsys, "server", "status", "--folder", folder, "--json")
    assert (stopped[0], json.loads(stopped[1])["running"]) == (1, False)


def test_a_demo_shows_three_machines_one_of_which_is_lost(reachable: Path) -> None:
    root = reachable / "calculator"
    command = as_typed(
        "demo", str(root), "--machines", "3", "--agents", "4", "--speed", "3", "--headless", "--for", "24"
    )
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert (summary["verify"], summary["errors"]) == ("clean", [])
    server = LocalServer(Path(f"{root}-server"))
    server.start()
    try:
        with closing(open_journal(server.address())) as journal:
            (lost,) = [row for row in all_rows(journal) if row.tool == LOST]
            heads = {
                head.path: journal.content(head.seq) for head in journal.heads("collab") if not head.deleted
            }
            # Who worked there goes on elsewhere.
            ids = [head.path.partition("/")[0] for head in journal.heads("session") if head.seq > lost.seq]
            assert len(set(ids)) >= 4
        for checkout in (root, Path(f"{root}-machine-2"), Path(f"{root}-machine-3")):
            with Workspace.open(checkout, create=False) as workspace:
                assert workspace.verify() == []
                shown = {path: (checkout / "collaborative/current" / path).read_text() for path in heads}
                assert shown == heads
    finally:
        server.stop()
