"""FILES-L1 to FILES-L4: what is written apart comes together, whatever way it takes; each type against what it
should hold."""

from __future__ import annotations

import copy
import random
from collections.abc import Mapping, Sequence
from typing import Final

import pytest
from effort import rounds
from hypothesis import given, settings
from hypothesis import strategies as st
from replicating import (
    SCHEMAS,
    Network,
    edits,
    evidence,
    fields,
    new_document,
    perform,
    restarted,
    some_edits,
)
from watchroom import Json
from watchroom.algorithms.crdt import Delta, Document, FieldType, Stamp
from watchroom.errors import InvalidState

ALICE, BOB, CAROL, DAVE = "alice#a1", "bob#b2", "carol#c3", "dave#d4"
Schema = Mapping[str, FieldType]

of_each_type = pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS.keys())
law = settings(max_examples=rounds(18, 30))
clocks = st.integers(0, 2)


def base(data: st.DataObject, schema: Schema) -> Document:
    """What all replicas of an example begin with."""
    document = new_document(schema)
    for edit in data.draw(some_edits(*schema.items()), "before"):
        perform(document, edit, DAVE)
    return document


def branch(data: st.DataObject, document: Document, replica: str) -> tuple[Document, list[Delta]]:
    """A replica of the document that went on alone, and the deltas of what it did."""
    alone = restarted(document, data.draw(clocks, f"clock of {replica}"))
    made = data.draw(some_edits(*document.schema.items(), at_least=1), f"by {replica}")
    return alone, [perform(alone, edit, replica) for edit in made]


def merged(document: Document, *others: Json) -> Document:
    """A replica of the document that took over the deltas or states, one after the other."""
    twin = restarted(document)
    for other in others:
        twin.merge(other)
    return twin


@of_each_type
@law
@given(data=st.data())
def test_L_1_commutativity(schema: Schema, data: st.DataObject) -> None:
    start = base(data, schema)
    x, of_x = branch(data, start, ALICE)
    y, of_y = branch(data, start, BOB)
    results = [
        merged(x, *of_y),
        merged(y, *of_x),
        merged(start, *of_x, *of_y),
        merged(start, *of_y, *of_x),
        merged(x, fields(y)),
        merged(y, fields(x)),
    ]
    assert len({evidence(each) for each in results}) == 1


@of_each_type
@law
@given(data=st.data())
def test_L_1_deltas_in_any_order(schema: Schema, data: st.DataObject) -> None:
    start = base(data, schema)
    alone, deltas = branch(data, start, ALICE)
    order = data.draw(st.permutations(deltas), "order")
    assert evidence(merged(start, *order)) == evidence(alone)


@of_each_type
@law
@given(data=st.data())
def test_L_2_associativity(schema: Schema, data: st.DataObject) -> None:
    start = base(data, schema)
    x, y, z = (branch(data, start, replica)[0] for replica in (ALICE, BOB, CAROL))
    left = merged(merged(x, fields(y)), fields(z))
    right = merged(x, fields(merged(y, fields(z))))
    assert evidence(left) == evidence(right)


@of_each_type
@law
@given(data=st.data())
def test_L_3_idempotency(schema: Schema, data: st.DataObject) -> None:
    document, deltas = branch(data, base(data, schema), ALICE)
    before = evidence(document)
    assert evidence(merged(document, fields(document))) == before
    assert evidence(merged(document, *deltas, *deltas)) == before
    document.merge(document.state()["fields"])
    assert evidence(document) == before


@of_each_type
@law
@given(data=st.data())
def test_L_3_a_state_holds_no_more_and_no_less_than_its_deltas(schema: Schema, data: st.DataObject) -> None:
    start = base(data, schema)
    x, of_x = branch(data, start, ALICE)
    y, of_y = branch(data, x, BOB)
    by_deltas = merged(start, *of_x, *of_y)
    assert evidence(by_deltas) == evidence(merged(start, fields(y))) == evidence(y)
    assert evidence(merged(new_document(schema), fields(y))) == evidence(y)


