"""External edits are recorded while somebody is subscribed, whatever happens to the folders and the watches."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from queue import Queue

import pytest
from calls import ok
from cli.running import as_typed
from watchroom import Row, Workspace
from watchroom.row_dispatcher import EVERY_ROW

pytestmark = pytest.mark.slow(3)

PATIENCE = 60
FOLDER = "collaborative/current"
NO_WATCHES = ("unshare", "-Ur", "sh", "-c", 'echo 0 > /proc/sys/user/max_inotify_watches && exec "$@"', "sh")
"""Runs a command for which the system has no file watches."""

NextEdit = Callable[[], Row]


@pytest.fixture
def next_edit(workspace: Workspace) -> NextEdit:
    rows: Queue[Row] = Queue()
    workspace.dispatcher.subscribe(
        (EVERY_ROW,), lambda row: rows.put(row) if row.actor == "outside" else None
    )
    return lambda: rows.get(timeout=PATIENCE)


def write(workspace: Workspace, path: str) -> Path:
    ok(
        workspace.tools("alice"),
        "collab_write",
        filepath=path,
        content="one\n",
        message="m",
        expected_version=0,
    )
    return Path(workspace.root, FOLDER, path)


def watch(workspace: Workspace) -> Callable[[], None]:
    """Subscribe, and wait until the folders are watched. Return what ends the subscription."""
    modes: Queue[str] = Queue()
    end = workspace.file_watcher.subscribe(modes.put)
    assert modes.get(timeout=PATIENCE) == "events"
    return end


def until(next_edit: NextEdit, path: str, error: str) -> None:
    row = next_edit()
    while (row.path, row.error) != (path, error):
        row = next_edit()


def test_an_edit_is_recorded_while_anybody_is_subscribed(workspace: Workspace, next_edit: NextEdit) -> None:
    file = write(workspace, "plan.md")
    end, end_other = watch(workspace), watch(workspace)
    end()
    end()
    file.write_text("by hand\n")
    assert next_edit().path == "plan.md"
    end_other()
    end = watch(workspace)
    file.write_text("again\n")
    assert next_edit().path == "plan.md"
    end()


def test_a_folder_that_was_replaced_is_watched_again(workspace: Workspace, next_edit: NextEdit) -> None:
    file = write(workspace, "plan.md")
    watch(workspace)
    folder, beside = file.parent, file.parent.with_name("beside")
    shutil.copytree(folder, beside)
    shutil.rmtree(folder)
    until(next_edit, "plan.md", "outside_edit")
    beside.rename(folder)
    until(next_edit, "plan.md", "edit_undone")
    for text in ("new\n", "newer\n"):
        (folder / "new.md").write_text(text)
        until(next_edit, "new.md", "outside_edit")


def test_without_watches_files_are_polled_and_people_are_told(workspace: Workspace) -> None:
    if subprocess.run([*NO_WATCHES, "true"], capture_output=True).returncode != 0:
        pytest.skip("the system has no user namespaces")
    file = write(workspace, "plan.md")
    command = [*NO_WATCHES, *as_typed("watch", workspace.root)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            assert "every 2 s: the system has no file watches left" in next(
                line for line in process.stderr if "polling" in line
            )
            file.write_text("by hand\n")
            assert any("Needs you: plan.md was changed by hand." in line for line in process.stdout)
        finally:
            process.terminate()
