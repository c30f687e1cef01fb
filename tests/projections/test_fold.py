"""What rows mean: the roster, deliveries and files, folded in any chunking."""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from calls import ok, refused
from effort import rounds
from evidence import all_rows
from hypothesis import given, settings
from hypothesis import strategies as st
from memory_journal import MemoryJournal
from projections.folding import (
    PLAN,
    acknowledge,
    deliver,
    denied,
    folded,
    shared_path,
    stale_write,
    write,
)
from watchroom import Agent, Row, Toolbox, Workspace
from watchroom.features.handoffs.view import MAX_ACKNOWLEDGED
from watchroom.features.overview.fold import Fold
from watchroom.features.overview.model import Model
from watchroom.kernel.journal import Journal
from watchroom.model import Json, Note, Write

# -- the roster


def test_the_roster_is_what_the_config_rows_say(workspace: Workspace) -> None:
    workspace.register([Agent("dora", role="editor", layer="mid", supervisor="alice")])
    model = folded(workspace.journal)
    assert [view.agent.id for view in model.agents] == ["alice", "bob", "charlie", "dora"]
    dora = model.agent("dora")
    assert dora is not None
    assert dora.agent == Agent("dora", role="editor", layer="mid", supervisor="alice")
    assert (dora.last, dora.rows) == (None, 0)


def test_an_agent_added_to_the_config_by_hand_is_on_the_roster_and_others_keep_what_they_did(
    root: Path, workspace: Workspace, alice: Toolbox
) -> None:
    ok(alice, "save_to_my_workspace", filename="x", content="")
    config = root / ".watchroom/config.toml"
    config.write_text(
        config.read_text(encoding="utf-8") + '\n[agents.dora]\nlayer = "top"\n', encoding="utf-8"
    )
    assert workspace.scan()
    model = folded(workspace.journal)
    dora, known = model.agent("dora"), model.agent("alice")
    assert dora is not None
    assert dora.agent.layer == "top"
    assert known is not None
    assert (known.rows, known.last.tool if known.last else "") == (1, "save_to_my_workspace")


def test_a_config_broken_by_hand_leaves_the_roster_as_it_was(root: Path, workspace: Workspace) -> None:
    (root / ".watchroom/config.toml").write_text("agents = 3", encoding="utf-8")
    assert workspace.scan()
    assert [view.agent.id for view in folded(workspace.journal).agents] == ["alice", "bob", "charlie"]


