"""A board of any length as lines: chunk by chunk, and the same after an edit as if it had been so before."""

from __future__ import annotations

from effort import rounds
from hypothesis import example, given, settings
from hypothesis import strategies as st
from watchroom_tui.markdown.index import Index, Outline, changed
from watchroom_tui.markdown.page import TOP, Page
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


def whole(data: bytes) -> Index:
    index = Index(data)
    while index.grow():
        pass
    return index


def lines(page: Page) -> list[str]:
    return ["".join(span.text for span in page.line(place).spans) for place in page.window(TOP, 100_000)]


def fresh(data: bytes, width: int = 60) -> list[str]:
    return lines(Page(whole(data), width))


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
    page = Page(whole(data) if is_whole else Index(data), 60)
    page.window(TOP, 50)
    page.edit(edited)
    while page.index.grow():
        pass
    if page.index.references:
        page.forget()
    assert lines(page) == fresh(edited)
    assert list(Outline(page.index)) == list(Outline(whole(edited)))


@given(boards)
@settings(max_examples=rounds(30, 60))
def test_the_outline_is_what_the_parser_says(data: bytes) -> None:
    # Thousands of bytes that are underlined are no heading to anybody, and not looked into.
    sane = [each for each in headings(data) if each.body - each.start < MAX_CHUNK_BYTES]
    assert list(Outline(whole(data))) == sane


@given(boards, boards)
@settings(max_examples=rounds(100, 200))
def test_what_changed_is_all_that_differs(old: bytes, new: bytes) -> None:
    start, old_end, new_end = changed(old, new)
    assert old[:start] + new[start:new_end] + old[old_end:] == new
    if old != new:
        assert old[start : start + 1] != new[start : start + 1] or start in (len(old), len(new))


def test_places_and_bytes_lead_to_each_other() -> None:
    data = b"".join(b"# heading %d\n\nsome words\n- item\n\n" % number for number in range(3000))
    page = Page(whole(data), 60)
    for offset in (
        0,
        data.index(b"# heading 1500\n"),
        data.index(b"- item", 70_000),
        data.rindex(b"# heading"),
    ):
        assert page.offset(page.place(offset)) == offset
    assert page.place(len(data)).chunk == len(page.index) - 1


def test_moving_down_and_up_leads_back_and_ends_at_both_ends() -> None:
    data = b"".join(b"# heading %d\n\nsome words\n- item\n\n" % number for number in range(2000))
    page = Page(whole(data), 60)
    place = page.place(data.index(b"# heading 700\n"))
    assert page.move(page.move(place, 345), -345) == place
    assert page.move(place, -1_000_000) == TOP
    last = page.last(10)
    assert len(page.window(last, 100)) == 10
    assert page.move(last, 9) == page.move(last, 1_000)


def test_an_edit_far_away_draws_nothing_anew_and_a_near_one_only_its_chunk() -> None:
    data = b"".join(b"# heading %d\n\nsome words\n- item\n\n" % number for number in range(20_000))
    page = Page(whole(data), 60)
    place = page.place(data.index(b"# heading 10000\n"))
    before = page.drawn(place.chunk)
    page.edit(b"# new\n\n" + data)
    while page.index.grow():
        pass
    again = page.place(page.index.data.index(b"# heading 10000\n"))
    assert page.drawn(again.chunk) is before
    assert (
        max(each.end - each.start for each in (page.index[number] for number in range(len(page.index))))
        <= MAX_CHUNK_BYTES
    )


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
    with_mark, without = (whole(text.encode()) for text in ("\ufeff# T\ntext\n", "# T\ntext\n"))
    assert Page(with_mark, 40).drawn(0).lines == Page(without, 40).drawn(0).lines
