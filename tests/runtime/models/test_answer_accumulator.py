"""An answer is the same whichever way its server cuts and labels it."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from watchroom.errors import ModelFailed
from watchroom.features.sessions.runtime.models import (
    AnswerAccumulator,
    FunctionDelta,
    ModelAnswer,
    ModelChunk,
    ToolCallDelta,
    Usage,
    to_chunk,
)
from watchroom.features.sessions.runtime.models.answer_accumulator import SurrogateJoiner


def call(index: int | None = None, id: str = "", name: str = "", arguments: str = "") -> ToolCallDelta:  # noqa: A002
    return ToolCallDelta(index=index, id=id, function=FunctionDelta(name=name, arguments=arguments))


def whole(*pieces: ToolCallDelta, taken: frozenset[str] = frozenset()) -> ModelAnswer:
    """The answer to which each piece came in a chunk of its own."""
    answer = AnswerAccumulator("call_7", taken)
    for piece in pieces:
        answer.add(ModelChunk(tool_calls=(piece,)))
    return answer.whole()


def calls(*pieces: ToolCallDelta, taken: frozenset[str] = frozenset()) -> list[tuple[str, str, str]]:
    return [
        (each.id, each.function.name, each.function.arguments)
        for each in whole(*pieces, taken=taken).tool_calls
    ]


def test_what_is_said_is_joined_and_the_last_usage_counts() -> None:
    answer = AnswerAccumulator("call_7")
    for chunk in (
        ModelChunk(content="Hel", usage=Usage(input_tokens=3)),
        ModelChunk(content="lo", finish_reason="length"),
        ModelChunk(usage=Usage(input_tokens=3, output_tokens=2)),
    ):
        answer.add(chunk)
    assert answer.whole() == ModelAnswer(
        content="Hello", usage=Usage(input_tokens=3, output_tokens=2), finish_reason="length"
    )


def test_an_answer_without_any_chunk_is_empty() -> None:
    assert AnswerAccumulator("call_7").whole() == ModelAnswer()


def test_pieces_of_a_call_are_joined_by_their_index() -> None:
    assert calls(
        call(0, "a", "read", ""),
        call(0, arguments='{"path":'),
        call(1, "b", "write", "{}"),
        call(0, arguments='"x"}'),
    ) == [("a", "read", '{"path":"x"}'), ("b", "write", "{}")]


def test_id_and_name_may_be_repeated_with_every_piece() -> None:
    assert calls(call(0, "a", "read", '{"pa'), call(0, "a", "read", 'th":1}')) == [
        ("a", "read", '{"path":1}')
    ]


def test_id_and_name_may_come_apart() -> None:
    assert calls(call(0, id="a"), call(0, name="read"), call(0, arguments="{}")) == [("a", "read", "{}")]


def test_an_id_made_up_for_every_piece_is_no_other_call() -> None:
    assert calls(call(0, "a", "read", "{"), call(0, "z", arguments="}")) == [("a", "read", "{}")]


def test_indices_may_come_in_any_order_and_begin_anywhere() -> None:
    assert calls(call(3, "c", "three"), call(1, "a", "one"), call(3, arguments="[3]")) == [
        ("a", "one", "{}"),
        ("c", "three", "[3]"),
    ]


def test_calls_that_share_an_index_are_told_apart_by_name_and_id() -> None:
    """Ollama and lmdeploy give all calls the index 0."""
    assert calls(
        call(0, "a", "read", ""),
        call(0, arguments='{"n":1}'),
        call(0, "b", "read", ""),
        call(0, arguments='{"n":2}'),
        call(0, name="list", arguments="{}"),
    ) == [("a", "read", '{"n":1}'), ("b", "read", '{"n":2}'), ("call_7_2", "list", "{}")]


def test_a_call_without_an_index_is_whole() -> None:
    assert calls(call(id="a", name="read", arguments="{}"), call(id="b", name="read", arguments="[]")) == [
        ("a", "read", "{}"),
        ("b", "read", "[]"),
    ]


def test_what_has_neither_index_nor_name_belongs_to_the_call_before_it() -> None:
    assert calls(call(id="a", name="read", arguments="{"), call(id="a", arguments="}")) == [
        ("a", "read", "{}")
    ]


def test_calls_without_an_id_get_one_by_their_place() -> None:
    assert calls(call(name="read"), call(name="read")) == [
        ("call_7_0", "read", "{}"),
        ("call_7_1", "read", "{}"),
    ]


def test_an_id_that_came_before_is_replaced() -> None:
    assert calls(call(id="same", name="read"), call(id="same", name="list")) == [
        ("same", "read", "{}"),
        ("call_7_1", "list", "{}"),
    ]


def test_an_id_that_the_session_has_is_replaced() -> None:
    assert calls(call(0, "old", "read"), taken=frozenset({"old", "call_7_0"})) == [("call_7_1", "read", "{}")]


def test_an_id_that_is_made_is_no_other_calls_own() -> None:
    assert calls(call(0, "", "read"), call(1, "call_7_0", "list")) == [
        ("call_7_1", "read", "{}"),
        ("call_7_0", "list", "{}"),
    ]


def test_ids_that_are_made_skip_all_that_are_there() -> None:
    given_ids = ["", "call_7_0", "", "call_7_2", "call_7_2", ""]
    found = [each[0] for each in calls(*[call(n, each, "read") for n, each in enumerate(given_ids)])]
    assert found == ["call_7_1", "call_7_0", "call_7_3", "call_7_2", "call_7_4", "call_7_5"]


def test_arguments_stay_as_they_were_written_even_if_broken() -> None:
    assert calls(call(0, "a", "read", '{"path": ')) == [("a", "read", '{"path": ')]


def test_a_call_that_names_no_tool_is_a_failure() -> None:
    with pytest.raises(ModelFailed) as failed:
        whole(call(0, "a", "", "{}"))
    assert failed.value.values["rule"] == "nameless_call"


words = st.text(max_size=12)
tools = st.tuples(
    st.text(min_size=1, max_size=5), words.filter(lambda text: text == "" or text.strip() != "")
)


@given(st.lists(tools, max_size=5), st.booleans(), st.data())
def test_calls_cut_in_any_way_and_mixed_in_any_order_are_the_same(
    wanted: list[tuple[str, str]], repeats: bool, data: st.DataObject
) -> None:
    """The pieces of each call keep their order; nothing else is promised."""
    waiting: list[list[ToolCallDelta]] = []
    for index, (name, arguments) in enumerate(wanted):
        cuts = sorted(data.draw(st.lists(st.integers(0, len(arguments)), max_size=4)))
        parts = [arguments[a:b] for a, b in zip([0, *cuts], [*cuts, len(arguments)], strict=True)]
        labelled = [repeats or place == 0 for place in range(len(parts))]
        waiting.append(
            [
                call(index, f"id{index}" if label else "", name if label else "", part)
                for part, label in zip(parts, labelled, strict=True)
            ]
        )
    answer = AnswerAccumulator("call_7")
    while any(waiting):
        index = data.draw(st.sampled_from([index for index, pieces in enumerate(waiting) if pieces]))
        answer.add(ModelChunk(tool_calls=(waiting[index].pop(0),)))
    assert [(each.id, each.function.name, each.function.arguments) for each in answer.whole().tool_calls] == [
        (f"id{index}", name, arguments or "{}") for index, (name, arguments) in enumerate(wanted)
    ]


@given(
    st.lists(st.builds(call, st.none() | st.integers(0, 2), words, st.text(min_size=1, max_size=3), words))
)
def test_ids_are_unique_whatever_comes(pieces: list[ToolCallDelta]) -> None:
    ids = [each[0] for each in calls(*pieces)]
    assert len(ids) == len(set(ids))
    assert all(ids)


# -- chunks from a model runtime of one's own


def test_a_chunk_is_taken_as_it_is() -> None:
    chunk = ModelChunk(content="x")
    assert to_chunk(chunk) is chunk


def test_a_mapping_of_a_chunks_fields_is_a_chunk() -> None:
    function = {"name": "read", "arguments": "{}"}
    given_call = {"id": "a", "type": "function", "function": function, "index": None}
    assert to_chunk(
        {"content": None, "tool_calls": [given_call], "usage": {"input_tokens": 1}}
    ) == ModelChunk(tool_calls=(call(id="a", name="read", arguments="{}"),), usage=Usage(input_tokens=1))


@pytest.mark.parametrize(
    ("garbage", "field"),
    [
        ({"contents": "x"}, "contents"),
        ({"content": 5}, "content"),
        ({"tool_calls": "read"}, "tool_calls"),
        ({"tool_calls": [{"function": {"arguments": {"a": 1}}}]}, "tool_calls.0.function.arguments"),
        ({"usage": {"input_tokens": -1}}, "usage.input_tokens"),
        ({1: 2}, "1"),
    ],
)
def test_a_mapping_that_is_no_chunk_is_refused_by_the_rule_it_breaks(
    garbage: dict[str, object], field: str
) -> None:
    with pytest.raises(ModelFailed) as failed:
        to_chunk(garbage)
    assert failed.value.values["rule"] == "broken"
    assert str(failed.value.values["problem"]).startswith(f"{field}: ")
    failed.value.message("zh").encode()


def test_halves_of_surrogate_pairs_are_shown_as_such() -> None:
    halves = {"content": "a\ud83d", "tool_calls": [{"function": {"name": "read", "arguments": "\ude00"}}]}
    mended = ModelChunk(content="a", tool_calls=(call(name="read", arguments="\ufffd"),))
    for each in (halves, ModelChunk.model_validate(halves)):
        joiner = SurrogateJoiner()
        assert joiner.join(to_chunk(each)) == mended
        assert joiner.rest() == ModelChunk(content="\ufffd")
        assert joiner.rest() is None


@pytest.mark.parametrize("garbage", [None, "text", 5, ["x"], {"\ud800": 1}])
def test_what_is_no_mapping_is_refused(garbage: object) -> None:
    with pytest.raises(ModelFailed):
        to_chunk(garbage)  # type: ignore[arg-type]


def test_a_mapping_that_holds_itself_is_refused() -> None:
    endless: dict[str, object] = {}
    endless["usage"] = endless
    with pytest.raises(ModelFailed):
        to_chunk(endless)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(
    st.dictionaries(
        st.sampled_from(["content", "tool_calls", "usage", "finish_reason"]) | st.text(), json_values
    )
)
def test_any_mapping_is_a_chunk_or_is_refused(garbage: dict[str, object]) -> None:
    with suppress(ModelFailed):
        assert isinstance(to_chunk(garbage), ModelChunk)
