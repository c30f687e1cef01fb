"""The headings of a board are those that the parser finds, however the text around them is made."""

from __future__ import annotations

import re

import pytest
from effort import rounds
from hypothesis import example, given, settings
from hypothesis import strategies as st
from watchroom_whiteboards.chunks import MAX_CHUNK_BYTES, chunks
from watchroom_whiteboards.markdown import parser
from watchroom_whiteboards.outline import Heading, closing, headings
from watchroom_whiteboards.segments import BOM, split_segments

LINE_END = re.compile(rb"\r\n?|\n")


def parsed(data: bytes, *, is_start: bool = True) -> list[Heading]:
    """The headings as markdown-it gives them when it parses the whole text, which may begin with a byte order
    mark where it ``is_start``."""
    first = len(BOM) if is_start and data.startswith(BOM) else 0
    starts = [first, *(match.end() for match in LINE_END.finditer(data)), len(data)]
    tokens = parser().parse(data[first:].decode())
    found = []
    for place, token in enumerate(tokens):
        if token.type != "heading_open" or token.level or token.map is None:
            continue
        first, after = token.map
        words = [
            "\n" if child.type in ("softbreak", "hardbreak") else child.content
            for child in tokens[place + 1].children or []
        ]
        title, written = ("".join(words), tokens[place + 1].content)
        found.append(
            Heading(
                int(token.tag[1]),
                " ".join(title.split()),
                starts[first],
                starts[after],
                " ".join(written.split()),
            )
        )
    return found


MARKS = (
    *(
        "# a",
        "## b ##",
        "### c #",
        "#",
        "#\t",
        "####### d",
        "#e",
        " # f",
        "   ## g",
        "    # h",
        "\t# i",
        "# `j`",
    ),
    *("# a | b", "## [k]", "# *l* \\#", "# m \0", "#  n　#", "# &amp;#8238;", "# o \\", "# [p](x) <b>"),
    *("===", "---", "--", "=", " ===  ", "   ---", "    ===", "\t---", "***", "- - -", "=-="),
    *(
        "```",
        "````",
        "``` py",
        "~~~",
        "~~~~ a|b",
        " ```",
        "   ~~~",
        "    ```",
        "``` a`b",
        "```` ",
        "  ````\t",
        "``` |",
    ),
    *("<div>", "</div>", "<div", " <p>", "<!-- ", "-->", "<!-->", "<!--->", "<?php", "?>", "<!A", ">", "]]>"),
    *("<![CDATA[", "<script>", "</script>", "<PRE>", "</style>", "<a>", "</a>", "<x y='z'>", "<https://a.b>"),
    *("<b>text", "    <div>", "  <!--", "<textarea", "<a\0b>", "<x y=\0>"),
    *(
        "- a",
        "-",
        "- ",
        "* b",
        "+ c",
        "1. d",
        "2) e",
        "10. f",
        "  - g",
        "    - h",
        "- # i",
        "- ```",
        "- <div>",
    ),
    *("- <!--", "1. ~~~", "-\ta", "- - - - - - - - - - - - - a", "> " * 30 + "a", "  # j", "  ===", "  ```"),
    *("> a", ">", "> # b", "> ```", "> <!--", ">> c", "> - d", "> ---", "> |"),
    *(
        "a | b",
        "--|--",
        "|-|",
        ":-:|-",
        "|---|---|",
        "| c | d |",
        "-|",
        "|",
        "---",
        "# a | b",
        "- a|b",
        "<b> | c",
    ),
    *(
        "[k]: /url",
        "[k]:",
        "/url",
        '"title',
        'end"',
        "[k",
        "]: /u",
        "[K]: <a b> 'c'",
        "[k]: /url x",
        "> [k]: /v",
    ),
    *(
        "text",
        "more text",
        "  text",
        "    code",
        "\tcode",
        "é",
        "文字",
        "\u00a0x",
        "\u3000",
        "\ufeff# x",
        "\x0b",
        "\x0c# x",
    ),
    *("", "", "", " ", "\t", "   ", "\0", "\\", "*a", "a*", "`", "a\u2028# b", "\u0085"),
)

lines = st.one_of(st.sampled_from(MARKS), st.text("#`~<>-=|[]:.*1 \t!?/abdiv", max_size=8))
ends = st.sampled_from(["\n"] * 8 + ["\r\n", "\r"])
same_ends = st.sampled_from(["\n", "\r\n", "\r"])
mixed = st.lists(st.tuples(lines, ends), max_size=24).map(lambda each: "".join(a + b for a, b in each))
even = st.tuples(st.lists(lines, max_size=24), same_ends).map(lambda each: each[1].join(each[0]))
soup = st.one_of(mixed, even, st.text(max_size=60)).map(lambda text: text.encode("utf-8", "ignore"))


