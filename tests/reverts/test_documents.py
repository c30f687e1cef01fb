"""Reverting what an agent did in realtime documents: each field as if it had not, and others' writes as they are."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from calls import ok
from documents import create, edit, get, put
from effort import rounds
from reverts.test_reverts import ANN, revert
from watchroom import Toolbox, Workspace
from watchroom.features.reverts.rules import RevertSelection
from watchroom.kernel.call_context import CallContext

SEEDS = range(rounds(5, 300))
SCHEMA = {
    "body": "rga",
    "title": "lww_register",
    "tags": "or_set",
    "facts": "lww_map",
    "score": "pn_counter",
}


def values(toolbox: Toolbox) -> dict[str, Any]:
    return {name: get(toolbox, name) for name in SCHEMA}


def tag(toolbox: Toolbox, operation: str, element: str) -> None:
    ok(toolbox, "realtime_edit_set", doc_id="doc1", field_name="tags", operation=operation, element=element)


def count(toolbox: Toolbox, operation: str, amount: int) -> None:
    ok(
        toolbox,
        "realtime_edit_counter",
        doc_id="doc1",
        field_name="score",
        operation=operation,
        amount=amount,
    )


def set_key(toolbox: Toolbox, key: str, value: object) -> None:
    ok(toolbox, "realtime_set_field", doc_id="doc1", field_name="facts", key=key, value=value)


def test_each_field_is_as_if_the_agent_had_not_written_and_an_undo_brings_it_back(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    create(bob, **SCHEMA)
    edit(bob, "insert", position=0, text="one two three\n")
    put(bob, "title", "Plan")
    tag(bob, "add", "kept")
    set_key(bob, "who", "bob")
    count(bob, "increment", 5)
    before = values(bob)
    since = workspace.journal.last_seq()
    edit(alice, "delete", **{"from": 4, "to": 8})
    edit(alice, "insert", position=0, text="第二 junk ")
    put(alice, "title", "Junk")
    tag(alice, "remove", "kept")
    tag(alice, "add", "junk")
    set_key(alice, "who", "alice")
    set_key(alice, "new", 1)
    count(alice, "decrement", 9)
    spoiled = values(bob)
    edit(bob, "insert", position=len("第二 junk one three\n"), text="four\n")
    count(bob, "increment", 1)
    since_then = values(bob)
    assert spoiled["body"] == "第二 junk one three\n"
    plan = workspace.reverts.plan(RevertSelection(("alice",), after=since))
    assert {each.path: each.plan.kind for each in plan.items} == {f"doc1/{name}": "clean" for name in SCHEMA}
    assert (plan.items[0].current, plan.items[0].plan.proposal) == (
        "第二 junk one three\nfour\n",
        "one two three\nfour\n",
    )
    outcome = revert(workspace, "alice", after=since)
    assert values(bob) == {**before, "body": "one two three\nfour\n", "score": 6}
    again = workspace.reverts.apply(CallContext(ANN), RevertSelection(undo=outcome.id))
    assert values(bob) == since_then
    assert again.record.items == outcome.record.items
    # What came back is the agent's still: to revert it finds it.
    revert(workspace, "alice", after=since)
    assert values(bob) == {**before, "body": "one two three\nfour\n", "score": 6}
    assert revert(workspace, "alice", after=since).record.items == ()
    workspace.flush()
    assert workspace.verify() == []


def test_a_document_of_more_versions_than_are_looked_at_cannot_be_reverted(
    workspace: Workspace, alice: Toolbox, bob: Toolbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(bob, **SCHEMA)
    edit(alice, "insert", position=0, text="one")
    monkeypatch.setattr("watchroom.features.documents.reverts.MAX_VERSIONS", 1)
    plan = workspace.reverts.plan(RevertSelection(("alice",)))
    assert [(each.path, each.plan.reason) for each in plan.items] == [("doc1", "too_many_versions")]


@pytest.mark.parametrize(("mine", "theirs"), [(1, True), (0, False), (1, 1.0), ([1], [True])])
def test_a_value_comes_back_where_only_its_type_was_changed(
    workspace: Workspace, alice: Toolbox, bob: Toolbox, mine: object, theirs: object
) -> None:
    create(bob, title="lww_register", facts="lww_map")
    put(bob, "title", mine)
    set_key(bob, "key", mine)
    since = workspace.journal.last_seq()
    put(alice, "title", theirs)
    set_key(alice, "key", theirs)
    outcome = revert(workspace, "alice", after=since)
    # To Python they are equal.
    assert repr((get(bob, "title"), get(bob, "facts"))) == repr((mine, {"key": mine}))
    workspace.reverts.apply(CallContext(ANN), RevertSelection(undo=outcome.id))
    assert repr((get(bob, "title"), get(bob, "facts"))) == repr((theirs, {"key": theirs}))


def test_another_process_goes_on_with_what_was_reverted(
    root: Path, workspace: Workspace, alice: Toolbox
) -> None:
    create(alice, body="rga")
    edit(alice, "insert", position=0, text="kept ")
    since = workspace.journal.last_seq()
    edit(alice, "insert", position=5, text="junk")
    with Workspace.open(root) as other:
        assert get(other.tools("bob"), "body") == "kept junk"
        revert(workspace, "alice", after=since)
        edit(other.tools("bob"), "insert", position=5, text="more")
        assert get(other.tools("bob"), "body").replace("more", "") == "kept "
        assert get(alice, "body") == get(other.tools("bob"), "body")


@pytest.mark.parametrize("seed", SEEDS)
def test_a_document_is_as_if_one_agent_had_never_written(
    workspace: Workspace, alice: Toolbox, bob: Toolbox, seed: int
) -> None:
    """Each agent has keys, elements and lines of its own, and one counter for all."""
    chance = random.Random(seed)
    create(bob, **SCHEMA)
    edit(bob, "insert", position=0, text="alice:\nbob:\n")
    since = workspace.journal.last_seq()
    score = 0
    for number in range(25):
        who, name = chance.choice(((alice, "alice"), (bob, "bob")))
        kind = chance.randrange(4)
        if kind == 0:
            # As it sees the text: what the other wrote since is merged.
            text = get(who, "body")
            start = text.index(f"{name}:") + len(name) + 1
            end = text.index("\n", start)
            at = chance.randint(start, end)
            if chance.random() < 0.3 and at < end:
                edit(who, "delete", **{"from": at, "to": end})
            else:
                edit(who, "insert", position=at, text=f"{number}二")
        elif kind == 1:
            get(who, "tags")
            tag(who, chance.choice(("add", "add", "remove")), f"{name}{chance.randrange(3)}")
        elif kind == 2:
            set_key(who, f"{name}{chance.randrange(3)}", number)
        else:
            count(who, "increment", number)
            score += number if name == "bob" else 0
    now = values(bob)
    revert(workspace, "alice", after=since)
    then = values(bob)
    assert then["body"].split("\n") == ["alice:", *now["body"].split("\n")[1:]]
    assert then["tags"] == [each for each in now["tags"] if each.startswith("bob")]
    assert then["facts"] == {key: value for key, value in now["facts"].items() if key.startswith("bob")}
    assert then["score"] == score


def test_what_a_revert_brought_back_is_its_authors_again(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    create(bob, **SCHEMA)
    edit(bob, "insert", position=0, text="kept ")
    before = values(bob)
    since = workspace.journal.last_seq()
    edit(bob, "insert", position=5, text="bob's")
    put(bob, "title", "bob's")
    tag(bob, "add", "bob's")
    set_key(bob, "who", "bob")
    count(bob, "increment", 2)
    his = values(bob)
    edit(alice, "delete", **{"from": 6, "to": 9})
    put(alice, "title", "alice's")
    tag(alice, "remove", "bob's")
    set_key(alice, "who", "alice")
    count(alice, "increment", 5)
    both = values(bob)
    first = revert(workspace, "alice", after=since)
    assert values(bob) == his
    edit(bob, "delete", **{"from": 5, "to": 6})
    second = revert(workspace, "bob", after=since)
    assert values(bob) == before
    workspace.reverts.apply(CallContext(ANN), RevertSelection(undo=second.id))
    assert values(bob) == {**his, "body": "kept ob's"}
    workspace.reverts.apply(CallContext(ANN), RevertSelection(undo=first.id))
    assert values(bob) == {**both, "body": "kept s"}


@pytest.mark.parametrize("seed", SEEDS)
def test_reverts_in_any_order_end_where_they_would_have_ended_at_once(
    workspace: Workspace, alice: Toolbox, bob: Toolbox, seed: int
) -> None:
    chance = random.Random(seed)
    create(bob, body="rga")
    edit(bob, "insert", position=0, text="one two three four five")
    begun = get(bob, "body")
    since = workspace.journal.last_seq()
    for number in range(12):
        who = chance.choice((alice, bob))
        length = len(get(who, "body"))
        at = chance.randint(0, length)
        if chance.random() < 0.4:
            edit(who, "delete", **{"from": at, "to": min(length, at + 4)})
        else:
            edit(who, "insert", position=at, text=f"{number}")
    before = get(bob, "body")
    names = ["alice", "bob"]
    chance.shuffle(names)
    done = [revert(workspace, name, after=since) for name in names]
    assert get(bob, "body") == begun
    for outcome in chance.sample(done, 2):
        workspace.reverts.apply(CallContext(ANN), RevertSelection(undo=outcome.id))
    assert get(bob, "body") == before
    assert workspace.verify() == []


@pytest.mark.parametrize("both", [8, 14])
def test_a_deletion_of_the_same_characters_by_another_stays(
    workspace: Workspace, alice: Toolbox, bob: Toolbox, both: int
) -> None:
    """Bob deletes what alice had deleted when he had not read the text since: some of it, or nothing else."""
    create(bob, body="rga")
    edit(bob, "insert", position=0, text="one two three four")
    since = workspace.journal.last_seq()
    assert get(alice, "body") == get(bob, "body")
    edit(alice, "delete", **{"from": 4, "to": 14})
    assert edit(bob, "delete", **{"from": 4, "to": both})["deleted_count"] == both - 4
    assert get(workspace.tools("charlie"), "body") == "one four"
    first = revert(workspace, "alice", after=since)
    assert get(bob, "body") == "one " + "one two three four"[both:]
    second = revert(workspace, "bob", after=since)
    assert get(bob, "body") == "one two three four"
    workspace.reverts.apply(CallContext(ANN), RevertSelection(undo=second.id))
    assert get(bob, "body") == "one " + "one two three four"[both:]
    workspace.reverts.apply(CallContext(ANN), RevertSelection(undo=first.id))
    assert get(bob, "body") == "one four"
    assert workspace.verify() == []


class Writers:
    """Agents, some in a process of their own, who read a text now and then, and what each meant to do.

    Each character is written once, so what becomes of it can be told by its text.
    """

    def __init__(self, toolboxes: dict[str, Toolbox], seed: int) -> None:
        self.random = random.Random(seed)
        self.toolboxes = toolboxes
        self.known: dict[str, list[str]] = {}
        self.bringer: dict[str, str] = {}
        self.removers: dict[str, set[str]] = {}
        self._next = 0x4E00

    def fresh(self, count: int) -> str:
        self._next += count
        return "".join(map(chr, range(self._next - count, self._next)))

    def read(self, name: str) -> None:
        self.known[name] = [*get(self.toolboxes[name], "body")]

    def write(self, name: str) -> None:
        known = self.known[name]
        start = self.random.randint(0, len(known))
        stop = min(len(known), start + self.random.choice((0, 0, 1, 3, 8)))
        text = self.fresh(self.random.choice((0, 1, 2)))
        if self.random.random() < 0.05:
            text = self.fresh(200)
        edit(self.toolboxes[name], "replace", text=text, **{"from": start, "to": stop})
        for character in known[start:stop]:
            self.removers[character].add(name)
        for character in text:
            self.bringer[character], self.removers[character] = name, set()
        known[start:stop] = text

    def without(self, *names: str) -> set[str]:
        """The characters that stand without what ``names`` did."""
        return {
            character
            for character, bringer in self.bringer.items()
            if bringer not in names and self.removers[character] <= {*names}
        }


@pytest.mark.parametrize("seed", range(rounds(8, 300)))
def test_a_character_stands_if_its_writer_and_one_who_did_not_delete_it_stay(
    root: Path, workspace: Workspace, seed: int
) -> None:
    """Law: without the edits of some agents a character stands exactly if none of them wrote it, and all who
    deleted it are among them; whoever edits deletes the characters of the text as they know it."""
    with Workspace.open(root) as other:
        toolboxes = {name: workspace.tools(name) for name in ("alice", "bob")}
        toolboxes["charlie"] = other.tools("charlie")
        writers = Writers(toolboxes, seed)
        names = [*toolboxes]
        create(toolboxes["alice"], body="rga")
        for name in names:
            writers.read(name)
        for _ in range(35):
            name = writers.random.choice(names)
            if writers.random.random() < 0.25:
                writers.read(name)
            writers.write(name)
    bob = workspace.tools("bob")
    whole = get(bob, "body")
    assert {*whole} == writers.without()
    chosen = writers.random.sample(names, writers.random.choice((1, 1, 2)))
    done = revert(workspace, *chosen)
    found = get(bob, "body")
    assert {*found} == writers.without(*chosen)
    assert len(found) == len({*found})
    # Characters that stand both times are in the same order.
    assert [each for each in found if each in whole] == [each for each in whole if each in found]
    workspace.reverts.apply(CallContext(ANN), RevertSelection(undo=done.id))
    assert get(bob, "body") == whole
    # One after the other, in any order, is as all at once.
    outcomes = []
    for number, name in enumerate(names):
        outcomes.append(revert(workspace, name))
        assert {*get(bob, "body")} == writers.without(*names[: number + 1])
    for outcome in writers.random.sample(outcomes, len(outcomes)):
        workspace.reverts.apply(CallContext(ANN), RevertSelection(undo=outcome.id))
    assert get(bob, "body") == whole
    assert workspace.verify() == []


def test_a_revert_that_changes_nothing_now_counts_once_others_are_reverted(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    create(bob, body="rga", title="lww_register")
    put(bob, "title", "first")
    since = workspace.journal.last_seq()
    put(alice, "title", "alice's")
    edit(alice, "insert", position=0, text="alice's")
    put(bob, "title", "bob's")
    get(bob, "body")
    edit(bob, "delete", **{"from": 0, "to": 7})
    one = revert(workspace, "alice", after=since)
    assert (get(bob, "title"), get(bob, "body")) == ("bob's", "")
    revert(workspace, "bob", after=since)
    assert (get(bob, "title"), get(bob, "body")) == ("first", "")
    workspace.reverts.apply(CallContext(ANN), RevertSelection(undo=one.id))
    assert (get(bob, "title"), get(bob, "body")) == ("alice's", "alice's")
    assert workspace.verify() == []


def test_a_deletion_of_what_a_revert_had_brought_back_meanwhile_stays(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    create(bob, body="rga")
    edit(bob, "insert", position=0, text="one two three")
    since = workspace.journal.last_seq()
    assert get(alice, "body") == get(bob, "body")
    edit(alice, "delete", **{"from": 4, "to": 8})
    first = revert(workspace, "alice", after=since)
    assert get(workspace.tools("charlie"), "body") == "one two three"
    workspace.reverts.apply(CallContext(ANN), RevertSelection(undo=first.id))
    # Bob knows the characters that alice deleted, not those that the revert wrote again.
    edit(bob, "delete", **{"from": 3, "to": 7})
    assert get(alice, "body") == "onethree"
    second = revert(workspace, "alice", after=since)
    assert get(bob, "body") == "one three"
    revert(workspace, "bob", after=since)
    assert get(bob, "body") == "one two three"
    workspace.reverts.apply(CallContext(ANN), RevertSelection(undo=second.id))
    assert get(bob, "body") == "one three"
    assert workspace.verify() == []
