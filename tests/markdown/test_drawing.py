"""Markdown as lines: complete, no wider than the pane, and nothing in it that a terminal obeys."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import pytest
from effort import rounds
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.cells import cell_len
from watchroom_tui.markdown import code
from watchroom_tui.markdown.renderer import MarkdownLine, draw
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_whiteboards.markdown import parser

SPEC: Final = json.loads((Path(__file__).parent / "commonmark.json").read_text(encoding="utf-8"))
DECORATION: Final = re.compile(r"[▌┄┈│┼─━]|→ {3}|⏎|\s")
WIDTHS: Final = (80, 20)


def drawn(text: str, width: int = 80) -> Sequence[MarkdownLine]:
    return draw(text, width, {}).lines


def shown(lines: Sequence[MarkdownLine]) -> list[str]:
    return ["".join(span.text for span in line.spans) for line in lines]


def screen(text: str, width: int = 80) -> str:
    return "\n".join(line.rstrip() for line in shown(drawn(text, width)))


def styles(text: str, words: str) -> set[str]:
    """The styles of the piece that is or has these words."""
    return {
        style
        for line in drawn(text)
        for span in line.spans
        if words in span.text
        for style in span.style.split()
    }


def texts(tokens: Sequence[Token]) -> Iterator[str]:
    for token in tokens:
        if token.type == "inline" or token.type == "image":
            yield from texts(token.children or [])
        elif token.content:
            yield token.content


def folded(text: str) -> str:
    return DECORATION.sub("", "".join(sanitize(line) for line in text.split("\n")))


@pytest.mark.parametrize("width", WIDTHS)
def test_every_example_of_the_specification_is_drawn_whole(width: int) -> None:
    missing = {each["example"]: missing_pieces(each["markdown"], width) for each in SPEC}
    assert {example: pieces for example, pieces in missing.items() if pieces} == {}


def missing_pieces(text: str, width: int) -> list[str]:
    """What of the text is not drawn, in its order; or the lines that are too long."""
    lines = drawn(text, width)
    if too_long := [line for line in shown(lines) if cell_len(line) > width]:
        return too_long
    # Without the names of languages, which stand where there is room.
    whole = folded("".join(span.text for line in lines for span in line.spans if span.style != "block dim"))
    place, missing = 0, []
    for piece in texts(parser().parse(text)):
        # The box of a task stands for its letters.
        wanted = re.sub(r"^\[[ xX]\]", "", folded(piece)) if re.match(r"\[[ xX]\] ", piece) else folded(piece)
        found = whole.find(wanted, place)
        if found < 0:
            missing.append(piece)
        else:
            place = found + len(wanted)
    return missing


def test_there_are_652_examples() -> None:
    assert len(SPEC) == 652


# -- how it looks


def test_headings_are_told_apart_by_more_than_their_colour() -> None:
    assert screen("# a\n## b\n### c\n###### d", 16) == (
        "a\n━━━━━━━━━━━━━━━━\n\nb\n────────────────\n\n▪ c\n\n▪▪▪▪ d"
    )


def test_lists_keep_their_numbers_and_their_depth() -> None:
    assert screen("9. a\n10. b\n    - c\n      * d\n") == " 9. a\n10. b\n    ◦ c\n      ▪ d"
    assert screen("0) a\n1) b\n") == "0) a\n1) b"
    assert screen("- a\n\n- b\n") == "• a\n\n• b"


def test_tasks_have_boxes() -> None:
    assert screen("- [ ] a\n- [x] b\n- [X] c\n- [y] d\n") == "☐ a\n☑ b\n☑ c\n• [y] d"
    assert screen("1. [x] a\n") == "1. ☑ a"


def test_tables_are_aligned_and_wide_characters_keep_them_straight() -> None:
    table = "| a | 状态 | c |\n|---|:-:|--:|\n| x | 进行中 | 1 |\n| 字 | d | 100 |\n"
    assert screen(table) == ("a  │  状态  │   c\n───┼────────┼────\nx  │ 进行中 │   1\n字 │   d    │ 100")


def test_a_cell_that_is_too_wide_is_wrapped() -> None:
    lines = shown(drawn("| a | b |\n|---|---|\n| one two three four | five six seven |\n", 20))
    assert [line.rstrip() for line in lines] == [
        "a         │ b",
        "──────────┼─────────",
        "one two   │ five six",
        "three     │ seven",
        "four      │",
    ]


def test_a_table_that_no_pane_is_wide_enough_for_is_shown_cell_by_cell() -> None:
    table = "|aaaaa|bbbbb|ccccc|ddddd|\n|-|-|-|-|\n|one 1|two 2|three|four 4|\n"
    assert screen(table, 16) == "aaaaa: one 1\nbbbbb: two 2\nccccc: three\nddddd: four 4"


def test_code_has_its_language_and_its_colours() -> None:
    code.load("python")
    text = "```python\ndef f():\n    return '字'\n```\n"
    assert [line.rstrip() for line in shown(drawn(text, 24))] == [
        " def f():        python",
        "     return '字'",
    ]
    assert "syntax-keyword" in styles(text, "def")
    assert "syntax-string" in styles(text, "字")
    assert "block" in styles(text, "def")


def test_code_in_an_unknown_language_is_plain_and_keeps_what_stands_behind_the_fence() -> None:
    assert screen("~~~ whatever and more\na  b\n~~~", 40).split("\n")[0].split() == [
        "a",
        "b",
        "whatever",
        "and",
        "more",
    ]


def test_a_language_whose_colours_are_not_read_in_yet_is_named() -> None:
    assert draw("```lua\nx\n```", 40, {}).waiting in ({"lua"}, frozenset())
    code.load("lua")
    assert draw("```lua\nx\n```", 40, {}).waiting == frozenset()


def test_links_and_images_show_where_they_lead() -> None:
    assert screen("[a](http://b) <http://c> ![d](e 'f')") == "a ⟨http://b⟩ http://c ▣ d ⟨e “f”⟩"
    assert "link" in styles("[a](http://b)", "a")


def test_references_of_elsewhere_are_known() -> None:
    references = {"references": {"R": {"title": "", "href": "http://x", "map": [0, 1]}}}
    [line] = draw("see [r]", 40, references).lines
    assert "".join(span.text for span in line.spans) == "see r ⟨http://x⟩"


def test_emphasis_is_in_the_style_and_html_is_text() -> None:
    assert screen("*a* **b** ~~c~~ `d` <b>e</b>") == "a b c d <b>e</b>"
    assert styles("***a***", "a") == {"em", "strong"}
    assert "strike" in styles("~~c~~", "c")
    assert "html" in styles("x <b>e</b>", "<b>")
    assert screen("<script>\nalert(1)\n</script>") == "<script>\nalert(1)\n</script>"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("**状态：**进行中", "状态："),
        ("**状态:**进行中", "状态:"),
        ("请看**“重点”**部分", "“重点”"),
        ("详见**（附录）**一节", "（附录）"),
        ("**完成✅**之后", "完成✅"),
        ("**終わり。**次へ", "終わり。"),
        ("**확인(완료)**했다", "확인(완료)"),
        ("参考**[链接](http://x)**的内容", "链接"),
        ("运行**`make`**命令", "make"),
    ],
)
def test_emphasis_may_end_beside_chinese_japanese_and_korean(text: str, words: str) -> None:
    assert "*" not in screen(text)
    assert "strong" in styles(text, words)


def test_struck_out_text_may_end_beside_chinese() -> None:
    assert screen("~~旧值：~~新值") == "旧值：新值"


@given(st.text(st.sampled_from('*_~ab (.:"!é✅⚠\ufe0f“…') | st.characters(max_codepoint=0x10FF), max_size=30))
@settings(max_examples=rounds(200, 1000))
def test_without_wide_characters_emphasis_is_that_of_commonmark(text: str) -> None:
    plain = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    assert parser().renderInline(text) == plain.renderInline(text)


def test_chinese_is_broken_between_characters_but_not_before_a_stop() -> None:
    assert screen("将支付接口统一到一个服务之后，再迁移历史数据。", 16).split("\n") == [
        "将支付接口统一到",
        "一个服务之后，再",
        "迁移历史数据。",
    ]
    assert screen("支付\n接口 and\nmore") == "支付接口 and more"


def test_hard_breaks_break_and_lines_know_where_they_stand() -> None:
    lines = drawn("one  \ntwo\nthree\n\n- a\n  b  \n  c\n")
    assert [(text, line.source) for text, line in zip(shown(lines), lines, strict=True)] == [
        ("one", 0),
        ("two three", 1),
        ("", 1),
        ("• a b", 4),
        ("  c", 6),
    ]


def test_markup_is_text() -> None:
    assert screen("[@click=app.quit]x[/] [bold]") == "[@click=app.quit]x[/] [bold]"


# -- hostile texts

PIECES: Final = (
    *(
        "\x1b[31mRED",
        "\x1b]8;;http://x\x1b\\y",
        "\x9b31m",
        "\u202e",
        "\u2066",
        "&#8238;",
        "&#27;[31m",
        "&#x9b;",
        "\u200b",
    ),
    *(
        "\ufeff",
        "\U000e0041",
        "\u2028",
        "Z\u0301\u0302",
        "👨\u200d👩",
        "☎\ufe0f",
        "🇨🇳",
        "字",
        "\0",
        "\r",
        "\t",
    ),
    *(
        "[@click=app.quit]",
        "[/foo]",
        "![",
        "[",
        "](",
        ")",
        "[a](b)",
        "`",
        "```",
        "~~~",
        "> ",
        "- ",
        "1. ",
        "| ",
        "|-|-|",
    ),
    *(
        "\n",
        "\n\n",
        "  \n",
        "    ",
        "*",
        "**",
        "_",
        "~~",
        "<b>",
        "<!--",
        "-->",
        "# ",
        "---",
        "[r]: x",
        "\\",
        "&",
        "word ",
    ),
    *("[ ] ", "[x] ", "x" * 60, "```py\ndef f(): '\x1b'\n```"),
)
hostile = st.lists(st.sampled_from(PIECES), max_size=40).map("".join)
CONTROLS: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e0fff]"
)


@given(hostile, st.integers(1, 60))
@settings(max_examples=rounds(200, 400))
@example("- " * 40 + "x", 12)
@example("> " * 40 + "x", 12)
@example("![" * 2000, 40)
@example("[" * 8000, 40)
@example("![a" * 1000 + "](b)" * 1000, 40)
@example("".join("  " * depth + "- a\n" for depth in range(60)), 20)
@example("|a" * 1500 + "\n" + "|-" * 1500 + "\n" + "|b" * 1000, 40)
@example("**a " * 2000, 40)
@example("[a](\x1b\u202e) ![&#8238;](\x9b '\u202e')", 40)
def test_hostile_texts_are_drawn_within_the_pane_and_hold_no_controls(text: str, width: int) -> None:
    code.load("python")
    for line in shown(drawn(text, width)):
        assert cell_len(line) <= max(width, 8), line
        assert not CONTROLS.search(line)