def test_an_agents_view_counts_its_rows_and_those_that_were_refused(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    write(alice, "one", 0)
    stale_write(bob, 0)
    denied(bob, 1)
    model = folded(workspace.journal)
    view = model.agent("bob")
    assert view is not None
    assert (view.rows, view.refused) == (2, 2)
    assert view.last is not None
    assert view.last.outcome == "denied"
    assert view.status(view.last.time) == "running", "a refused call does not stop an agent"
    assert view.status(view.last.time + 31_000_000_000) == "idle"
    assert model.outcomes == {"ok": all_rows(workspace.journal)[-1].seq - 2, "conflict": 1, "denied": 1}


# -- deliveries and files


def test_a_delivery_is_marked_read_and_acknowledged_by_its_receiver_only(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    def marks() -> list[tuple[str, bool, bool]]:
        workspace.flush()
        deliveries = folded(workspace.journal).deliveries
        return [(each.filename, each.read, each.acknowledged is not None) for each in deliveries]

    deliver(alice, name="one.md")
    deliver(alice, name="two.md")
    assert marks() == [("two.md", False, False), ("one.md", False, False)]
    ok(bob, "check_my_handoffs")
    assert marks() == [("two.md", False, False), ("one.md", False, False)], "the list is not the file"
    ok(bob, "read_handoff", from_agent="alice", filename="one.md")
    assert marks() == [("two.md", False, False), ("one.md", True, False)]
    acknowledge(bob, name="one.md")
    assert marks() == [("two.md", False, False), ("one.md", True, True)]
    deliver(alice, name="one.md", content="newer")
    assert marks() == [("one.md", False, False), ("two.md", False, False)]


def test_acknowledging_without_reading_first_counts_as_read(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    deliver(alice)
    acknowledge(bob)
    (delivery,) = folded(workspace.journal).deliveries
    assert delivery.read
    assert delivery.acknowledged is not None
    assert delivery.acknowledged.actor == "bob"
    assert (delivery.sender, delivery.receiver, delivery.filename) == ("alice", "bob", "raw.md")


def test_a_file_counts_its_open_conflicts(
    workspace: Workspace, alice: Toolbox, bob: Toolbox, charlie: Toolbox, conflict: int
) -> None:
    stale_write(bob, 1)
    stale_write(charlie, 1)
    write(alice, "three", 2)
    write(alice, "one", 0, "b.md")
    fold = Fold(workspace.journal.content, workspace.journal.row)
    fold.apply(workspace.journal.rows())
    before = fold.model().files
    assert [(file.path, file.head.version, file.conflicts) for file in before] == [
        ("b.md", 1, 0),
        (PLAN, 3, 2),
    ]
    ok(
        workspace.tools_for_human("dana"),
        "dismiss_conflict",
        conflict=folded(workspace.journal).conflicts[0].id,
    )
    write(bob, "four", 3)
    fold.apply(workspace.journal.rows(fold.seq))
    after = fold.model().files
    assert [(file.path, file.head.version, file.conflicts) for file in after] == [
        ("b.md", 1, 0),
        (PLAN, 4, 0),
    ]
    assert after[0] is before[0]


def test_a_refused_first_write_makes_no_file(workspace: Workspace, alice: Toolbox) -> None:
    refused(alice, "collab_write", filepath="../x", content="", message="")
    refused(alice, "collab_write", filepath="none.md", content="", message="", expected_version=3)
    assert folded(workspace.journal).files == ()


# -- what does not change


def test_parts_that_a_row_does_not_touch_are_the_same_objects(
    workspace: Workspace, alice: Toolbox, bob: Toolbox, conflict: int
) -> None:
    deliver(alice)
    fold = Fold(workspace.journal.content, workspace.journal.row)

    def taken_in() -> Model:
        workspace.flush()
        fold.apply(all_rows(workspace.journal, fold.seq))
        return fold.model()

    before = taken_in()
    assert fold.model() is before, "no new row, no new model"
    ok(alice, "save_to_my_workspace", filename="x", content="")
    after = taken_in()
    assert after is not before
    assert after.files is before.files
    assert after.deliveries is before.deliveries
    assert after.needs is before.needs
    assert after.agent("bob") is before.agent("bob")
    assert after.agent("alice") is not before.agent("alice")
    write(alice, "three", 2)
    moved = taken_in()
    assert moved.files is not after.files
    assert moved.deliveries is after.deliveries
    write(alice, "one", 0, "b.md")
    more = taken_in()
    assert more.files[1] is moved.files[0], "the file that was not written is the same object"
    deliver(alice, name="two.md")
    delivered = taken_in()
    assert delivered.files is more.files
    assert delivered.deliveries[1] is more.deliveries[0]


def test_a_model_given_out_does_not_change_afterwards(
    workspace: Workspace, alice: Toolbox, conflict: int
) -> None:
    fold = Fold(workspace.journal.content, workspace.journal.row)
    fold.apply(all_rows(workspace.journal))
    model = fold.model()
    before = (model.seq, dict(model.outcomes), dict(model.activity), model.recent, model.agents)
    ok(alice, "save_to_my_workspace", filename="x", content="")
    denied(alice, 1)
    fold.apply(all_rows(workspace.journal, fold.seq))
    fold.model()
    assert (model.seq, dict(model.outcomes), dict(model.activity), model.recent, model.agents) == before


def test_the_model_carries_the_newest_rows_newest_first_and_no_more_than_400(workspace: Workspace) -> None:
    workspace.journal.append([Note("alice", "collab_list", "collab", "") for _ in range(450)])
    model = folded(workspace.journal)
    last = workspace.journal.last_seq()
    assert [row.seq for row in model.recent] == list(range(last, last - 400, -1))


# -- any chunking, any moment, over real work


def some_work(workspace: Workspace, root: Path, seed: int, steps: int = 60) -> None:
    """Agents, a person and a hand at the files doing whatever comes, much of it refused."""
    chance = random.Random(seed)
    agents = ["alice", "bob", "charlie"]
    boxes = {agent: workspace.tools(agent) for agent in agents}
    human = workspace.tools_for_human("dana")

    def once() -> None:
        agent, other = chance.sample(agents, 2)
        tools, path = boxes[agent], chance.choice(("plan.md", "folder/report.md"))
        match chance.randrange(9):
            case 0 | 1:
                expected = chance.choice((-1, 0, 1, 2, 3))
                arguments = {"filepath": path, "content": str(chance.random()), "message": "m"}
                tools.dispatch_tool_call("collab_write", {**arguments, "expected_version": expected})
            case 2:
                tools.dispatch_tool_call("collab_read", {"filepath": path})
                tools.dispatch_tool_call("collab_write", {"filepath": path, "content": "c", "message": "m"})
            case 3:
                name = chance.choice(("a.md", "b.md"))
                arguments = {"to_agent": other, "filename": name, "content": str(chance.random())}
                tools.dispatch_tool_call("handoff_file", {**arguments, "message": "m"})
            case 4:
                tool = chance.choice(("read_handoff", "acknowledge_handoff"))
                tools.dispatch_tool_call(tool, {"from_agent": other, "filename": "a.md"})
            case 5:
                tools.dispatch_tool_call("save_to_my_workspace", {"filename": "../x", "content": ""})
            case 6:
                human.dispatch_tool_call("collab_rollback", {"filepath": path, "to_version": 1})
            case 7:
                if (file := shared_path(root, path)).exists():
                    file.write_text(f"by hand {chance.random()}", encoding="utf-8")
                    workspace.scan()
            case _:
                workspace.register([Agent(f"late{chance.randrange(3)}", layer="mid")])

    for _ in range(steps):
        once()
    workspace.flush()


class Past:
    """What a workspace left behind: its rows, and the contents that the fold asks for."""

    def __init__(self, journal: Journal) -> None:
        self.rows: list[Row] = all_rows(journal)
        self._contents = {row.seq: journal.content(row.seq) for row in self.rows if row.zone == "config"}

    def fold(self) -> Fold:
        return Fold(lambda seq: self._contents[seq])

    def reload(self, dumped: Json) -> Fold:
        return Fold.load(lambda seq: self._contents[seq], lambda seq: None, dumped)


@pytest.fixture(scope="module")
def pasts() -> list[Past]:
    made = []
    for seed in range(6):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder, "team")
            with Workspace.open(root, agents=["alice", "bob", "charlie"]) as workspace:
                some_work(workspace, root, seed)
                made.append(Past(workspace.journal))
    return made


def test_the_random_work_is_worth_folding(pasts: list[Past]) -> None:
    models = []
    for past in pasts:
        fold = past.fold()
        fold.apply(past.rows)
        models.append(fold.model())
    kinds = {need.kind for model in models for need in model.needs}
    assert kinds >= {"conflict", "outside", "unchecked", "handoff"}
    assert {outcome for model in models for outcome in model.outcomes} >= {"ok", "conflict", "denied"}
    assert any(len(model.agents) > 3 for model in models)


@settings(max_examples=rounds(50, 100))
@given(data=st.data())
def test_any_chunking_gives_an_equal_model_and_earlier_models_are_those_of_their_rows(
    pasts: list[Past], data: st.DataObject
) -> None:
    past = data.draw(st.sampled_from(pasts))
    cuts = data.draw(st.lists(st.integers(0, len(past.rows)), max_size=8).map(sorted))
    asked = data.draw(st.lists(st.booleans(), min_size=len(cuts), max_size=len(cuts)))
    chunked = past.fold()
    start = 0
    for cut, ask in zip(cuts, asked, strict=True):
        chunked.apply(past.rows[start:cut])
        start = cut
        if ask:
            until = past.fold()
            until.apply(past.rows[:cut])
            assert chunked.model() == until.model()
    chunked.apply(past.rows[start:])
    whole = past.fold()
    whole.apply(past.rows)
    assert chunked.model() == whole.model()
    assert chunked.seq == past.rows[-1].seq


@settings(max_examples=rounds(50, 100))
@given(data=st.data())
def test_a_fold_that_was_dumped_and_loaded_goes_on_as_the_one_that_was_not(
    pasts: list[Past], data: st.DataObject
) -> None:
    past = data.draw(st.sampled_from(pasts))
    whole = past.fold()
    whole.apply(past.rows)
    fold, start = past.fold(), 0
    for cut in data.draw(st.lists(st.integers(0, len(past.rows)), min_size=1, max_size=3).map(sorted)):
        fold.apply(past.rows[start:cut])
        start = cut
        if data.draw(st.booleans()):
            fold.model()
        dumped = json.dumps(fold.dump())
        loaded = past.reload(json.loads(dumped))
        assert json.dumps(loaded.dump()) == dumped
        assert loaded.model() == fold.model()
        fold = loaded
    fold.apply(past.rows[start:])
    assert fold.model() == whole.model()
    whole.model()
    assert part_states(fold) == part_states(whole)


def part_states(fold: Fold) -> Json:
    return fold.dump()["parts"]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda dumped: {**dumped, "format": 0},
        lambda dumped: {**dumped, "parts": {}},
        lambda dumped: {**dumped, "rows": []},
        lambda dumped: {**dumped, "rows": [[1]]},
        lambda dumped: {"format": dumped["format"]},
        lambda dumped: [dumped],
    ],
)
def test_what_no_fold_of_this_format_dumped_is_not_loaded(
    pasts: list[Past], spoil: Callable[[Any], Json]
) -> None:
    fold = pasts[0].fold()
    fold.apply(pasts[0].rows)
    with pytest.raises(ValueError, match="fold"):
        pasts[0].reload(spoil(fold.dump()))


