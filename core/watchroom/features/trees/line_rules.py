"""Finds who made which uncommitted changes of a file, and builds the file with the changes of some authors
only. Pure.

Three texts matter: the text in HEAD, the newest version, and the text of a commit of some authors. Line ends
and a missing final newline are part of a text: no text is normalized.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from itertools import pairwise
from typing import Final, Literal, NamedTuple, TypeAlias

from watchroom.algorithms.merge import LineChange, diff_lines, split_lines
from watchroom.algorithms.weave import LineHistory, Weave

UNKNOWN: Final = ""
"""The author of changes that were made before the first version."""
_FINAL_NEWLINE: Final = "\ufdd0 final newline\n"
"""A line that is appended to a text with a final newline.

So a change of the final newline is not a change of the line before it.
"""
_UNPRINTABLE: Final = tuple(bytes([n]) for n in (*range(32), 127) if n not in b"\b\t\n\f\r\x1b")
"""Bytes that git counts as signs of a binary file."""
_MAX_COMMITS: Final = 100
"""Maximum number of agents' commits that are compared with HEAD."""

BaseKind: TypeAlias = Literal["version", "commit", "text"]
"""The way in which the versions in HEAD are identified.

- ``version``: HEAD has the text of a version.
- ``commit``: HEAD has the text of an agents' commit.
- ``text``: HEAD has another text. Its differences from the newest version are attributed line by line.
"""


Switch: TypeAlias = Literal["took", "gave"]


class LineVersion(NamedTuple):
    """A version of a file.

    - ``author``: empty if the version is git's text before the first change.
    - ``text``: None if there is no file.
    - ``took``, ``gave``: for a revert, the versions that it switched off and on.
    """

    number: int
    author: str
    text: str | None
    executable: bool = False
    took: tuple[int, ...] = ()
    gave: tuple[int, ...] = ()


class KnownVersions(NamedTuple):
    """The versions whose changes a text contains: from ``start`` to ``until``, and the versions in
    ``later``."""

    start: int
    until: int
    later: frozenset[int] = frozenset()


class HeadFile(NamedTuple):
    """A file in HEAD.

    - ``text``: as git checks it out; None if there is no file.
    - ``executable``: whether it can be executed.
    - ``commits``: the versions in agents' commits, newest commit first. HEAD may be a different commit.
    """

    text: str | None
    executable: bool = False
    commits: Sequence[KnownVersions] = ()


class AuthoredLine(NamedTuple):
    """A line of HEAD or of the newest version.

    - ``adder``: who added it; None if HEAD has it.
    - ``remover``: who removed it; None if the newest version has it.
    """

    text: str
    adder: str | None = None
    remover: str | None = None


class LineCount(NamedTuple):
    """The number of lines that an author added to HEAD and removed from it."""

    added: int
    removed: int


class Taken(NamedTuple):
    """The file in HEAD with the changes of some authors.

    - ``text``: None if there is no file.
    - ``versions``: the versions of these authors that HEAD does not have.
    - ``known``: the versions whose changes the text contains; None if they cannot be determined.
    - ``mixed``: other authors whose uncommitted changes these changes depend on. The text may have parts of
      their lines.
    """

    text: str | None
    executable: bool
    versions: tuple[int, ...]
    known: KnownVersions | None
    mixed: frozenset[str] = frozenset()


class _Piece(NamedTuple):
    """A line with its line end, and whether HEAD and the newest version have it."""

    text: str
    in_head: bool
    in_newest: bool
    adder: str
    remover: str