@given(soup)
@settings(max_examples=rounds(200, 600))
@example(BOM + b"# a\n# b")
@example(BOM + b"a\n===\n")
@example(BOM)
@example(b"# a | b\n--|--\n# c\n")
@example(b"~~~ a|b\n--|--\n# c\n~~~\n# d")
@example(b"- foo\n<a>\n# bar\n<a>\n# baz\n\n# qux")
@example(b"# [k]\n\n> [K]: /url\n")
@example(b"<!--\n# a\n-->\n# b\n<div>\n# c\n\n# d")
@example(b"   ```\n# a\n  ````\n# b")
@example(b"- ```\n  # x\n```\n# a\n```\n# b")
@example(b"- " * 40 + b"x\n\n# still found\n")
@example(b"foo\r\n---\r\nbar\r===\r# c")
@example(b"- " * 13 + b"a\n\xe3\x80\x80\n<a>\n- b\n- ```\n<a>\n- ```\n# c\n")
@example(b"- a\n- a|b\n:-:|-\n\n  ===\nb\n\0\n  ===\n- c\n")
@example(b"text\r\n<div>\r\nbar\r\n# c\r\n\r\n# d")
@example(b" ``` `a\n" + b"*b*\n" * 100 + b"===\n")
@example(b" ``` `a\r" + b"*b*\r" * 100 + b"===\r# c")
def test_headings_are_those_that_the_parser_finds(data: bytes) -> None:
    assert headings(data) == parsed(data)


@given(soup)
@settings(max_examples=rounds(200, 500))
@example(b"```` py\n# a")
@example(b"<script>\n# a")
@example(b"<!-- a")
@example(b"text\n\n```\n~~~")
@example(b"<div>\n")
def test_after_the_closing_a_heading_is_one(data: bytes) -> None:
    end = closing(data)
    text = data if data.endswith(b"\n") else data + b"\n"
    text += end.encode() + b"\n" if end else b""
    assert parsed(text + b"\n# the last\n")[-1:] == [
        Heading(1, "the last", len(text) + 1, len(text) + 12, "the last")
    ]


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("", ""),
        ("# a\n```\nx\n```\n", ""),
        ("# a\n```\nx\n", "```"),
        ("  ~~~~~ py\n", "~~~~~"),
        ("- ```\n  x", ""),
        ("<!-- a\n\nb", "-->"),
        ("<?php", "?>"),
        ("<!DOCTYPE", ">"),
        ("<![CDATA[\n", "]]>"),
        ("<pre>\n\na", "</script>"),
        ("<div>\na", ""),
    ],
)
def test_what_closes_a_text(text: str, end: str) -> None:
    assert closing(text.encode()) == end


@given(soup)
@settings(max_examples=rounds(200, 500))
def test_parts_cover_the_text_and_each_means_the_same_alone(data: bytes) -> None:
    found = list(split_segments(data))
    assert b"".join(data[part.start : part.end] for part in found) == data
    assert all(part.start < part.end for part in found)
    alone = [
        each._replace(start=each.start + part.start, body=each.body + part.start)
        for part in found
        for each in parsed(data[part.start : part.end], is_start=part.start == 0)
    ]
    assert [each[:1] + each[2:] for each in alone] == [each[:1] + each[2:] for each in parsed(data)]


@given(soup, st.integers(0, 200))
@example(b"# a\n</script>\n\n", 1)
@settings(max_examples=rounds(150, 300))
def test_parts_go_on_from_where_one_begins(data: bytes, number: int) -> None:
    found = list(split_segments(data))
    if found:
        place = number % len(found)
        assert list(split_segments(data, found[place].start)) == found[place:]


@given(soup)
def test_a_short_text_is_one_chunk(data: bytes) -> None:
    assert [(each.start, each.end, each.kind) for each in chunks(data)] == (
        [(0, len(data), "text")] if data else []
    )


long = st.lists(st.tuples(soup, st.integers(1, 400)), max_size=5).map(
    lambda each: b"\n".join(data * times for data, times in each)[:60_000].decode("utf-8", "ignore").encode()
)


@given(long)
@settings(max_examples=30)
@example(b"```py\n" + b"x = 1\n" * 5000 + b"```\n# after\n")
@example(b"| a | b |\n|---|---|\n" + b"| c | d |\n" * 3000)
@example("字".encode() * 10_000)
@example(b"<!--\n" + b"# x\n" * 8000 + b"-->\n# after\n")
@example(b"   <b>\n" * 5000)
def test_chunks_cover_the_text_and_none_is_too_long(data: bytes) -> None:
    found = list(chunks(data))
    assert b"".join(data[each.start : each.end] for each in found) == data
    assert all(0 < each.end - each.start <= MAX_CHUNK_BYTES for each in found)
    for each in found:
        data[each.start : each.end].decode()
    for place, each in enumerate(found):
        if each.kind == "text":
            assert list(chunks(data, each.start)) == found[place:]


def test_long_code_goes_on_as_code_and_a_long_table_as_a_table() -> None:
    data = (
        b"# a\n```py\n"
        + b"x = 1\n" * 5000
        + b"```\n\n| a | b |\n|---|---|\n"
        + b"| c | d |\n" * 3000
        + b"# z\n"
    )
    kinds = [each.kind for each in chunks(data)]
    assert set(kinds) == {"text", "fence", "table"}
    assert {data[each.opener : each.opener + 5] for each in chunks(data) if each.kind == "fence"} == {
        b"```py"
    }
    assert {data[each.opener : each.opener + 5] for each in chunks(data) if each.kind == "table"} == {
        b"| a |"
    }
