"""The calls of an attached client's own tools are operations of its agent, by the rows of its session."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from projections.folding import folded
from watchroom import Row, Workspace
from watchroom.agents.clients.events import (
    CallFinished,
    CallStarted,
    ClientInfo,
    MessageCompleted,
    PromptSubmitted,
    TurnEnded,
)
from watchroom.agents.clients.session import ClientSession
from watchroom.features.overview.client_files import MAX_FILES
from watchroom.features.overview.fold import Fold
from watchroom.features.overview.model import Model
from watchroom.features.overview.reads import read_client_call
from watchroom.features.reverts.rules import ClientEdit, RevertSelection
from watchroom.features.sessions.rows import client_call, describe_client_call
from watchroom.history.report import read_report
from watchroom.kernel.journal import RowFilter
from watchroom.kernel.reads import read_activity
from watchroom.model import CLIENT_CALL, CLIENT_DENIED, Json, Write, outcome_of

PROJECT = "/project"


def begin(workspace: Workspace, agent: str = "alice", session: str = "s-1") -> ClientSession:
    return ClientSession(workspace, agent, session, ClientInfo("claude", cwd=PROJECT))


def call(
    session: ClientSession,
    number: int,
    tool: str,
    *,
    result: str = "ok",
    is_error: bool = False,
    refusal: str = "",
    **arguments: Json,
) -> Row:
    """A call of a client's tool, as hooks before and after it report it."""
    given = json.dumps(arguments)
    session.record(CallStarted(f"c{number}", tool, given))
    row = session.record(CallFinished(f"c{number}", result, is_error, refusal, tool, given))
    assert row is not None
    return row


def edit(session: ClientSession, number: int, path: str = "/project/src/a.py", **more: Any) -> Row:
    return call(session, number, "Edit", file_path=path, old_string="x = 1\n", new_string="x = 2\n", **more)


def seen(workspace: Workspace) -> Model:
    workspace.flush()
    return folded(workspace.journal)


def test_calls_are_operations_and_other_steps_are_not(workspace: Workspace) -> None:
    session = begin(workspace)
    session.record(PromptSubmitted("Fix it"))
    call(session, 1, "Read", file_path="/project/src/a.py")
    edited = edit(session, 2)
    call(session, 3, "Bash", command="make test", is_error=True, result="exit 2")
    session.record(MessageCompleted("Done."))
    session.record(TurnEnded())
    model = seen(workspace)
    view = model.agent("alice")
    assert view is not None
    assert (view.rows, view.refused, view.client_calls, view.client_edits) == (3, 0, 3, 1)
    assert sum(view.activity.values()) == 3
    assert [shown.about for row in model.recent if (shown := client_call(row))] == [
        "make test",
        "src/a.py",
        "src/a.py",
    ]
    assert view.last_act is not None
    assert client_call(view.last_act) == describe_client_call(
        "Bash", '{"command": "make test"}', outcome="failed", reason="exit 2"
    )
    assert [file.path for file in model.client_files] == ["src/a.py"]
    assert model.client_files[0].row == edited


def test_a_call_of_our_own_tools_counts_once(workspace: Workspace) -> None:
    call(begin(workspace), 1, "mcp__watchroom__collab_write", path="plan.md", content="x")
    model = seen(workspace)
    view = model.agent("alice")
    assert view is not None
    assert (view.rows, view.client_calls, view.last, model.client_files) == (0, 0, None, ())


def test_a_refused_call_is_a_refusal_and_edits_nothing(workspace: Workspace) -> None:
    session = begin(workspace)
    row = edit(session, 1, is_error=True, refusal="rejected", result="Not on a Friday.")
    model = seen(workspace)
    view, told = model.agent("alice"), client_call(row)
    assert view is not None
    assert told is not None
    assert (view.refused, view.client_edits, model.outcomes["denied"]) == (1, 0, 1)
    assert (told.outcome, told.error, told.reason) == ("denied", "rejected", "Not on a Friday.")
    assert (row.tool, outcome_of(row), row.outcome) == (CLIENT_DENIED, "denied", "ok")
    assert model.client_files == ()
    assert model.timeline.columns[-1].markers[1] == 1, "a failure on the time line"
    assert view.status(row.time) == "running"
    report = read_report(workspace.journal, 0, workspace.journal.last_seq())
    assert report.refused == (row,)