def test_open_deliveries_are_all_kept_and_the_newest_of_those_that_were_acknowledged() -> None:
    journal = MemoryJournal()
    count = MAX_ACKNOWLEDGED + 20
    paths = [f"alice_to_bob/{n}" for n in range(count)]
    journal.append([Write("alice", "handoff_file", "handoff", path, "x") for path in paths])
    closed = [Note("bob", "acknowledge_handoff", "handoff", path, base=1) for path in paths[10:]]
    journal.append(closed)
    kept = [each.row.path for each in reversed(folded(journal).deliveries)]
    assert kept == paths[:10] + paths[-MAX_ACKNOWLEDGED:]
    journal.append([Write("alice", "handoff_file", "handoff", paths[10], "again")])
    journal.append([Note("bob", "acknowledge_handoff", "handoff", paths[0], base=1)])
    kept = [each.row.path for each in reversed(folded(journal).deliveries)]
    assert kept == [*paths[:10], *paths[-MAX_ACKNOWLEDGED + 1 :], paths[10]]


def test_the_model_as_of_an_earlier_row_knows_nothing_of_what_came_later(
    workspace: Workspace, alice: Toolbox, bob: Toolbox, conflict: int
) -> None:
    write(bob, "merged", 2)
    deliver(alice)
    workspace.register([Agent("dora")])
    earlier = folded(workspace.journal, until=conflict)
    assert (earlier.seq, earlier.recent[0].seq) == (conflict, conflict)
    assert [need.kind for need in earlier.needs] == ["conflict"]
    assert [file.head.version for file in earlier.files] == [2]
    assert earlier.deliveries == ()
    assert earlier.agent("dora") is None
