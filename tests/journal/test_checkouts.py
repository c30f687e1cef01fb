"""One workspace in a database, and a checkout on each of two machines: the same files, one host."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic

import psycopg
import pytest
from tui.driver import dashboard
from tui.team import opens_merge
from watchroom import Json, Row, Workspace
from watchroom.errors import CheckoutTaken, JournalError, OtherMachine, WorkspaceNotFound
from watchroom.features.overview.snapshots import read_model
from watchroom.kernel.checkout.location import find_journal

pytestmark = pytest.mark.postgres
PATIENCE = 20.0


@pytest.fixture
def url(new_database: Callable[[], str]) -> str:
    return new_database()


@pytest.fixture
def here(url: str, tmp_path: Path) -> Iterator[Workspace]:
    with Workspace.open(url, ["alice", "bob"], checkout=tmp_path / "here") as workspace:
        yield workspace


@pytest.fixture
def there(here: Workspace, url: str, tmp_path: Path) -> Iterator[Workspace]:
    with Workspace.open(url, create=False, checkout=tmp_path / "there") as workspace:
        yield workspace


def wait_until(workspace: Workspace, holds: Callable[[], bool]) -> None:
    """Look again after each row of the journal."""
    changes = workspace.journal.changes(0)
    until = monotonic() + PATIENCE
    while not holds():
        assert monotonic() < until
        changes.wait(0.05)
    changes.close()


def edit_in_each(*checkouts: Workspace) -> tuple[list[Path], list[Row]]:
    """One shared file, edited by hand in each of these checkouts; the files, and the rows of the edits."""
    written = {"filepath": "plan.md", "content": "one\n", "message": "m"}
    assert checkouts[0].tools("alice").dispatch_tool_call("collab_write", written)["success"]
    files, edits = [Path(each.root, "collaborative/current/plan.md") for each in checkouts], list[Row]()
    for workspace, file in zip(checkouts, files, strict=True):
        wait_until(workspace, file.exists)
        file.write_text(f"by hand in {workspace.root}\n")
        edits += workspace.scan()
    return files, edits


def test_what_one_machine_writes_lies_in_the_checkout_of_the_other(here: Workspace, there: Workspace) -> None:
    written = here.tools("alice").dispatch_tool_call(
        "collab_write", {"filepath": "plan.md", "content": "one", "message": "m"}
    )
    assert written["success"]
    file = Path(there.root, "collaborative/current/plan.md")
    wait_until(there, file.exists)
    assert file.read_text() == "one"
    changed = there.tools("bob").dispatch_tool_call(
        "collab_write", {"filepath": "plan.md", "content": "two", "message": "m", "expected_version": 1}
    )
    assert changed["success"]
    stale = here.tools("alice").dispatch_tool_call(
        "collab_write", {"filepath": "plan.md", "content": "three", "message": "m", "expected_version": 1}
    )
    assert (stale["success"], stale["error"]) == (False, "version_conflict")
    wait_until(here, lambda: Path(here.root, "collaborative/current/plan.md").read_text() == "two")
    assert here.verify() == there.verify() == []


def test_an_edit_of_a_private_file_counts_on_the_host_and_is_put_back_elsewhere(
    here: Workspace, there: Workspace
) -> None:
    here.tools("alice").dispatch_tool_call("save_to_my_workspace", {"filename": "a.md", "content": "hers"})
    mirror = Path(there.root, "agents/alice/a.md")
    wait_until(there, mirror.exists)
    mirror.write_text("by hand, there")
    (row,) = there.scan()
    assert (row.actor, row.outcome, row.error) == ("outside", "denied", "other_host")
    assert there.journal.content(row.seq) == "by hand, there"
    assert mirror.read_text() == "hers"
    Path(here.root, "agents/alice/a.md").write_text("by hand, here")
    (row,) = here.scan()
    assert (row.outcome, row.version) == ("ok", 2)
    wait_until(there, lambda: mirror.read_text() == "by hand, here")
    assert there.move_host("human:dana").outcome == "ok"
    assert there.host.is_here()
    assert not here.host.is_here()
    mirror.write_text("now it counts")
    (row,) = there.scan()
    assert (row.outcome, row.version) == ("ok", 3)


def test_an_edit_of_a_shared_file_is_a_conflict_of_its_checkout_and_can_be_taken_back_from_another(
    here: Workspace, there: Workspace
) -> None:
    files, edits = edit_in_each(here, there)
    assert [row.error for row in edits] == ["outside_edit"] * 2
    assert here.scan() == there.scan() == [], "each has seen its own"
    model = read_model(here.journal, here.journal.last_seq())
    assert {conflict.id for conflict in model.conflicts} == {row.seq for row in edits}

    dana = there.tools_for_human("dana")
    first: dict[str, Json] = {"filepath": "plan.md", "conflict": edits[0].seq, "message": "m"}
    assert dana.dispatch_tool_call("revert_outside_edit", first)["success"]
    wait_until(here, lambda: files[0].read_text() == "one\n")
    assert files[1].read_text() == f"by hand in {there.root}\n"
    assert here.scan() == there.scan() == []
    assert here.verify() == []
    model = read_model(here.journal, here.journal.last_seq())
    assert [conflict.id for conflict in model.conflicts] == [edits[1].seq]


async def test_an_edit_on_another_machine_is_told_apart_and_settled_by_itself(
    here: Workspace, there: Workspace
) -> None:
    _, edits = edit_in_each(here, there)
    async with dashboard(there) as user:
        await user.until(lambda: len(user.model.conflicts) == 2, "both conflicts")
        await user.sees(f"external edit on {here.host.machine}")
        draft = await opens_merge(user)
        assert draft.sides.incoming == edits[0]
        await user.press("w")
        await user.sees("from outside")
        await user.press("enter")
        await user.until(lambda: len(user.model.conflicts) == 1, "that one is settled")
        assert user.model.conflicts[0].row == edits[1]
        assert not user.shows("once more")


def test_the_files_of_a_task_are_on_the_machine_where_it_was_submitted(
    here: Workspace, there: Workspace, tmp_path: Path
) -> None:
    folder = tmp_path / "files"
    task = here.tasks.submit("human:dana", "Build.", folder)
    with here.tasks.claim(task.id):
        pass
    with pytest.raises(OtherMachine), there.tasks.claim(task.id):
        raise AssertionError
    assert there.verify() == []


def test_a_checkout_shows_one_workspace(here: Workspace, new_database: Callable[[], str]) -> None:
    with pytest.raises(CheckoutTaken):
        Workspace.open(new_database(), checkout=here.root)
    with pytest.raises(WorkspaceNotFound):
        Workspace.open(new_database(), create=False, checkout=Path(here.root).parent / "third")


def test_the_address_of_the_database_is_for_its_owner_alone(here: Workspace, url: str) -> None:
    file = Path(here.root, ".watchroom/journal.url")
    assert file.stat().st_mode & 0o777 == 0o600
    assert find_journal(here.root) == url
    file.write_text(json.dumps({"not": "an address"}))
    with pytest.raises(JournalError, match="no address"):
        find_journal(here.root)


def test_where_the_id_of_the_host_is_damaged_no_checkout_is_it_until_one_is_made_it(
    here: Workspace, url: str, tmp_path: Path
) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("SET LOCAL session_replication_role = replica")
        connection.execute("UPDATE watchroom.rows SET content = %s WHERE tool = 'set_host'", (b"\x80",))
    with Workspace.open(url, create=False, checkout=tmp_path / "there") as there:
        assert not there.host.is_here()
        assert not here.host.is_here()
        assert ("workspace", "host") in {(problem.zone, problem.path) for problem in there.verify()}
        assert there.move_host("human:dana").outcome == "ok"
        assert there.host.is_here()
    assert not here.host.is_here()


@pytest.mark.parametrize("left", ["", "\n"], ids=["empty", "blank"])
def test_a_checkout_whose_id_a_crash_left_empty_gets_one(
    here: Workspace, url: str, tmp_path: Path, left: str
) -> None:
    folder = tmp_path / "there"
    with Workspace.open(url, create=False, checkout=folder):
        pass
    (folder / ".watchroom/checkout-id").write_text(left)
    with Workspace.open(url, create=False, checkout=folder) as again:
        assert again.host.id
        assert (folder / ".watchroom/checkout-id").read_text() == again.host.id
        assert again.move_host("human:dana").outcome == "ok"
        assert again.host.is_here()
    assert not here.host.is_here()
