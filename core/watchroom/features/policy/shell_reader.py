"""Finds every command that a shell text could run, for rules that deny or ask. Pure.

`split_command` parses a text, follows programs that run others (``sudo``, ``env``, ``sh -c``, ``git -C``),
and reports what it cannot determine.

The parser follows the grammar of bash, and parses a text again if dash differs. In doubt, it finds too much:
words after any operator count as a command. Unknown text in a word (an expansion) becomes a mark. Unknown
structure becomes a `Doubt` about the whole text.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from posixpath import basename, join, normpath
from typing import Final, NamedTuple, NoReturn

from watchroom.algorithms.globs import ANY, GLOB, MARKS, ONE, OUTPUT, WORDS
from watchroom.features.policy.plain_command import MAX_CHARACTERS, Doubt, DoubtKind
from watchroom.features.policy.program_runners import Run, find_runs

MAX_DEPTH: Final = 30
"""Maximum nesting of substitutions, groups and scripts."""
KEYWORDS: Final = frozenset(
    [
        "!",
        "{",
        "}",
        "always",
        "coproc",
        "do",
        "done",
        "elif",
        "else",
        "esac",
        "fi",
        "function",
        "if",
        "nocorrect",
        "noglob",
        "then",
        "time",
        "until",
        "while",
        "]]",
    ]
)
"""Words after which a command begins."""
_MAX_SHOWN: Final = 20
_MAX_DESCRIPTOR: Final = 100
_PLAIN: Final = re.compile(r"""[^\s\\'"`$()<>;|&*?\[{}~#!=]+""")
"""Characters without a special meaning in a word. Unicode blanks do not separate words."""
_ORDINARY: Final = re.compile(r"""[A-Za-z0-9_/.,:=@%+-]""")
_BLANKS: Final = re.compile(r"[ \t]+")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!-]")
_BRACKETS: Final = re.compile(r"""\[[!^]?\]?[^\]\s'"\\$`;&|()<>]{0,50}\]""")
_ASSIGNED: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_REDIRECTION: Final = re.compile(r"<<<|<<-?|<>|<&|>&|>>|>\||<|>|&>>?")
_DESCRIPTOR: Final = re.compile(r"[0-9]+|\{[A-Za-z_][A-Za-z0-9_]*\}")
_TILDE: Final = re.compile(r"~[A-Za-z0-9_.+-]*")
_EMPTY_PARENTHESES: Final = re.compile(r"\([ \t]*\)")
_OPERATORS: Final = re.compile(r";;&|;;|;&|;\||&&|\|\||\|&|[;&|\n]")
_DELIMITER: Final = re.compile(r"""(?:[^\s\\'"`$()<>;|&]|\\.|'[^'\n]*'|"[^"\\\n]*"|\$(?!['"({\[]))+""")
_DELIMITER_QUOTES: Final = re.compile(r"""\\(.)|['"]""")
_DOUBLE_PLAIN: Final = re.compile(r"""[^"\\$`]+""")
_CONTINUED: Final = re.compile(r"(?<!\\)(?:\\\\)*\\\Z")
_CODES: Final = re.compile(
    r"\\(?:x([0-9a-fA-F]{1,2})|x\{([0-9a-fA-F]{0,99})\}?|([0-7]{1,3})"
    r"|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|c(.)|(.))",
    re.DOTALL,
)
_SHORT_CODES: Final = dict(zip("abeEfnrtv\\'\"?", "\a\b\x1b\x1b\f\n\r\t\v\\'\"?", strict=True))
_CONDITIONS: Final = frozenset(
    [
        "=",
        "==",
        "!=",
        "=~",
        "<",
        ">",
        "-eq",
        "-ne",
        "-lt",
        "-le",
        "-gt",
        "-ge",
        "-nt",
        "-ot",
        "-ef",
        "]]",
        "&&",
        "||",
    ]
)
_ARITHMETIC: Final = re.compile(r"""[()]|'[^']*'|"(?:[^"\\]|\\.)*"|\\.""", re.DOTALL)
_MAX_ARITHMETIC: Final = 10_000
"""Maximum characters of an arithmetic expression. A longer expression is parsed as groups of commands."""
MAX_PARTS: Final = 2000
"""Maximum number of parts, and of simple commands, of a command."""
_MAX_TEXT: Final = 4 * MAX_CHARACTERS
"""Maximum characters of all parts and simple commands together."""
_MAX_MARKED: Final = 5000
"""Maximum characters of a simple command with marks. A mark for any text replaces the rest."""
_MAX_ALL_MARKED: Final = 50_000
_ASSIGNMENT: Final = re.compile(rf"[A-Za-z_][A-Za-z0-9_]*(?:\[[^\]]*\]|{GLOB})?\+?=")
_OPENERS: Final = frozenset({"{", "if", "while", "until", "[["})
_MARKED: Final = re.compile(f"[{ANY}{ONE}{OUTPUT}]")
_NO_WORD: Final = re.compile(f" {ANY}(?= |\\Z)")
"""Matches a mark that stands for any number of words, including none."""
_RESERVED: Final = str.maketrans(dict.fromkeys(MARKS, "\ufffd"))
_FOLDER_CHANGES: Final = frozenset(["cd", "chdir", "pushd"])
_MAX_FOLDER: Final = 4096
"""Maximum characters of a folder's path. Longer paths are not followed."""
_FOLDER_OPTIONS: Final = frozenset(["-L", "-P", "-e", "--"])


