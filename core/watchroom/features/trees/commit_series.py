"""Splits the content of a working tree into commits of one author each. Pure.

Work that builds on the work of a later author cannot be separated from it. Both are then in the commit of the
later author, which names all of their authors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from watchroom.features.trees.commits import FileComparison, PlannedFile, is_agent
from watchroom.features.trees.git import FileState
from watchroom.features.trees.line_rules import LineCount
from watchroom.model import Row

PEOPLE: Final = ""
"""The author of the commit with the changes that no agent is known to have made."""


class SeriesFile(NamedTuple):
    """A file of a commit.

    - ``state``: the file after the commit; None if the commit deletes it.
    - ``counts``: the lines that each author added and removed in the commit; empty for a binary file.
    - ``rows``: the versions that are in the commit, but not in the commit before it.
    """

    path: str
    state: FileState | None
    counts: Mapping[str, LineCount]
    rows: tuple[Row, ...]


class SeriesStep(NamedTuple):
    """A commit.

    - ``authors``: the authors of its changes: agents or their sessions in alphabetical order, then `PEOPLE`.
    - ``files``: its files.
    """

    authors: tuple[str, ...]
    files: tuple[SeriesFile, ...]


def split_changes(
    comparisons: Sequence[FileComparison], *, starts_with_people: bool = False
) -> list[SeriesStep]:
    """Return the commits that lead from the compared commit to the newest versions, in the order of the
    authors' first changes.

    ``starts_with_people``: the first commit is by `PEOPLE`, because it also has files without versions.
    """
    groups = _order_authors(comparisons, starts_with_people)
    done: dict[str, PlannedFile] = {}
    chosen: set[str] = set()
    steps: list[SeriesStep] = []
    for number, (group, names) in enumerate(groups.items(), 1):
        chosen |= names
        is_last = number == len(groups)
        files = [*_take(comparisons, None if is_last else sorted(chosen), done)]
        authors = {_group_of(author) for file in files for author in file.counts} or {group}
        is_first_of_people = starts_with_people and number == 1
        if files or is_first_of_people:
            steps.append(SeriesStep(_sort_authors(authors), tuple(files)))
    return steps


def _take(
    comparisons: Iterable[FileComparison], chosen: Sequence[str] | None, done: dict[str, PlannedFile]
) -> Iterator[SeriesFile]:
    """Yield the files of ``done`` that the changes of the authors ``chosen`` alter. Update ``done``."""
    for each in comparisons:
        planned, before = each.plan(chosen), done.get(each.path)
        if not isinstance(planned, PlannedFile):
            continue
        if before is not None and (before.state, before.authors) == (planned.state, planned.authors):
            continue
        done[each.path] = planned
        if each.changes is None:
            authors = dict.fromkeys(each.author_of(row) for row in each.whole_rows)
            yield SeriesFile(
                each.path, planned.state, dict.fromkeys(authors, LineCount(0, 0)), each.whole_rows
            )
            continue
        known = (before.authors, {*before.versions}) if before is not None else ((), set())
        rows = tuple(each.rows[version] for version in planned.versions if version not in known[1])
        names = [author for author in planned.authors if author not in known[0]]
        # Lines that a later author has replaced are in this commit, and belong to no author of the content.
        names += [each.author_of(row) for row in rows if each.author_of(row) not in known[0]]
        counts = each.changes.counts
        yield SeriesFile(
            each.path, planned.state, {name: counts.get(name, LineCount(0, 0)) for name in names}, rows
        )


def _order_authors(comparisons: Iterable[FileComparison], starts_with_people: bool) -> dict[str, set[str]]:
    """Return the authors of the versions by group, in the order of the groups' first changes."""
    first: dict[str, int] = {PEOPLE: 0} if starts_with_people else {}
    names: dict[str, set[str]] = {PEOPLE: set()} if starts_with_people else {}
    for each in comparisons:
        planned = each.plan(None)
        if not isinstance(planned, PlannedFile):
            continue
        began = _find_first(each, planned)
        for author in planned.authors:
            group = _group_of(author)
            first[group] = min(first.get(group, began.get(author, 0)), began.get(author, 0))
            names.setdefault(group, set()).add(author)
    return {group: names[group] for group in sorted(first, key=lambda each: (first[each], each))}


def _find_first(file: FileComparison, planned: PlannedFile) -> dict[str, int]:
    """Return the number of the first row of each author."""
    found: dict[str, int] = {}
    for version in planned.versions:
        row = file.rows[version]
        found.setdefault(file.author_of(row), row.seq)
    return found


def _group_of(author: str) -> str:
    return author if is_agent(author) else PEOPLE


def _sort_authors(authors: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(authors, key=lambda each: (each == PEOPLE, each)))
