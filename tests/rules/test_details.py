"""What the details of rows say, and that what they do not say, or say in another type, is nothing."""

from __future__ import annotations

from typing import Any

import pytest
from rules.rows import row
from watchroom.features.budgets.rows import (
    UsageRecord,
    UsageTotal,
    is_subagent_step,
    parent_of,
    usage_detail,
    usage_of,
)
from watchroom.kernel.rules import details
from watchroom.kernel.rules.details import BufferDetail, CommandDetail, DocumentEdit, StepDetail

STEP = {
    "status": "running",
    "step": 3,
    "tokens": [10, 2],
    "cached": [4, 5],
    "estimated": 6,
    "calls": 7,
    "seconds": 1.5,
    "error": "code",
    "mail": 8,
    "cost": 0.25,
    "unpriced": 9,
}


def test_a_step_tells_of_its_session() -> None:
    step = StepDetail.of(row(STEP))
    assert step == StepDetail("running", 3, 10, 2, 6, 7, 1.5, "code", 8, 4, 5, 0.25, 9)
    assert step.tokens == 12
    assert StepDetail.of(row()) == StepDetail("idle", 0, 0, 0, 0, 0, 0.0, "", None, 0, 0, 0.0, 0)
    assert StepDetail.of(row({"seconds": 2, "cost": 1})) == StepDetail("idle", seconds=2.0, cost=1.0)


@pytest.mark.parametrize(
    "detail",
    [
        dict.fromkeys(list(STEP)[1:], "x"),
        dict.fromkeys(list(STEP)[1:]),
        {"step": True, "estimated": True, "calls": True, "mail": True, "unpriced": False},
        {"tokens": [1], "cached": [1, 2, 3]},
        {"tokens": {"0": 1, "1": 2}, "cached": ["1", "2"]},
        {"error": 5},
        [],
    ],
)
def test_what_a_step_says_in_another_type_it_does_not_say(detail: Any) -> None:
    found = StepDetail.of(row(detail))
    assert found == StepDetail("idle", error="x" if "x" in str(detail) and "error" in detail else "")


@pytest.mark.parametrize(
    ("detail", "version", "ending", "code", "is_failure"),
    [
        (None, 1, "running", None, False),
        (None, 2, "failed", None, True),
        (None, 3, "running", None, False),
        ({"exit_code": 0}, 2, "exited", 0, False),
        ({"exit_code": 1}, 2, "exited", 1, True),
        ({"exit_code": True}, 1, "running", None, False),
        ({"timed_out": True, "exit_code": 0}, 2, "timed_out", 0, True),
        ({"stopped": True}, 2, "stopped", None, True),
        ({"interrupted": True}, 2, "interrupted", None, True),
        ({"interrupted": False, "exit_code": 0}, 2, "exited", 0, False),
        ({"interrupted": True, "timed_out": True}, 2, "timed_out", None, True),
    ],
)
def test_how_a_command_stands(
    detail: Any, version: int, ending: str, code: int | None, is_failure: bool
) -> None:
    found = CommandDetail.of(row(detail, zone="command", version=version))
    assert (found.ending, found.exit_code, found.is_failure) == (ending, code, is_failure)


def test_what_was_done_to_a_document() -> None:
    said = {"op": "insert", "field": "body", "added": 3, "removed": 2, "amount": 1}
    assert DocumentEdit.of(row(said)) == DocumentEdit("insert", "body", 3, 2, 1)
    assert DocumentEdit.of(row({"key": 1, "element": 2, "value": None})) == DocumentEdit(
        "", "", key="1", element="2", value="None"
    )
    assert DocumentEdit.of(row({"added": "3", "removed": True})) == DocumentEdit("", "")


@pytest.mark.parametrize(
    ("path", "tool", "version", "sha256", "detail", "told"),
    [
        ("alice/plan", "plan_replace", 2, "x", None, ("plan", "replace", False, False)),
        ("alice/plan", "plan_flush", 2, "x", {"pending": 2}, ("plan", "flush", False, True)),
        ("alice/plan", "plan_flush", 3, "x", {"pending": 2}, ("plan", "flush", False, False)),
        ("alice/plan", "plan_flush", None, None, None, ("plan", "flush", False, False)),
        ("alice/plan", "close_buffer", 4, None, None, ("plan", "close_buffer", True, False)),
    ],
)
def test_what_was_done_to_a_buffer(
    path: str, tool: str, version: int | None, sha256: str | None, detail: Any, told: tuple[object, ...]
) -> None:
    found = BufferDetail.of(row(detail, path=path, tool=tool, version=version, sha256=sha256))
    assert found == told


