"""Parses commands that an ``allow`` rule can match: programs and plain words, joined by operators. Pure.

The parser accepts a small regular language, in which each text has the same meaning in bash, dash and zsh.
The first character outside of this language is reported as a `Doubt`. Nothing is guessed.
"""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple, TypeAlias

MAX_CHARACTERS: Final = 200_000
"""Maximum characters of a command. A longer command raises a doubt."""
MAX_COMMANDS: Final = 2000
"""Maximum number of simple commands in a command. More commands raise a doubt."""
INNER_SPACE: Final = "\ufdd4"
"""Replaces a space, tab or line end within a word, so that spaces in patterns match only between words."""
_MAX_SHOWN: Final = 20

DoubtKind: TypeAlias = Literal[
    "assignment",
    "brace",
    "character",
    "comment",
    "continuation",
    "depth",
    "empty",
    "escape",
    "expansion",
    "glob",
    "group",
    "history",
    "keyword",
    "length",
    "operator",
    "program",
    "quote",
    "redirection",
    "script",
    "shorthand",
    "unfinished",
]
"""The reason why the parser does not understand a text."""


class Doubt(NamedTuple):
    """The reason why a command is not understood. ``text``: the first 20 characters of the rest of the
    command."""

    kind: DoubtKind
    text: str = ""


class PlainCommand(NamedTuple):
    """The simple commands of a text, or the ``doubt`` that prevents full understanding.

    The words of each command are joined by one space.
    """

    commands: tuple[str, ...] = ()
    doubt: Doubt | None = None


def read_plain_command(command: str) -> PlainCommand:
    """Return the simple commands of ``command``, or the doubt if there is one.

    >>> read_plain_command("git log -n 3 | head").commands
    ('git log -n 3', 'head')
    """
    if len(command) > MAX_CHARACTERS:
        return PlainCommand(doubt=Doubt("length"))
    found = _FORBIDDEN.search(command)
    if found:
        return PlainCommand(doubt=_build_doubt("character", command, found.start()))
    try:
        return PlainCommand(tuple(_join_words(words) for words, _ in _parse_commands(command)))
    except _Doubtful as doubtful:
        return PlainCommand(doubt=doubtful.doubt)


class SimpleCommand(NamedTuple):
    """The words of a text that is one simple command, without quotes; or the ``doubt`` that prevents it."""

    words: tuple[str, ...] = ()
    doubt: Doubt | None = None


def read_simple_command(command: str) -> SimpleCommand:
    """Return the words of ``command`` if it is one simple command, else the doubt.

    Unlike `read_plain_command`, keep the blanks within words, and accept no operator.

    >>> read_simple_command("git commit -m 'a b'").words
    ('git', 'commit', '-m', 'a b')
    """
    if len(command) > MAX_CHARACTERS:
        return SimpleCommand(doubt=Doubt("length"))
    found = _FORBIDDEN.search(command)
    if found:
        return SimpleCommand(doubt=_build_doubt("character", command, found.start()))
    try:
        commands = _parse_commands(command)
    except _Doubtful as doubtful:
        return SimpleCommand(doubt=doubtful.doubt)
    words, operator = commands[0]
    if len(commands) > 1 or operator not in ("", "\n"):
        return SimpleCommand(doubt=Doubt("operator", operator))
    return SimpleCommand(tuple(words))


class _Doubtful(Exception):
    def __init__(self, doubt: Doubt) -> None:
        super().__init__()
        self.doubt = doubt


