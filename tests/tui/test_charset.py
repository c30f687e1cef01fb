"""The dashboard in a terminal that lacks characters."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from rich.cells import cell_len
from watchroom_tui.formatters.labels import MARKER_SIGNS, NEED_MARKS, STATUS_MARKS, TASK_MARKS
from watchroom_tui.formatters.styled_text import Span
from watchroom_tui.presentation.charset import REPLACEMENT_ERRORS, Charset, charset_of

ASCII = Charset("ascii", "utf-8")
CONSOLE = Charset("cp437", "utf-8")
LATIN = Charset("iso8859-1", "iso8859-1")
UTF8 = {"LC_ALL": "C.UTF-8", "TERM": "xterm"}


@pytest.mark.parametrize(
    ("environ", "encoding", "expected"),
    [
        (UTF8, "UTF-8", None),
        ({"LC_CTYPE": "C.UTF-8"}, "UTF-8", None),
        ({"LANG": "C", "LC_CTYPE": "C.UTF-8"}, "UTF-8", ASCII),
        ({"LANG": "POSIX", "LC_CTYPE": "C.UTF-8"}, "UTF-8", ASCII),
        ({"LANG": "C", "LC_CTYPE": "de_DE.UTF-8"}, "UTF-8", None),
        ({"LC_ALL": "C"}, "ANSI_X3.4-1968", ASCII),
        ({"LC_ALL": "C", "PYTHONUTF8": "1"}, "ANSI_X3.4-1968", None),
        ({"LC_ALL": "en_US.ISO-8859-1"}, "ISO-8859-1", LATIN),
        ({**UTF8, "TERM": "linux"}, "UTF-8", CONSOLE),
        ({"LC_ALL": "C", "TEXTUAL_DRIVER": "textual.drivers.web_driver:WebDriver"}, "ANSI_X3.4-1968", None),
    ],
)
def test_the_environment_says_what_a_terminal_shows(
    environ: Mapping[str, str], encoding: str, expected: Charset | None
) -> None:
    assert charset_of(environ, encoding) == expected


@pytest.mark.parametrize("charset", [ASCII, LATIN, CONSOLE], ids=lambda each: each.repertoire)
def test_what_replaces_a_sign_takes_as_many_cells(charset: Charset) -> None:
    text = "".join(map(chr, [*range(0xA0, 0xAD), *range(0x2010, 0x2C00), *range(0x4E00, 0x4F00), 0x1F50E]))
    for character in filter(str.isprintable, text):
        shown = charset.replace(character, keeps_width=True)
        shown.encode(charset.repertoire)
        assert (character, cell_len(shown)) == (character, cell_len(character))


@pytest.mark.parametrize(
    "signs",
    [STATUS_MARKS, NEED_MARKS, MARKER_SIGNS, TASK_MARKS],
    ids=["agents", "needs", "timeline", "tasks"],
)
@pytest.mark.parametrize("charset", [ASCII, LATIN, CONSOLE], ids=lambda each: each.repertoire)
def test_no_two_signs_become_the_same(charset: Charset, signs: Mapping[str, Span]) -> None:
    before = {sign.text for sign in signs.values()}
    assert len({charset.replace(each, keeps_width=True) for each in before}) == len(before)


def test_names_are_escaped_as_json_has_them_and_those_that_can_be_shown_are_not() -> None:
    name = "é港口😀\u241b.md"
    assert ASCII.replace(name) == r"\u00e9\u6e2f\u53e3\ud83d\ude00\u001b.md"
    assert json.loads(f'"{ASCII.replace(name)}"') == "é港口😀\x1b.md"
    assert LATIN.replace("é港 → ✓") == r"é\u6e2f > +"
    assert CONSOLE.replace("╭─╮ ●") == "┌─┐ *"


@pytest.mark.parametrize(
    ("encoding", "printed"), [("koi8-r", rb"\u00e9 \u6e2f > +"), ("latin-1", b"\xe9 \\u6e2f > +")]
)
def test_what_an_encoding_lacks_is_replaced_in_a_pipe(encoding: str, printed: bytes) -> None:
    assert "é 港 → ✓".encode(encoding, REPLACEMENT_ERRORS) == printed
