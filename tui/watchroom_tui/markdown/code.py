"""Syntax highlighting by style names. Pygments is imported on first use. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Final, Protocol

from rich.cells import cell_len, chop_cells

from watchroom_tui.formatters.styled_text import Span
from watchroom_tui.markdown.inline import width_of
from watchroom_tui.presentation.sanitize import sanitize


class Lexer(Protocol):
    """The part of a Pygments lexer that is used here."""

    def get_tokens_unprocessed(self, text: str) -> Iterable[tuple[int, object, str]]: ...


_LANGUAGES: Final = {
    **dict.fromkeys(("python", "py", "python3"), "python"),
    **dict.fromkeys(("bash", "sh", "shell", "zsh"), "bash"),
    **dict.fromkeys(("javascript", "js", "jsx"), "javascript"),
    **dict.fromkeys(("typescript", "ts", "tsx"), "typescript"),
    **dict.fromkeys(("yaml", "yml"), "yaml"),
    **dict.fromkeys(("c", "h"), "c"),
    **dict.fromkeys(("cpp", "c++", "cc"), "cpp"),
    **dict.fromkeys(("csharp", "cs", "c#"), "csharp"),
    **dict.fromkeys(("rust", "rs"), "rust"),
    **dict.fromkeys(("go", "golang"), "go"),
    **dict.fromkeys(("docker", "dockerfile"), "docker"),
    **dict.fromkeys(("make", "makefile"), "make"),
    **{
        name: name for name in ("json", "toml", "ini", "sql", "java", "kotlin", "swift", "ruby", "php", "lua")
    },
    **{name: name for name in ("html", "xml", "css", "diff", "console", "gdscript")},
}
"""The highlighted languages, by their names in fences. Other languages of Pygments are left out, because some
of its lexers take unbounded time for malicious texts."""

_MAX_CHARACTERS: Final = 1000

_STYLES: Final = (
    ("Token.Comment", "syntax-comment"),
    ("Token.Keyword", "syntax-keyword"),
    ("Token.Operator.Word", "syntax-keyword"),
    ("Token.Literal.String", "syntax-string"),
    ("Token.Literal.Number", "syntax-number"),
    ("Token.Name.Function", "syntax-name"),
    ("Token.Name.Class", "syntax-name"),
    ("Token.Name.Decorator", "syntax-name"),
    ("Token.Name.Tag", "syntax-name"),
    ("Token.Generic.Inserted", "added"),
    ("Token.Generic.Deleted", "removed"),
    ("Token.Generic.Heading", "syntax-comment"),
)


_loaded: Final[dict[str, Lexer]] = {}


def language_of(info: str) -> str:
    """Return the language of a fence's info string, empty if it is not highlighted."""
    return _LANGUAGES.get((info.split() or [""])[0].lower(), "")


def is_ready(language: str) -> bool:
    """Return whether the language can be highlighted without loading a lexer."""
    return not language or language in _loaded


def load(language: str) -> None:
    """Load the lexer of a language, which takes about 10 ms."""
    from pygments.lexers import get_lexer_by_name

    _loaded[language] = get_lexer_by_name(language)


def coloured(text: str, language: str) -> list[list[Span]]:
    """Return the lines of ``text``, sanitized. Highlight them if the lexer of the language is loaded."""
    lines = text.split("\n")
    lexer = _loaded.get(language)
    if lexer is None or any(len(line) > _MAX_CHARACTERS for line in lines):
        return [[Span(sanitize(line))] for line in lines]
    found: list[list[Span]] = [[]]
    for _, kind, value in lexer.get_tokens_unprocessed(text):
        for number, piece in enumerate(value.split("\n")):
            if number:
                found.append([])
            if piece:
                _append(found[-1], sanitize(piece), _style(str(kind)))
    return found


def _append(line: list[Span], text: str, style: str) -> None:
    """Append a piece to a line. Zero-width characters at its start join the previous piece, because they
    belong to its last character."""
    while line and text and cell_len(text[0]) == 0:
        line[-1] = line[-1]._replace(text=line[-1].text + text[0])
        text = text[1:]
    if text:
        line.append(Span(text, style))


@cache
def _style(kind: str) -> str:
    return next((style for name, style in _STYLES if kind.startswith(name)), "")


def wrapped(line: list[Span], width: int) -> Iterator[list[Span]]:
    """Wrap a line of code to at most ``width`` cells. Lines are broken anywhere, because code has no
    words."""
    part: list[Span] = []
    used = 0
    for text, style in line:
        rest = text
        while rest:
            piece = rest if used + width_of(rest) <= width else _fitting(rest, width - used)
            if piece:
                part.append(Span(piece, style))
                used += width_of(piece)
                rest = rest[len(piece) :]
            if rest:
                yield part
                part, used = [], 0
    yield part


def _fitting(text: str, width: int) -> str:
    """Return the longest prefix of ``text`` that fits into ``width`` cells."""
    if width < 1:
        return ""
    piece = chop_cells(text[: 4 * width], width)[0]
    return piece if width_of(piece) <= width else ""
