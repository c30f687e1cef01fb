"""Editing the result: every character of a text survives the editor, and none is obeyed."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from textual.app import App, ComposeResult
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.widgets.editor import Editor, substitution_maps

TEXTS = [
    "plain\n",
    "no end",
    "",
    "crlf\r\nlines\r\n",
    "mixed\r\nends\nhere\rand there\n",
    "escape \x1b[31mred\x1b[0m \x07 bell\n",
    "isolates \u202eabc\u2069 and \u200b zero \ufeff\n",
    "splits\u2028only\x0cat\x85feeds\x1c\n",
    "中文 👩\u200d👩\u200d👧 tabs\tand\t\U000f0000 private\n",
]


class Alone(App[None]):
    def compose(self) -> ComposeResult:
        yield Editor(id="editor")


@pytest.mark.parametrize("text", TEXTS)
async def test_a_text_that_is_only_looked_at_is_the_same_afterwards(text: str) -> None:
    async with Alone().run_test() as pilot:
        editor = pilot.app.query_one(Editor)
        editor.open(text, 0)
        assert editor.source == text


@pytest.mark.parametrize("text", TEXTS)
async def test_what_is_typed_is_all_that_changes(text: str) -> None:
    async with Alone().run_test() as pilot:
        editor = pilot.app.query_one(Editor)
        editor.open(text, 0)
        editor.focus()
        await pilot.press("x")
        assert editor.source == "x" + text


async def test_no_character_reaches_the_terminal_that_it_would_obey() -> None:
    async with Alone().run_test() as pilot:
        editor = pilot.app.query_one(Editor)
        editor.open("".join(TEXTS), 0)
        shown = [editor.get_line(number).plain for number in range(editor.document.line_count)]
        assert not [each for line in shown for each in line if not (each.isprintable() or each in "\t\u3000")]


@given(st.text(st.characters(codec="utf-8")))
@example("".join(TEXTS))
def test_each_unsafe_character_has_a_stand_in_that_means_it_again(text: str) -> None:
    shown, meant = substitution_maps(text)
    edited = text.translate(shown)
    assert len(edited) == len(text)
    assert edited.translate(meant) == text
    assert not [
        each for each in edited if ord(each) < 0xF0000 and sanitize(each) != each and each not in "\r\n\t"
    ]