@pytest.mark.parametrize(
    ("ask", "fields", "detail", "answer"),
    [
        (details.request_number, {}, None, 7),
        (details.request_number, {}, {"request": 3}, 3),
        (details.request_number, {}, {"request": "3"}, 7),
        (details.request_outcome, {}, {"outcome": "approved"}, "approved"),
        (details.request_outcome, {}, {"outcome": 1}, ""),
        (details.request_outcome, {}, None, ""),
        (details.task_end_status, {"tool": "end_task"}, {"status": "failed"}, "failed"),
        (details.task_end_status, {"tool": "end_task"}, None, "done"),
        (details.task_end_status, {"tool": "collab_write"}, {"status": "done"}, "cancelled"),
        (details.task_of, {"zone": "agent"}, {"task": "t1"}, "t1"),
        (details.task_of, {"zone": "agent", "path": "t2/a"}, None, ""),
        (details.task_of, {"zone": "task", "path": "t1"}, None, "t1"),
        (details.task_of, {"zone": "file", "path": "t1/a/b"}, None, "t1"),
        (details.task_of, {"zone": "command", "path": "t1/c"}, {"task": "t2"}, "t1"),
        (details.task_of, {"zone": "collab", "path": "t1/c"}, {"task": "t2"}, ""),
        (details.spawned_role, {}, {"role": "tester"}, "tester"),
        (details.spawned_role, {}, None, ""),
        (details.met_version, {"base": 4}, {"current": 5}, 5),
        (details.met_version, {"base": 4}, {"current": 0}, 0),
        (details.met_version, {"base": 4}, None, 4),
        (details.met_version, {}, None, None),
        (details.lease_end, {}, {"until": 5}, 5_000_000),
        (details.lease_end, {}, None, 0),
        (details.output_stream, {}, {"stream": "stderr"}, "stderr"),
        (details.output_stream, {}, {"stream": "other"}, "stdout"),
        (details.output_stream, {}, None, "stdout"),
        (details.size_without_text, {"zone": "file"}, {"size": 9}, 9),
        (details.size_without_text, {"zone": "file"}, None, None),
        (details.size_without_text, {"zone": "repo"}, {"size": 9}, 9),
        (details.size_without_text, {"zone": "collab"}, {"size": 9}, None),
        (details.size_without_text, {"zone": "of a newer version"}, {"size": 9}, None),
    ],
)
def test_what_a_row_says_in_one_word(ask: Any, fields: dict[str, Any], detail: Any, answer: object) -> None:
    assert ask(row(detail, **fields)) == answer


USAGE = UsageTotal(1, 2, 3, 4, 0.5, 6, "client")


def test_what_a_step_used_is_said_and_read_again() -> None:
    priced = UsageRecord("model", USAGE._replace(unpriced=0))
    for record in (priced, UsageRecord("model", USAGE._replace(cost=0.0, priced_by=""))):
        assert usage_of(row({"used": usage_detail(record)})) == record
    # Steps of version 0.2.0 call tokens with a price unpriced as well.
    assert usage_of(row({"used": usage_detail(UsageRecord("model", USAGE))})) == priced
    assert usage_detail(UsageRecord("", UsageTotal(output=2))) == {"output": 2}
    assert (USAGE.tokens, USAGE.known_cost) == (10, 0.5)
    assert UsageTotal(unpriced=1).known_cost is None
    assert UsageTotal(unpriced=1, priced_by="table").known_cost == 0.0
    assert UsageTotal().known_cost == 0.0


@pytest.mark.parametrize("detail", [None, {"used": 5}, {"used": None}, {"other": {"input": 1}}])
def test_a_step_that_says_nothing_of_it_used_nothing_that_is_known(detail: Any) -> None:
    assert usage_of(row(detail)) is None


def test_what_was_used_in_another_type_counts_as_nothing() -> None:
    used = {"input": True, "output": "2", "cost": "0.5", "priced_by": "me", "model": 5, "unpriced": None}
    assert usage_of(row({"used": used})) == UsageRecord("", UsageTotal())
    assert usage_of(row({"used": {"cost": 1, "priced_by": "table"}})) == UsageRecord(
        "", UsageTotal(cost=1.0, priced_by="table")
    )


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        ("", "", ""),
        ("client", "", "client"),
        ("", "table", "table"),
        ("client", "client", "client"),
        ("client", "table", "both"),
        ("both", "table", "both"),
    ],
)
def test_totals_are_added_and_taken_away(one: Any, other: Any, both: str) -> None:
    sum_of_both = USAGE._replace(priced_by=one).plus(UsageTotal(10, 20, 30, 40, 0.25, 60, other))
    assert sum_of_both == (11, 22, 33, 44, 0.75, 66, both)
    assert sum_of_both.minus(USAGE) == (10, 20, 30, 40, 0.25, 60, both)
    assert UsageTotal(cost=0.1).minus(UsageTotal(cost=0.2)).cost == 0.0


def test_a_subagents_step_names_the_session_that_called_it() -> None:
    step = row({"parent": "alice/s1"})
    assert (is_subagent_step(step), parent_of(step)) == (True, "alice/s1")
    for other in (row(), row({"parent": 5}), row({"parents": "alice/s1"})):
        assert (is_subagent_step(other), parent_of(other)) == (False, "")
