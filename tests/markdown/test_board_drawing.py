"""A board of any length as lines: chunk by chunk, and the same after an edit as if it had been so before."""

from __future__ import annotations

import asyncio

import pytest
from effort import rounds
from hypothesis import example, given, settings
from hypothesis import strategies as st
from watchroom_tui.markdown.board_drawing import MAX_AHEAD, BoardDrawing
from watchroom_tui.markdown.source_change import find_change
from watchroom_tui.markdown.text_finder import Finder
from watchroom_whiteboards.chunks import MAX_CHUNK_BYTES
from watchroom_whiteboards.outline import headings

BLOCKS = (
    *(
        "# heading\n",
        "## [r] two\n",
        "text with words\n",
        "\n",
        "- item\n",
        "  - inner\n",
        "```py\n",
        "```\n",
    ),
    *(
        "| a | b |\n|---|---|\n",
        "| c | d |\n",
        "> quote\n",
        "<!--\n",
        "-->\n",
        "setext\n---\n",
        "[r]: /url\n",
    ),
    *(
        "字" * 40 + "\n",
        "1. one\n",
        "~~~\n",
        "<div>\n",
        "x" * 300 + "\n",
        "x = 1\n" * 900,
        "| c | d |\n" * 500,
    ),
    *("para " * 200 + "\n\n", "- log entry\n" * 400, "\r\n", "no end"),
)
boards = st.tuples(st.sampled_from(["", "\ufeff"]), st.lists(st.sampled_from(BLOCKS), max_size=30)).map(
    lambda each: (each[0] + "".join(each[1])).encode()
)


def drawing_of(data: bytes, width: int = 60) -> BoardDrawing:
    drawing = BoardDrawing(data)
    drawing.fit(width)
    return drawing


def finished(drawing: BoardDrawing) -> BoardDrawing:
    """Do all the work ahead."""

    async def work() -> None:
        while await drawing.work_ahead(0, 10_000) is not None:
            pass

    asyncio.run(work())
    return drawing


def lines(drawing: BoardDrawing) -> list[str]:
    drawing.settle(0, 0, 1_000_000)
    return [drawing.cell_texts(row)[0] for row in range(len(drawing))]


@given(boards, boards, st.integers(0, 10_000), st.integers(0, 200), st.booleans())
@settings(max_examples=rounds(40, 80))
@example(b"# a\n" * 4000 + b"# b\n", b"```\n", 8000, 0, False)
@example(b"```\n" + b"x = 1\n" * 5000 + b"```\n# a\n" + b"text\n\n" * 3000, b"```\n", 9000, 0, True)
@example(b"[r]\n\n" + b"# a\n" * 4000, b"[r]: /x\n", 16004, 0, True)
def test_an_edit_gives_the_lines_of_a_fresh_view(
    data: bytes, inserted: bytes, at: int, removed: int, is_whole: bool
) -> None:
    at = min(at, len(data))
    edited = data[:at] + inserted + data[at + removed :]
    edited = edited.decode("utf-8", "ignore").encode()
    before = drawing_of(data)
    if is_whole:
        finished(before)
    before.settle(0, 0, 50)
    after = BoardDrawing(edited)
    after.follow(before)
    assert lines(finished(after)) == lines(finished(drawing_of(edited)))


@given(boards)
@settings(max_examples=rounds(30, 60))
def test_the_outline_is_what_the_parser_says(data: bytes) -> None:
    # Thousands of bytes that are underlined are no heading to anybody, and not looked into.
    sane = [each for each in headings(data) if each.body - each.start < MAX_CHUNK_BYTES]
    assert list(finished(drawing_of(data)).outline()) == sane


@given(boards, boards)
@settings(max_examples=rounds(100, 200))
def test_what_changed_is_all_that_differs(old: bytes, new: bytes) -> None:
    start, old_end, new_end = find_change(old, new)
    assert old[:start] + new[start:new_end] + old[old_end:] == new
    if old != new:
        assert old[start : start + 1] != new[start : start + 1] or start in (len(old), len(new))


