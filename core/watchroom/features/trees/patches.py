"""Codex's format of patches, which its tool ``apply_patch`` takes. Pure.

    *** Begin Patch
    *** Update File: src/main.py
    @@ def main():
         setup()
    -    run()
    +    run(options)
    *** End Patch

`parse_patch` and `apply_update` do what Codex 0.171 does, also where that is surprising:

- A hunk replaces the first lines that match, at or after the end of the previous hunk. Lines match exactly,
  or without white space at their end, or at both ends, or with plain instead of typographic punctuation.
- A hunk without old lines adds its lines at the end of the file.
- Context lines stay as the file has them.
- New lines end as the first line of the file does, and an updated file always ends with a line end.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from watchroom.algorithms.merge.diff import LineChange, diff_lines

PatchKind: TypeAlias = Literal["add", "delete", "update"]

MAX_PATCH_CHARACTERS: Final = 10_000_000
"""Maximum number of characters in a patch that is parsed."""
MAX_COMPARED_LINES: Final = 20_000_000
"""Maximum number of lines that are compared to find the hunks of a patch. Only patches of repeated lines
exceed it."""
_CONTEXT: Final = 3
"""Unchanged lines around a change."""
_BEGIN: Final = "*** Begin Patch"
_END: Final = "*** End Patch"
_ADD: Final = "*** Add File: "
_DELETE: Final = "*** Delete File: "
_UPDATE: Final = "*** Update File: "
_KINDS: Final[tuple[tuple[str, PatchKind], ...]] = ((_ADD, "add"), (_DELETE, "delete"), (_UPDATE, "update"))
_ENVIRONMENT: Final = "*** Environment ID: "
"""The start of the line that names the machine of a patch, before the first file. It is ignored here."""
_MOVE: Final = "*** Move to: "
_END_OF_FILE: Final = "*** End of File"
_DOCUMENTS: Final = ("<<EOF", "<<'EOF'", '<<"EOF"')
_SPACES: Final = "\xa0\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
_WHITE_SPACE: Final = f"\t\n\v\f\r \x85\u1680\u2000\u2001\u2028\u2029{_SPACES}"
"""White space as Unicode defines it. ``str.strip`` also removes separators such as U+001C."""
_LINE_ENDS: Final = re.compile(r"(\r\n|[\r\n])")
_SHELL_PATCH: Final = re.compile(
    r"""\s*(?:cd[ \t]+(?P<folder>[^\s'"\\$`;&|<>()~*?\[{]+|'[^']*'|"[^"\\$`]*")[ \t]*&&[ \t]*)?"""
    r"""(?:apply_patch|applypatch)[ \t]*<<(?P<tabs>-?)[ \t]*(?P<quote>['"]?)(?P<end>\w+)(?P=quote)[ \t]*\n"""
)
_PUNCTUATION: Final = str.maketrans(
    {
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
        **dict.fromkeys("\u2018\u2019\u201a\u201b", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f", '"'),
        **dict.fromkeys(_SPACES, " "),
    }
)


class PatchInvalid(ValueError):
    """Codex does not accept a text as a patch.

    - ``reason``: why, in English, for logs.
    - ``line``: the line of the patch, from 1; 0 if the reason concerns the whole patch.
    """

    def __init__(self, reason: str, line: int = 0) -> None:
        super().__init__(f"line {line}: {reason}" if line else reason)
        self.reason = reason
        self.line = line


class Hunk(NamedTuple):
    """Lines that an update replaces.

    - ``lines``: each begins with a space (context), ``-`` or ``+``, and has no line end.
    - ``context``: a line of the file after which the old lines are searched; None for none.
    - ``is_at_end``: the old lines are the last lines of the file.
    """

    lines: tuple[str, ...]
    context: str | None = None
    is_at_end: bool = False

    @property
    def old(self) -> tuple[str, ...]:
        """The lines before the change."""
        return tuple(line[1:] for line in self.lines if line[0] != "+")


class FilePatch(NamedTuple):
    """The change that a patch makes to one file.

    - ``path``: as written in the patch.
    - ``move_to``: the new path of an updated file; empty if it is not moved.
    - ``text``: the text of an added file.
    - ``hunks``: the hunks of an update.
    """

    kind: PatchKind
    path: str
    move_to: str = ""
    text: str = ""
    hunks: tuple[Hunk, ...] = ()


class ShellPatch(NamedTuple):
    """A patch in a shell command. ``folder``: the folder to which ``cd`` changes before the patch; empty for
    none."""

    patch: str
    folder: str = ""


def find_shell_patch(command: str) -> ShellPatch | None:
    """Return the patch of a command such as ``cd src && apply_patch <<'EOF'``. None if there is none.

    As in Codex, the command must do nothing else.
    """
    if len(command) > MAX_PATCH_CHARACTERS:
        return None
    found = _SHELL_PATCH.match(command)
    if found is None:
        return None
    lines = command[found.end() :].rstrip().split("\n")
    last = lines[-1].lstrip("\t") if found["tabs"] else lines[-1]
    if len(lines) < 2 or last != found["end"] or found["end"] in lines[:-1]:
        return None
    folder = found["folder"] or ""
    return ShellPatch("\n".join(lines[:-1]), folder.strip(folder[0]) if folder[:1] in ("'", '"') else folder)


def parse_patch(text: str) -> tuple[FilePatch, ...]:
    """Return the changes of files that the patch ``text`` makes, in order. Raise `PatchInvalid` if Codex
    would not accept it.

    The patch may be in a here-document without a program, as Codex allows.
    """
    if len(text) > MAX_PATCH_CHARACTERS:
        raise PatchInvalid(f"more than {MAX_PATCH_CHARACTERS} characters")
    lines = [line.removesuffix("\r") for line in text.strip(_WHITE_SPACE).split("\n")]
    if len(lines) >= 4 and lines[0] in _DOCUMENTS and lines[-1].endswith("EOF"):
        lines = lines[1:-1]
    if lines[0].strip(_WHITE_SPACE) != _BEGIN:
        raise PatchInvalid("the first line is not '*** Begin Patch'", 1)
    if len(lines) < 2 or lines[-1].strip(_WHITE_SPACE) != _END:
        raise PatchInvalid("the last line is not '*** End Patch'", len(lines))
    reader = _Reader()
    for number, line in enumerate(lines[1:-1], 2):
        if not reader.read(line, number):
            break
    return reader.finish()


class _Reader:
    """Collects the files of a patch line by line."""

    def __init__(self) -> None:
        self._files: list[FilePatch] = []
        self._started = 0
        self._text: list[str] = []
        self._hunks: list[Hunk] = []
        self._lines: list[str] | None = None
        """The lines of the current hunk; None before the first hunk of a file."""
        self._context: str | None = None
        self._is_at_end = False

    def read(self, line: str, number: int) -> bool:
        """Read the next line. Return whether the patch continues."""
        is_update = bool(self._files) and self._files[-1].kind == "update"
        marker = line.rstrip(_WHITE_SPACE) if is_update else line.strip(_WHITE_SPACE)
        if marker == _END:
            return False
        started = _start_file(marker)
        if started is not None:
            self._end_file(number)
            self._files.append(started)
            self._started = number
        elif is_update:
            self._read_change(line, marker, number)
        elif self._files and self._files[-1].kind == "add" and line.startswith("+"):
            self._text.append(line[1:] + "\n")
        elif self._files or not marker.startswith(_ENVIRONMENT):
            raise PatchInvalid("not the start of a file", number)
        return True

    def finish(self) -> tuple[FilePatch, ...]:
        """Return all files."""
        self._end_file(0)
        return tuple(self._files)

    def _read_change(self, line: str, marker: str, number: int) -> None:
        file = self._files[-1]
        if self._lines is None and not file.move_to and marker.startswith(_MOVE):
            self._files[-1] = file._replace(move_to=marker.removeprefix(_MOVE))
        elif marker == "@@" or marker.startswith("@@ "):
            self._end_hunk(number)
            self._lines, self._context = [], marker[3:] if marker != "@@" else None
        elif self._is_at_end:
            if marker:
                raise PatchInvalid("a line after the end of the file", number)
        elif marker == _END_OF_FILE:
            if self._lines == []:
                raise PatchInvalid("a hunk has no lines", number)
            self._is_at_end = self._lines is not None
        elif line[:1] not in ("", " ", "+", "-"):
            raise PatchInvalid("not a line of a hunk", number)
        else:
            self._lines = self._lines if self._lines is not None else []
            self._lines.append(line or " ")

    def _end_hunk(self, number: int) -> None:
        if self._lines is None:
            return
        if not self._lines:
            raise PatchInvalid("a hunk has no lines", number)
        self._hunks.append(Hunk(tuple(self._lines), self._context, self._is_at_end))
        self._lines, self._context, self._is_at_end = None, None, False

    def _end_file(self, number: int) -> None:
        if not self._files:
            return
        self._end_hunk(number)
        file = self._files[-1]
        if file.kind == "update" and not self._hunks:
            raise PatchInvalid("an updated file has no hunks", self._started)
        self._files[-1] = file._replace(text="".join(self._text), hunks=tuple(self._hunks))
        self._text, self._hunks = [], []


def _start_file(marker: str) -> FilePatch | None:
    for start, kind in _KINDS:
        if marker.startswith(start):
            return FilePatch(kind, marker.removeprefix(start))
    return None


def apply_update(patch: FilePatch, text: str) -> str | None:
    """Return ``text`` after the hunks of ``patch``; None if Codex would not find one of them."""
    source = _Source(text)
    changes: list[_Replacement] = []
    at = 0
    for hunk in patch.hunks:
        found = source.find_hunk(hunk, at)
        if found is None:
            return None
        replacements, at = found
        changes += replacements
    return source.replace(sorted(changes, key=lambda change: change.start))


class _Replacement(NamedTuple):
    """Replaces the lines from ``start`` to ``end`` (excluded) by ``lines``."""

    start: int
    end: int
    lines: tuple[str, ...]


class _Source:
    """The lines of a file, without their ends."""

    def __init__(self, text: str) -> None:
        parts = _LINE_ENDS.split(text)
        self.lines, self._ends = parts[::2], parts[1::2]
        if not self.lines[-1]:
            self.lines.pop()
        self._index = _LineIndex(self.lines)

    @property
    def line_end(self) -> str:
        """The line end for new lines: the line end of the first line."""
        return self._ends[0] if self._ends else "\n"

    def choose_start(self, at: int, changed: int, end: int) -> int:
        """Return the start of a hunk that ends at ``end``. Its context is long enough to match there first.

        - ``at``: the line after the previous hunk.
        - ``changed``: the first line that changes.
        """
        size = _CONTEXT
        while changed - size > at:
            start = changed - size
            if self._index.find(self.lines[start:end], at) == start:
                return start
            size *= 2
        return at

    def find_hunk(self, hunk: Hunk, at: int) -> tuple[list[_Replacement], int] | None:
        """Return the replacements of ``hunk``, and the line from which the next hunk is searched.

        ``at``: the line after the previous hunk.
        """
        if hunk.context is not None:
            place = self._index.find((hunk.context,), at)
            if place is None:
                return None
            at = place + 1
        old = hunk.old
        if not old:
            return [_Replacement(len(self.lines), len(self.lines), _added(hunk.lines))], at
        start = self._index.find(old, at, is_at_end=hunk.is_at_end)
        lines = hunk.lines
        if start is None and not old[-1]:
            # An empty last line can match the end of the file.
            old, lines = old[:-1], _drop_last_line(lines)
            start = self._index.find(old, at, is_at_end=hunk.is_at_end)
        if start is None:
            return None
        return _list_replacements(lines, start), start + len(old)

    def replace(self, changes: Sequence[_Replacement]) -> str | None:
        """Return the text after ``changes``, which must be in order; None if they overlap."""
        ends = [*self._ends, *([self.line_end] * (len(self.lines) - len(self._ends)))]
        result: list[str] = []
        at = 0
        for change in changes:
            if change.start < at:
                return None
            result += map(str.__add__, self.lines[at : change.start], ends[at : change.start])
            result += (line + self.line_end for line in change.lines)
            at = change.end
        result += map(str.__add__, self.lines[at:], ends[at:])
        return "".join(result)


def _added(lines: Sequence[str]) -> tuple[str, ...]:
    return tuple(line[1:] for line in lines if line[0] == "+")


def _drop_last_line(lines: tuple[str, ...]) -> tuple[str, ...]:
    """Remove the last old line, and the last new line if it is empty too."""
    last_old = max(index for index, line in enumerate(lines) if line[0] != "+")
    last_new = max((index for index, line in enumerate(lines) if line[0] != "-"), default=-1)
    if last_old == last_new:
        return lines[:-1]
    left: list[str | None] = [*lines]
    # If a context line is dropped on one side only, it stays on the other side.
    left[last_old] = "+" if lines[last_old] == " " else None
    if last_new >= 0 and not lines[last_new][1:]:
        left[last_new] = "-" if lines[last_new] == " " else None
    return tuple(line for line in left if line is not None)


def _list_replacements(lines: Sequence[str], start: int) -> list[_Replacement]:
    """Return the replacements between the context lines of a hunk. ``start``: the line of its first old
    line."""
    found: list[_Replacement] = []
    at = end = start
    added: list[str] = []
    for line in (*lines, " "):
        if line[0] == "+":
            added.append(line[1:])
        elif line[0] == "-":
            end += 1
        else:
            if at != end or added:
                found.append(_Replacement(at, end, tuple(added)))
            at = end = end + 1
            added = []
    return found


def _normalize_punctuation(line: str) -> str:
    return line.strip(_WHITE_SPACE).translate(_PUNCTUATION)


class _LineIndex:
    """Finds lines in a file, with the levels of tolerance of Codex."""

    _LEVELS: Final[tuple[Callable[[str], str], ...]] = (
        str,
        lambda line: line.rstrip(_WHITE_SPACE),
        lambda line: line.strip(_WHITE_SPACE),
        _normalize_punctuation,
    )

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self._levels: list[tuple[list[str], dict[str, list[int]]]] = []
        self._compared = 0

    def find(self, wanted: Sequence[str], start: int, *, is_at_end: bool = False) -> int | None:
        """Return the first position of ``wanted`` from ``start`` on; None if there is none.

        ``is_at_end``: search only the end of the file.
        """
        if not wanted:
            return start
        first = max(start, len(self._lines) - len(wanted)) if is_at_end else start
        if first + len(wanted) > len(self._lines):
            return None
        for level, normalize in enumerate(self._LEVELS):
            found = self._find_at_level(level, [normalize(line) for line in wanted], first)
            if found is not None:
                return found
        return None

    def _find_at_level(self, level: int, wanted: list[str], first: int) -> int | None:
        lines, places = self._level(level)
        rarest, offset = min(((len(places.get(line, ())), index) for index, line in enumerate(wanted)))
        if not rarest:
            return None
        candidates = places[wanted[offset]]
        for place in candidates[bisect_left(candidates, first + offset) :]:
            self._compared += len(wanted)
            if self._compared > MAX_COMPARED_LINES:
                return None
            start = place - offset
            if lines[start : start + len(wanted)] == wanted:
                return start
        return None

    def _level(self, level: int) -> tuple[list[str], dict[str, list[int]]]:
        while len(self._levels) <= level:
            normalize = self._LEVELS[len(self._levels)]
            lines = [normalize(line) for line in self._lines]
            places: dict[str, list[int]] = {}
            for index, line in enumerate(lines):
                places.setdefault(line, []).append(index)
            self._levels.append((lines, places))
        return self._levels[level]


def build_add(path: str, text: str) -> FilePatch | None:
    """Return the patch that writes ``text`` to ``path``; None if Codex cannot write it.

    Codex writes no other line end than a line feed, and always writes a final line feed.
    """
    file = FilePatch("add", path, text=text)
    try:
        return file if parse_patch(format_patch((file,))) == (file,) else None
    except PatchInvalid:
        return None


def format_patch(files: Sequence[FilePatch]) -> str:
    """Return ``files`` as a patch: the reverse of `parse_patch`."""
    return "\n".join((_BEGIN, *(line for file in files for line in _format_file(file)), _END, ""))


def _format_file(file: FilePatch) -> Iterator[str]:
    yield next(start for start, kind in _KINDS if kind == file.kind) + file.path
    if file.move_to:
        yield _MOVE + file.move_to
    yield from ("+" + line for line in file.text.split("\n")[:-1])
    for hunk in file.hunks:
        yield "@@" if hunk.context is None else f"@@ {hunk.context}"
        yield from hunk.lines
        if hunk.is_at_end:
            yield _END_OF_FILE


def format_update(path: str, before: str, after: str, move_to: str = "") -> str | None:
    """Return a patch that turns ``before`` into ``after``; None if there is none. See `build_update`."""
    file = build_update(path, before, after, move_to)
    return None if file is None else format_patch((file,))


def build_update(path: str, before: str, after: str, move_to: str = "") -> FilePatch | None:
    """Return the update that turns ``before`` into ``after`` exactly; None if there is none.

    ``after`` must be empty or end with a line end, because Codex adds it. New lines must end as the first
    line of ``before`` does. If both texts are empty, there is no update.
    """
    for has_context in (True, False):
        hunks = tuple(_build_hunks(before, after, has_context=has_context))
        file = FilePatch("update", path, move_to, hunks=hunks)
        try:
            (parsed,) = parse_patch(format_patch((file,)))
        except ValueError:
            continue
        if parsed == file and apply_update(file, before) == after:
            return file
    return None


def diff_line_lists(old: Sequence[str], new: Sequence[str]) -> list[LineChange]:
    """Return the changes from ``old`` to ``new``. Unlike `diff_lines`, accept lines with any characters."""
    numbers: dict[str, int] = {}
    texts = ("".join(f"{numbers.setdefault(line, len(numbers))}\n" for line in lines) for lines in (old, new))
    return diff_lines(*texts)


def _build_hunks(before: str, after: str, *, has_context: bool) -> Iterator[Hunk]:
    """Yield hunks for the changes.

    Without ``has_context``, unchanged lines between changes are removed and added again, because Codex reads
    some context lines as markers.
    """
    old, new = _Source(before), _Source(after)
    at = 0
    # An update without changes adds a missing final line end.
    unchanged = LineChange(len(old.lines), len(old.lines), len(new.lines), len(new.lines))
    for group in _group_changes(diff_line_lists(old.lines, new.lines) or [unchanged]):
        end = min(len(old.lines), group[-1].old_end + _CONTEXT)
        place = old.choose_start(at, group[0].old_start, end)
        lines: list[str] = []
        for change in group:
            lines += _keep(old.lines[place : change.old_start], has_context)
            lines += ("-" + line for line in old.lines[change.old_start : change.old_end])
            lines += ("+" + line for line in new.lines[change.new_start : change.new_end])
            place = change.old_end
        lines += _keep(old.lines[place:end], has_context)
        yield Hunk(tuple(lines))
        at = end


def _keep(lines: Sequence[str], has_context: bool) -> Iterator[str]:
    for line in lines:
        if has_context:
            yield " " + line
        else:
            yield "-" + line
            yield "+" + line


def _group_changes(changes: Sequence[LineChange]) -> Iterator[list[LineChange]]:
    """Yield the changes of each hunk. Changes whose context would overlap are in one hunk."""
    group: list[LineChange] = []
    for change in changes:
        if group and change.old_start - group[-1].old_end > 2 * _CONTEXT:
            yield group
            group = []
        group.append(change)
    if group:
        yield group