_FORBIDDEN: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef]")
"""Control characters except tab and newline, lone surrogates, and the characters used as marks."""
_GAP: Final = re.compile(r"[ \t]+(?:\\\n[ \t]*)*")
"""Blanks and line continuations after a blank, where they split neither a word nor an operator."""
_OPERATOR: Final = re.compile(r"&&|\|\||\|(?![&|])|;(?![;&|])|\n|&(?=[ \t\n]|\Z)")
_REDIRECTION: Final = re.compile(r"(?:[12]?>&[12]|[12]?>[ \t]*/dev/null|<[ \t]*/dev/null)(?=[ \t\n;|]|&&|\Z)")
"""Redirections that write no file: to another stream, or to or from the null device."""
_PIECE: Final = re.compile(
    r"""(?P<plain>[A-Za-z0-9_./,:@%+-]+)
    |(?P<inner>(?<=[A-Za-z0-9^~])[\^~]|(?<=[^ \t\n;|&])=(?![~=]))
    |'(?P<single>[^']*)'
    |"(?P<double>(?:[^"\\$`!\x80-\U0010ffff]|\\["\\$`])*|[^"\\$`!]*)"
    |\\(?P<escaped>[!-~ ])""",
    re.VERBOSE,
)
_DOUBLE_ESCAPE: Final = re.compile(r"\\(.)")
_DOUBLE_END: Final = re.compile(r"(?<!\\)[$`!\"]")
_BLANK: Final = re.compile("[ \t\n]")
_PROGRAM: Final = re.compile("[A-Za-z0-9_./+-]+")
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_KEYWORDS: Final = frozenset(
    [
        "!",
        "[[",
        "]]",
        "{",
        "}",
        "-",
        "case",
        "coproc",
        "do",
        "done",
        "elif",
        "else",
        "end",
        "esac",
        "fi",
        "for",
        "foreach",
        "function",
        "if",
        "in",
        "nocorrect",
        "noglob",
        "repeat",
        "select",
        "then",
        "time",
        "until",
        "while",
    ]
)
"""Words that bash, dash or zsh treat as grammar, or as a modifier of the next word."""
_DOUBT_OF: Final[dict[str, DoubtKind]] = {
    "$": "expansion",
    "`": "expansion",
    "*": "glob",
    "?": "glob",
    "[": "glob",
    "]": "glob",
    "{": "brace",
    "}": "brace",
    "(": "group",
    ")": "group",
    "#": "comment",
    "<": "redirection",
    ">": "redirection",
    "!": "history",
    "~": "shorthand",
    "^": "glob",
    "=": "shorthand",
    "'": "quote",
    '"': "quote",
    "\\": "escape",
    ";": "operator",
    "|": "operator",
    "&": "operator",
}


def _parse_commands(text: str) -> list[tuple[list[str], str]]:
    """Return the words of each simple command, and the operator that ends it; empty at the end of the text.
    Raise `_Doubtful` if a command is not understood."""
    commands: list[tuple[list[str], str]] = []
    words: list[str] = []
    needs_command = True
    at = 0
    while at < len(text):
        gap = _GAP.match(text, at)
        at = gap.end() if gap else at
        if at == len(text):
            break
        if operator := _OPERATOR.match(text, at):
            if not words and operator[0] != "\n":
                raise _Doubtful(_build_doubt("operator", text, at))
            if words:
                commands.append((words, operator[0]))
            if len(commands) >= MAX_COMMANDS:
                raise _Doubtful(_build_doubt("length", text, at))
            needs_command = operator[0] in ("&&", "||", "|") or (needs_command and not words)
            words = []
            at = operator.end()
        elif text[at] in ";|&":
            raise _Doubtful(_build_doubt("operator", text, at))
        elif words and gap and (redirection := _REDIRECTION.match(text, at)):
            at = redirection.end()
        else:
            word, end = _read_word(text, at)
            if not words:
                _check_program(word, text, at, end)
            words.append(word)
            at = end
    if words:
        commands.append((words, ""))
    if not commands or (needs_command and not words):
        raise _Doubtful(_build_doubt("empty", text, len(text)))
    return commands


def _read_word(text: str, at: int) -> tuple[str, int]:
    """Return the word at ``at`` without quotes, and its end. Raise `_Doubtful` if it is not plain."""
    pieces: list[str] = []
    while at < len(text) and text[at] not in " \t\n;|&":
        piece = _PIECE.match(text, at)
        if piece is None:
            raise _Doubtful(_build_doubt(_find_kind(text, at), text, at))
        kind = str(piece.lastgroup)
        value = piece[kind]
        pieces.append(_DOUBLE_ESCAPE.sub(r"\1", value) if kind == "double" else value)
        at = piece.end()
    return "".join(pieces), at


def _find_kind(text: str, at: int) -> DoubtKind:
    each = text[at]
    if text.startswith("\\\n", at):
        return "continuation"
    if each == '"' and (found := _DOUBLE_END.search(text, at + 1)) and found[0] != '"':
        return "history" if found[0] == "!" else "expansion"
    if each in "'\"" and text.find(each, at + 1) < 0:
        return "unfinished"
    return _DOUBT_OF.get(each, "character")


def _check_program(word: str, text: str, start: int, end: int) -> None:
    """Raise `_Doubtful` if ``word`` is not a plain program name."""
    written = text[start:end]
    if _ASSIGNMENT.match(written):
        raise _Doubtful(_build_doubt("assignment", text, start))
    if written in _KEYWORDS or word in _KEYWORDS:
        raise _Doubtful(_build_doubt("keyword", text, start))
    if not _PROGRAM.fullmatch(word):
        raise _Doubtful(_build_doubt("program", text, start))


def _join_words(words: list[str]) -> str:
    return " ".join(_BLANK.sub(INNER_SPACE, word) for word in words)


def _build_doubt(kind: DoubtKind, text: str, at: int) -> Doubt:
    return Doubt(kind, text[at : at + _MAX_SHOWN])
