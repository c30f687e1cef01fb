"""The parts of a shell's command: what runs one after another, in a pipeline, or within another one. Pure.

It reads quotes, substitutions, subshells, comments and here-documents, and looks through the programs that
run others (``sudo``, ``env``, ``sh -c``). It is no shell: variables, aliases and what a program reads for
itself it does not know.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from posixpath import basename
from typing import Final, NamedTuple

MAX_CHARACTERS: Final = 200_000
"""So much of a command is looked at."""
MAX_PARTS: Final = 2000
_MAX_DEPTH: Final = 8
"""So many commands in one another are looked at."""
_WORDS_BEFORE: Final = frozenset({"!", "then", "do", "else", "elif", "if", "while", "until"})
_RUNNERS: Final = re.compile("builtin|command|doas|env|exec|nice|nohup|setsid|stdbuf|sudo|time|timeout|xargs")
"""Programs that run what follows their options."""
_SHELLS: Final = frozenset({"sh", "bash", "dash", "zsh", "ksh"})
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_REDIRECTION: Final = re.compile(r"[0-9]*(?:&>>?|[<>]+[&|]?)")
_MAX_RUNNER_WORDS: Final = 8
"""Among so many words after such a program it is looked for the one that it runs."""
_ORDINARY: Final = re.compile(r"[^\\'\"`$()#<;|&\n{]+")
"""What neither begins nor ends anything."""
_WORD_PIECE: Final = re.compile(
    r"""(?P<gap>\s+)|(?P<plain>[^\s'"\\]+)|'(?P<single>[^']*)'|"(?P<double>[^"\\]*(?:\\.[^"\\]*)*)"|\\(?P<escaped>.)""",
    re.DOTALL,
)
_ESCAPED: Final = re.compile(r"\\([\"\\$`\n])")
_HERE_DOCUMENT: Final = re.compile(r"<<(-?)[ \t]*(?:'([^'\n]*)'|\"([^\"\n]*)\"|([^\s;&|<>()'\"]+))")


class CommandParts(NamedTuple):
    """The ``parts`` of a command as they were written, and in ``simple`` the same without what stands
    before their program, without quotes, and with the program named without its folder. ``is_cut``: there is
    more than was looked at. ``is_understood``: each quote and bracket had its other half."""

    parts: tuple[str, ...]
    simple: tuple[str, ...]
    is_cut: bool = False
    is_understood: bool = True


def split_command(command: str) -> CommandParts:
    """The parts of ``command``, those within others as well."""
    found = _Parts()
    found.add_all(command[:MAX_CHARACTERS].replace("\\\n", ""), 0)
    is_cut = found.is_cut or len(command) > MAX_CHARACTERS
    parts, simple = (tuple(dict.fromkeys(each)) for each in (found.parts, found.simple))
    return CommandParts(parts, simple, is_cut, found.is_understood)


def script_of(words: list[str]) -> str | None:
    """The command that ``words`` give a shell to run (``bash -lc SCRIPT``); None where they start none."""
    if not words or basename(words[0]) not in _SHELLS:
        return None
    for index, word in enumerate(words[1:-1], 1):
        if re.fullmatch("-[a-z]*c[a-z]*", word):
            return words[index + 1]
    return None


class _Parts:
    """What `split_command` has found."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.simple: list[str] = []
        self.is_cut = False
        self.is_understood = True

    def add_all(self, text: str, depth: int) -> None:
        """Add the parts of ``text``, which stands ``depth`` deep within other commands."""
        if depth > _MAX_DEPTH:
            self.is_cut = True
        else:
            _Scanner(text, depth, self).scan()

    def add(self, part: str, depth: int) -> None:
        """Add a ``part``, and the commands that it has a shell run."""
        part = part.strip()
        if not part:
            return
        if len(self.parts) == MAX_PARTS:
            self.is_cut = True
            return
        self.parts.append(part)
        words = _split_words(part)
        if words is None:
            self.is_understood = False
            words = part.split()
        for simple in _simple_commands(words):
            self.simple.append(" ".join(simple))
            script = " ".join(simple[1:]) if simple[0] == "eval" else script_of(simple)
            if script:
                self.add_all(script, depth + 1)


class _Frame(NamedTuple):
    """A command that another one stands in: where its part began, whether it stood in quotes, and what ends
    the inner one."""

    start: int
    in_quotes: bool
    closer: str


class _HereDocument(NamedTuple):
    delimiter: str
    is_indented: bool


class _Scanner:
    """Takes ``text`` apart, character by character."""

    def __init__(self, text: str, depth: int, found: _Parts) -> None:
        self._text = text
        self._depth = depth
        self._found = found
        self._at = self._start = 0
        self._in_quotes = False
        self._frames: list[_Frame] = []
        self._documents: list[_HereDocument] = []

    def scan(self) -> None:
        while self._at < len(self._text) and not self._found.is_cut:
            if found := _ORDINARY.match(self._text, self._at):
                self._at = found.end()
            elif self._text[self._at] == "\\":
                self._at += 2
            elif not self._scan_nesting() and (self._in_quotes or not self._scan_plain()):
                self._at += 1
        ends = [self._start, *(frame.start for frame in self._frames)]
        for start in ends:
            self._found.add(self._text[start:], self._depth)
        if self._frames or self._in_quotes or self._documents:
            self._found.is_understood = False

    def _scan_nesting(self) -> bool:
        """Whether something begins or ends here that also does within quotes, and it was passed."""
        each, closer = self._text[self._at], self._frames[-1].closer if self._frames else ""
        if each == '"':
            self._in_quotes = not self._in_quotes
        elif each == closer and not (each == ")" and self._in_quotes):
            self._end_part()
            self._start, self._in_quotes, _ = self._frames.pop()
        elif each == "`" or self._text.startswith("$(", self._at) or (each == "(" and not self._in_quotes):
            self._found.is_cut |= len(self._frames) == _MAX_DEPTH
            self._frames.append(_Frame(self._start, self._in_quotes, "`" if each == "`" else ")"))
            self._at += each == "$"
            self._start, self._in_quotes = self._at + 1, False
        else:
            return False
        self._at += 1
        return True

    def _scan_plain(self) -> bool:
        """Whether something begins or ends here that does only outside of quotes, and it was passed."""
        text, at = self._text, self._at
        each = text[at]
        if each == "'":
            end = _end_of_quote(text, at)
            self._found.is_understood &= end > 0
            self._at = (end or at) + 1
        elif each == "#" and (at == 0 or text[at - 1] in " \t\n;&|("):
            self._end_part()
            self._at = self._start = _find_or_end(text, "\n", at)
        elif text.startswith("<<<", at):
            self._at += 3
        elif found := _HERE_DOCUMENT.match(text, at):
            delimiter = next(word for word in found.groups()[1:] if word is not None)
            self._documents.append(_HereDocument(delimiter, bool(found[1])))
            self._at = found.end()
        elif self._is_separator(each):
            self._end_part()
            self._at = self._start = at + 1
            if each == "\n" and self._documents:
                self._skip_documents()
        else:
            return False
        return True

    def _is_separator(self, each: str) -> bool:
        around = self._text[max(self._at - 1, 0) : self._at + 2]
        if each == "&":
            # Not in a redirection: >&2, &>file.
            return "<" not in around and ">" not in around
        return each in ";|\n)" or (each == "{" and around[-1:].isspace())

    def _end_part(self) -> None:
        self._found.add(self._text[self._start : self._at], self._depth)

    def _skip_documents(self) -> None:
        """Pass the here-documents that begin here; what they say may be commands."""
        for delimiter, is_indented in self._documents:
            body = last = self._at
            line = None
            while line != delimiter and self._at < len(self._text):
                last, self._at = self._at, _find_or_end(self._text, "\n", self._at) + 1
                line = self._text[last : self._at - 1]
                line = line.lstrip("\t") if is_indented else line
            is_ended = line == delimiter
            self._found.is_understood &= is_ended
            self._found.add_all(self._text[body : last if is_ended else self._at], self._depth + 1)
        self._documents = []
        self._start = self._at


def _split_words(part: str) -> list[str] | None:
    """The words of ``part`` without their quotes, None where a quote has no end."""
    words: list[str] = []
    word: list[str] = []
    at = 0
    while at < len(part):
        found = _WORD_PIECE.match(part, at)
        if found is None:
            return None
        at = found.end()
        if found.lastgroup != "gap":
            piece = found[str(found.lastgroup)]
            word.append(_ESCAPED.sub(r"\1", piece) if found.lastgroup == "double" else piece)
        elif word:
            words.append("".join(word))
            word = []
    return [*words, "".join(word)] if word else words


def _simple_commands(words: list[str]) -> Iterator[list[str]]:
    """The command that ``words`` are, without what stands before its program; and where that may run another
    one, what may be that one."""
    words = words[_count_before(words) :]
    if not words:
        return
    yield _with_short_name(words)
    if _RUNNERS.fullmatch(basename(words[0])):
        # Which of its options take an argument, only the program knows.
        for index, word in enumerate(words[1 : 1 + _MAX_RUNNER_WORDS], 1):
            if word and not word.startswith("-"):
                yield _with_short_name(words[index:])


def _count_before(words: list[str]) -> int:
    """How many of ``words`` stand before the program: words of the shell, assignments, redirections."""
    count = 0
    while count < len(words):
        word = words[count]
        redirection = _REDIRECTION.match(word)
        if redirection:
            # Its file may be a word of its own.
            count += 1 if redirection.end() < len(word) else 2
        elif word in _WORDS_BEFORE or _ASSIGNMENT.match(word):
            count += 1
        else:
            break
    return count


def _with_short_name(words: list[str]) -> list[str]:
    return [basename(words[0]) or words[0], *words[1:]]


def _end_of_quote(text: str, at: int) -> int:
    """Where the quote ends that begins at ``at``; 0 where it does not end."""
    if text[at - 1 : at] != "$":
        return max(text.find("'", at + 1), 0)
    at += 1
    while at < len(text) and text[at] != "'":
        at += 2 if text[at] == "\\" else 1
    return at if at < len(text) else 0


def _find_or_end(text: str, sought: str, at: int) -> int:
    found = text.find(sought, at)
    return len(text) if found < 0 else found
