"""The typed reads of details: what a front end shows of rows, versions, sessions, requests and so on."""

from __future__ import annotations

from pathlib import Path

import pytest
from calls import ok
from projections.folding import PLAN, folded, shared_path, stale_write, write
from projections.test_requests_and_sessions import asked
from runtime.weather import call, calling
from tui.sessions import running, says
from watchroom import Agent, Toolbox, Workspace
from watchroom.errors import DocumentNotFound
from watchroom.features.buffers.reads import BufferText, read_buffer
from watchroom.features.calls.reads import find_request, read_request
from watchroom.features.documents.reads import open_document, read_deltas
from watchroom.features.files.reads import list_private_files
from watchroom.features.overview.reads import (
    UnreadableVersionError,
    find_pair,
    read_config,
    read_history,
    read_lineage,
    read_merge,
    read_pair_texts,
    read_preview,
    read_text,
    read_texts,
)
from watchroom.features.sessions.reads import list_sessions, read_steps
from watchroom.features.tasks.reads import CommandRecord, Piece, read_end, read_output, read_task
from watchroom.features.tasks.rows import TaskLimits
from watchroom.features.tasks.view import CommandView
from watchroom.kernel.reads import find_row, read_activity, read_page
from watchroom.kernel.rules.details import CommandDetail, DocumentEdit, StepDetail, met_version, task_of
from watchroom.model import PRINTED, Note, Row, Write


def head(workspace: Workspace, path: str = PLAN) -> Row:
    found = workspace.journal.head("collab", path)
    assert found is not None
    return found


def test_rows_come_by_number_and_by_page(workspace: Workspace, alice: Toolbox) -> None:
    for number in range(5):
        write(alice, str(number), number)
    journal = workspace.journal
    first = read_page(journal, limit=3)
    assert first.before == first.rows[-1].seq
    second = read_page(journal, first.before, limit=100)
    assert second.before is None
    assert [*first.rows, *second.rows] == journal.rows_before(journal.last_seq() + 1)
    found = find_row(journal, first.rows[0].seq)
    assert found is not None
    assert (found.row, found.text) == (first.rows[0], "4")
    assert find_row(journal, 10_000) is None


def test_what_an_agent_did_and_has_is_that_of_the_moment(workspace: Workspace, alice: Toolbox) -> None:
    ok(alice, "save_to_my_workspace", filename="a.md", content="one")
    ok(alice, "save_to_my_workspace", filename="b.md", content="two")
    journal, moment = workspace.journal, workspace.journal.last_seq()
    ok(alice, "delete_from_my_workspace", filename="a.md")
    assert [row.path for row in list_private_files(journal, "alice", as_of=moment)] == [
        "alice/a.md",
        "alice/b.md",
    ]
    assert [row.path for row in list_private_files(journal, "alice", as_of=moment + 1)] == ["alice/b.md"]
    assert [row.seq for row in read_activity(journal, "alice", as_of=moment, limit=1)] == [moment]


