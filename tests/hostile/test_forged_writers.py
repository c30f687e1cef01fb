"""States from elsewhere that put words into the mouth of somebody here: refused whole, whichever type they are in."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any, Final, TypeAlias

import pytest
from calls import ok, refused
from documents import count, create, edit, get, put, tag
from effort import rounds
from hypothesis import given, settings
from hypothesis import strategies as st
from replicating import ALL, Edit, fields, new_document, perform, restarted, some_edits
from watchroom import Json, Toolbox, Workspace
from watchroom.algorithms.crdt import Delta, Document, LWWMap, LWWRegister, ORSet, PNCounter, Text
from watchroom.algorithms.crdt.remote_state import (
    Writers,
    check_remote,
    collect_claims,
    count_known_operations,
)
from watchroom.errors import InvalidState

ZOE, NEW_BOB = "zoe#e15e", "bob#b0b"
Fields: TypeAlias = dict[str, Any]
SCHEMA: Final = {
    "body": "rga",
    "title": "lww_register",
    "tags": "or_set",
    "settings": "lww_map",
    "score": "pn_counter",
}


def state_of(root: Path) -> Fields:
    # Whoever opens the workspace brings up the files that are behind.
    Workspace.open(root).close()
    kept: Fields = json.loads((root / "realtime/.crdt_state/doc1.crdt.json").read_text())
    return kept


@pytest.fixture
def before(alice: Toolbox, bob: Toolbox) -> Fields:
    """What bob wrote to each field, and the document then."""
    create(alice, **SCHEMA)
    get(bob, "body")
    edit(bob, "insert", position=0, text="bob's text")
    put(bob, "title", "bob's title")
    put(bob, "settings", {"theme": "dark"})
    tag(bob, "add", "by-bob")
    count(bob, "increment", 2)
    snapshot: Fields = ok(bob, "realtime_get_document_snapshot", doc_id="doc1")["snapshot"]
    return snapshot


def replica_of_bob(state: Fields) -> str:
    (replica,) = state["fields"]["score"]["plus"]
    return str(replica)


def another(state: Fields) -> Document:
    return Document.from_state({key: state[key] for key in ("schema", "values", "fields")})


def later_title(state: Fields) -> None:
    stamp = state["fields"]["title"]["stamp"]
    state["fields"]["title"] = {"value": "forged", "stamp": [stamp[0] + 1, 0, stamp[2]]}


def other_title(state: Fields) -> None:
    state["fields"]["title"]["value"] = "forged"


def earlier_title(state: Fields) -> None:
    stamp = state["fields"]["title"]["stamp"]
    state["fields"]["title"] = {"value": "forged", "stamp": [stamp[0] - 1, 0, stamp[2]]}


def other_value(state: Fields) -> None:
    state["fields"]["settings"]["theme"]["value"] = "zzz"


def other_key(state: Fields) -> None:
    entries = state["fields"]["settings"]
    entries["forged"] = deepcopy(entries["theme"])


def removed_key(state: Fields) -> None:
    entries = state["fields"]["settings"]
    entries["theme"] = {"removed": True, "stamp": entries["theme"]["stamp"]}


def later_key(state: Fields) -> None:
    state["fields"]["settings"]["theme"]["stamp"][0] += 1


def title_by_another_replica(state: Fields) -> None:
    state["fields"]["title"]["stamp"][0] += 1
    state["fields"]["title"]["stamp"][2] = NEW_BOB


def key_by_a_bare_name(state: Fields) -> None:
    state["fields"]["settings"]["k"] = {"value": 1, "stamp": [1, 0, "bob"]}


def title_by_a_person(state: Fields) -> None:
    state["fields"]["title"]["stamp"][0] += 1
    state["fields"]["title"]["stamp"][2] = "human:ann#a"


def count_of_another_replica(state: Fields) -> None:
    state["fields"]["score"]["plus"][NEW_BOB] = 100


def element_of_another_replica(state: Fields) -> None:
    state["fields"]["tags"]["elements"]["forged"] = {NEW_BOB: 1}
    state["fields"]["tags"]["context"][NEW_BOB] = 1


def text_of_another_replica(state: Fields) -> None:
    forged = another(state)
    forged.text("body").insert(0, "forged ", NEW_BOB)
    state["fields"] = fields(forged)


def text_of_the_same_replica(state: Fields) -> None:
    forged = another(state)
    forged.text("body").insert(0, "forged ", replica_of_bob(state))
    state["fields"] = fields(forged)


def other_text(state: Fields) -> None:
    forged = Text()
    forged.insert(0, "not bob's!", replica_of_bob(state))
    state["fields"]["body"] = json.loads(json.dumps(forged.state()))


def renamed_writer(state: Fields) -> None:
    state["fields"]["body"] = {**Text().state(), "by": ["zoe#" + replica_of_bob(state).partition("#")[2]]}


def name_for_later(state: Fields) -> None:
    state["fields"]["body"]["by"].append(NEW_BOB)


FORGERIES: Final[tuple[Callable[[Fields], None], ...]] = (
    *(later_title, other_title, earlier_title, other_value, other_key, removed_key, later_key),
    *(title_by_another_replica, key_by_a_bare_name, title_by_a_person),
    *(count_of_another_replica, element_of_another_replica),
    *(text_of_another_replica, text_of_the_same_replica, other_text, renamed_writer, name_for_later),
)


@pytest.mark.parametrize("forge", FORGERIES)
def test_what_bob_never_wrote_is_refused_whole(
    root: Path, workspace: Workspace, alice: Toolbox, before: Fields, forge: Callable[[Fields], None]
) -> None:
    state = state_of(root)
    forge(state)
    version = state_of(root)["version"]
    result = refused(alice, "realtime_merge_state", doc_id="doc1", state=state)
    assert result["error"] == "invalid_state"
    assert "in the name of a writer of this workspace who never made them" in result["message"]
    assert ok(alice, "realtime_get_document_snapshot", doc_id="doc1")["snapshot"] == before
    assert state_of(root)["version"] == version


def test_what_was_written_here_is_welcome_however_old(
    root: Path, alice: Toolbox, bob: Toolbox, before: Fields
) -> None:
    old = state_of(root)
    put(alice, "title", "alice's title")
    put(alice, "settings", {"theme": "light"})
    remote = another(old)
    remote.map("settings").set("lang", "zh", remote.stamp(ZOE))
    remote.text("body").insert(0, "zoe's text, ", ZOE)
    ok(alice, "realtime_merge_state", doc_id="doc1", state=json.loads(json.dumps(remote.state())))
    ok(bob, "realtime_merge_state", doc_id="doc1", state=old)
    assert get(alice, "title") == "alice's title"
    assert get(alice, "settings") == {"theme": "light", "lang": "zh"}
    assert get(alice, "body") == "zoe's text, bob's text"


def test_an_agent_brings_what_it_wrote_elsewhere_itself(root: Path, bob: Toolbox, before: Fields) -> None:
    remote = another(state_of(root))
    remote.register("title").set("from bob, elsewhere", remote.stamp(NEW_BOB))
    remote.text("body").insert(0, "again, ", NEW_BOB)
    remote.counter("score").increment(5, NEW_BOB)
    ok(bob, "realtime_merge_state", doc_id="doc1", state=json.loads(json.dumps(remote.state())))
    assert get(bob, "title") == "from bob, elsewhere"
    assert get(bob, "body") == "again, bob's text"
    assert count(bob, "value") == 7


ALICE, BOB = "alice#a1", "bob#b2"
HERE: Final = Writers(frozenset((ALICE, BOB)), frozenset(("alice", "bob")), "alice")
NAMES: Final = (ALICE, BOB, NEW_BOB, ZOE, "bob", "human:ann#1")
local_edits = st.lists(st.tuples(st.sampled_from((ALICE, BOB)), some_edits(*ALL.items())), max_size=3)


def take(document: Document, rows: list[Delta], state: Json) -> None:
    """Merge a state as the zone does. Raises `InvalidState`; then nothing was taken over."""
    ours = fields(document)
    check_remote(ALL, state, ours, count_known_operations(document, HERE), HERE, 0)
    told = set().union(*(collect_claims(ALL, row, HERE) for row in rows))
    for claim in collect_claims(ALL, state, HERE) - told:
        raise InvalidState(rule="state_forged", field=claim.field)
    document.merge(state)


def perform_all(document: Document, made: list[tuple[str, list[Edit]]]) -> list[Delta]:
    return [perform(document, each, replica) for replica, edits in made for each in edits]


def both_sides(data: st.DataObject) -> tuple[Document, list[Delta], Document]:
    """A document here with its rows, and the replica elsewhere that was made of it at some time."""
    document = new_document(ALL)
    rows = perform_all(document, data.draw(local_edits, "before"))
    remote = restarted(document, data.draw(st.integers(0, 2)))
    rows += perform_all(document, data.draw(local_edits, "meanwhile"))
    for each in data.draw(some_edits(*ALL.items()), "elsewhere"):
        perform(remote, each, ZOE)
    return document, rows, remote


def recorded(document: Document) -> dict[str, object]:
    """What those who work here are recorded to have written, that nobody else may add to."""
    found: dict[str, object] = {}
    for name in document.schema:
        match field := document.field(name):
            case PNCounter():
                shares = {who: share for who, share in field.shares().items() if any(share)}
                found[name] = {who: share for who, share in shares.items() if who in HERE.agents}
            case ORSet() | Text():
                known = {who: many for who, many in field.version_vector().items() if any(many)}
                found[name] = {who: many for who, many in known.items() if HERE.includes(who)}
            case LWWRegister() | LWWMap():
                # What was written over is gone from the document: the rows tell it.
                continue
    return found


@settings(max_examples=rounds(30, 60))
@given(data=st.data())
def test_honest_states_are_taken_over(data: st.DataObject) -> None:
    document, rows, remote = both_sides(data)
    before = recorded(document)
    take(document, rows, fields(remote))
    assert recorded(document) == before


def mutate(data: st.DataObject, state: Json) -> None:
    """Change a number, a name or a value somewhere."""
    here: Any = state
    path: list[Any] = []
    while isinstance(here, (dict, list)) and here:
        path.append(
            (here, data.draw(st.sampled_from(sorted(here) if isinstance(here, dict) else range(len(here)))))
        )
        here = here[path[-1][1]]
    holder, key = path[-1]
    if isinstance(holder, dict) and data.draw(st.booleans()):
        holder[data.draw(st.sampled_from((*NAMES, "theme", "lang")))] = holder.pop(key)
    elif isinstance(here, int) and not isinstance(here, bool):
        holder[key] = max(0, here + data.draw(st.sampled_from((-1, 1, 5))))
    else:
        holder[key] = data.draw(st.sampled_from((*NAMES, "forged", 1, None)))


@settings(max_examples=rounds(100, 200))
@given(data=st.data())
def test_no_state_changes_what_others_here_are_recorded_to_have_written(data: st.DataObject) -> None:
    document, rows, remote = both_sides(data)
    before = recorded(document)
    state = fields(remote)
    for _ in range(data.draw(st.integers(1, 3))):
        mutate(data, state)
    told = set().union(*(collect_claims(ALL, row, HERE) for row in rows))
    try:
        take(document, rows, state)
    except InvalidState:
        return
    assert recorded(document) == before
    assert collect_claims(ALL, fields(document), HERE) <= told
