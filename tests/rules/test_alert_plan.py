"""Which alerts are due for a target, by what it has received and what is open now."""

from __future__ import annotations

from typing import Any

import pytest
from rules.rows import row
from watchroom.features.alerts.rows import (
    AlertItem,
    AlertMessage,
    TargetState,
    dump_message,
    fold_messages,
    parse_message,
)
from watchroom.features.alerts.rules import MAX_ITEMS, AlertPlan, plan_alerts

SECOND = 1_000_000_000
NOW = 1000 * SECOND
ONE = AlertItem("request", "a", 1, "Which colour?", "alice", 5 * SECOND)
TWO = AlertItem("failed", "b", 2, "make")


def reported(*items: AlertItem) -> TargetState:
    return TargetState().after(AlertMessage("new", items))


def test_nothing_is_planned_where_nothing_waits() -> None:
    assert plan_alerts(TargetState(), [], NOW, digest_seconds=10) == AlertPlan(TargetState(), (), None)
    assert plan_alerts(reported(ONE), [ONE], NOW, digest_seconds=10) == AlertPlan(reported(ONE), (), None)


@pytest.mark.parametrize("passed", [0, 9, 10, 11])
def test_what_is_new_waits_until_the_digest_is_over_for_the_oldest_of_it(passed: int) -> None:
    first = plan_alerts(TargetState(), [ONE], NOW, digest_seconds=10)
    assert (first.messages, first.next_at) == ((), NOW + 10 * SECOND)
    assert first.state.waiting == {ONE.identity: NOW}
    later = plan_alerts(first.state, [ONE, TWO], NOW + passed * SECOND, digest_seconds=10)
    is_due = passed >= 10
    assert later.messages == ((AlertMessage("new", (ONE, TWO)),) if is_due else ())
    assert later.next_at == (None if is_due else NOW + 10 * SECOND)
    assert later.state.waiting == {ONE.identity: NOW, TWO.identity: NOW + passed * SECOND}


def test_without_a_digest_it_is_sent_at_once() -> None:
    plan = plan_alerts(TargetState(), [ONE], NOW, digest_seconds=0)
    assert plan.messages == (AlertMessage("new", (ONE,)),)
    after = plan.state.after(plan.messages[0])
    assert (after.reported, after.waiting) == ({ONE.identity: ONE}, {})


def test_what_goes_within_the_digest_is_not_sent() -> None:
    first = plan_alerts(TargetState(), [ONE], NOW, digest_seconds=10)
    gone = plan_alerts(first.state, [], NOW + 20 * SECOND, digest_seconds=10)
    assert gone == AlertPlan(TargetState(), (), None)


def test_what_was_told_and_is_there_no_more_has_ended_before_what_is_new() -> None:
    plan = plan_alerts(reported(ONE), [TWO], NOW, digest_seconds=0)
    assert plan.messages == (AlertMessage("ended", (ONE,)), AlertMessage("new", (TWO,)))
    state = plan.state
    for message in plan.messages:
        state = state.after(message)
    assert (state.reported, state.waiting) == ({TWO.identity: TWO}, {})
    assert plan_alerts(reported(ONE), [], NOW, digest_seconds=0, reports_ends=False).messages == ()


def test_a_need_that_goes_on_under_another_kind_has_not_ended() -> None:
    lost = ONE._replace(kind="lost")
    plan = plan_alerts(reported(ONE), [lost], NOW, digest_seconds=10)
    assert (plan.messages, plan.state.waiting) == ((), {lost.identity: NOW})
    # Needs that began with no row have no row in common.
    nameless = ONE._replace(since=0)
    plan = plan_alerts(reported(nameless), [nameless._replace(kind="lost")], NOW, digest_seconds=10)
    assert plan.messages == (AlertMessage("ended", (nameless,)),)


@pytest.mark.parametrize(("left", "is_quiet"), [(1, True), (0, False), (-1, False)])
def test_nothing_is_sent_before_the_quiet_hours_are_over(left: int, is_quiet: bool) -> None:
    until = NOW + left
    for state, items in ((TargetState(), [ONE]), (reported(ONE), []), (reported(ONE), [TWO])):
        plan = plan_alerts(state, items, NOW, digest_seconds=0, quiet_until=until)
        assert bool(plan.messages) is not is_quiet
        assert plan.next_at == (until if is_quiet else None)
    plan = plan_alerts(reported(ONE), [ONE], NOW, digest_seconds=0, quiet_until=until)
    assert (plan.messages, plan.next_at) == ((), None)


@pytest.mark.parametrize(("count", "sizes"), [(100, [100]), (101, [100, 1]), (200, [100, 100])])
def test_a_hundred_needs_are_in_one_message(count: int, sizes: list[int]) -> None:
    items = [ONE._replace(key=str(n)) for n in range(count)]
    plan = plan_alerts(TargetState(), items, NOW, digest_seconds=0)
    assert [len(message.items) for message in plan.messages] == sizes
    assert [item for message in plan.messages for item in message.items] == items
    assert len({message.id for message in plan.messages}) == len(sizes)
    assert MAX_ITEMS == 100


def test_the_same_need_has_the_same_id_whatever_is_said_of_it() -> None:
    assert ONE.id == ONE._replace(text="", agent="", deadline=None).id
    others = [ONE._replace(kind="failed"), ONE._replace(key="b"), ONE._replace(since=2)]
    assert len({each.id for each in (ONE, *others)}) == 4
    assert len(ONE.id) == 16
    new, ended = AlertMessage("new", (ONE,)), AlertMessage("ended", (ONE,))
    assert len({new.id, ended.id, AlertMessage("new", (ONE, TWO)).id}) == 3
    assert len(new.id) == 32


def test_a_message_is_read_again_as_it_was_written() -> None:
    for message in (AlertMessage("new", (ONE, TWO)), AlertMessage("ended", ())):
        assert parse_message(row(dump_message(message))) == message


@pytest.mark.parametrize(
    "detail", [None, {}, {"event": "new"}, {"event": "other", "needs": []}, {"event": "new", "needs": {}}, []]
)
def test_what_is_no_message_is_passed_over(detail: Any) -> None:
    assert parse_message(row(detail)) is None
    sent = [row(detail), row(dump_message(AlertMessage("new", (ONE,)))), row(detail)]
    assert fold_messages(sent) == reported(ONE)


@pytest.mark.parametrize(
    "broken", [5, {}, {"kind": "other"}, {"key": 5}, {"since": "1"}, {"since": None}], ids=str
)
def test_a_need_of_a_message_that_cannot_be_read_hides_no_other(broken: Any) -> None:
    need = {**ONE._asdict(), **broken} if broken and isinstance(broken, dict) else broken
    detail = {"event": "new", "needs": [need, TWO._asdict()]}
    assert parse_message(row(detail)) == AlertMessage("new", (TWO,))


def test_what_a_message_leaves_out_or_says_in_another_type_is_nothing() -> None:
    needs = [{"kind": "failed", "key": "b", "since": 2, "deadline": "soon"}]
    assert parse_message(row({"event": "new", "needs": needs})) == AlertMessage(
        "new", (AlertItem("failed", "b", 2, ""),)
    )


def test_the_state_is_what_all_messages_leave() -> None:
    messages = [AlertMessage("new", (ONE, TWO)), AlertMessage("ended", (ONE,)), AlertMessage("new", (ONE,))]
    assert fold_messages(row(dump_message(each)) for each in messages).reported == {
        TWO.identity: TWO,
        ONE.identity: ONE,
    }
    assert fold_messages(row(dump_message(each)) for each in messages[:2]).reported == {TWO.identity: TWO}