class FileChanges:
    """The uncommitted changes of one file.

    - ``versions``: all versions, oldest first, and at least one.
    - ``is_head``: returns whether git would store a text (None: no file) as the blob in HEAD. By default, the
      text is compared with the text of ``head``.

    changes = FileChanges(versions, HeadFile("a\\n"))
    if "alice" in changes.authors:
        taken = changes.take({"alice"})
    """

    def __init__(
        self,
        versions: Sequence[LineVersion],
        head: HeadFile,
        is_head: Callable[[str | None], bool] | None = None,
    ) -> None:
        # If no version is before the first author's, the file did not exist.
        first = [] if versions[0].author == UNKNOWN else [LineVersion(0, UNKNOWN, None)]
        self._all = [*first, *versions]
        self._head = head
        self._authors = {each.number: each.author for each in self._all}
        self._newest = self._all[-1]
        compare = is_head or (lambda text: text == head.text)
        known = next((n for n in range(len(self._all) - 1, -1, -1) if compare(self._all[n].text)), None)
        # Versions before the version in HEAD do not matter.
        self._begin(known or 0)
        self.kind: BaseKind = "version"
        self._in_head = frozenset({self._versions[0].number})
        if known is None:
            self.kind, self._in_head = self._find_commit(compare)
        self._pieces = [*self._list_pieces()]

    @property
    def newest(self) -> LineVersion:
        """The newest version."""
        return self._newest

    @property
    def authors(self) -> tuple[str, ...]:
        """The authors of uncommitted changes, in alphabetical order."""
        found = {each.adder for each in self._pieces if each.in_newest and not each.in_head}
        found |= {each.remover for each in self._pieces if each.in_head and not each.in_newest}
        found |= {author for author in (self._existence_author(), self._mode_author()) if author is not None}
        return tuple(sorted(found))

    @property
    def all_authors(self) -> frozenset[str]:
        """The authors of all versions."""
        return frozenset(self._authors.values())

    @property
    def lines(self) -> tuple[AuthoredLine, ...]:
        """The lines of HEAD and of the newest version, in order, without their line feeds."""
        return tuple(
            AuthoredLine(
                each.text.removesuffix("\n"),
                None if each.in_head else each.adder,
                None if each.in_newest else each.remover,
            )
            for each in self._pieces
            if each.text != _FINAL_NEWLINE
        )

    @property
    def counts(self) -> Mapping[str, LineCount]:
        """The number of lines that each author added and removed. A change of the final newline is not
        counted."""
        found: dict[str, LineCount] = dict.fromkeys(self.authors, LineCount(0, 0))
        for each in self.lines:
            if each.adder is not None and each.remover is None:
                old = found.get(each.adder, LineCount(0, 0))
                found[each.adder] = old._replace(added=old.added + 1)
            elif each.remover is not None and each.adder is None:
                old = found.get(each.remover, LineCount(0, 0))
                found[each.remover] = old._replace(removed=old.removed + 1)
        return found

    def take(self, authors: Collection[str]) -> Taken:
        """Return the file in HEAD with the changes of ``authors`` only."""
        chosen = set(authors)
        known: KnownVersions | None = None
        own = tuple(sorted(self._list_own(chosen)))
        if chosen >= self._list_concerned():
            whole = KnownVersions(self._newest.number, self._newest.number)
            return Taken(self._newest.text, self._newest.executable, own, whole)
        mode_author = self._mode_author()
        executable = self._newest.executable if mode_author in chosen else self._head.executable
        if self.kind == "text":
            text, mixed = self._take_pieces(chosen)
        else:
            text, mixed = self._take_versions(chosen)
            known = self._find_known(self._in_head | set(own))
        return Taken(text, executable and text is not None, own, known, frozenset(mixed - chosen))

    def _list_concerned(self) -> set[str]:
        """Return the authors of all versions since HEAD that are not switched off. An author counts even if
        none of their lines is left."""
        found = set(self.authors)
        if self.kind != "text":
            off = self._in_head | self._weave.off
            found |= {each.author for each in self._versions if each.number not in off}
        return found

    def _list_own(self, chosen: Set[str]) -> set[int]:
        """Return the versions of the authors ``chosen`` that are not in HEAD and not switched off."""
        return {
            each.number
            for each in self._versions
            if each.number and each.author in chosen and each.number not in self._in_head | self._weave.off
        }

    def _begin(self, index: int) -> None:
        """Start the comparison at the version at ``index``."""
        self._versions = self._all[index:]
        self._weave = _weave(self._versions)
        self._reverts = [each for each in reversed(self._versions) if each.took or each.gave]

    def _find_commit(self, is_head: Callable[[str | None], bool]) -> tuple[BaseKind, frozenset[int]]:
        """Return which versions HEAD contains, if its text is not the text of any version."""
        places = {each.number: n for n, each in enumerate(self._all)}
        for known in self._head.commits[:_MAX_COMMITS]:
            if known.start not in places:
                continue
            if known.start != self._versions[0].number:
                self._begin(places[known.start])
            numbers = (each.number for each in self._versions)
            in_head = frozenset(n for n in numbers if n <= known.until or n in known.later)
            if is_head(self._text(in_head)):
                return "commit", in_head
        self._begin(0)
        return "text", frozenset()

    def _find_known(self, on: Set[int]) -> KnownVersions:
        """Return the versions ``on`` as `KnownVersions`. They must include the oldest version."""
        start = until = self._versions[0].number
        for each in self._versions:
            if each.number not in on:
                break
            until = each.number
        return KnownVersions(start, until, frozenset(n for n in on if n > until))

    def _off(self, on: Set[int]) -> set[int]:
        """Return the versions that are off if only the versions ``on`` exist. Reverts also switch versions
        off."""
        off: set[int] = set()
        for each in self._versions:
            if each.number in on:
                off = (off | set(each.took)) - set(each.gave)
        return off | {each.number for each in self._versions if each.number not in on}

    def _text(self, on: Set[int]) -> str | None:
        return _decode(self._weave.text(self._off(on))) if self._exists(on) else None

    def _exists(self, on: Set[int]) -> bool:
        exists = self._versions[0].text is not None
        was = exists
        for each in self._versions:
            if (each.text is not None) != was:
                was = not was
                exists = was if each.number in on else exists
        return exists

    def _take_versions(self, chosen: Set[str]) -> tuple[str | None, set[str]]:
        """Return the text with the versions of the authors ``chosen``, and the authors whose work it depends
        on."""
        own = self._list_own(chosen)
        on = self._in_head | own
        replacements = self._weave.replacements(self._off(on))
        mixed = {self._author(each.replaced) for each in replacements if each.replaced not in on}
        # Work in a created file needs the creation, and the deletion before it.
        needed: set[int] = set()
        deletion, exists = None, self._versions[0].text is not None
        for each in self._versions:
            if (each.text is not None) != exists:
                exists = not exists
                if exists:
                    needed |= {each.number} | ({deletion} if deletion is not None else set())
                else:
                    deletion = each.number
            if each.number in own:
                mixed |= {self._author(number) for number in needed - on}
        return self._text(on), mixed

    def _take_pieces(self, chosen: Set[str]) -> tuple[str | None, set[str]]:
        """Return HEAD's text with the changes made only by the authors ``chosen``, and the authors who share
        a change with them."""
        lines: list[str] = []
        mixed: set[str] = set()
        for group in _group(self._pieces):
            added = [each for each in group if not each.in_head]
            removed = [each for each in group if not each.in_newest]
            authors = {each.adder for each in added} | {each.remover for each in removed}
            if removed and added and authors & chosen and not authors <= chosen:
                mixed |= authors
            lines += [
                each.text
                for each in group
                if (each.in_head and (each.in_newest or each.remover not in chosen))
                or (not each.in_head and each.adder in chosen)
            ]
        existence = self._existence_author()
        exists = self._head.text is not None
        if existence is not None:
            if existence in chosen:
                exists = not exists
            elif self._newest.text is not None:
                mixed.add(existence)
        return (_decode("".join(lines)) if exists else None), mixed

    def _existence_author(self) -> str | None:
        """Return who created or deleted the file since HEAD; None if nobody did."""
        exists = self._newest.text is not None
        if exists == (self._head.text is not None):
            return None
        found = self._all[0].author
        for before, each in pairwise(self._all):
            if (each.text is not None) == exists and (before.text is not None) != exists:
                found = each.author
        return found

    def _mode_author(self) -> str | None:
        """Return who changed the executable bit since HEAD; None if nobody did."""
        if self._newest.text is None or self._newest.executable == self._head.executable:
            return None
        found = self._newest.author
        for each in reversed(self._all):
            if each.text is not None and each.executable == self._head.executable:
                break
            if each.text is not None:
                found = each.author
        return found

    def _list_pieces(self) -> Iterator[_Piece]:
        if self.kind == "text":
            yield from self._attribute()
            return
        head_off, newest_off = self._off(self._in_head), self._weave.off
        for line in self._weave.lines():
            in_head, in_newest = line.is_present(head_off), line.is_present(newest_off)
            if in_head or in_newest:
                adder = self._author(self._find_switch(line, line.adder, "gave", "took") or line.adder)
                yield _Piece(line.text, in_head, in_newest, adder, self._remover(line))

    def _remover(self, line: LineHistory) -> str:
        """Return the author of the first version since HEAD that removed ``line``."""
        off = self._weave.off
        first = next((n for n in line.removers if n not in off and n not in self._in_head), None)
        found = first or self._find_switch(line, 0, "took", "gave")
        return self._author(found) if found else UNKNOWN

    def _find_switch(self, line: LineHistory, adder: int, by_adder: Switch, by_remover: Switch) -> int | None:
        """Return the last revert since HEAD that added or removed ``line`` by switching other versions.

        ``adder``: the version that added the line, or 0. If HEAD does not contain it, return None.
        """
        if adder and adder not in self._in_head:
            return None
        for each in self._reverts:
            if each.number not in self._in_head and (
                line.adder in getattr(each, by_adder) or {*line.removers} & {*getattr(each, by_remover)}
            ):
                return each.number
        return None

    def _author(self, version: int) -> str:
        return self._authors.get(version, UNKNOWN)

    def _attribute(self) -> Iterator[_Piece]:
        """Yield the lines of HEAD and of the newest version, attributed to the authors of the versions."""
        head, newest = _encode(self._head.text), _encode(self._newest.text)
        known = self._weave.lines()
        off = self._weave.off
        adders = [each.adder for each in known if each.is_present(off)]
        removers = {
            each.text: next(n for n in reversed(each.removers) if n not in off)
            for each in known
            if any(n not in off for n in each.removers)
        }
        old, new = split_lines(head), split_lines(newest)
        at = 0
        for change in [*diff_lines(head, newest), LineChange(len(old), len(old), len(new), len(new))]:
            for text in old[at : change.old_start]:
                yield _Piece(text, in_head=True, in_newest=True, adder=UNKNOWN, remover=UNKNOWN)
            authors = [self._author(adders[n]) for n in range(change.new_start, change.new_end)]
            for text in old[change.old_start : change.old_end]:
                version = removers.get(text)
                remover = (
                    self._author(version) if version is not None else (authors or [self._newest.author])[0]
                )
                yield _Piece(text, in_head=True, in_newest=False, adder=UNKNOWN, remover=remover)
            for text, author in zip(new[change.new_start : change.new_end], authors, strict=True):
                yield _Piece(text, in_head=False, in_newest=True, adder=author, remover=UNKNOWN)
            at = change.old_end


