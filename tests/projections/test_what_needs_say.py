"""For any rows, at each row of them and at any time after it: what the needs say is true, each thing that waits
is one need, and ``watchroom show`` lists what the dashboard counts."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Final

import pytest
from effort import rounds
from evidence import all_rows
from hypothesis import given, settings
from hypothesis import strategies as st
from watchroom import Json, Workspace
from watchroom.features.overview.fold import Fold
from watchroom.features.overview.model import Model, Need, urgent_needs
from watchroom.model import Row, timestamp
from watchroom.texts import catalogue
from watchroom_cli.watch.views import view_of

SECOND: Final = 1_000_000_000
NOON: Final = 1_767_268_800 * SECOND
AGENTS: Final = ("alice", "bob", "charlie")
WORDS: Final = catalogue("en", "watchroom_tui.texts")


def work(workspace: Workspace, root: Path, rng: Random) -> None:
    """Agents who write what they may and may not, and hand things over; hands that edit; nobody who settles."""
    for _ in range(80):
        agent, other = rng.sample(AGENTS, 2)
        box = workspace.tools(agent)
        match rng.choices(
            ("write", "denied", "deliver", "take", "own", "hand", "settle"), (9, 6, 3, 1, 1, 1, 1)
        )[0]:
            case "write":
                path, expected = rng.choice("abc") + ".md", rng.choice((-1, 0, 1, 2, 3))
                given: dict[str, Json] = {
                    "filepath": path,
                    "content": str(rng.random()),
                    "message": "m",
                    "expected_version": expected,
                }
                box.dispatch_tool_call("collab_write", given)
            case "denied":
                for name in rng.choices(("../a", "../b"), k=4):
                    box.dispatch_tool_call("save_to_my_workspace", {"filename": name, "content": ""})
            case "deliver":
                given = {"to_agent": other, "filename": rng.choice("xy"), "content": "x", "message": "m"}
                box.dispatch_tool_call("handoff_file", given)
            case "take":
                box.dispatch_tool_call(
                    "acknowledge_handoff", {"from_agent": other, "filename": rng.choice("xy")}
                )
            case "own":
                box.dispatch_tool_call("save_to_my_workspace", {"filename": "own.md", "content": ""})
            case "hand":
                if (file := root / "collaborative/current/a.md").exists():
                    file.write_text(str(rng.random()), encoding="utf-8")
                    workspace.scan()
            case "settle":
                given = {"filepath": "a.md", "content": "", "message": "m", "expected_version": -1}
                workspace.tools_for_human("dana").dispatch_tool_call("collab_write", given)


class Past:
    """Rows that outlive their workspace."""

    def __init__(self, workspace: Workspace) -> None:
        self.rows: list[Row] = all_rows(workspace.journal)
        self._contents = {each.seq: workspace.journal.content(each.seq) for each in self.rows}

    def fold(self) -> Fold:
        return Fold(lambda seq: self._contents[seq])


@pytest.fixture(scope="module")
def pasts() -> list[Past]:
    made = []
    for seed in range(rounds(5, 8)):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder, "team")
            with Workspace.open(root, agents=AGENTS) as workspace:
                work(workspace, root, Random(seed))
                made.append(Past(workspace))
    return made


def refused_in_a_row(rows: Sequence[Row], need: Need) -> int:
    count = 0
    for row in reversed(rows):
        if row.actor == need.agent and row.outcome == "ok":
            break
        is_it = (row.actor, row.zone, row.path) == (need.agent, need.row.zone, need.row.path)
        count += is_it and row.outcome == "denied"
    return count


def is_true(need: Need, rows: Sequence[Row], now: int) -> None:
    assert need.row in rows
    head = next((each for each in reversed(rows) if each.version and each.path == need.row.path), None)
    if need.kind == "conflict":
        assert need.against == (head.actor if head else "")
    elif need.kind == "denied":
        assert need.times == refused_in_a_row(rows, need)
    elif need.kind in ("handoff", "stalled"):
        assert head == need.row
    if need.kind == "stalled":
        assert all(now - each.time >= 300 * SECOND for each in rows if each.actor == need.agent)


def agree(model: Model, needs: Sequence[Need]) -> None:
    listed = view_of(model, "needs", WORDS, timestamp)
    assert [(each["kind"], each["row"]) for each in listed] == [(each.kind, each.row.seq) for each in needs]


@settings(max_examples=rounds(30, 60))
@given(data=st.data())
def test_what_needs_say_is_true_and_each_thing_is_counted_once(
    pasts: list[Past], data: st.DataObject
) -> None:
    past = data.draw(st.sampled_from(pasts))
    apart = data.draw(st.sampled_from((1, 40, 150, 400)))
    fold = past.fold()
    rows: list[Row] = []
    for number, row in enumerate(past.rows):
        rows.append(row._replace(time=NOON + number * apart * SECOND))
        fold.apply(rows[-1:])
        now = rows[-1].time + data.draw(st.sampled_from((0, 130, 310))) * SECOND
        model = fold.model()._replace(time=now)
        needs = urgent_needs(model, now)
        assert len({each.row.seq for each in needs}) == len(needs), "one thing is one need"
        assert len({each.identity for each in needs}) == len(needs)
        for need in needs:
            is_true(need, rows, now)
        agree(model, needs)


def test_the_random_work_makes_needs_of_each_kind(pasts: list[Past]) -> None:
    found = set()
    for past in pasts:
        fold = past.fold()
        fold.apply(past.rows)
        model = fold.model()
        found |= {each.kind for each in urgent_needs(model, model.time + 400 * SECOND)}
    assert found >= {"conflict", "outside", "unchecked", "denied", "stalled", "handoff"}