def test_rows_and_bytes_lead_to_each_other() -> None:
    data = b"".join(b"# heading %d\n\nsome words\n- item\n\n" % number for number in range(3000))
    drawing = drawing_of(data)
    for offset in (
        0,
        data.index(b"# heading 1500\n"),
        data.index(b"- item", 70_000),
        data.rindex(b"# heading"),
    ):
        assert drawing.anchor(drawing.row_at(offset)) == offset
    drawing.settle(0, 0, 1_000_000)
    assert drawing.cell_texts(drawing.row_at(len(data)) + 1) == ["• item"]


@pytest.fixture(scope="module")
def whole() -> tuple[BoardDrawing, list[str]]:
    """A board of 3000 headings, all of whose rows were drawn, and their texts."""
    data = b"".join(b"# heading %d\n\nsome words\n- item\n\n" % number for number in range(3000))
    drawing = drawing_of(data)
    return drawing, lines(drawing)


@given(st.integers(0, 2999), st.integers(0, 400), st.integers(0, 400))
@settings(max_examples=rounds(20, 60))
def test_a_row_keeps_its_text_when_those_around_it_are_drawn(
    whole: tuple[BoardDrawing, list[str]], number: int, above: int, below: int
) -> None:
    drawn, texts = whole
    drawing = drawing_of(drawn.data)
    offset = drawn.data.index(b"# heading %d\n" % number)
    row = drawing.settle(drawing.row_at(offset), above, below)
    exact = drawn.row_at(offset)
    for step in range(-min(above, exact), min(below, len(texts) - exact)):
        assert drawing.cell_texts(row + step) == [texts[exact + step]]


def test_the_last_row_is_the_end_however_long_the_board_is() -> None:
    data = b"".join(b"# heading %d\n\nsome words\n\n" % number for number in range(4 * MAX_AHEAD // 30))
    assert len(data) > 3 * MAX_AHEAD
    drawing = drawing_of(data)
    last = drawing.settle(len(drawing) - 1, 100, 0)
    assert last == len(drawing) - 1
    assert drawing.anchor(last) == data.rindex(b"some words")
    assert len(drawing.outline()) == data.count(b"# heading")


def test_an_edit_far_away_draws_nothing_anew() -> None:
    data = b"".join(b"# heading %d\n\nsome words\n- item\n\n" % number for number in range(20_000))
    place = data.index(b"# heading 10000\n")

    def drawn(drawing: BoardDrawing, offset: int) -> object:
        return drawing.row(drawing.row_at(offset), 60, is_top=False)[0].text

    before = drawing_of(data)
    text = drawn(before, place)
    after = BoardDrawing(b"# new\n\n" + data)
    after.follow(before)
    assert drawn(after, place + 7) is text
    assert drawn(drawing_of(data), place) is not text


@given(st.text("aAbBéÉßſKk字 ", max_size=300), st.text("aAbéÉk字", min_size=1, max_size=3))
def test_all_matches_are_found_whatever_their_case(text: str, words: str) -> None:
    data = text.encode()
    finder = Finder(words)
    found = [place for each in finder.matches(data) for place in each]
    at, wanted = 0, []
    # Each letter in its small and its capital form, nothing that only looks like it.
    forms = [{letter, letter.lower(), letter.upper()} for letter in words]
    while at + len(words) <= len(text):
        if all(text[at + place] in form for place, form in enumerate(forms)):
            wanted.append(len(text[:at].encode()))
            at += len(words)
        else:
            at += 1
    assert found == wanted
    if found:
        assert finder.next(data, 0) == found[0]
        assert finder.last(data, len(data)) in found


def test_matches_over_the_edges_of_slices_are_found_once() -> None:
    data = b"x" * ((1 << 19) - 2) + b"needle" + b"y" * (1 << 19) + b"NEEDLE"
    assert [place for each in Finder("Needle").matches(data) for place in each] == [
        (1 << 19) - 2,
        len(data) - 6,
    ]


def test_a_byte_order_mark_at_the_beginning_is_not_drawn() -> None:
    with_mark, without = (drawing_of(text.encode()) for text in ("\ufeff# T\ntext\n", "# T\ntext\n"))
    assert lines(with_mark) == lines(without)