class CommandParts(NamedTuple):
    """The parts of a command, and all commands that it could run.

    - ``parts``: the parts of the command as written.
    - ``simple``: the words of every command that could run, joined by one space. They have no quotes,
      assignments, redirections or folders of programs. Marks replace unknown text.
    - ``doubt``: the reason why the command could also run something else.
    """

    parts: tuple[str, ...]
    simple: tuple[str, ...]
    doubt: Doubt | None = None


def split_command(command: str) -> CommandParts:
    """Return everything that ``command`` could run, including programs and scripts run by other programs."""
    found = _Collector()
    if len(command) > MAX_CHARACTERS:
        found.add_doubt(Doubt("length"))
        command = command[:MAX_CHARACTERS]
    if "\0" in command:
        found.add_doubt(Doubt("character"))
    found.read(command.translate(_RESERVED))
    return CommandParts(tuple(found.parts), tuple(found.simple), found.doubt)


class FoundCommand(NamedTuple):
    """A simple command that could run.

    - ``words``: its words without quotes. Marks replace unknown text.
    - ``folder``: the folder in which it runs, relative to the folder of the whole command; None if unknown.
    """

    words: tuple[str, ...]
    folder: str | None = "."


def find_commands(command: str) -> tuple[FoundCommand, ...]:
    """Return the words of everything that `split_command` finds, in the order of the text.

    ``cd`` is assumed to succeed. Conditions, loops and functions count as executed once. Only the first
    `MAX_CHARACTERS` are read.
    """
    found = _CommandLister()
    found.read(command[:MAX_CHARACTERS].translate(_RESERVED))
    return tuple(found.commands)


class _Collector:
    """Collects the commands that parsers find, and follows programs that run other programs."""

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
        """Parse ``command``, and all scripts that it passes to a shell."""
        self._scripts.append((command, 0, False))
        while self._scripts and len(self.simple) < MAX_PARTS:
            text, self._depth, self._is_hint = self._scripts.popleft()
            self._read_shell(text)
            self._is_hint = False
            if self._has_input_shell:
                if self._has_pipe:
                    self.add_doubt(Doubt("script"))
                for each in self._inputs:
                    self._add_script(each)
                self._inputs = []

    def _read_shell(self, text: str) -> None:
        reader = _Reader(text, self._depth, self)
        reader.run(reader.read_all)
        if reader.differs_in_dash:
            as_dash = _Reader(text, self._depth, self, is_dash=True)
            as_dash.run(as_dash.read_all)

    def add_part(self, written: str) -> bool:
        """Add a part of the text as written. Return False if a limit is reached."""
        if written in self.parts:
            return True
        if len(self.parts) >= MAX_PARTS or not self._has_room(written):
            self.add_doubt(Doubt("length"))
            return False
        self.parts[written] = None
        return True

    def add_words(self, words: list[str]) -> None:
        """Add the words of a simple command, with marks for unknown text, and everything that it runs."""
        start = _count_before(words)
        # Programs that run other programs share the last words, so each index is examined once.
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
                # The expansion may be empty; then the next word is the program.
                pending.append(at + 1)
            pending.extend(_count_before(words, at + index) for index in run.programs)
            for other in run.others:
                self._add_other(other)

    def add_input(self, text: str) -> None:
        """Add a here-document or here-string. It is a script if a shell reads it."""
        self._inputs.append(text)

    def add_pipe(self) -> None:
        """Record that a command reads the output of another command."""
        self._has_pipe = True

    def enter_group(self) -> None:
        """Record the start of a list of commands that may run in its own shell."""

    def leave_group(self) -> None:
        """Record the end of the list of commands."""

    def add_doubt(self, doubt: Doubt) -> None:
        """Record why the text is not understood. Only the first doubt counts. Ignore it while a hint is
        parsed."""
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
        """Add a command that is run by another command, and everything that it runs."""
        if self._add_simple(words) and self._depth < MAX_DEPTH:
            self._depth += 1
            self.add_words(words)
            self._depth -= 1

    def _add_script(self, text: str, *, is_hint: bool = False) -> None:
        if not text.strip():
            return
        if _MARKED.search(text) and not is_hint:
            # The value of an expansion becomes a part of the script.
            self.add_doubt(Doubt("script"))
            return
        if self._depth >= MAX_DEPTH or not self._has_room(text):
            self.add_doubt(Doubt("depth"))
            return
        self._scripts.append((text, self._depth + 1, is_hint or self._is_hint))

    def _add_simple(self, words: list[str]) -> bool:
        """Add the command ``words``. Return False if a limit is reached."""
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
    """Return the index of the program in ``words``, after keywords and assignments. ``start``: the first
    index to check."""
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
    # In zsh, "=name" is the path of the program.
    return basename(word.removeprefix("=")) or word


