"""What a command could run, for rules that deny or ask. Pure.

`split_command` reads a command as a shell would, looks through the programs that run others (``sudo``,
``env``, ``sh -c``, ``git -C``), and says what it cannot know.
"""

from __future__ import annotations

import re
from collections import deque
from posixpath import basename
from typing import Final, NamedTuple

from watchroom.rules.globs import ANY, GLOB, MARKS, ONE, OUTPUT, WORDS
from watchroom.rules.plain_command import MAX_CHARACTERS, Doubt
from watchroom.rules.program_runners import Run, find_runs
from watchroom.rules.shell_reader import KEYWORDS, MAX_DEPTH, read_shell

MAX_PARTS: Final = 2000
"""Parts and simple commands of a command that are read."""
_MAX_TEXT: Final = 4 * MAX_CHARACTERS
"""Characters of all simple commands together."""
_MAX_MARKED: Final = 5000
"""Characters of a simple command with marks that are compared."""
_MAX_ALL_MARKED: Final = 50_000
_ASSIGNMENT: Final = re.compile(rf"[A-Za-z_][A-Za-z0-9_]*(?:\[[^\]]*\]|{GLOB})?\+?=")
_OPENERS: Final = frozenset({"{", "if", "while", "until", "[["})
_MARKED: Final = re.compile(f"[{ANY}{ONE}{OUTPUT}]")
_NO_WORD: Final = re.compile(f" {ANY}(?= |\\Z)")
"""A word that may be none, or several."""
_RESERVED: Final = str.maketrans(dict.fromkeys(MARKS, "\ufffd"))


class CommandParts(NamedTuple):
    """The ``parts`` of a command as they are written, and in ``simple`` the words of every command that could
    run, joined by one space: without quotes, assignments, redirections and the folder of the program. Marks
    stand in them where the text is not known. ``doubt``: why the command could run something else too."""

    parts: tuple[str, ...]
    simple: tuple[str, ...]
    doubt: Doubt | None = None


def split_command(command: str) -> CommandParts:
    """Return what ``command`` could run, also within other commands."""
    found = _Found()
    if len(command) > MAX_CHARACTERS:
        found.add_doubt(Doubt("length"))
        command = command[:MAX_CHARACTERS]
    if "\0" in command:
        found.add_doubt(Doubt("character"))
    found.read(command.translate(_RESERVED))
    return CommandParts(tuple(found.parts), tuple(found.simple), found.doubt)


class _Found:
    """What was found so far: a `CommandSink`."""

    def __init__(self) -> None:
        self.parts: dict[str, None] = {}
        self.simple: dict[str, None] = {}
        self.doubt: Doubt | None = None
        self._scripts: deque[tuple[str, int, bool]] = deque()
        self._is_hint = False
        self._inputs: list[str] = []
        self._depth = 0
        self._characters = self._marked = 0
        self._has_pipe = self._has_input_shell = False

    def read(self, command: str) -> None:
        """Read ``command``, and all scripts that it has a shell run."""
        self._scripts.append((command, 0, False))
        while self._scripts and len(self.simple) < MAX_PARTS:
            text, self._depth, self._is_hint = self._scripts.popleft()
            read_shell(text, self._depth, self)
            self._is_hint = False
            if self._has_input_shell:
                if self._has_pipe:
                    self.add_doubt(Doubt("script"))
                for each in self._inputs:
                    self._add_script(each)
                self._inputs = []

    def add_part(self, written: str) -> bool:
        if written in self.parts:
            return True
        if len(self.parts) >= MAX_PARTS or not self._has_room(written):
            self.add_doubt(Doubt("length"))
            return False
        self.parts[written] = None
        return True

    def add_words(self, words: list[str]) -> None:
        start = _count_before(words)
        # What begins where was looked at: programs that run others go on with the same words.
        seen: set[int] = set()
        pending = deque([start])
        while pending:
            at = pending.popleft()
            if at in seen or at >= len(words):
                continue
            seen.add(at)
            rest = words[at:] if at else words
            if not self._add_simple(rest):
                return
            run = find_runs(_short_name(rest[0]), rest)
            self._add_run(run)
            if rest[0][:1] == ANY:
                # It may be nothing: then the next word is the program.
                pending.append(at + 1)
            pending.extend(_count_before(words, at + index) for index in run.programs)
            for other in run.others:
                self._add_other(other)

    def add_input(self, text: str) -> None:
        self._inputs.append(text)

    def add_pipe(self) -> None:
        self._has_pipe = True

    def add_doubt(self, doubt: Doubt) -> None:
        if not self._is_hint:
            self.doubt = self.doubt or doubt

    def _add_run(self, run: Run) -> None:
        self._has_input_shell |= run.reads_input
        for script in run.scripts:
            self._add_script(script)
        for hint in run.hints:
            self._add_script(hint, is_hint=True)
        if run.is_unknown:
            self.add_doubt(Doubt("script"))

    def _add_other(self, words: list[str]) -> None:
        """Add words that are not a part of others as they are, and what they run."""
        if self._add_simple(words) and self._depth < MAX_DEPTH:
            self._depth += 1
            self.add_words(words)
            self._depth -= 1

    def _add_script(self, text: str, *, is_hint: bool = False) -> None:
        if not text.strip():
            return
        if _MARKED.search(text) and not is_hint:
            # What an expansion says becomes a part of the script.
            self.add_doubt(Doubt("script"))
            return
        if self._depth >= MAX_DEPTH or not self._has_room(text):
            self.add_doubt(Doubt("depth"))
            return
        self._scripts.append((text, self._depth + 1, is_hint or self._is_hint))

    def _add_simple(self, words: list[str]) -> bool:
        """Add the command that ``words`` are. Return whether there is room for more."""
        if self._is_hint and not MARKS.isdisjoint(words[0]):
            return True
        name = _short_name(words[0])
        names = {words[0], name} if ANY in words[0] else {name}
        for each in names:
            simple = _NO_WORD.sub(WORDS, " ".join([each, *words[1:]]))
            has_room = self._has_room(simple)
            if not MARKS.isdisjoint(simple):
                if len(simple) > _MAX_MARKED:
                    simple = simple[:_MAX_MARKED] + ANY
                self._marked += len(simple) if simple not in self.simple else 0
            if simple in self.simple and has_room:
                continue
            if len(self.simple) >= MAX_PARTS or self._marked > _MAX_ALL_MARKED or not has_room:
                self.add_doubt(Doubt("length"))
                return False
            self.simple[simple] = None
        return True

    def _has_room(self, text: str) -> bool:
        self._characters += len(text)
        return self._characters <= _MAX_TEXT


def _count_before(words: list[str], start: int = 0) -> int:
    """Where the program is in ``words`` from ``start`` on, behind keywords and assignments."""
    count = start
    while count < len(words):
        word = words[count]
        if word in ("function", "coproc") and count + 2 < len(words) and words[count + 2] in _OPENERS:
            count += 2
        elif (word in KEYWORDS and word != "time") or _ASSIGNMENT.match(word):
            count += 1
        else:
            break
    return count


def _short_name(word: str) -> str:
    # zsh finds the path of a program behind an equals sign.
    return basename(word.removeprefix("=")) or word