def clean_line_ends(text: str, conversion: str, stored: str) -> str:
    """Return ``text`` with the line ends with which git stores it, if it has stored ``stored`` before.

    ``conversion``: ``text``, ``auto`` or ``none``. With ``auto``, git does not convert a file that looks
    binary or is stored with CRLF.
    """
    if conversion == "none" or (conversion == "auto" and ("\r\n" in stored or _looks_binary(text))):
        return text
    return text.replace("\r\n", "\n")


def _looks_binary(text: str) -> bool:
    """Return whether git treats ``text`` as binary: it has a NUL, a lone CR, or many control characters."""
    if "\0" in text or text.count("\r") != text.count("\r\n"):
        return True
    data = text.encode().removesuffix(b"\x1a")
    unprintable = sum(data.count(each) for each in _UNPRINTABLE)
    printable = len(data) - unprintable - data.count(b"\n") - data.count(b"\r")
    return printable >> 7 < unprintable


def _weave(versions: Sequence[LineVersion]) -> Weave:
    weave = Weave(_encode(versions[0].text))
    for each in versions[1:]:
        weave.add(each.number, _encode(each.text), each.took, each.gave)
    return weave


def _encode(text: str | None) -> str:
    """Return the lines of ``text``, all with a line feed. Append `_FINAL_NEWLINE` if the text has a final
    newline or is empty."""
    if not text:
        return _FINAL_NEWLINE
    return text + _FINAL_NEWLINE if text.endswith("\n") else text + "\n"


def _decode(lines: str) -> str:
    """Undo `_encode`. Several marks count as one."""
    text = lines.replace(_FINAL_NEWLINE, "")
    return text if _FINAL_NEWLINE in lines else text.removesuffix("\n")


def _group(pieces: Sequence[_Piece]) -> Iterator[list[_Piece]]:
    """Yield groups of neighbouring pieces, either all changed or all unchanged."""
    group: list[_Piece] = []
    for each in pieces:
        if group and (group[-1].in_head and group[-1].in_newest) != (each.in_head and each.in_newest):
            yield group
            group = []
        group.append(each)
    if group:
        yield group
