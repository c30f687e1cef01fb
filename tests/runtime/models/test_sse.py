"""Server-sent events are the same however their bytes are cut."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from watchroom.errors import ModelFailed
from watchroom.features.sessions.runtime.models.sse import EventParser, ServerSentEvent


def events(*pieces: bytes, longest_line: int = 1000) -> list[ServerSentEvent]:
    parser = EventParser(longest_line)
    found = [event for piece in pieces for event in parser.feed(piece)]
    return found + list(parser.close())


def data(*pieces: bytes) -> list[str]:
    return [event.data for event in events(*pieces)]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_lines_may_end_in_three_ways(end: bytes) -> None:
    assert data(b"data: one" + end + end + b"data: two" + end + end) == ["one", "two"]


def test_an_event_comes_with_the_line_that_closes_it() -> None:
    parser = EventParser()
    assert list(parser.feed(b"data: one\r\n\r")) == [ServerSentEvent("", "one")]
    assert list(parser.feed(b"\ndata: two\n")) == []
    assert list(parser.feed(b"\n")) == [ServerSentEvent("", "two")]


def test_the_two_characters_of_one_line_end_may_come_apart() -> None:
    assert data(b"data: one\r", b"\ndata: two\r", b"\n\r", b"\n") == ["one\ntwo"]


def test_lines_of_one_event_are_joined() -> None:
    assert data(b"data: one\ndata:\ndata:two\ndata:  three\n\n") == ["one\n\ntwo\n three"]


def test_comments_unknown_fields_and_empty_events_are_passed_over() -> None:
    stream = b": ping\n\n:\n\nid: 7\nretry: 1\ndata\n\nevent: ping\n\ndata: one\nnonsense\n\ndatas: x\n\n"
    assert events(stream) == [ServerSentEvent("", "one")]


def test_an_event_may_have_a_name() -> None:
    assert events(b"event: error\ndata: one\n\ndata: two\n\n") == [
        ServerSentEvent("error", "one"),
        ServerSentEvent("", "two"),
    ]


def test_a_field_called_error_is_an_event_of_that_name() -> None:
    assert events(b'error: {"code":400}\n\n') == [ServerSentEvent("error", '{"code":400}')]


def test_a_byte_order_mark_is_passed_over_at_the_beginning_only() -> None:
    mark = b"\xef\xbb\xbf"
    assert data(mark[:1], mark[1:] + b"data: one\n\n" + mark + b"data: two\n\n") == ["one"]


def test_the_last_event_need_not_be_closed_by_an_empty_line() -> None:
    assert data(b"data: one\n\ndata: [DONE]\n") == ["one", "[DONE]"]


def test_a_line_that_was_cut_off_is_not_taken() -> None:
    assert data(b"data: one\n\ndata: tw") == ["one"]


def test_bytes_that_are_not_utf_8_are_shown_as_such() -> None:
    assert data(b"data: a\xffb\n\n") == ["a\ufffdb"]


@pytest.mark.parametrize(
    "stream",
    [
        b"data: one\n\n" + b"data: " + b"x" * 95 + b"\n\n",
        b"data: one\n\n" + b"x" * 101,
        b"data: one\n\n" + (b"data: " + b"x" * 40 + b"\n") * 3 + b"\n",
    ],
)
@pytest.mark.parametrize("step", [1, 7, 10_000])
def test_lines_and_events_have_a_bound(stream: bytes, step: int) -> None:
    parser = EventParser(longest_line=100)
    found: list[ServerSentEvent] = []

    def feed(pieces: Iterable[bytes]) -> None:
        for piece in pieces:
            found.extend(parser.feed(piece))

    with pytest.raises(ModelFailed) as failed:
        feed(stream[start : start + step] for start in range(0, len(stream), step))
    assert failed.value.values == {"rule": "line_too_long", "limit": 100}
    if step == 1:
        assert found == [ServerSentEvent("", "one")]


def test_a_line_as_long_as_the_bound_is_taken() -> None:
    assert events(b"data: " + b"x" * 94 + b"\n\n", longest_line=100) == [ServerSentEvent("", "x" * 94)]


fragments = st.sampled_from(
    [
        "data: a",
        "data: a\r\n",
        "data: é\r",
        "data:😀\n",
        "event: x\n",
        ":\n",
        "\n",
        "\r\n",
        "\r",
        "error: e\n",
        "\ufeff",
    ]
)


def outcome(*pieces: bytes) -> tuple[list[ServerSentEvent], bool]:
    """What came, and whether a line was refused then."""
    parser = EventParser(longest_line=20)
    found: list[ServerSentEvent] = []
    try:
        for piece in pieces:
            for event in parser.feed(piece):
                found.append(event)  # noqa: PERF402  What came before a refusal counts as well.
    except ModelFailed:
        return found, True
    return found + list(parser.close()), False


@given(st.lists(fragments | st.text(max_size=5), max_size=30).map("".join), st.data())
def test_any_cutting_gives_the_same_events(text: str, draw: st.DataObject) -> None:
    stream = text.encode()
    cuts = sorted(draw.draw(st.lists(st.integers(0, len(stream)), max_size=12)))
    pieces = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert outcome(*pieces) == outcome(stream) == outcome(*[bytes([byte]) for byte in stream])
