"""Replacements of characters that a terminal or a pipe cannot show: simpler signs of the same width for
signs, code points for other characters."""

from __future__ import annotations

import codecs
import locale
import os
import sys
from collections.abc import Callable, Mapping
from functools import cache
from typing import Final, NamedTuple

REPLACEMENT_ERRORS: Final = "watchroom.replace"
"""The name of the codec error handler that replaces characters as `Charset.replace` does."""

_PICTURES: Final = range(0x2400, 0x2420)
"""The pictures of control characters, in the order of the characters."""
_NOT_UTF8: Final = ("C", "POSIX")
_COERCED: Final = ("C.UTF-8", "C.utf8", "UTF-8")
"""The values that Python sets for ``LC_CTYPE`` when it starts in a locale of `_NOT_UTF8` (PEP 538)."""

_SIGNS: Final[Mapping[str, str]] = {
    # agents, sessions, tasks
    "●": "*",
    "◐": "?",
    "○": "o",
    "✖": "X",
    "✓": "√+",
    "⏸": "=",
    "◌": "%",
    "◇": "<",
    "⊘": "/",
    "⧖": "~",
    # needs, and events on the timeline
    "⚔": "#",
    "⧉": "=",
    "⧗": ":",
    "↻": "@",
    "◔": "$",
    "✎": "&",
    "‼": "!",
    "✉": "^",
    "✗": "x",
    "⚑": "!",
    "☺": "@",
    "↶": "<",
    "⚠": "!",
    "◷": "@",
    # boards, versions, marks
    "▤": "=",
    "▣": "■#",
    "◆": "*",
    "☑": "x",
    "☐": "_",
    "◉": "@",
    "◑": "?",
    "◦": "o",
    "•": "*",
    "▪": "■*",
    "▸": ">",
    "▶": ">",
    "▾": "v",
    "▼": "v",
    "⌁": "~",
    "⏎": "|",
    "✐": "&",
    "⇧": "^",
    "☰": "= ",
    "🔎": "/ ",
    # typography
    "…": "~",
    "·": ".",
    "×": "x",
    "−": "-",
    "–": "-",
    "—": "-",
    "→": ">",
    "←": "<",
    "↑": "^",
    "↓": "v",
    "↔": "x",
    "⇄": ">",
    "≠": "!",
    "≥": ">",
    "≤": "<",
    "“": '"',
    "”": '"',
    "‘": "'",
    "’": "'",
    "›": ">",
    "‹": "<",
    "»": ">",
    "«": "<",
    "⟩": ">",
    "⟨": "<",
    "⋯": "~",
    "\u3000": "  ",
    "\ufffd": "?",
    # frames and trees
    **dict.fromkeys("─┄┈╌", "─-"),
    **dict.fromkeys("━╍▔", "═="),
    **dict.fromkeys("│┆┊", "│|"),
    **dict.fromkeys("┃╏", "║#"),
    "╭": "┌+",
    "╮": "┐+",
    "╰": "└+",
    "╯": "┘+",
    "├": "├+",
    "┼": "┼+",
    "┤": "┤+",
    "┌": "+",
    "┐": "+",
    "└": "+",
    "┘": "+",
    "┬": "+",
    "┴": "+",
    "┏": "╔#",
    "┓": "╗#",
    "┗": "╚#",
    "┛": "╝#",
    # bars
    "█": "#",
    "▓": "#",
    "▒": ":",
    "░": ".",
    "▰": "■#",
    "▱": "-",
    "▌": "|",
    "▍": "▌|",
    "▐": "|",
    "▀": '"',
    "▁": "_",
    "▂": "_",
    "▃": "▄.",
    "▄": "-",
    "▅": "▄=",
    "▆": "█+",
    "▇": "█*",
    "▎": "▌|",
    "▏": "│|",
    "▊": "█|",
    "▕": "│|",
}
"""The replacements of signs, best first. The last replacement is ASCII."""