def test_a_history_has_versions_and_what_was_refused(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    write(alice, "one\n", 0)
    late = stale_write(bob, 0)
    write(alice, "two\n", 1)
    journal, newest = workspace.journal, head(workspace)
    assert [row.version for row in read_history(journal, newest)] == [2, None, 1]
    assert [row.version for row in read_history(journal, newest, as_of=late)] == [None, 1]
    assert [row.version for row in read_history(journal, newest, limit=1)] == [2]
    (_, refusal, first) = read_history(journal, newest)
    assert met_version(refusal) == 1
    assert [row.version for row in read_lineage(journal, newest)] == [1, 2]
    assert read_lineage(journal, refusal) == (refusal,)
    assert read_pair_texts(journal, find_pair(journal, newest)) == ("one\n", "two\n")
    assert find_pair(journal, first) == (None, first)
    assert find_pair(journal, refusal, newest) == (newest, refusal)
    assert [*read_texts(journal, (first, newest))] == ["one\n", "two\n"]


def test_the_text_of_a_row_without_one_is_an_error_and_that_of_a_deletion_is_empty(
    root: Path, workspace: Workspace, alice: Toolbox
) -> None:
    write(alice, "one", 0)
    reading = Note("alice", "collab_read", "collab", PLAN)
    ((row, _),) = workspace.journal.append([reading])
    with pytest.raises(UnreadableVersionError) as raised:
        read_text(workspace.journal, row)
    assert raised.value.row == row
    shared_path(root).unlink()
    (gone,) = workspace.scan()
    assert read_text(workspace.journal, gone) == ""


def test_a_merge_has_three_sides(workspace: Workspace, alice: Toolbox, bob: Toolbox) -> None:
    write(alice, "one", 0)
    write(alice, "two", 1)
    row = workspace.journal.row(stale_write(bob, 1))
    assert row is not None
    merge = read_merge(workspace.journal, row)
    assert (merge.base_text, merge.current_text, merge.incoming_text) == ("one", "two", "late")
    assert merge.base is not None
    assert (merge.base.version, merge.current, merge.incoming) == (1, head(workspace), row)
    new = workspace.journal.row(stale_write(bob, 0))
    assert new is not None
    assert (read_merge(workspace.journal, new).base, read_merge(workspace.journal, new).base_text) == (
        None,
        "",
    )


def test_a_preview_tells_what_stood_there_before(workspace: Workspace, alice: Toolbox) -> None:
    write(alice, "one", 0)
    assert read_preview(workspace.journal, head(workspace)) == ("one", "", None)
    write(alice, "two", 1)
    assert read_preview(workspace.journal, head(workspace)) == ("two", "one", None)
    binary = Write("alice", "write_file", "file", "t/a.png", "binary", detail={"size": 7})
    ((row, _),) = workspace.journal.append([binary])
    assert read_preview(workspace.journal, row) == (None, "", 7)


async def test_a_session_comes_by_pages_of_steps(workspace: Workspace) -> None:
    save = call("save_to_my_workspace", filename="x.md", content="x")
    async with running(workspace, "bob", calling(save), says("Done."), task="Do it.") as bob:
        await bob.ended()
        path = bob.session.path
    journal, last = workspace.journal, workspace.journal.last_seq()
    whole = read_steps(journal, path, as_of=last)
    versions = [step.row.version for step in whole.steps]
    assert (versions, whole.more, whole.saying) == ([*range(1, len(versions) + 1)], False, "")
    assert all(step.text for step in whole.steps)
    part = read_steps(journal, path, as_of=last, after=1, limit=2)
    assert (part.steps, part.more) == (whole.steps[1:3], True)
    early = read_steps(journal, path, as_of=whole.steps[0].row.seq)
    assert early.steps == whole.steps[:1]
    (row,) = list_sessions(journal, "bob", as_of=last)
    detail = StepDetail.of(row)
    assert (row, detail.status, detail.calls) == (whole.steps[-1].row, "done", 1)
    note = Note("bob", "llm_stream", "session", path, content="And")
    journal.append([note, note._replace(content=" so on")])
    assert read_steps(journal, path, as_of=journal.last_seq()).saying == "And so on"


async def test_a_request_comes_with_what_it_would_write_and_its_answer(
    workspace: Workspace, alice: Toolbox
) -> None:
    save = call("collab_write", filepath=PLAN, content="new", message="m", expected_version=0)
    async with running(workspace, "bob", calling(save), says("Done."), ask=["collab_write"]) as bob:
        number = await asked(workspace)
        request = find_request(workspace.journal, number)
        assert request is not None
        details = read_request(workspace.journal, request)
        (would,) = details.proposals
        assert would is not None
        assert (would.path, would.after, details.answer, details.outdated) == (PLAN, "new", None, frozenset())
        write(alice, "mine", 0)
        assert read_request(workspace.journal, request).outdated == {details.request.calls[0].id}
        dana = workspace.tools_for_human("dana")
        ok(dana, "answer_request", request=number, approved=False, reason="No.")
        await bob.ended()
    request = find_request(workspace.journal, number)
    assert request is not None
    answer = read_request(workspace.journal, request).answer
    assert answer is not None
    assert [each.reason for each in answer.decisions] == ["No."]
    assert find_request(workspace.journal, 1) is None


def test_the_output_of_a_command_comes_in_pieces_and_then_whole(workspace: Workspace) -> None:
    journal = workspace.journal
    begin = Write("bob", "run_command", "command", "t/1", "make", "make", 0)
    out = Note("bob", PRINTED, "command", "t/1", content="one\n", detail={"stream": "stdout"})
    err = out._replace(content="two\n", detail={"stream": "stderr"})
    rows = [each.row for each in journal.append([begin, out, err])]
    running_command = CommandView(rows[0], printed=rows[2])
    pieces, until = read_output(journal, running_command)
    assert pieces == (Piece("stdout", "one\n"), Piece("stderr", "two\n"))
    assert read_output(journal, running_command, after=rows[1].seq).pieces == pieces[1:]
    assert (until, read_end(journal, running_command)) == (rows[2].seq, None)
    end = Write("bob", "end_command", "command", "t/1", '{"stdout": "one", "exitCode": 2}', "make", 1)
    ((ended, _),) = journal.append([end._replace(detail={"exit_code": 2})])
    assert read_end(journal, CommandView(rows[0], ended=ended)) == CommandRecord("one", exit_code=2)
    assert CommandDetail.of(ended) == ("exited", 2)
    assert CommandDetail.of(ended).is_failure
    assert CommandDetail.of(rows[0]).ending == "running"


def test_a_task_tells_what_was_asked_for(workspace: Workspace, tmp_path: Path) -> None:
    asked_for = "Build it.\nSoon."
    task = workspace.tasks.submit("human:dana", asked_for, tmp_path / "f", TaskLimits(depth=2), "small")
    (view,) = folded(workspace.journal).tasks
    details = read_task(workspace.journal, view)
    assert (details.requirement, details.limits["depth"], details.model) == (asked_for, 2, "small")
    assert task_of(view.row) == task.id


def test_a_buffer_comes_with_its_base_and_the_choice_that_is_open(
    workspace: Workspace, alice: Toolbox
) -> None:
    write(alice, "a\nb\na\n", 0)
    ok(alice, "open_buffer", source="collab", path=PLAN)
    ok(alice, "plan_append", text="c\n")
    row = workspace.journal.head("buffer", "alice/plan")
    assert row is not None
    assert read_buffer(workspace.journal, row) == BufferText("a\nb\na\nc\n", "a\nb\na\n", None, ())
    alice.dispatch_tool_call("plan_replace", {"old_text": "a", "new_text": "x"})
    row = workspace.journal.head("buffer", "alice/plan")
    assert row is not None
    assert read_buffer(workspace.journal, row).pending == ("a", "x")


def test_the_configuration_is_that_of_the_moment(root: Path, workspace: Workspace) -> None:
    moment = workspace.journal.last_seq()
    workspace.register([Agent("dora")])
    (root / ".watchroom/config.toml").write_text("broken", encoding="utf-8")
    workspace.scan()
    last = workspace.journal.last_seq()
    assert "dora" not in read_config(workspace.journal, as_of=moment).agents
    assert "dora" in read_config(workspace.journal, as_of=last).agents


def test_a_document_is_read_as_of_a_version(workspace: Workspace, alice: Toolbox) -> None:
    schema = {"title": "lww_register"}
    ok(alice, "realtime_create_document", doc_id="doc", schema=schema)
    for value in ("one", "two"):
        ok(alice, "realtime_set_field", doc_id="doc", field_name="title", value=value)
    journal = workspace.journal
    newest = journal.head("realtime", "doc")
    assert newest is not None
    assert DocumentEdit.of(newest).value == '"two"'
    assert open_document(journal, "doc", version=2).version == 2
    assert len([*read_deltas(journal, "doc", after=1, until=3)]) == 2
    with pytest.raises(DocumentNotFound):
        open_document(journal, "other", version=1)
