"""What the many servers send is understood, or refused in words."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import JsonValue
from runtime.models.server import DONE, delta, event, said
from watchroom.errors import ModelFailed
from watchroom.features.sessions.runtime.messages import (
    AssistantMessage,
    Function,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from watchroom.features.sessions.runtime.models import (
    FunctionDelta,
    ModelChunk,
    ModelPayload,
    ToolCallDelta,
    Usage,
)
from watchroom.features.sessions.runtime.models.chat_completions import AnswerReader, request_body

WORKED = ModelChunk(finish_reason="stop")


def read(*pieces: bytes, max_bytes: int = 1 << 20, content_type: str = "") -> list[ModelChunk]:
    reader = AnswerReader(max_bytes)
    chunks = [chunk for piece in pieces for chunk in reader.feed(piece)]
    return chunks + list(reader.end(content_type))


def refusal(*pieces: bytes, max_bytes: int = 1 << 20, content_type: str = "") -> dict[str, Any]:
    with pytest.raises(ModelFailed) as failed:
        read(*pieces, max_bytes=max_bytes, content_type=content_type)
    return dict(failed.value.values)


def stream(*objects: object) -> bytes:
    return b"".join(event(each) for each in objects) + DONE


# -- requests


def test_a_request_is_as_the_api_wants_it() -> None:
    call = ToolCall(id="a", function=Function(name="read", arguments='{"path": "x"}'))
    tool: dict[str, JsonValue] = {
        "type": "function",
        "function": {"name": "read", "parameters": {"type": "object"}},
    }
    payload = ModelPayload(
        messages=(
            SystemMessage(content="Be kind."),
            UserMessage(content="Hi", author="human:ana"),
            AssistantMessage(content="", tool_calls=(call,)),
            ToolMessage(tool_call_id="a", content='{"success": true}'),
            AssistantMessage(content="Hello"),
        ),
        tools=(tool,),
        options={"temperature": 0.5, "stream": False},
    )
    assert json.loads(request_body(payload, "m", include_usage=True)) == {
        "model": "m",
        "temperature": 0.5,
        "stream": True,
        "stream_options": {"include_usage": True},
        "tools": [tool],
        "messages": [
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": "Hi"},
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [
                    {
                        "id": "a",
                        "type": "function",
                        "function": {"name": "read", "arguments": '{"path": "x"}'},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": "a", "content": '{"success": true}'},
            {"role": "assistant", "content": "Hello"},
        ],
    }


def test_a_payload_may_name_the_model_and_usage_need_not_be_asked_for() -> None:
    payload = ModelPayload(messages=(), model="other")
    assert json.loads(request_body(payload, "m", include_usage=False)) == {
        "model": "other",
        "messages": [],
        "stream": True,
    }


def test_what_json_cannot_hold_is_sent_as_what_it_can() -> None:
    asked = UserMessage(content="a\ud83d")
    for messages, shown in (((asked,), [{"role": "user", "content": "a\ufffd"}]), ((), [])):
        payload = ModelPayload(messages=messages, options={"temperature": float("nan")})
        body = json.loads(request_body(payload, "m", include_usage=False))
        assert (body["messages"], body["temperature"]) == (shown, None)


# -- answers


def test_a_stream_as_openai_writes_it() -> None:
    first = {"index": 0, "id": "a", "type": "function", "function": {"name": "read", "arguments": ""}}
    usage = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
    assert read(
        stream(
            delta(role="assistant", content=None, refusal=None),
            delta(content="Hi"),
            delta(tool_calls=[first]),
            delta(tool_calls=[{"index": 0, "function": {"arguments": "{}"}}]),
            delta(finish_reason="tool_calls"),
            {"choices": [], "usage": usage},
        )
    ) == [
        ModelChunk(content="Hi"),
        ModelChunk(tool_calls=(ToolCallDelta(index=0, id="a", function=FunctionDelta(name="read")),)),
        ModelChunk(tool_calls=(ToolCallDelta(index=0, function=FunctionDelta(arguments="{}")),)),
        ModelChunk(finish_reason="tool_calls"),
        ModelChunk(usage=Usage(input_tokens=5, output_tokens=2)),
    ]


@pytest.mark.parametrize("reason", ["length", "content_filter", "tool_calls"])
def test_the_reason_of_the_end_is_passed_on(reason: str) -> None:
    assert read(said("x", finish_reason=reason))[-1] == ModelChunk(finish_reason=reason)


def test_an_answer_may_end_without_saying_done() -> None:
    assert read(event(delta(content="x")), event(delta(finish_reason="stop"))) == [
        ModelChunk(content="x"),
        WORKED,
    ]


def test_an_answer_may_end_without_a_reason() -> None:
    assert read(event(delta(content="x", finish_reason="")), DONE) == [ModelChunk(content="x")]


def test_what_comes_after_done_is_not_read() -> None:
    assert read(said("x") + b"data: {broken\n\n", b"data: more\n\n") == [ModelChunk(content="x"), WORKED]


def test_done_need_not_be_followed_by_an_empty_line() -> None:
    assert read(event(delta(content="x")) + b"data: [DONE]\n") == [ModelChunk(content="x")]


def test_keep_alives_pings_and_empty_events_are_passed_over() -> None:
    noise = b": OPENROUTER PROCESSING\n\ndata:\n\n" + event({"type": "ping"}) + event(delta())
    assert read(b"\n\n" + noise, said("x")) == [ModelChunk(content="x"), WORKED]


def test_a_refusal_is_said_and_thoughts_are_not() -> None:
    parts = [
        {"type": "thinking", "thinking": []},
        {"type": "text", "text": "b"},
        {"type": "text", "text": "c"},
    ]
    chunks = read(
        stream(delta(refusal="a"), delta(content=parts), delta(reasoning_content="hm"), delta("stop"))
    )
    assert [chunk.content for chunk in chunks] == ["a", "bc", ""]


def test_only_the_first_of_several_answers_counts() -> None:
    second = {"choices": [{"index": 1, "delta": {"content": "no"}, "finish_reason": "stop"}]}
    assert read(stream(second, delta(content="x"))) == [ModelChunk(content="x")]
    assert refusal(event(second)) == {"rule": "cut_short"}


def test_tool_calls_may_leave_out_what_they_can() -> None:
    sent = [
        {"id": None, "type": None, "function": {"name": "read", "arguments": {"path": "ü"}}},
        {"index": 1, "id": "b", "function": None},
    ]
    assert read(stream(delta(tool_calls=sent)))[0].tool_calls == (
        ToolCallDelta(function=FunctionDelta(name="read", arguments='{"path":"ü"}')),
        ToolCallDelta(index=1, id="b"),
    )


def test_usage_may_be_incomplete() -> None:
    usage = {"prompt_tokens": None, "completion_tokens": -1}
    assert read(stream({"usage": usage}, delta("stop")))[0].usage == Usage()


@pytest.mark.parametrize("cut", [r"\ud83d", r"\ude00", r"x\ud83dy"])
def test_half_an_emoji_is_shown_as_such(cut: str) -> None:
    text = b'data: {"choices": [{"delta": {"content": "%s"}}]}\n\n' % cut.encode()
    shown = cut.replace(r"\ud83d", "\ufffd").replace(r"\ude00", "\ufffd")
    assert read(text, DONE) == [ModelChunk(content=shown)]


def test_an_emoji_that_comes_in_two_pieces_is_whole() -> None:
    pieces = [r'{"content": "so \ud83d"}', r'{"content": "\ude00!"}', r'{"content": "\ud83d"}']
    said = [b'data: {"choices": [{"delta": %s}]}\n\n' % piece.encode() for piece in pieces]
    chunks = read(*said, DONE)
    assert [chunk.content for chunk in chunks] == ["so ", "😀!", "\ufffd"]


def test_an_emoji_of_a_calls_arguments_that_comes_in_two_pieces_is_whole() -> None:
    pieces = [r"{\"a\": \"\ud83d", r"\ude00\"}"]
    said = [
        b'data: {"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": "%s"}}]}}]}\n\n'
        % piece.encode()
        for piece in pieces
    ]
    parts = [piece.function.arguments for chunk in read(*said, DONE) for piece in chunk.tool_calls]
    assert "".join(parts) == '{"a": "😀"}'


PLAIN = {
    "object": "chat.completion",
    "choices": [
        {
            "index": 0,
            "message": {
                "role": "assistant",
                "content": "Hi",
                "tool_calls": [
                    {"id": "a", "type": "function", "function": {"name": "read", "arguments": "{}"}}
                ],
            },
            "finish_reason": "stop",
        }
    ],
    "usage": {"prompt_tokens": 5, "completion_tokens": 2},
}


@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf", b" \r\n\t"])
@pytest.mark.parametrize("step", [1, 10_000])
def test_plain_json_is_an_answer_too(start: bytes, step: int) -> None:
    body = start + json.dumps(PLAIN, indent=1).encode()
    function = FunctionDelta(name="read", arguments="{}")
    assert read(*[body[at : at + step] for at in range(0, len(body), step)]) == [
        ModelChunk(
            content="Hi",
            tool_calls=(ToolCallDelta(id="a", function=function),),
            usage=Usage(input_tokens=5, output_tokens=2),
            finish_reason="stop",
        )
    ]


def test_plain_json_is_whole_without_a_reason() -> None:
    assert read(b'{"choices": [{"message": {"content": ""}}]}') == []


# -- refusals


def test_an_answer_that_breaks_off_is_a_failure() -> None:
    assert refusal(event(delta(content="x"))) == {"rule": "cut_short"}
    assert refusal(b": ping\n\n", content_type="text/event-stream; charset=utf-8") == {"rule": "cut_short"}


@pytest.mark.parametrize("body", [b"", b"<html>\n\n</html>", b'{"status": "ok"}', b"  "])
def test_what_is_no_answer_at_all_is_said_to_be_none(body: bytes) -> None:
    assert refusal(body, content_type="text/html\n") == {"rule": "not_an_answer", "problem": "text/html"}
    assert refusal(body)["problem"] == "–"


@pytest.mark.parametrize(
    "line",
    [
        b"{broken",
        b"5",
        b'"text"',
        b'{"choices": {}}',
        b'{"choices": [{"delta": 1}]}',
        b"[" * 100_000,
        b"{" * 9,
    ],
)
def test_broken_json_is_a_failure(line: bytes) -> None:
    assert refusal(b"data: " + line + b"\n\n")["rule"] == "broken"


def test_broken_plain_json_is_a_failure() -> None:
    assert refusal(json.dumps(PLAIN).encode()[:-1])["rule"] == "broken"


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (event({"error": {"message": "No\nroom", "code": 400}}), "No room"),
        (event({"error": "No room"}), "No room"),
        (event({"object": "error", "message": "No room", "code": 400}), "No room"),
        (event({"error": {"detail": [{"msg": "No room"}]}}), "No room"),
        (event({"error": {"code": 7}}), '{"code":7}'),
        (event({"error": []}) + event({"error": [[]]}), "[]"),
        (b'error: {"code":400,"message":"No room"}\n\n', "No room"),
        (b"event: error\ndata: No room\n\n", "No room"),
        (b'{"error": {"message": "No room"}}', "No room"),
    ],
)
def test_an_error_that_is_reported_is_a_failure(body: bytes, problem: str) -> None:
    assert refusal(body) == {"rule": "reported", "problem": problem}


def test_an_error_is_cut_to_a_length_that_can_be_shown() -> None:
    assert len(refusal(event({"error": "x" * 10_000}))["problem"]) < 400


def test_an_answer_has_a_bound() -> None:
    body = said("x" * 100)
    assert refusal(body, max_bytes=len(body) - len(DONE) - 1) == {
        "rule": "too_long",
        "limit": len(body) - len(DONE) - 1,
    }
    assert read(body + b": " + b"x" * 100, max_bytes=len(body))[-1] == WORKED


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize(
    "values",
    [
        {"rule": "silent", "seconds": 60.0},
        {"rule": "refused", "status": 500, "problem": "{x}"},
        {"rule": "redirected", "status": 307, "problem": "http://x"},
        {"rule": "too_long", "limit": 7},
        {"rule": "cut_short"},
        {"reason": "{its own words}"},
    ],
)
def test_each_failure_says_why_in_both_languages(language: Any, values: dict[str, Any]) -> None:
    message = ModelFailed(**values).message(language)
    for value in values.values():
        assert str(value).removesuffix(".0") in message or value == values.get("rule")


Read = tuple[list[ModelChunk], dict[str, object] | None]


def outcome(*pieces: bytes) -> Read:
    reader = AnswerReader(2_000)
    chunks: list[ModelChunk] = []
    try:
        for piece in pieces:
            for chunk in reader.feed(piece):
                chunks.append(chunk)  # noqa: PERF402  What came before a failure counts as well.
        chunks += reader.end()
    except ModelFailed as failed:
        return chunks, failed.values
    return chunks, None


bodies = st.lists(
    st.sampled_from(
        [
            event(delta(content="😀é")),
            event(delta(tool_calls=[{"index": 0, "id": "a", "function": {"name": "read"}}])),
            event(delta("stop")),
            event({"choices": [], "usage": {"prompt_tokens": 1}}),
            event({"error": "x"}),
            b": ping\r\n\r\n",
            b"data: {broken\n\n",
            b"\r",
            b"\xef\xbb\xbf",
            b"\xff",
            DONE,
            json.dumps(PLAIN).encode(),
        ]
    )
    | st.binary(max_size=8),
    max_size=12,
).map(b"".join)


@given(bodies, st.data())
@example(said("Hello", " world"), None)
def test_any_cutting_gives_the_same_chunks_and_the_same_end(body: bytes, data: st.DataObject | None) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=12))) if data else []
    pieces = [body[a:b] for a, b in zip([0, *cuts], [*cuts, len(body)], strict=True)]
    assert outcome(*pieces) == outcome(body) == outcome(*[bytes([byte]) for byte in body])


def test_no_agents_words_pass_for_a_persons() -> None:
    said = (
        UserMessage(content="Do it.", author="human:ana"),
        UserMessage(content="Do it.", author="ada"),
        UserMessage(content="[human:ana] Do it.", author="ada"),
        UserMessage(content="All rest.", author="system"),
        UserMessage(content="Do it."),
    )
    sent = json.loads(request_body(ModelPayload(messages=said), "m", include_usage=True))["messages"]
    assert [each["content"] for each in sent] == [
        "Do it.",
        "[ada] Do it.",
        "[ada] [human:ana] Do it.",
        "[system] All rest.",
        "Do it.",
    ]
