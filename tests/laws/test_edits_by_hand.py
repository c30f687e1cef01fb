"""Files that people edit behind the journal's back while agents write them, in one checkout or in two: nothing
that somebody wrote is lost, each edit is found once, and each file is what the journal says of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from random import Random
from typing import Final

import pytest
from calls import ok
from effort import seeds
from watchroom import Json, Workspace
from watchroom.features.overview.snapshots import read_model
from watchroom.model import CHECKOUT, OUTSIDE, Row, Zone

AGENTS: Final = ("alice", "bob")
PATHS: Final = ("plan.md", "a/b.md", "c.md")
FOLDERS: Final = {"collab": "collaborative/current", "private": "agents/alice"}
STEPS: Final = 60
MOST_SCANS: Final = 5
"""After so many all edits are found."""

Open = Callable[[int], Workspace]


class Disk:
    """Two processes at work, each in ``opened`` of its number, and people at their files."""

    def __init__(self, opened: Open, chance: Random) -> None:
        self._open = opened
        self._chance = chance
        self._words = count()
        self.processes = [opened(0), opened(1)]
        self.wanted: set[str] = set()
        """What has to be in the journal in the end."""
        self._unseen: dict[Path, str] = {}
        """What was written by hand last, where nobody has looked for sure."""

    def step(self) -> None:
        process = self._chance.choice(self.processes)
        zone: Zone = self._chance.choice(("collab", "collab", "private"))
        path = self._chance.choice(PATHS)
        file = Path(process.root, FOLDERS[zone], path)
        match self._chance.choices(range(7), (8, 8, 3, 3, 3, 1, 4))[0]:
            case 0:
                self.write(process, zone, path)
            case 1:
                self.edit(file)
            case 2:
                self._lose_sight(file)
                file.unlink(missing_ok=True)
            case 3:
                process.scan()
            case 4:
                process.flush()
            case 5:
                number = self.processes.index(process)
                process.close()
                self.processes[number] = self._open(number)
            case 6:
                self.settle(process, path)

    def write(self, process: Workspace, zone: Zone, path: str) -> None:
        word = self._word()
        if zone == "collab":
            given = {"filepath": path, "content": word, "message": "m", "expected_version": -1}
            ok(process.tools(self._chance.choice(AGENTS)), "collab_write", **given)
        else:
            ok(process.tools("alice"), "save_to_my_workspace", filename=path, content=word, message="m")
        self.wanted.add(word)

    def edit(self, file: Path) -> None:
        self._lose_sight(file)
        word, beside = self._word(), file.with_name("beside~")
        place = beside if self._chance.random() < 0.5 else file
        is_written = False
        while not is_written:
            # The folder may go with the last file in it.
            with suppress(FileNotFoundError):
                file.parent.mkdir(parents=True, exist_ok=True)
                is_written = write_in_place(place, word)
        if place == beside:
            os.replace(beside, file)
        self.wanted.add(word)
        self._unseen[file] = word

    def settle(self, process: Workspace, path: str) -> None:
        """A person settles an edit of a shared file, the newest of a checkout or an older one."""
        found = [row for row in edits_of(process, path) if row.outcome == "conflict"]
        if not found:
            return
        edit, dana = self._chance.choice(found[-2:]), process.tools_for_human("dana")
        head, word = process.journal.head("collab", path), self._word()
        if self._chance.random() < 0.5:
            answer = dana.dispatch_tool_call(
                "revert_outside_edit", {"filepath": path, "conflict": edit.seq, "message": "m"}
            )
            refused = {"edited_again", "conflict_settled"}
        else:
            version = head.version if head else 0
            given: dict[str, Json] = {"filepath": path, "content": word, "expected_version": version}
            answer = dana.dispatch_tool_call(
                "resolve_conflict", {**given, "conflicts": [edit.seq], "message": "m"}
            )
            # An edit that was undone by hand is settled.
            refused = {"version_conflict", "conflict_settled"}
            self.wanted |= {word} if answer["success"] else set()
        assert answer["success"] or answer["error"] in refused, answer

    def scan_all(self) -> int:
        """All look through their files; returns how many edits were found."""
        for process in self.processes:
            process.flush()
        found = sum(len(process.scan()) for process in self.processes)
        for process in self.processes:
            process.flush()
        return found

    def close(self) -> None:
        for process in self.processes:
            process.close()

    def _word(self) -> str:
        return f"word {next(self._words)}\n"

    def _lose_sight(self, file: Path) -> None:
        """What was written by hand there is lost where it still stands: nobody else has seen it yet."""
        word = self._unseen.pop(file, "")
        if word and text_of(file) == word:
            self.wanted.discard(word)


def write_in_place(file: Path, word: str) -> bool:
    """Write the file; False where it was replaced before that was done: it went to what is not there any more."""
    with file.open("w") as opened:
        opened.write(word)
        opened.flush()
        written = os.fstat(opened.fileno())
        return os.path.samestat(written, file.stat())


def text_of(file: Path) -> str | None:
    try:
        return file.read_text()
    except FileNotFoundError:
        return None


def edits_of(process: Workspace, path: str) -> list[Row]:
    return [row for row in rows_of(process) if (row.actor, row.zone, row.path) == (OUTSIDE, "collab", path)]


def rows_of(process: Workspace) -> list[Row]:
    return process.journal.rows(limit=100_000)


def texts_of(process: Workspace) -> set[str | None]:
    return {process.journal.content(row.seq) for row in rows_of(process) if row.sha256}


def explained(process: Workspace) -> Iterator[tuple[str, str | None]]:
    """The shared files that an open conflict of this checkout explains, and what they hold."""
    journal = process.journal
    for conflict in read_model(journal, journal.last_seq()).conflicts:
        row = conflict.row
        if conflict.kind == "outside" and row.detail.get(CHECKOUT, "") == process.host.id:
            yield conflict.path, journal.content(row.seq) if row.sha256 else None


@contextmanager
def disk(opened: Open, seed: int) -> Iterator[Disk]:
    people = Disk(opened, Random(seed))
    try:
        yield people
    finally:
        people.close()


def check(opened: Open, seed: int) -> None:
    with disk(opened, seed) as people:
        for _ in range(STEPS):
            people.step()
        scans = next((number for number in range(MOST_SCANS) if not people.scan_all()), MOST_SCANS)
        assert scans < MOST_SCANS, "each edit is found once"
        for process in people.processes:
            assert people.wanted <= texts_of(process)
            conflicts = dict(explained(process))
            for zone, path in [(zone, path) for zone in FOLDERS for path in PATHS]:
                head = process.journal.head(zone, path if zone == "collab" else f"alice/{path}")  # type: ignore[arg-type]
                file = Path(process.root, FOLDERS[zone], path)
                held = text_of(file)
                says = None if head is None or head.deleted else process.journal.content(head.seq)
                assert held == says or (zone == "collab" and (path, held) in conflicts.items()), file
            assert {problem.path for problem in process.verify()} <= conflicts.keys()


@pytest.mark.parametrize("seed", seeds(6, 200))
def test_in_one_checkout(root: Path, seed: int) -> None:
    check(lambda number: Workspace.open(root, agents=AGENTS), seed)


@pytest.mark.postgres
@pytest.mark.parametrize("seed", seeds(6, 200))
def test_in_two_checkouts(new_database: Callable[[], str], tmp_path: Path, seed: int) -> None:
    url = new_database()
    check(lambda number: Workspace.open(url, agents=AGENTS, checkout=tmp_path / f"checkout{number}"), seed)
