"""A workspace that is closed, or fails to open, leaves no thread and no descriptor behind, whatever fails meanwhile."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from queue import SimpleQueue

import pytest
from calls import ok
from watchroom import Workspace
from watchroom.features.documents.checkpoints import Checkpoints
from watchroom.features.documents.service import Documents
from watchroom.features.people.service import DecisionSigning
from watchroom.features.sessions.runtime.sessions import Sessions
from watchroom.features.tasks.commands import Commands
from watchroom.features.tasks.files import TaskFiles
from watchroom.history.seal import Sealing
from watchroom.kernel.background import Background
from watchroom.kernel.checkout.cursor import Cursor
from watchroom.kernel.checkout.derived import DerivedFiles
from watchroom.kernel.checkout.file_watcher import FileWatcher
from watchroom.kernel.checkout.materializer import Materializer
from watchroom.kernel.journal import Changes, SqliteJournal
from watchroom.platform.disk import Folder

AGENTS = ["alice", "bob"]
SCHEMA = {"title": "lww_register"}


def held() -> tuple[set[str], int]:
    """The threads of Watchroom, and the number of open descriptors."""
    names = {each.name for each in threading.enumerate() if each.name.startswith("watchroom-")}
    return names, len(os.listdir("/proc/self/fd"))


class _Failing:
    """The changes of a journal, which cannot be closed."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes

    def wait(self, seconds: float) -> None:
        self._changes.wait(seconds)

    def wake(self) -> None:
        self._changes.wake()

    def close(self) -> None:
        self._changes.close()
        raise OSError(5, "Input/output error")


class FailingJournal(SqliteJournal):
    """A journal whose parts fail one by one while they are closed."""

    def changes(self, after: int | None = None) -> Changes:
        return _Failing(super().changes(after))

    def close(self) -> None:
        super().close()
        raise OSError(28, "No space left on device")


def test_everything_is_closed_although_parts_fail_and_it_can_be_repeated(tmp_path: Path) -> None:
    with Workspace.open(tmp_path / "team", AGENTS) as warm:
        ok(warm.tools("alice"), "realtime_create_document", doc_id="d", schema=SCHEMA)
    before = held()
    path = tmp_path / "team/.watchroom/journal.db"
    workspace = Workspace.open(tmp_path / "team", journal=FailingJournal(path))
    workspace.background.start()
    ok(workspace.tools("alice"), "realtime_set_field", doc_id="d", field_name="title", value="New")
    with pytest.raises(OSError, match="Input/output"):
        workspace.close()
    assert held() == before
    workspace.close()


def fail_after(monkeypatch: pytest.MonkeyPatch, owner: type, name: str) -> None:
    """Have the method ``name`` of ``owner`` raise after its work."""
    work = getattr(owner, name)

    def failing(self: object) -> None:
        work(self)
        raise RuntimeError(f"{owner.__name__}.{name}")

    monkeypatch.setattr(owner, name, failing)


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (FileWatcher, "close"),
        (Background, "close"),
        (Background, "flush"),
        (Sessions, "close"),
        (TaskFiles, "close"),
        (Documents, "close"),
        (Checkpoints, "write_behind"),
        (Commands, "close"),
        (DecisionSigning, "close"),
        (Sealing, "write_last"),
        (Materializer, "close"),
        (DerivedFiles, "close"),
        (Cursor, "close"),
        (Folder, "close"),
        (SqliteJournal, "close"),
    ],
)
def test_a_part_that_fails_to_close_leaves_nothing_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: type, name: str
) -> None:
    with Workspace.open(tmp_path / "team", AGENTS) as warm:
        use_all_parts(warm, "warm")
    before = held()
    fail_after(monkeypatch, owner, name)
    workspace = Workspace.open(tmp_path / "team")
    use_all_parts(workspace, "again")
    with pytest.raises(RuntimeError, match=f"{owner.__name__}.{name}"):
        workspace.close()
    assert held() == before
    workspace.close()
    monkeypatch.undo()
    with Workspace.open(tmp_path / "team") as checked:
        assert checked.verify() == []


def use_all_parts(workspace: Workspace, name: str) -> None:
    """Make everything that is made with its first use."""
    alice = workspace.tools("alice")
    workspace.background.start()
    ok(alice, "collab_write", filepath=f"{name}.md", content="x", message="m")
    ok(alice, "realtime_create_document", doc_id=name, schema=SCHEMA)
    ok(alice, "collab_read", filepath=f"{name}.md")
    for part in (workspace.sessions, workspace.commands, workspace.sealing, workspace.search_index):
        assert part is not None


@pytest.mark.parametrize("name", ["tmp", "lock", "behind.lock"])
def test_a_workspace_that_cannot_be_opened_leaves_nothing_open(tmp_path: Path, name: str) -> None:
    with Workspace.open(tmp_path / "team", AGENTS):
        pass
    in_the_way = tmp_path / "team/.watchroom" / name
    if in_the_way.is_dir():
        in_the_way.rmdir()
        in_the_way.touch()
    else:
        in_the_way.unlink()
        in_the_way.mkdir()
    before = held()
    with pytest.raises(OSError, match=name):
        Workspace.open(tmp_path / "team")
    assert held() == before


def test_what_seals_is_given_to_nobody_before_it_was_prepared(tmp_path: Path) -> None:
    prepared = threading.Event()
    seen: SimpleQueue[bool] = SimpleQueue()
    with Workspace.open(tmp_path / "team", AGENTS) as workspace:

        def ask() -> None:
            assert workspace.sealing is not None
            seen.put(prepared.is_set())

        other = threading.Thread(target=ask)

        def prepare(_: object) -> None:
            other.start()
            # As long as it is not prepared the other one waits.
            other.join(0.2)
            prepared.set()

        workspace.prepare_sealing = prepare
        sealing = workspace.sealing
        other.join()
        assert workspace.sealing is sealing
    assert seen.get() is True


def test_several_that_ask_for_the_index_at_once_get_the_same_one(tmp_path: Path) -> None:
    with Workspace.open(tmp_path / "team", AGENTS) as workspace:
        together = threading.Barrier(8)
        found: SimpleQueue[object] = SimpleQueue()

        def ask() -> None:
            together.wait()
            found.put(workspace.search_index)

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert {id(found.get()) for _ in threads} == {id(workspace.search_index)}