def test_the_journal_lists_calls_among_operations(workspace: Workspace) -> None:
    session = begin(workspace)
    done, refused = edit(session, 1), edit(session, 2, refusal="policy_denied")
    journal = workspace.journal
    last = journal.last_seq()
    own = RowFilter(actor="alice", steps=False)
    assert journal.rows_before(last + 1, only=own) == [refused, done]
    assert journal.rows_before(last + 1, only=own._replace(outcome="denied")) == [refused]
    assert journal.rows_before(last + 1, only=own._replace(outcome="ok")) == [done]
    assert read_activity(journal, "alice", as_of=last) == (refused, done)


def test_a_report_counts_the_calls_of_its_time(workspace: Workspace) -> None:
    session = begin(workspace)
    edit(session, 1)
    after = workspace.journal.last_seq()
    edit(session, 2)
    call(session, 3, "Bash", command="ls")
    (alice,) = read_report(workspace.journal, after, workspace.journal.last_seq()).actors
    assert (alice.actor, alice.client_calls, alice.client_edits, alice.versions) == ("alice", 2, 1, 0)


def test_a_revert_lists_the_edits_that_it_cannot_take_back(workspace: Workspace) -> None:
    edit(begin(workspace), 1)
    other = begin(workspace, "bob", "s-2")
    edit(other, 1)
    edit(other, 2)
    edit(other, 3, "/project/b.py", refusal="rejected")
    plan = workspace.reverts.plan(RevertSelection())
    assert plan.client_edits == (
        ClientEdit("alice", "src/a.py", PROJECT, 1),
        ClientEdit("bob", "src/a.py", PROJECT, 2),
    )
    assert dict(plan.not_reverted) == {"client_edit": 3}
    assert workspace.reverts.plan(RevertSelection(("alice",))).client_edits == plan.client_edits[:1]
    assert plan.paths == ()


def test_the_difference_of_a_call_is_what_the_client_reported(workspace: Workspace) -> None:
    session = begin(workspace)
    hunk = {"oldStart": 7, "oldLines": 1, "newStart": 7, "newLines": 1, "lines": ["-x = 1", "+x = 2"]}
    reported = edit(session, 1, result=json.dumps({"structuredPatch": [hunk]}))
    by_passage = edit(session, 2)
    written = call(session, 3, "Write", file_path="/project/new.md", content="# New\n")
    patch = "*** Begin Patch\n*** Update File: src/c.py\n-old\n+new\n*** End Patch"
    patched = call(session, 4, "apply_patch", input=patch)
    differences = [read_client_call(workspace.journal, row).difference for row in (reported, by_passage)]
    assert differences[0].split("\n")[2:] == ["@@ -7,1 +7,1 @@", "-x = 1", "+x = 2"]
    assert [line for line in differences[1].split("\n")[2:] if line[:1] in "+-"] == ["-x = 1", "+x = 2", ""]
    assert "+# New" in read_client_call(workspace.journal, written).difference
    assert read_client_call(workspace.journal, patched).difference == patch
    told = client_call(patched)
    assert told is not None
    assert told.paths == ("src/c.py",)


def test_two_folders_have_files_of_their_own(workspace: Workspace) -> None:
    edit(begin(workspace), 1)
    elsewhere = ClientSession(workspace, "bob", "s-2", ClientInfo("claude", cwd="/other"))
    edit(elsewhere, 1, "/other/src/a.py")
    edit(elsewhere, 2)
    found = [(file.path, file.folder, file.agents) for file in seen(workspace).client_files]
    assert found == [
        ("/project/src/a.py", "/other", ("bob",)),
        ("src/a.py", "/other", ("bob",)),
        ("src/a.py", PROJECT, ("alice",)),
    ]