class Charset(NamedTuple):
    """The characters that a terminal can show.

    - ``repertoire``: the codec with these characters.
    - ``encoding``: the encoding of the output and the keys of the terminal.
    """

    repertoire: str
    encoding: str

    def can_show(self, text: str) -> bool:
        """Return whether all of ``text`` can be shown."""
        return _encodes(text, self.repertoire)

    def replace(self, text: str, *, keeps_width: bool = False) -> str:
        """Return ``text`` with simpler signs of the same width, and JSON escapes for other characters.

        ``keeps_width``: whether to use ``?`` instead of escapes, for texts that already have their place on
        the screen.
        """
        return text if text.isascii() else text.translate(_replacements(self.repertoire, keeps_width))


@cache
def terminal_charset() -> Charset | None:
    """Return the charset of the terminal of this process, from its environment. None if the terminal shows
    all characters, or if standard output is not a terminal."""
    if not sys.__stdout__ or not sys.__stdout__.isatty():
        return None
    return charset_of(os.environ, locale.getencoding())


def output_encoding() -> str | None:
    """Return the encoding for printing, if Python's UTF-8 mode differs from the locale. File names need the
    UTF-8 mode. None means no change."""
    name = codecs.lookup(locale.getencoding()).name
    is_chosen = "PYTHONUTF8" in os.environ or "PYTHONIOENCODING" in os.environ
    return name if sys.flags.utf8_mode and not is_chosen and name != "ascii" else None


def charset_of(environ: Mapping[str, str], encoding: str) -> Charset | None:
    """Return the charset of a terminal with the variables ``environ``. None means all characters.
    ``encoding`` is the encoding of the locale."""
    if environ.get("TEXTUAL_DRIVER", "").endswith(":WebDriver") or environ.get("PYTHONUTF8") == "1":
        return None
    if environ.get("TERM") == "linux":
        # The text console accepts UTF-8, but a font of the console has at most 512 characters.
        return Charset("cp437", "utf-8")
    given = environ.get("LC_ALL") or environ.get("LANG", "")
    is_coerced = environ.get("LC_ALL", "") == "" and environ.get("LC_CTYPE", "") in _COERCED
    name = codecs.lookup("ascii" if is_coerced and given in _NOT_UTF8 else encoding).name
    if name == "utf-8":
        return None
    return Charset(name, "utf-8" if name == "ascii" else name)


def _replace_unencodable(error: UnicodeError) -> tuple[str, int]:
    """Replace characters that an encoding lacks, as `Charset.replace` does. Raise other errors again."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    # Python reports all table-based encodings as "charmap".
    codec = "ascii" if error.encoding == "charmap" else error.encoding
    return error.object[error.start : error.end].translate(_replacements(codec, False)), error.end


codecs.register_error(REPLACEMENT_ERRORS, _replace_unencodable)


class LazyTable(dict[int, str]):
    """A table for ``str.translate`` that computes the entry of a character on first use.

    - ``show``: function that returns the entry of a character.
    - ``known``: the entries that need no computation.
    """

    def __init__(self, show: Callable[[str], str], known: Mapping[int, str] | None = None) -> None:
        super().__init__(known or {})
        self._show = show

    def __missing__(self, code: int) -> str:
        shown = self[code] = self._show(chr(code))
        return shown


@cache
def _replacements(codec: str, keeps_width: bool) -> LazyTable:
    def show(character: str) -> str:
        if _encodes(character, codec):
            return character
        spelled = "?" * _cell_len(character) if keeps_width else json_escape(_control(character))
        return _sign(character, codec) or spelled

    return LazyTable(show)


def _sign(character: str, codec: str) -> str:
    """Return the best replacement of a sign, empty if the codec has no replacement."""
    signs = _SIGNS.get(character, "")
    # A sign of two cells has one replacement for both cells.
    candidates = [signs] if signs and _cell_len(character) == 2 else list(signs)
    return next((each for each in candidates if _encodes(each, codec)), "")


def _control(character: str) -> str:
    """Return the control character for the picture ``character``. Return other characters unchanged."""
    return chr(ord(character) - _PICTURES.start) if ord(character) in _PICTURES else character


def _cell_len(character: str) -> int:
    # Slow to load, and most commands never get here.
    from rich.cells import cell_len

    return cell_len(character)


def _encodes(text: str, codec: str) -> bool:
    try:
        text.encode(codec)
    except UnicodeEncodeError:
        return False
    return True


def json_escape(character: str) -> str:
    """Return ``character`` as a JSON escape ``\\uXXXX``. Characters above U+FFFF become two escapes."""
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
