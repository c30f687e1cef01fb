"""Rows written past the tools: the fold sets them aside, and reads everything else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from calls import ok
from evidence import all_rows
from projections.folding import folded, needs, write
from rules.rows import row
from watchroom import Toolbox, Workspace
from watchroom.errors import JournalDamaged, JournalUnreachable
from watchroom.features.overview.fold import Fold
from watchroom.features.overview.fold_state import load_state
from watchroom.features.people.rows import ID_ZONE
from watchroom.features.people.rules import ID_PATH
from watchroom.model import IDENTIFY, SYSTEM, Note, Row, Zone

HUMAN = "human:dana"
Content = Callable[[int], str | None]

UNREADABLE: list[tuple[str, dict[str, Any], str]] = [
    ("a zone that is not known", {"zone": "nowhere", "version": 1}, "damage_zone"),
    ("a detail that is not JSON", {"detail_json": "{dam"}, "damage_detail"),
    ("a detail that is an array", {"detail_json": "[]"}, "damage_detail"),
    ("a detail nested too deep", {"detail_json": '{"a":' * 5000 + "1" + "}" * 5000}, "damage_detail"),
    ("a look at nothing", {"actor": HUMAN, "tool": "mark_as_seen", "detail_json": "{}"}, "damage_fields"),
    (
        "a look at a need of no kind",
        {
            "actor": HUMAN,
            "tool": "mark_as_seen",
            "detail_json": '{"need": [], "row": "1", "actor": null}',
        },
        "damage_fields",
    ),
    (
        "a step of no status",
        {"zone": "session", "path": "alice/s", "version": 1, "detail_json": '{"status": []}'},
        "damage_fields",
    ),
    (
        "a request of no kind",
        {"zone": "request", "path": "alice/s/1", "version": 1, "detail_json": '{"kind": {}}'},
        "damage_fields",
    ),
    (
        "a task that ended somehow",
        {"zone": "task", "tool": "end_task", "path": "t", "version": 2, "detail_json": '{"status": 7}'},
        "damage_fields",
    ),
    (
        "an agent of no task",
        {"zone": "agent", "tool": "terminate_agent", "path": "alice", "version": 2},
        "damage_fields",
    ),
]


def _state(fold: Fold) -> dict[str, Any]:
    """What the fold kept of the rows, without what it shows of any row and without the need itself."""
    parts: dict[str, Any] = dict(load_state(fold.dump()))
    parts["fold"] = dict(parts["fold"])
    for name in ("_seq", "_time", "_recent", "_newest", "_log", "_outcomes", "_activity"):
        parts["fold"].pop(name)
    for name in ("_agents", "_timeline", "_needs"):
        parts.pop(name)
    return parts


@pytest.mark.parametrize(
    ("fields", "rule"), [each[1:] for each in UNREADABLE], ids=[each[0] for each in UNREADABLE]
)
def test_a_row_that_cannot_be_read_is_a_need_and_changes_nothing_else(
    workspace: Workspace, alice: Toolbox, fields: dict[str, Any], rule: str
) -> None:
    write(alice, "one", 0)
    rows = all_rows(workspace.journal)
    fold, other = Fold(workspace.journal.content), Fold(workspace.journal.content)
    fold.apply(rows)
    other.apply(rows)
    fold.apply([row(seq=rows[-1].seq + 1, time=rows[-1].time)._replace(**fields)])
    (need,) = fold.model().needs
    assert (need.kind, need.row.seq, need.row.error) == ("unreadable", rows[-1].seq + 1, rule)
    assert need.is_acknowledgeable
    assert fold.model().recent[0].seq == rows[-1].seq + 1
    assert [each.path for each in fold.model().files] == ["plan.md"]
    shown, expected = _state(fold), _state(other)
    assert shown == expected


def test_a_version_is_shown_though_its_detail_is_damaged() -> None:
    fold = Fold(lambda number: None)
    fold.apply([row(seq=1, path="plan.md", version=1, sha256="0" * 64)._replace(detail_json="{")])
    assert [(each.path, each.head.version) for each in fold.model().files] == [("plan.md", 1)]


def test_all_unreadable_rows_are_one_need_that_a_look_closes(workspace: Workspace, alice: Toolbox) -> None:
    write(alice, "one", 0)
    journal = workspace.journal
    journal.append([Note(HUMAN, "mark_as_seen", "collab", "a.md", detail={"need": "none"}) for _ in range(3)])
    (need,) = needs(workspace)
    assert (need.kind, need.times) == ("unreadable", 3)
    dana = workspace.tools_for_human("dana")
    ok(dana, "mark_as_seen", row=need.row.seq)
    assert needs(workspace) == []
    journal.append([Note(HUMAN, "mark_as_seen", "collab", "a.md", detail={"need": "none"})])
    assert [each.times for each in needs(workspace)] == [1]


def test_a_fault_of_a_projection_becomes_the_same_need(
    workspace: Workspace, alice: Toolbox, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(str):
        """Text that no projection can compare: stands for a defect of ours."""

        __slots__ = ()

        def partition(self, _: str) -> Any:
            raise ZeroDivisionError

    write(alice, "one", 0)
    fold = Fold(workspace.journal.content)
    first, *others = all_rows(workspace.journal)
    fold.apply(
        [first, row(seq=first.seq, zone="handoff", version=1, path=Broken("x"), sha256="0" * 64), *others]
    )
    needed = [(each.kind, each.row.error) for each in fold.model().needs]
    assert ("unreadable", "damage_fault") in needed
    assert [each.path for each in fold.model().files] == ["plan.md"]
    assert "ZeroDivisionError" in caplog.text


@pytest.mark.parametrize("zone", ["config", "workspace"])
def test_an_outage_while_a_content_is_read_leaves_no_row_half_applied(
    workspace: Workspace, zone: Zone
) -> None:
    rows = all_rows(workspace.journal)
    last = rows[-1].seq
    if zone != "config":
        identity = row(seq=last + 1, actor=SYSTEM, tool=IDENTIFY, zone=ID_ZONE, path=ID_PATH, version=1)
        rows.append(identity)
    outages = [rows[-1].seq]

    def content(number: int) -> str | None:
        if number in outages:
            outages.remove(number)
            raise JournalUnreachable(reason="gone")
        return workspace.journal.content(number)

    fold = Fold(content)
    with pytest.raises(JournalUnreachable):
        fold.apply(rows)
    fold.apply(each for each in rows if each.seq > fold.seq)
    expected = Fold(workspace.journal.content)
    expected.apply(rows)
    assert fold.dump() == expected.dump()
    assert [each.agent.id for each in fold.model().agents] == ["alice", "bob", "charlie"]


@pytest.mark.parametrize("zone", ["config", "person", "settings"])
def test_a_damaged_content_does_not_count(workspace: Workspace, zone: Zone) -> None:
    def content(number: int) -> str | None:
        if number > last:
            raise JournalDamaged
        return workspace.journal.content(number)

    rows = all_rows(workspace.journal)
    last = rows[-1].seq
    damaged: Row = row(seq=last + 1, actor=HUMAN, zone=zone, path="config.toml", version=9, sha256="0" * 64)
    fold = Fold(content)
    fold.apply([*rows, damaged])
    assert fold.model().agents == folded(workspace.journal).agents
