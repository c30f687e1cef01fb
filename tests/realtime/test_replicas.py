"""One document at several replicas: in other processes, after restarts, and from other machines."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from calls import ok, refused
from cli.running import as_typed
from damage import break_content
from documents import count, create, edit, get, put, tag
from watchroom import Agent, Toolbox, Workspace
from watchroom.algorithms.crdt import Document, Stamp, name_replica
from watchroom.algorithms.crdt.checkpoint import Checkpoint, render_checkpoint
from watchroom.features.overview.fold import Fold
from watchroom.model import Json, Note

ZOE = name_replica("zoe", 0xE15E)


def call(root: Path, agent: str, tool: str, **arguments: object) -> dict[str, Any]:
    """Make one call in a separate process."""
    done = subprocess.run(
        as_typed("call", str(root), agent, tool, json.dumps(arguments)),
        capture_output=True,
        text=True,
        check=False,
    )
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def elsewhere(root: Path, doc_id: str = "doc1") -> Document:
    """Return a replica that another machine starts from the file of the document."""
    # Opening the workspace updates outdated files.
    Workspace.open(root).close()
    kept = json.loads((root / f"realtime/.crdt_state/{doc_id}.crdt.json").read_text())
    return Document.from_state({key: kept[key] for key in ("schema", "values", "fields")})


def test_an_edit_of_another_process_is_seen_at_once(root: Path, alice: Toolbox) -> None:
    create(alice, body="rga", tags="or_set", score="pn_counter")
    edit(alice, "insert", position=0, text="AC")
    args = {"position": 2, "text": "D"}
    on = {"doc_id": "doc1"}
    call(root, "bob", "realtime_edit_text", **on, field_name="body", operation="insert", args=args)
    call(root, "bob", "realtime_edit_set", **on, field_name="tags", operation="add", element="x")
    call(root, "bob", "realtime_edit_counter", **on, field_name="score", operation="increment", amount=2)
    assert get(alice, "body") == "ACD"
    assert tag(alice, "list")["elements"] == ["x"]
    assert count(alice, "increment", 1) == 3


def test_what_an_agent_saw_counts_in_its_next_process(root: Path, alice: Toolbox) -> None:
    create(alice, body="rga", config="lww_map", tags="or_set")
    edit(alice, "insert", position=0, text="AC")
    put(alice, "config", {"theme": "dark", "lang": "zh"})
    tag(alice, "add", "x")
    call(root, "bob", "realtime_get_document_snapshot", doc_id="doc1")
    edit(alice, "insert", position=0, text="zzz")
    put(alice, "config", {"theme": "light", "lang": "zh"})
    tag(alice, "add", "x")
    on = {"doc_id": "doc1"}
    args = {"position": 1, "text": "B"}
    edited = call(root, "bob", "realtime_edit_text", **on, field_name="body", operation="insert", args=args)
    assert "notice" in edited
    value = {"theme": "dark", "lang": "en"}
    call(root, "bob", "realtime_set_field", **on, field_name="config", value=value)
    removed = call(root, "bob", "realtime_edit_set", **on, field_name="tags", operation="remove", element="x")
    assert removed["exists"] is True
    assert get(alice, "body") == "zzzABC"
    assert get(alice, "config") == {"theme": "light", "lang": "en"}
    second = call(
        root,
        "bob",
        "realtime_edit_text",
        **on,
        field_name="body",
        operation="insert",
        args={"position": 2, "text": "b"},
    )
    assert second["length"] == 4
    assert get(alice, "body") == "zzzABbC"


def test_each_of_many_writers_edits_the_text_as_it_last_saw_it(workspace: Workspace, alice: Toolbox) -> None:
    create(alice, body="rga")
    edit(alice, "insert", position=0, text="A|Z")
    names = [f"writer{n}" for n in range(20)]
    workspace.register(Agent(name) for name in names)
    writers = [workspace.tools(name) for name in names]
    for writer in writers:
        get(writer, "body")
    edit(alice, "insert", position=0, text=">>>")
    for n, writer in enumerate(writers):
        edit(writer, "insert", position=1, text=f"({n:02}")
    lengths = {edit(writer, "insert", position=4, text=")")["length"] for writer in writers}
    assert lengths == {len("A(00)|Z")}
    found = get(alice, "body")
    assert sorted(found[4:-2].split(")")) == ["", *(f"({n:02}" for n in range(20))]
    assert (found[:4], found[-2:]) == (">>>A", "|Z")


def test_an_edit_builds_on_all_that_was_written_before_it_also_where_its_writer_had_not_seen_that(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    """The cost of concurrent edits grows with the number of writers."""
    create(alice, body="rga")
    for agent in (alice, bob):
        get(agent, "body")
    for turn in range(3):
        edit(alice, "insert", position=turn, text="a")
        edit(bob, "insert", position=turn, text="b")
    rows = workspace.journal.versions("realtime", "doc1", after=1)
    for missing in range(len(rows)):
        replica = Document({"body": "rga"})
        replica.merge_all([json.loads(content or "") for _, content in rows[:missing]])
        before = replica.values()
        replica.merge_all([json.loads(content or "") for _, content in rows[missing + 1 :]])
        assert replica.values() == before


def test_what_others_wrote_within_what_an_agent_replaces_stays_for_every_replica(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    create(alice, body="rga")
    edit(alice, "insert", position=0, text="abcdef")
    get(bob, "body")
    edit(alice, "insert", position=3, text="X")
    replaced = edit(bob, "replace", **{"from": 1, "to": 5, "text": "-"})
    assert (replaced["inserted_count"], replaced["deleted_count"], replaced["length"]) == (1, 4, 3)
    assert get(alice, "body") == "a-Xf"
    assert workspace.realtime.open_replica("doc1").document.values() == {"body": "a-Xf"}


def test_what_an_agent_deleted_of_what_others_had_deleted_counts_in_its_next_process(
    root: Path, alice: Toolbox
) -> None:
    create(alice, body="rga")
    edit(alice, "insert", position=0, text="one two three")
    call(root, "bob", "realtime_get_field", doc_id="doc1", field_name="body")
    edit(alice, "replace", **{"from": 4, "to": 7, "text": "2"})

    def edit_as_bob(operation: str, **args: object) -> dict[str, Any]:
        on = {"doc_id": "doc1", "field_name": "body"}
        return call(root, "bob", "realtime_edit_text", **on, operation=operation, args=args)

    # "one three" for bob, then "one three!", then "ONE three!".
    assert edit_as_bob("delete", **{"from": 4, "to": 8})["length"] == 9
    assert get(alice, "body") == "one 2three"
    assert edit_as_bob("insert", position=9, text="!")["length"] == 10
    assert edit_as_bob("replace", **{"from": 0, "to": 3, "text": "ONE"})["length"] == 10
    assert get(alice, "body") == "ONE 2three!"


def test_a_reading_whose_row_comes_late_is_older_than_one_of_a_newer_version(
    workspace: Workspace, alice: Toolbox
) -> None:
    create(alice, body="rga")
    for text in ("one ", "two "):
        edit(alice, "insert", position=0, text=text)
    # Bob read in two processes, and the first one wrote its row last.
    readings = [Note("bob", "realtime_get_field", "realtime", "doc1/body", base=base) for base in (3, 2)]
    workspace.journal.append(readings)
    edit(alice, "insert", position=0, text="three ")
    assert edit(workspace.tools("bob"), "insert", position=8, text="!")["length"] == 9
    assert get(alice, "body") == "three two one !"


def test_the_row_of_a_counter_says_what_was_done(workspace: Workspace, alice: Toolbox) -> None:
    create(alice, score="pn_counter")
    count(alice, "increment", 5)
    count(alice, "decrement", 2)
    rows = workspace.journal.history("realtime", "doc1", after_version=1)
    assert [(row.detail["op"], row.detail["amount"]) for row in rows] == [("increment", 5), ("decrement", 2)]


def test_what_an_agent_saw_counts_however_much_others_have_written_since(
    alice: Toolbox, bob: Toolbox
) -> None:
    create(alice, body="rga")
    edit(alice, "insert", position=0, text="A|Z")
    get(bob, "body")
    for _ in range(2_100):
        edit(alice, "insert", position=0, text=".")
    assert edit(bob, "insert", position=1, text="b")["length"] == 4
    edit(alice, "insert", position=0, text=".")
    assert edit(bob, "insert", position=2, text="c")["length"] == 5
    assert get(alice, "body") == "." * 2_101 + "Abc|Z"


def test_the_toolboxes_of_an_agent_write_by_one_replica(workspace: Workspace, alice: Toolbox) -> None:
    create(alice, body="rga")
    for piece in "abc":
        toolbox = workspace.tools("alice")
        get(toolbox, "body")
        edit(toolbox, "insert", position=0, text=piece)
    first, second = workspace.tools("alice"), workspace.tools("alice")
    for toolbox in (first, second):
        assert get(toolbox, "body") == "cba"
    edit(first, "insert", position=0, text="<")
    edit(second, "insert", position=3, text=">")
    edit(first, "insert", position=1, text="1")
    edit(second, "insert", position=3, text="2")
    assert get(first, "body") == get(second, "body") == "<1cba2>"
    assert len(replicas_of(workspace)) == 1
    assert workspace.realtime.open_replica("doc1").document.values() == {"body": "<1cba2>"}


def replicas_of(workspace: Workspace) -> set[Json]:
    """Return the replicas that edited the document."""
    return {
        row.detail["replica"]
        for row in workspace.journal.history("realtime", "doc1")
        if "replica" in row.detail
    }


def test_a_state_from_elsewhere_is_merged(root: Path, alice: Toolbox) -> None:
    create(alice, body="rga", title="lww_register", tags="or_set", config="lww_map", score="pn_counter")
    edit(alice, "insert", position=0, text="AC")
    remote = elsewhere(root)
    remote.text("body").insert(1, "B", ZOE)
    remote.register("title").set("from afar", remote.stamp(ZOE))
    remote.set("tags").add("far", ZOE)
    remote.map("config").set("k", 1, remote.stamp(ZOE))
    remote.counter("score").increment(7, ZOE)
    edit(alice, "insert", position=2, text="D")
    merged = ok(alice, "realtime_merge_state", doc_id="doc1", state=remote.state())
    assert set(merged["merged_fields"]) == set(remote.schema)
    found = ok(alice, "realtime_get_document_snapshot", doc_id="doc1")["snapshot"]
    assert found == {"body": "ABCD", "title": "from afar", "tags": ["far"], "config": {"k": 1}, "score": 7}
    again = ok(alice, "realtime_merge_state", doc_id="doc1", state=remote.state())
    assert ok(alice, "realtime_get_document_snapshot", doc_id="doc1")["snapshot"] == found
    assert again["version"] > merged["version"]


def test_the_file_itself_is_a_state_that_merges(root: Path, workspace: Workspace, alice: Toolbox) -> None:
    create(alice, "there", body="rga")
    args = {"position": 0, "text": "x"}
    ok(alice, "realtime_edit_text", doc_id="there", field_name="body", operation="insert", args=args)
    create(alice, "here", body="rga")
    workspace.flush()
    kept = json.loads((root / "realtime/.crdt_state/there.crdt.json").read_text())
    ok(alice, "realtime_merge_state", doc_id="here", state=kept)
    assert get(alice, "body", "here") == "x"


def in_title(fields: dict[str, Any], home: str) -> None:
    fields["title"] = {"value": "mine for ever", "stamp": [2**52, 0, ZOE]}


def in_counter(fields: dict[str, Any], home: str) -> None:
    fields["score"]["plus"][home] += 1


def in_context(fields: dict[str, Any], home: str) -> None:
    fields["tags"]["context"] = {home: 99}


def in_dots(fields: dict[str, Any], home: str) -> None:
    fields["tags"] = {"elements": {"x": {ZOE: 5}}, "context": {ZOE: 4}}


def in_sign(fields: dict[str, Any], home: str) -> None:
    fields["score"]["plus"][ZOE] = -4


def in_shape(fields: dict[str, Any], home: str) -> None:
    fields["body"] = [1, 2, 3]


def in_base64(fields: dict[str, Any], home: str) -> None:
    fields["body"]["history"] = "%%%"


def in_length(fields: dict[str, Any], home: str) -> None:
    history = fields["body"]["history"]
    fields["body"]["history"] = history[: len(history) // 8 * 4]


def in_peer(fields: dict[str, Any], home: str) -> None:
    fields["body"]["by"] = ["zoe"]


def in_key(fields: dict[str, Any], home: str) -> None:
    fields["config"] = {"": {"value": 1, "stamp": [1, 0, ZOE]}}


def in_fields(fields: dict[str, Any], home: str) -> None:
    fields["other"] = {}


def in_text(fields: dict[str, Any], home: str) -> None:
    forged = Document({"body": "rga"})
    forged.merge({"body": fields["body"]})
    forged.text("body").insert(0, "!", home)
    fields["body"] = forged.text("body").state()


def in_writer(fields: dict[str, Any], home: str) -> None:
    fields["body"]["by"] = ["zoe#" + home.partition("#")[2]]


HOSTILE = (
    *(in_title, in_counter, in_context, in_dots, in_sign, in_shape),
    *(in_base64, in_length, in_peer, in_key, in_fields, in_text, in_writer),
)


def test_a_hostile_state_is_refused_whole(root: Path, alice: Toolbox) -> None:
    create(alice, body="rga", title="lww_register", tags="or_set", config="lww_map", score="pn_counter")
    edit(alice, "insert", position=0, text="AC")
    tag(alice, "add", "x")
    count(alice, "increment", 1)
    before = ok(alice, "realtime_get_document_snapshot", doc_id="doc1")["snapshot"]
    honest = json.loads(json.dumps(elsewhere(root).state()))
    (home,) = honest["fields"]["score"]["plus"]
    states = [{}, {"schema": {"title": "rga"}, "fields": {}}]
    for lie in HOSTILE:
        state = deepcopy(honest)
        lie(state["fields"], home)
        states.append(state)
    for state in states:
        result = refused(alice, "realtime_merge_state", doc_id="doc1", state=state)
        assert result["error"] == "invalid_state", state
        assert ok(alice, "realtime_get_document_snapshot", doc_id="doc1")["snapshot"] == before
    edit(alice, "insert", position=2, text="D")
    assert get(alice, "body") == "ACD"


def test_a_stamp_of_the_future_is_named(root: Path, alice: Toolbox) -> None:
    create(alice, title="lww_register")
    remote = elsewhere(root)
    remote.register("title").set("x", Stamp(2**52, 0, ZOE))
    result = refused(alice, "realtime_merge_state", doc_id="doc1", state=remote.state())
    assert "'title'" in result["message"]
    assert "ahead of this machine's clock" in result["message"]


@pytest.mark.parametrize("text", ["{", "null", '{"a": 1}', "x\u0000", "x" * 100_000])
def test_a_checkpoint_that_somebody_wrote_over_is_kept_and_put_back(
    root: Path, workspace: Workspace, alice: Toolbox, text: str
) -> None:
    create(alice, title="lww_register")
    put(alice, "title", "看板")
    workspace.flush()
    file = root / "realtime/.crdt_state/doc1.crdt.json"
    whole = file.read_bytes()
    file.write_text(text)
    (row,) = workspace.scan()
    assert (row.actor, row.zone, row.path, row.error) == ("outside", "realtime", "doc1", "invalid_state")
    if "\0" not in text:
        assert workspace.journal.content(row.seq) == text
    assert file.read_bytes() == whole
    assert workspace.scan() == []


@pytest.mark.parametrize("left", [b"", b"\0" * 500])
def test_what_a_machine_that_went_down_leaves_of_a_checkpoint_is_no_edit(
    root: Path, workspace: Workspace, alice: Toolbox, left: bytes
) -> None:
    create(alice, title="lww_register")
    workspace.flush()
    file = root / "realtime/.crdt_state/doc1.crdt.json"
    whole = file.read_bytes()
    file.write_bytes(left)
    assert workspace.scan() == []
    assert file.read_bytes() == whole


def test_what_somebody_wrote_over_a_checkpoint_is_kept_when_the_next_edit_replaces_it(
    root: Path, workspace: Workspace, alice: Toolbox
) -> None:
    create(alice, title="lww_register")
    workspace.flush()
    file = root / "realtime/.crdt_state/doc1.crdt.json"
    file.write_text("mine now")
    put(alice, "title", "Sprint 1")
    workspace.flush()
    assert json.loads(file.read_text())["values"] == {"title": "Sprint 1"}
    workspace.flush()
    (row,) = [row for row in workspace.journal.rows() if row.actor == "outside"]
    assert workspace.journal.content(row.seq) == "mine now"
    assert workspace.verify() == []


def test_another_documents_checkpoint_is_no_checkpoint(
    root: Path, workspace: Workspace, alice: Toolbox
) -> None:
    create(alice, title="lww_register")
    create(alice, "other", title="lww_register")
    workspace.flush()
    folder = root / "realtime/.crdt_state"
    whole = (folder / "doc1.crdt.json").read_bytes()
    (folder / "doc1.crdt.json").write_bytes((folder / "other.crdt.json").read_bytes())
    workspace.scan()
    assert (folder / "doc1.crdt.json").read_bytes() == whole


def test_what_was_written_over_a_checkpoint_is_noted_once_and_needs_nobody(
    root: Path, workspace: Workspace, alice: Toolbox
) -> None:
    create(alice, title="lww_register")
    file = root / "realtime/.crdt_state/doc1.crdt.json"
    workspace.flush()
    for _ in range(2):
        file.write_text("mine now")
        call(root, "bob", "realtime_get_field", doc_id="doc1", field_name="title")
        assert json.loads(file.read_text())["values"] == {"title": None}
    fold = Fold(workspace.journal.content, workspace.journal.row)
    fold.apply(workspace.journal.rows())
    assert fold.model().needs == ()
    assert sum(row.actor == "outside" for row in workspace.journal.rows()) == 1


def test_an_edited_checkpoint_changes_nothing_for_the_next_process(
    root: Path, workspace: Workspace, alice: Toolbox
) -> None:
    create(alice, title="lww_register")
    put(alice, "title", "Sprint 1")
    workspace.flush()
    file = root / "realtime/.crdt_state/doc1.crdt.json"
    file.write_text(file.read_text().replace("Sprint 1", "Sprint 2"))
    found = call(root, "bob", "realtime_get_field", doc_id="doc1", field_name="title")
    assert found["value"] == "Sprint 1"


def test_a_missing_checkpoint_is_made_from_the_journal(
    root: Path, workspace: Workspace, alice: Toolbox
) -> None:
    create(alice, body="rga")
    edit(alice, "insert", position=0, text="kept")
    workspace.flush()
    file = root / "realtime/.crdt_state/doc1.crdt.json"
    whole = file.read_bytes()
    workspace.close()
    file.unlink()
    with Workspace.open(root) as again:
        assert file.read_bytes() == whole
        assert get(again.tools("bob"), "body") == "kept"


def test_a_checkpoint_that_is_behind_is_brought_up_when_the_workspace_is_opened(
    root: Path, workspace: Workspace, alice: Toolbox
) -> None:
    create(alice, body="rga")
    workspace.flush()
    file = root / "realtime/.crdt_state/doc1.crdt.json"
    old = file.read_bytes()
    edit(alice, "insert", position=0, text="new")
    workspace.close()
    file.write_bytes(old)
    with Workspace.open(root):
        assert json.loads(file.read_text())["values"] == {"body": "new"}


def test_a_large_checkpoint_is_current_when_the_workspace_is_closed(
    root: Path, workspace: Workspace, alice: Toolbox
) -> None:
    create(alice, body="rga")
    for number in range(20):
        edit(alice, "insert", position=0, text=f"{number} " * 5_000)
    workspace.close()
    kept = json.loads((root / "realtime/.crdt_state/doc1.crdt.json").read_text())
    assert kept["version"] == 21


def test_verify_finds_a_checkpoint_that_says_what_the_journal_does_not(
    root: Path, workspace: Workspace, alice: Toolbox
) -> None:
    create(alice, title="lww_register")
    put(alice, "title", "true")
    assert workspace.verify() == []
    file = root / "realtime/.crdt_state/doc1.crdt.json"
    lie = Document({"title": "lww_register"})
    lie.register("title").set("false", Stamp(1, 0, ZOE))
    forged = render_checkpoint(Checkpoint("doc1", 2, frozenset(), lie), "2026-01-01T00:00:00.000Z", "zoe")
    file.write_bytes(forged)
    (problem,) = workspace.verify()
    assert (problem.zone, problem.path) == ("realtime", "doc1")
    assert workspace.repair() == []
    assert json.loads(file.read_text())["values"] == {"title": "true"}
    kept = workspace.journal.rows()[-1]
    assert workspace.journal.content(kept.seq) == forged.decode()


def test_an_export_holds_the_documents_as_they_were(
    root: Path, tmp_path: Path, workspace: Workspace, alice: Toolbox
) -> None:
    create(alice, body="rga")
    edit(alice, "insert", position=0, text="one")
    then = workspace.journal.last_seq()
    edit(alice, "insert", position=3, text=" two")
    workspace.export(then, tmp_path / "out")
    kept = json.loads((tmp_path / "out/realtime/.crdt_state/doc1.crdt.json").read_text())
    assert kept["values"] == {"body": "one"}


@pytest.mark.parametrize("content", [None, b"", b"{", b"[]", b'{"title": {"value": 1}}', b'{"body": 3}'])
def test_a_document_with_a_broken_row_keeps_nobody_from_the_others(
    root: Path, workspace: Workspace, alice: Toolbox, content: bytes | None
) -> None:
    create(alice, title="lww_register")
    create(alice, "other", title="lww_register")
    put(alice, "title", "lost")
    put(alice, "title", "kept")
    workspace.close()
    break_content(root, "doc1", 2, content, zone="realtime")
    with Workspace.open(root) as again:
        # The checkpoint is newer than the broken row, so nothing is missed.
        assert get(again.tools("bob"), "title") == "kept"
    (root / "realtime/.crdt_state/doc1.crdt.json").unlink()
    with Workspace.open(root) as again:
        bob = again.tools("bob")
        result = refused(bob, "realtime_get_field", doc_id="doc1", field_name="title")
        assert "version 2 of the document doc1" in result["message"]
        put(bob, "title", "fine", "other")
        wrong = {(problem.kind, problem.zone, problem.path) for problem in again.verify()}
        assert ("file", "realtime", "doc1") in wrong
        assert ("file", "realtime", "doc1") in {
            (problem.kind, problem.zone, problem.path) for problem in again.repair()
        }


def test_a_document_whose_schema_is_broken_keeps_nobody_from_the_others(
    root: Path, workspace: Workspace, alice: Toolbox
) -> None:
    create(alice, title="lww_register")
    create(alice, "other", title="lww_register")
    workspace.close()
    break_content(root, "doc1", 1, b'{"schema": {"title": "nothing"}}', zone="realtime")
    with Workspace.open(root) as again:
        put(again.tools("bob"), "title", "fine", "other")
        refused(again.tools("bob"), "realtime_get_field", doc_id="doc1", field_name="title")
        assert ("realtime", "doc1") in {(problem.zone, problem.path) for problem in again.verify()}


_REFUSED = {"doc_id": "doc1", "field_name": "refused", "operation": "insert"}
_LOST = {"position": 0, "text": "lost "}


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """Another connection to a journal that accepts no edit of the field ``refused``."""
    with Workspace.open(tmp_path, ["alice", "bob"]) as workspace:
        create(workspace.tools("alice"), body="rga", refused="rga")
    with closing(sqlite3.connect(tmp_path / ".watchroom" / "journal.db", isolation_level=None)) as journal:
        journal.execute(
            "CREATE TRIGGER full BEFORE INSERT ON rows WHEN NEW.detail LIKE '%refused%'"
            " BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END"
        )
        yield journal


def test_a_checkpoint_never_contains_an_edit_that_was_not_committed(
    tmp_path: Path, full_disk: sqlite3.Connection
) -> None:
    with Workspace.open(tmp_path) as workspace:
        alice = workspace.tools("alice")
        for _ in range(5):
            # The checkpoint of the first edit is written after the second one was refused.
            edit(alice, "insert", position=0, text="kept ")
            result = refused(alice, "realtime_edit_text", **_REFUSED, args=_LOST)
            assert result["error"] == "journal_failed"
    full_disk.execute("DROP TRIGGER full")
    with Workspace.open(tmp_path) as reopened:
        assert reopened.verify() == []
        assert get(reopened.tools("alice"), "body") == "kept " * 5
        assert get(reopened.tools("alice"), "refused") == ""


def test_an_edit_that_waited_for_a_refused_one_does_not_build_on_it(
    tmp_path: Path, full_disk: sqlite3.Connection
) -> None:
    with Workspace.open(tmp_path) as workspace, ThreadPoolExecutor() as pool:
        alice, bob = workspace.tools("alice"), workspace.tools("bob")
        assert get(alice, "refused") == get(bob, "refused") == ""
        full_disk.execute("BEGIN IMMEDIATE")
        lost = pool.submit(refused, alice, "realtime_edit_text", **_REFUSED, args=_LOST)
        time.sleep(0.2)
        kept = pool.submit(edit, bob, "insert", position=0, text="kept ")
        time.sleep(0.2)
        full_disk.execute("ROLLBACK")
        assert lost.result()["error"] == "journal_failed"
        assert kept.result()["length"] == 5
        assert get(alice, "refused") == get(bob, "refused") == ""
    full_disk.execute("DROP TRIGGER full")
    with Workspace.open(tmp_path) as reopened:
        assert reopened.verify() == []
        assert get(reopened.tools("alice"), "refused") == ""
