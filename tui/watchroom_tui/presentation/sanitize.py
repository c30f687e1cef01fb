"""Sanitized texts of agents: control characters become visible, and no word is dropped.

Stored texts are unchanged. Control, escape, bidirectional and other invisible characters become visible, so
that a text cannot move the cursor, start a link or hide words. Characters that the terminal cannot show are
replaced. Characters with different widths in different terminals would shift the rest of the row. So the
variants and skin tones of emoji are left out, and symbols that became wide in Unicode 16 are spelled out.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from watchroom_tui.presentation.charset import LazyTable, json_escape, terminal_charset

TAB: Final = "→   "
MAX_CHARACTERS: Final = 400
"""Max characters of an agent's text in a sentence."""
_LINE_BREAK: Final = "⏎"
_FILLERS: Final = "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\u180b-\u180f"
_VARIANTS: Final = "\ufe00-\ufe0d\U000e0100-\U000e01ef"
_FORMS: Final = "\ufe0e\ufe0f"
_SKIN_TONES: Final = "\U0001f3fb-\U0001f3ff"
_INVISIBLE: Final = re.compile(f"[{_FILLERS}{_VARIANTS}{_FORMS}]")
"""Pattern of invisible characters that Unicode counts as letters, marks and symbols: joiners, fillers,
variation selectors."""
_DISPUTED: Final = (
    "\u2630-\u2637\u268a-\u268f\u302e\u302f\u3248-\u324f\U0001d300-\U0001d356\U0001d360-\U0001d376"
)
"""Characters with different widths in tmux 3.3a (one cell) and rich 15 (two or none)."""
_REPLACED: Final = re.compile(
    f"(?P<emoji>[{_FORMS}{_SKIN_TONES}])|(?P<variant>[{_VARIANTS}])|[{_FILLERS}{_DISPUTED}]"
)


def _picture(code: int) -> str:
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "␡"
    name = unicodedata.name(chr(code), "")
    initials = "".join(word[0] for word in name.split()) if name else ""
    return f"‹{initials or 'U'}+{code:04X}›"


_LINE: Final = LazyTable(
    lambda each: each if each.isprintable() else _picture(ord(each)),
    {0x09: TAB, 0x0A: _LINE_BREAK, 0x3000: "\u3000", 0xA0: " "},
)
_ESCAPED: Final = LazyTable(
    lambda each: each if each.isprintable() and not _INVISIBLE.match(each) else json_escape(each),
    # Python counts these characters as not printable, but they only leave space.
    {ord(each): each for each in "\n\t\u00a0\u3000"},
)


def sanitize(text: str) -> str:
    """Return ``text`` as one safe line. Invisible and control characters become visible."""
    shown = _draw_invisible(text)
    charset = None if shown.isascii() else terminal_charset()
    return shown if charset is None else charset.replace(shown)


def shorten(text: str, max_characters: int = MAX_CHARACTERS) -> str:
    """Return at most ``max_characters`` characters of ``text``, sanitized."""
    return sanitize(text if len(text) <= max_characters else text[: max_characters - 1] + "…")


def escape_invisible(text: str) -> str:
    """Return ``text``, which may be JSON, with control and invisible characters as ``\\uXXXX``. Characters
    above U+FFFF become two escapes, as in JSON."""
    return text if text.isascii() and text.isprintable() else text.translate(_ESCAPED)


def _draw_invisible(text: str) -> str:
    if not text.isascii():
        text = _REPLACED.sub(_replace, text)
    return text if text.isprintable() else text.translate(_LINE)


def _replace(found: re.Match[str]) -> str:
    before = unicodedata.category(found.string[found.start() - 1])[0] if found.start() else ""
    if found.lastgroup == "emoji" and before in ("S", "P", "N"):
        return ""
    if found.lastgroup == "variant" and before in ("L", "S", "P", "N"):
        return found[0]
    return _picture(ord(found[0]))


def copyable(line: str) -> str:
    """Return ``line`` for the clipboard, sanitized except for its tabs. The person may paste it into a
    shell."""
    return "\t".join(map(_draw_invisible, line.split("\t")))


def sanitize_lines(text: str) -> list[str]:
    """Return ``text`` as safe lines. Split it only at line feeds. Remove a carriage return before a line
    feed."""
    return [sanitize(line.removesuffix("\r")) for line in text.split("\n")]