class _CommandLister(_Collector):
    """Collects the words of each command, and the folder in which it runs."""

    def __init__(self) -> None:
        super().__init__()
        self.commands: list[FoundCommand] = []
        self._folder: str | None = "."
        self._before: str | None = "."
        """The folder before the last command."""
        self._outer: list[str | None] = []
        self._script_folders: deque[str | None] = deque(["."])
        self._is_piped = False

    def add_words(self, words: list[str]) -> None:
        super().add_words(words)
        at = _count_before(words)
        self._before = self._folder
        if words[at : at + 1] and words[at] in _FOLDER_CHANGES and not self._is_piped:
            self._folder = _change_folder(self._folder, words[at + 1 :])
        elif words[at : at + 1] == ["popd"]:
            self._folder = None
        self._is_piped = False

    def add_pipe(self) -> None:
        super().add_pipe()
        # The commands of a pipe run in their own shells.
        self._folder, self._is_piped = self._before, True

    def enter_group(self) -> None:
        self._outer.append(self._folder)
        self._before, self._is_piped = self._folder, False

    def leave_group(self) -> None:
        self._folder = self._before = self._outer.pop()

    def _read_shell(self, text: str) -> None:
        self._folder = self._before = self._script_folders.popleft()
        super()._read_shell(text)

    def _add_script(self, text: str, *, is_hint: bool = False) -> None:
        count = len(self._scripts)
        super()._add_script(text, is_hint=is_hint)
        if len(self._scripts) > count:
            self._script_folders.append(self._folder)

    def _add_simple(self, words: list[str]) -> bool:
        if not super()._add_simple(words):
            return False
        found = FoundCommand(tuple(words), self._folder)
        if self.commands[-1:] != [found]:
            self.commands.append(found)
        return True

    def _add_other(self, words: list[str]) -> None:
        last = self.commands[-1].words if self.commands else ()
        if last[:1] == tuple(words[:1]) and last[len(last) - len(words) + 1 :] == tuple(words[1:]):
            # Skip a repetition of the last command without the options before its subcommand.
            return
        super()._add_other(words)


def _change_folder(folder: str | None, arguments: list[str]) -> str | None:
    """Return the folder after ``cd`` with ``arguments``; None if unknown."""
    places = [each for each in arguments if each not in _FOLDER_OPTIONS]
    is_known = len(places) == 1 and not places[0].startswith(("-", "+"))
    return enter_folder(folder, places[0]) if is_known else None


def enter_folder(folder: str | None, place: str) -> str | None:
    """Return the path of ``place`` as seen from ``folder``; None if it is unknown or too long."""
    if not MARKS.isdisjoint(place) or (folder is None and not place.startswith("/")):
        return None
    path = join(folder or "/", place)
    return normpath(path) if len(path) <= _MAX_FOLDER else None


class _HereDocument(NamedTuple):
    delimiter: str
    is_indented: bool
    is_quoted: bool


class _Stop(Exception):
    """Ends parsing of the text."""