@of_each_type
@law
@given(data=st.data())
def test_L_3_a_copy_is_a_replica_of_its_own(schema: Schema, data: st.DataObject) -> None:
    start = base(data, schema)
    _, deltas = branch(data, start, ALICE)
    come = data.draw(st.permutations(deltas), "order")
    early, late = come[: len(come) // 2], come[len(come) // 2 :]
    here = merged(start, *early)
    before = evidence(here)
    twin = here.copy()
    for delta in late:
        twin.merge(delta)
    assert evidence(here) == before
    assert evidence(twin) == evidence(merged(here, *late)) == evidence(merged(start, *deltas))


def _drive(data: st.DataObject, network: Network, schema: Schema) -> None:
    """Something happens at the replicas, up to forty times."""
    count = len(network.replicas)
    at = st.integers(0, count - 1)
    for _ in range(data.draw(st.integers(0, 40), "steps")):
        match data.draw(st.sampled_from("eeeedddrxs"), "step"):
            case "e":
                network.edit(data.draw(at), data.draw(edits(*schema.items())))
            case "d":
                network.deliver(data.draw(at))
            case "r":
                network.restart(data.draw(at), renamed=data.draw(st.booleans()))
            case "x":
                network.exchange(data.draw(at), data.draw(at))
            case _:
                network.split(data.draw(st.lists(st.integers(0, 1), min_size=count, max_size=count)))


@of_each_type
@law
@given(data=st.data())
def test_L_4_convergence(schema: Schema, data: st.DataObject) -> None:
    times = data.draw(st.lists(clocks, min_size=3, max_size=4), "clocks")
    network = Network(schema, times, random.Random(data.draw(st.integers(0, 2**32), "chance")))
    _drive(data, network, schema)
    network.settle()
    told = {evidence(replica) for replica in network.replicas}
    deltas = [each.delta for each in network.log]
    told.add(evidence(merged(new_document(schema), *data.draw(st.permutations(deltas), "order"))))
    assert len(told) == 1
    values = network.replicas[0].values()
    for name, kind in schema.items():
        log = [each for each in network.log if each.edit.field == name]
        if kind in _ORACLES:
            assert values[name] == _ORACLES[kind](network, name), log


def _counted(network: Network, field: str) -> Json:
    """The sum of all that was ever counted."""
    sign = {"increment": 1, "decrement": -1}
    made = [each.edit for each in network.log if each.edit.field == field]
    return sum(sign[edit.method] * int(str(edit.arguments[0])) for edit in made)


def _added(network: Network, field: str) -> Json:
    """The elements with an addition that nobody removed, or replaced by a later one, who knew of it."""
    log = dict(enumerate(network.log))
    changes = {number: each for number, each in log.items() if each.edit.field == field}
    covered: set[int] = set()
    for change in changes.values():
        element = change.edit.arguments
        covered |= {each for each in change.known & changes.keys() if changes[each].edit.arguments == element}
    added = {number for number, each in changes.items() if each.edit.method == "add"}
    return sorted({str(changes[number].edit.arguments[0]) for number in added - covered})


def _last_written(network: Network, field: str) -> Json:
    """The value with the latest stamp."""
    written = [each.delta[field] for each in network.log if each.edit.field == field]
    return _latest(written)["value"] if written else None


def _last_written_by_key(network: Network, field: str) -> Json:
    """For each key the value with the latest stamp, unless it is a removal."""
    deltas = [each.delta[field] for each in network.log if each.edit.field == field]
    keys = sorted({key for delta in deltas if isinstance(delta, dict) for key in delta})
    last = {
        key: _latest([delta[key] for delta in deltas if isinstance(delta, dict) and key in delta])
        for key in keys
    }
    return {key: each["value"] for key, each in last.items() if "removed" not in each}


def _latest(written: Sequence[Json]) -> Mapping[str, Json]:
    entries = [each for each in written if isinstance(each, dict)]
    return max(entries, key=lambda entry: Stamp.from_json(entry["stamp"]))


_ORACLES: Final = {
    "pn_counter": _counted,
    "or_set": _added,
    "lww_register": _last_written,
    "lww_map": _last_written_by_key,
}


_BROKEN: Final[tuple[Json, ...]] = (None, -1, 2**53, True, "", "AA==", "no replica", [], {}, [[]], {"a": 1})


def _break(data: st.DataObject, state: Json) -> Json:
    """Put what hardly belongs there somewhere into the state, or in its place."""
    if not isinstance(state, (dict, list)) or not state or data.draw(st.integers(0, 4), "here") == 0:
        return data.draw(st.sampled_from(_BROKEN), "broken")
    broken = copy.copy(state)
    if isinstance(broken, list):
        place = data.draw(st.integers(0, len(broken) - 1), "into")
        broken[place] = _break(data, broken[place])
        return broken
    key = data.draw(st.sampled_from([*sorted(broken), "waiting", "z#2", ""]), "into")
    if key in broken and data.draw(st.integers(0, 4), "remove") == 0:
        del broken[key]
    else:
        broken[key] = _break(data, broken.get(key))
    return broken


@of_each_type
@law
@given(data=st.data())
def test_a_refused_delta_or_state_of_a_field_changes_nothing(schema: Schema, data: st.DataObject) -> None:
    start = base(data, schema)
    other, deltas = branch(data, start, ALICE)
    here, _ = branch(data, start, BOB)
    before, alone = evidence(here), fields(here)
    whole = data.draw(st.sampled_from([each for each in deltas if each] + [fields(other)]), "whole")
    field = data.draw(st.sampled_from(sorted(whole)), "field")
    broken = _break(data, whole[field])
    refusal = None
    try:
        here.merge({field: broken})
    except InvalidState as error:
        refusal = error
    if refusal is not None:
        assert refusal.values["field"] == field
        assert evidence(here) == before
        here.merge(fields(other))
        assert evidence(here) == evidence(merged(start, alone, fields(other)))