def test_a_journal_of_before_is_read_as_it_was(workspace: Workspace) -> None:
    """Calls ended with rows of the tool ``client_event`` then, which say nothing of the call in their detail."""
    session = begin(workspace)
    session.record(CallStarted("c1", "Edit", '{"file_path": "a"}'))
    row = session.record(CallFinished("c1", "ok"))
    assert row is not None
    journal = workspace.journal
    detail: dict[str, Json] = {"status": "running", "step": 9, "calls": 2}
    journal.append([Write("alice", "client_event", "session", row.path, "{}", "Edit a", detail=detail)])
    model = seen(workspace)
    view = model.agent("alice")
    assert view is not None
    assert (view.rows, view.session is not None and view.session.status) == (1, "running")


@pytest.mark.parametrize(
    "detail",
    [
        {},
        {"call": None},
        {"call": ["Edit"]},
        {"call": {"tool": 3, "kind": "rm", "paths": [1, None, "", ["a"]], "outcome": "great", "about": {}}},
        {"call": {"tool": "x" * 10_000, "kind": "edit", "paths": ["../" * 3000], "left_out": -4}},
    ],
    ids=str,
)
def test_no_row_of_a_call_ends_the_fold(workspace: Workspace, detail: dict[str, Json]) -> None:
    journal = workspace.journal
    path = "alice/s-9"
    journal.append(
        [Write("alice", CLIENT_CALL, "session", path, "{", detail={"status": "running", **detail})]
    )
    (row,) = journal.rows_before(journal.last_seq() + 1, limit=1)
    told = client_call(row)
    assert told is not None
    assert len(told.tool) <= 100
    view = seen(workspace).agent("alice")
    assert view is not None
    assert view.rows == 1
    assert read_client_call(journal, row).difference == ""


def test_what_a_client_sends_is_bounded_in_the_row(workspace: Workspace) -> None:
    session = begin(workspace)
    tool, path = "Edit\x1b[31m" + "t" * 5000, "/project/" + "p" * 5000 + "\n[bold]\ud800"
    paths: list[Json] = [f"{path}{number}" for number in range(300)]
    row = call(session, 1, tool, file_path=path, files=paths, content="z" * 100_000, result="r" * 100_000)
    told = client_call(row)
    assert told is not None
    assert len(row.detail_json) < 30_000
    assert len(row.message) <= 201
    assert told.left_out > 0
    assert len(told.tool) <= 100
    assert "\n" not in told.about
    assert len(seen(workspace).client_files) == len(told.paths)
    plan = workspace.reverts.plan(RevertSelection())
    assert len(plan.client_edits) == len(told.paths) + 1
    assert plan.client_edits[-1].path == "…"


def test_ten_thousand_calls_are_folded_in_linear_time_and_bounded_memory(workspace: Workspace) -> None:
    session = begin(workspace)
    model_row = edit(session, 1)
    rows = [
        model_row._replace(
            seq=model_row.seq + number,
            version=(model_row.version or 0) + number,
            time=model_row.time + number * 10**7,
            detail_json=model_row.detail_json.replace("src/a.py", f"src/{number}.py"),
        )
        for number in range(1, 20_001)
    ]
    workspace.flush()
    fold = Fold(workspace.journal.content, workspace.journal.row)
    fold.apply(workspace.journal.rows(limit=1000))
    spent = []
    for half in (rows[:10_000], rows[10_000:]):
        begun = time.process_time()
        fold.apply(half)
        fold.model()
        spent.append(time.process_time() - begun)
    model = fold.model()
    view = model.agent("alice")
    assert view is not None
    assert (view.client_calls, len(model.client_files), len(model.recent)) == (20_001, MAX_FILES, 400)
    assert spent[1] < 3 * spent[0] + 0.5


def test_a_fold_that_was_kept_goes_on_with_the_files(workspace: Workspace) -> None:
    session = begin(workspace)
    edit(session, 1)
    workspace.flush()
    journal = workspace.journal
    fold = Fold(journal.content, journal.row)
    fold.apply(journal.rows())
    kept = Fold.load(journal.content, journal.row, json.loads(json.dumps(fold.dump())))
    assert kept.model().client_files == fold.model().client_files
    edit(session, 2)
    workspace.flush()
    kept.apply(journal.rows(kept.seq))
    assert [(file.path, file.edits) for file in kept.model().client_files] == [("src/a.py", 2)]