class _Reader:
    """Parses ``text`` once, and reports to ``collector``.

    - ``depth``: the nesting depth of this text.
    - ``is_dash``: parse with the grammar of dash. Report only commands, no doubts.
    - ``is_arithmetic``: the text is the expression in ``((…))``.
    """

    def __init__(
        self,
        text: str,
        depth: int,
        collector: _Collector,
        *,
        is_dash: bool = False,
        is_arithmetic: bool = False,
    ) -> None:
        self._text = text
        self._depth = depth
        self._collector = collector
        self._at = 0
        self._is_dash = is_dash
        self._is_arithmetic = is_arithmetic
        self._is_condition = False
        self._condition_groups = 0
        self._documents: list[_HereDocument] = []
        self.differs_in_dash = False

    def run(self, read: Callable[[], object]) -> None:
        """Call ``read``. A limit or a doubt can end it early."""
        try:
            read()
        except _Stop:
            return

    def read_all(self) -> None:
        self._read_list("")
        if self._documents:
            self._doubt("unfinished", len(self._text))

    def read_expansions(self, ends_at_quote: bool = False) -> str:
        """Parse the content of double quotes, up to the closing quote or the end of the text."""
        pieces: list[str] = []
        text = self._text
        while self._at < len(text):
            if plain := _DOUBLE_PLAIN.match(text, self._at):
                pieces.append(plain[0])
                self._at = plain.end()
                continue
            each = text[self._at]
            if each == '"':
                self._at += 1
                if ends_at_quote:
                    return "".join(pieces)
                pieces.append(each)
            elif each == "\\":
                pieces.append(self._read_double_escape())
            elif each == "$":
                pieces.append(self._read_dollar(in_quotes=True))
            else:
                pieces.append(self._read_backquotes(in_quotes=True))
        if ends_at_quote:
            self._stop("unfinished")
        return "".join(pieces)

    # Lists of commands.

    def _read_list(self, closer: str) -> str:
        """Parse commands up to ``closer``. Return the token that ended them.

        ``closer`` is ``)``, ``case`` for the end of a clause, or empty for the end of the text.
        """
        self._descend()
        pending, is_condition = len(self._documents), self._is_condition
        self._collector.enter_group()
        try:
            ended = self._read_commands(closer, pending)
        finally:
            self._collector.leave_group()
        self._depth -= 1
        if self._is_condition != is_condition:
            self._doubt("unfinished", self._at)
            self._is_condition = is_condition
        if len(self._documents) > pending and closer:
            self._doubt("unfinished", self._at)
            del self._documents[pending:]
        return ended

    def _read_commands(self, closer: str, pending: int) -> str:
        text = self._text
        words: list[str] = []
        start = self._at
        while True:
            self._skip_blanks()
            start = start if words else self._at
            if self._at >= len(text):
                self._end_command(words, start)
                if closer:
                    self._stop("unfinished")
                return ""
            each = text[self._at]
            if each == "#":
                self._end_command(words, start)
                words = []
                self._at = _find_or_end(text, "\n", self._at)
            elif each == ")":
                self._end_command(words, start)
                words = []
                self._at += 1
                if closer == ")":
                    return each
                self._doubt("operator", self._at - 1)
            elif each == "(":
                words = self._read_group(words, start)
            elif each in "<>" or (not self._is_dash and text.startswith("&>", self._at)):
                self._read_angle(words)
            elif operator := _OPERATORS.match(text, self._at):
                self._end_command(words, start)
                words = []
                if self._read_operator(operator, closer, pending):
                    return operator[0]
            else:
                word = self._read_word()
                if closer == "case" and word == "esac" and _is_start(words):
                    self._end_command(words, start)
                    return word
                words = self._add_word(words, word, start)

    def _read_angle(self, words: list[str]) -> None:
        """Parse a redirection or a process substitution."""
        if self._text.startswith(("<(", ">("), self._at) and not self._is_dash:
            words.append(self._read_word())
        else:
            self._read_redirection(words)

    def _read_operator(self, operator: re.Match[str], closer: str, pending: int) -> bool:
        """Parse an operator between commands. Return whether it ends a clause of ``case``."""
        written = operator[0]
        self._at = operator.end()
        if self._is_condition and not self._condition_groups and written in (";", "&", "|", "|&"):
            self._doubt("operator", operator.start())
        if written == "\n":
            self._read_documents(pending)
        elif written in ("|", "|&"):
            self._collector.add_pipe()
            self.differs_in_dash |= written == "|&"
        elif written.startswith(";") and len(written) > 1:
            if closer == "case":
                return True
            self._doubt("operator", operator.start())
        return False

    def _add_word(self, words: list[str], word: str, start: int) -> list[str]:
        """Add ``word``, and return the words of the command that continues after it."""
        if word == "[[" and _is_start(words):
            self._is_condition = True
        elif word == "]]" and self._is_condition:
            self._end_command([*words, word], start)
            self._is_condition = False
        elif word == "case" and _is_start(words):
            self._read_case()
        else:
            words.append(word)
            return words
        return []

    def _read_group(self, words: list[str], start: int) -> list[str]:
        """Parse a group in parentheses, and return the words of the command that continues after it."""
        text = self._text
        if text.startswith("((", self._at) and (_is_start(words) or words == ["for"]):
            end = _end_of_arithmetic(text, self._at + 2)
            if end >= 0:
                content = text[self._at + 2 : end]
                self._read_within(content)
                # In dash, the parentheses are groups of commands.
                as_dash = _Reader(content, self._depth, self._collector, is_dash=True, is_arithmetic=True)
                as_dash.run(as_dash.read_all)
                self._at = end + 2
                return []
        if words and (empty := _EMPTY_PARENTHESES.match(text, self._at)) and not self._is_condition:
            # A function definition.
            self._end_command(words, start)
            self._at = empty.end()
            return []
        self._at += 1
        if self._is_condition:
            self._condition_groups += 1
            self._read_list(")")
            self._condition_groups -= 1
            return words
        if not _is_start(words) and words[:1] not in (["for"], ["foreach"], ["select"], ["function"]):
            self._doubt("group", self._at - 1)
        if words:
            self._end_command(words, start)
        self._read_list(")")
        return []

    def _read_within(self, content: str) -> None:
        """Parse the expansions of an arithmetic expression."""
        self._inner(content).read_expansions()

    def _read_case(self) -> None:
        text = self._text
        self._skip_lines()
        self._read_word()
        self._skip_lines()
        if self._read_word() != "in":
            self._doubt("keyword", self._at)
            return
        while True:
            self._skip_lines()
            if self._at >= len(text):
                self._stop("unfinished")
            if text[self._at] == "(":
                self._at += 1
                self._skip_blanks()
            elif self._read_pattern() == "esac":
                return
            while self._at < len(text) and text[self._at] not in ")\n":
                if text[self._at] == "|":
                    self._at += 1
                elif text[self._at] in ";&<>(":
                    self._stop("keyword")
                else:
                    self._read_pattern()
                self._skip_blanks()
            if text[self._at : self._at + 1] != ")":
                self._stop("keyword")
            self._at += 1
            if self._read_list("case") == "esac":
                return

    def _read_pattern(self) -> str:
        before = self._at
        word = self._read_word()
        if self._at == before and self._text[before : before + 1] not in ("|", ")"):
            self._stop("keyword")
        self._skip_blanks()
        return word

    def _end_command(self, words: list[str], start: int) -> None:
        """Report a simple command that ends here."""
        written = self._text[start : self._at].strip()
        if self._is_condition or self._condition_groups or self._is_arithmetic:
            # Only dash, which lacks these conditions, treats their parts as commands.
            words = words[1:] if words[:1] == ["!"] else words
            is_operand = not words or not MARKS.isdisjoint(words[0])
            is_condition = self._is_arithmetic or len(words) < 2 or words[1] in _CONDITIONS
            if self._condition_groups or (is_operand and is_condition):
                return
        if written and not self._is_dash and not self._collector.add_part(written):
            raise _Stop
        if words:
            self._collector.add_words(words)

    def _read_redirection(self, words: list[str]) -> None:
        text = self._text
        operator = _REDIRECTION.match(text, self._at)
        if operator is None:
            self._stop("redirection")
        is_adjacent = bool(words) and text[self._at - 1] not in " \t\n"
        if is_adjacent and len(words[-1]) <= _MAX_DESCRIPTOR and _DESCRIPTOR.fullmatch(words[-1]):
            words.pop()
        self._at = operator.end()
        self.differs_in_dash |= operator[0].startswith("&") or operator[0] == "<<<"
        self._skip_blanks()
        if operator[0] in ("<<", "<<-"):
            self._read_delimiter(is_indented=operator[0] == "<<-")
            return
        before = self._at
        target = self._read_word()
        if self._at == before:
            self._doubt("redirection", operator.start())
        if operator[0] == "<<<":
            self._collector.add_input(target)
        elif OUTPUT in target:
            self._collector.add_pipe()

    def _read_delimiter(self, *, is_indented: bool) -> None:
        found = _DELIMITER.match(self._text, self._at)
        if (
            found is None
            or self._text[found.end() : found.end() + 1] in tuple("\\'\"`$(")
            or "\\\n" in found[0]
        ):
            self._stop("unfinished")
        self._at = found.end()
        delimiter = _DELIMITER_QUOTES.sub(r"\1", found[0])
        self._documents.append(_HereDocument(delimiter, is_indented, delimiter != found[0]))

    def _read_documents(self, pending: int) -> None:
        """Parse the here-documents whose text begins after this line end."""
        if pending:
            # Shells disagree on whether the text of the outer documents begins here.
            self._doubt("unfinished", self._at)
        documents, self._documents = self._documents[pending:], self._documents[:pending]
        for document in documents:
            self._read_document(document)

    def _read_document(self, document: _HereDocument) -> None:
        text = self._text
        body, was_continued = self._at, False
        while self._at < len(text):
            line_at, end = self._at, _find_or_end(text, "\n", self._at)
            line = text[line_at:end]
            self._at = min(end + 1, len(text))
            if (line.lstrip("\t") if document.is_indented else line) == document.delimiter:
                if was_continued:
                    self._doubt("continuation", line_at)
                self._use_document(text[body:line_at], document)
                return
            was_continued = not document.is_quoted and bool(_CONTINUED.search(line))
        self._doubt("unfinished", body)
        self._use_document(text[body:], document)

    def _use_document(self, content: str, document: _HereDocument) -> None:
        if document.is_quoted:
            self._collector.add_input(content)
            return
        self._collector.add_input(self._inner(content).read_expansions())

    def _inner(self, text: str) -> _Reader:
        """Return a parser for ``text``, a part of this text."""
        if self._depth >= MAX_DEPTH:
            self._stop("depth")
        # If dash parses the inner text differently, the whole text is parsed as dash does.
        self.differs_in_dash |= "$'" in text or "&>" in text or "|&" in text
        return _Reader(text, self._depth + 1, self._collector, is_dash=self._is_dash)

    # Words.

    def _read_word(self) -> str:
        """Parse a word, and return it without quotes and with marks for unknown text."""
        text = self._text
        pieces: list[str] = []
        braces: list[tuple[str, int]] = []
        start = self._at
        while self._at < len(text):
            if plain := _PLAIN.match(text, self._at):
                pieces.append(plain[0])
                if braces and ("," in plain[0] or ".." in plain[0]):
                    braces.append((",", len(pieces)))
                self._at = plain.end()
                continue
            each = text[self._at]
            if each in " \t\n;|&":
                break
            if each in "<>":
                if not (text.startswith("(", self._at + 1) and self._at == start and not self._is_dash):
                    break
                self._at += 2
                self._read_list(")")
                pieces.append(OUTPUT)
                self._collector.add_pipe()
            elif each == ")":
                break
            elif each == "(":
                if not self._read_parenthesis(pieces, start):
                    break
            elif each in "{}":
                braces.append((each, len(pieces)))
                pieces.append(each)
                self._at += 1
            else:
                pieces.append(self._read_piece(each, start))
        return _with_braces(pieces, braces)

    def _read_parenthesis(self, pieces: list[str], start: int) -> bool:
        """Parse a parenthesis if it belongs to the preceding word. Return whether it does."""
        written = self._text[start : self._at]
        if not written or (self._is_condition and written[-1] not in "@+?*!"):
            return False
        if _ASSIGNED.fullmatch(written) and not self._is_dash:
            self._at += 1
            self._read_array()
            pieces.append(ONE)
            return True
        if written == "=" and not self._is_dash:
            self._at += 1
            self._read_list(")")
            pieces.append(OUTPUT)
            return True
        if written[-1] in "@+?*!]":
            # An extended pattern of bash, or glob qualifiers of zsh, which can run commands.
            if not self._is_condition:
                self._doubt("glob", self._at)
            self._at += 1
            self._condition_groups += 1
            self._read_list(")")
            self._condition_groups -= 1
            pieces.append(GLOB)
            return True
        return False

    def _read_array(self) -> None:
        text = self._text
        self._descend()
        while True:
            self._skip_lines()
            if self._at >= len(text):
                self._stop("unfinished")
            if text[self._at] == ")":
                self._at += 1
                self._depth -= 1
                return
            before = self._at
            self._read_word()
            if self._at == before:
                self._stop("group")

    def _read_piece(self, each: str, start: int) -> str:
        """Parse a piece of a word that is not plain."""
        text, at = self._text, self._at
        if each == "\\":
            if at + 1 >= len(text):
                self._stop("unfinished")
            self._at += 2
            if text[at + 1] == "\n":
                self._check_continuation(at)
                return ""
            return text[at + 1]
        if each == "'":
            end = text.find("'", at + 1)
            if end < 0:
                self._stop("unfinished")
            self._at = end + 1
            return text[at + 1 : end]
        if each == '"':
            self._at += 1
            return self.read_expansions(ends_at_quote=True)
        if each == "$":
            return self._read_dollar(in_quotes=False)
        if each == "`":
            return self._read_backquotes(in_quotes=False)
        if each == "[" and (found := _BRACKETS.match(text, at)):
            self._at = found.end()
            return GLOB
        if (
            each == "~"
            and (at == start or (text[at - 1] in "=:" and at > start + 1))
            and (found := _TILDE.match(text, at))
        ):
            self._at = found.end()
            return GLOB
        self._at += 1
        return GLOB if each in "*?" else each

    def _read_dollar(self, *, in_quotes: bool) -> str:
        text, at = self._text, self._at
        following = text[at + 1 : at + 2]
        mark = ONE if in_quotes else ANY
        self._at += 2
        if following == "(":
            mark = self._read_substitution(at, mark)
        elif following == "{":
            mark = self._read_braces(mark, in_quotes=in_quotes)
        elif following == "'" and not in_quotes and not self._is_dash:
            return self._read_codes()
        elif following == '"' and not in_quotes:
            return self.read_expansions(ends_at_quote=True)
        elif following == "[":
            self._doubt("expansion", at)
        elif following == "\\" and text[at + 2 : at + 3] == "\n":
            self._stop("continuation")
        elif found := _NAME.match(text, at + 1):
            self._at = found.end()
            mark = ANY if found[0] in "@*" else ONE if found[0] in "?#$!-" else mark
        else:
            self._at = at + 1
            return "$"
        return mark

    def _read_substitution(self, at: int, mark: str) -> str:
        if self._text.startswith("((", at + 1):
            end = _end_of_arithmetic(self._text, at + 3)
            if end >= 0:
                self._read_within(self._text[at + 3 : end])
                self._at = end + 2
                return ONE
        conditions = self._is_condition, self._condition_groups
        self._is_condition, self._condition_groups = False, 0
        self._read_list(")")
        self._is_condition, self._condition_groups = conditions
        return mark

    def _read_braces(self, mark: str, *, in_quotes: bool) -> str:
        """Parse ``${…}`` after its opening brace."""
        text, start = self._text, self._at
        if text[start : start + 1] in tuple(" \t\n|"):
            self._stop("expansion")
        self._descend()
        while self._at < len(text):
            each = text[self._at]
            if each == "}":
                self._at += 1
                self._depth -= 1
                return ANY if "@" in text[start : self._at] else mark
            if each in "'\"" and in_quotes:
                # Shells disagree on whether a quotation begins here.
                self._doubt("quote", self._at)
                self._at += 1
            elif each in "'\"`$\\":
                if each == "$":
                    self._read_dollar(in_quotes=in_quotes)
                elif each == "`":
                    self._read_backquotes(in_quotes=in_quotes)
                else:
                    self._read_piece(each, start)
            elif text.startswith(("<(", ">("), self._at) and not in_quotes:
                self._at += 2
                self._read_list(")")
            else:
                self._at += 1
        return self._stop("unfinished")

    def _read_codes(self) -> str:
        """Parse ``$'…'`` after its opening quote."""
        text, start = self._text, self._at
        while self._at < len(text) and text[self._at] != "'":
            self._at += 2 if text[self._at] == "\\" else 1
        if self._at >= len(text):
            self._stop("unfinished")
        content = text[start : self._at]
        self._at += 1
        self.differs_in_dash |= "\\" in content
        # In bash, a NUL ends the text.
        return _CODES.sub(_decode, content).partition("\0")[0]

    def _read_double_escape(self) -> str:
        text, at = self._text, self._at
        if at + 1 >= len(text):
            self._stop("unfinished")
        self._at += 2
        following = text[at + 1]
        if following == "\n":
            self._check_continuation(at, in_quotes=True)
            return ""
        return following if following in '"\\$`' else "\\" + following

    def _read_backquotes(self, *, in_quotes: bool) -> str:
        text, at = self._text, self._at + 1
        start = at
        while at < len(text) and text[at] != "`":
            at += 2 if text[at] == "\\" else 1
        if at >= len(text):
            self._stop("unfinished")
        escapes = r"\\([\\$`\"])" if in_quotes else r"\\([\\$`])"
        self._inner(re.sub(escapes, r"\1", text[start:at])).read_all()
        self._at = at + 1
        return ONE if in_quotes else ANY

    # Blanks.

    def _skip_blanks(self) -> None:
        text = self._text
        while self._at < len(text):
            if found := _BLANKS.match(text, self._at):
                self._at = found.end()
            elif text.startswith("\\\n", self._at):
                self._check_continuation(self._at)
                self._at += 2
            else:
                return

    def _skip_lines(self) -> None:
        """Skip blanks, line ends and comments."""
        while True:
            self._skip_blanks()
            each = self._text[self._at : self._at + 1]
            if each == "\n":
                self._at += 1
            elif each == "#":
                self._at = _find_or_end(self._text, "\n", self._at)
            else:
                return

    def _check_continuation(self, at: int, *, in_quotes: bool = False) -> None:
        """Raise a doubt if a line continuation may join two characters into an operator."""
        before, behind = self._text[at - 1 : at] if at else " ", self._text[at + 2 : at + 3]
        if in_quotes:
            if before == "$":
                self._doubt("continuation", at)
        elif before in " \t\n":
            if behind == "#":
                self._doubt("continuation", at)
        elif behind not in ("", " ", "\t", "\n") and not (
            _ORDINARY.match(before) and _ORDINARY.match(behind)
        ):
            self._doubt("continuation", at)

    def _descend(self) -> None:
        if self._depth >= MAX_DEPTH:
            self._stop("depth")
        self._depth += 1

    def _doubt(self, kind: DoubtKind, at: int) -> None:
        if not self._is_dash:
            self._collector.add_doubt(Doubt(kind, self._text[at : at + _MAX_SHOWN]))

    def _stop(self, kind: DoubtKind) -> NoReturn:
        self._doubt(kind, self._at)
        raise _Stop


def _is_start(words: list[str]) -> bool:
    """Return whether a command begins after ``words``."""
    return all(word in KEYWORDS or _ASSIGNED.match(word) for word in words) or (
        words[0] == "coproc" and len(words) == 2
    )


def _with_braces(pieces: list[str], braces: list[tuple[str, int]]) -> str:
    """Join ``pieces`` to a word, with a mark for a brace expansion that makes several words."""
    kinds = [kind for kind, _ in braces]
    if "{" in kinds and "}" in kinds and "," in kinds:
        first, last = kinds.index("{"), len(kinds) - 1 - kinds[::-1].index("}")
        if first < kinds.index(",") < last:
            return "".join(pieces[: braces[first][1]]) + ANY + "".join(pieces[braces[last][1] + 1 :])
    return "".join(pieces)


def _end_of_arithmetic(text: str, at: int) -> int:
    """Return the position of the ``))`` that ends an arithmetic expression; -1 if the text is not an
    expression."""
    depth = 0
    for found in _ARITHMETIC.finditer(text, at, min(len(text), at + _MAX_ARITHMETIC)):
        if found[0] == "(":
            depth += 1
        elif found[0] == ")":
            if not depth:
                return found.start() if text.startswith("))", found.start()) else -1
            depth -= 1
    return -1


def _decode(found: re.Match[str]) -> str:
    for index, base in ((1, 16), (2, 16), (3, 8)):
        if found[index] is not None:
            return chr(int(found[index] or "0", base) & 0xFF)
    for index in (4, 5):
        if found[index] is not None:
            code = int(found[index], 16)
            return chr(code) if code <= 0x10FFFF else "\ufffd"
    if found[6] is not None:
        return chr(ord(found[6]) & 0x1F)
    return _SHORT_CODES.get(found[7], found[0])


def _find_or_end(text: str, sought: str, at: int) -> int:
    found = text.find(sought, at)
    return len(text) if found < 0 else found
