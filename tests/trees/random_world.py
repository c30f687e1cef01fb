"""A repository with three working trees, in which agents, their commands, a person and git change files at
random, and a record of who changed what.

The record is made by comparing the disk before and after each step. `World.settle` compares it with the rows.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from random import Random
from typing import Final, NamedTuple, Self

from trees.git_repo import ENVIRONMENT, git
from trees.git_repository import Repository
from trees.tree_client import Refused, ScriptedClient
from watchroom import Row, Workspace
from watchroom.features.trees.rows import BASELINE, REPO, candidates_of, grade_of
from watchroom.kernel.rules.file_versions import file_checksum, is_executable

AGENTS: Final = ("alice", "bob", "carol")
NAMES: Final = (
    *(f"src/m{n}.py" for n in range(12)),
    *(f"docs/d{n}.md" for n in range(8)),
    *("a b.txt", "über/größe.txt", "deep/er/and/deeper/x.txt", "new\nline.txt", "quote'\".txt"),
    *(" lead.txt", "tab\there.txt", "emoji-\U0001f600.txt", "-dash.txt", "[x].txt", "back\\slash.txt"),
    *("crlf.txt", "noend.txt", "empty.txt", "bin.dat", "run.sh", "CASE.txt", "case.txt"),
)
UNTRACKED: Final = ("new1.txt", "new2.txt", "src/new3.py", "fresh/new4.txt", "fresh/new5.txt", "new six.txt")


class State(NamedTuple):
    """A file on disk: its SHA-256, and whether it can be executed."""

    sha256: str
    executable: bool


class Truth(NamedTuple):
    """Who made a change, by the record of the script.

    - ``state``: the file after it, None if it is gone.
    - ``actor``: an agent, ``person`` or ``git``.
    - ``windows``: the agents whose commands ran; empty for an agent's own tool.
    - ``is_git``: a git command made it.
    - ``is_common``: it only removed the file, or changed its mode, as git can have done right afterwards.
    """

    state: State | None
    actor: str
    windows: tuple[str, ...] = ()
    is_git: bool = False
    is_common: bool = False

    def admits(self, row: Row) -> bool:
        """Return whether ``row`` names the right author, or none."""
        grade = grade_of(row)
        if self.is_git and grade == "git":
            return row.actor == "outside"
        if len(set(self.windows)) > 1:
            return grade == "shared" and set(candidates_of(row)) == set(self.windows)
        if self.windows:
            return (grade, row.actor) == ("window", self.windows[0])
        if self.actor in AGENTS:
            return (grade, row.actor) == ("tool", self.actor)
        return (grade, row.actor) == ("external", "outside")


class Place(NamedTuple):
    """A file: the number of its tree, and its name there."""

    tree: int
    name: str


class World:
    """The repository in ``folder``, with a workspace that this process keeps. ``dice`` choose what happens."""

    def __init__(self, folder: Path, dice: Random) -> None:
        self.dice = dice
        self.log: list[str] = []
        self.faults: list[str] = []
        self.repository = Repository(folder / "project")
        self._fill()
        self.folders = [folder / "project", folder / "left", folder / "right tree"]
        for number, each in enumerate(self.folders[1:]):
            self.repository.git("worktree", "add", "--quiet", "-b", f"branch{number}", str(each))
        self.start = [self._look(each) for each in self.folders]
        self.now = [dict(each) for each in self.start]
        self.truths: dict[Place, list[Truth]] = {}
        """What changed since the last time everything was recorded."""
        self.changed: set[Place] = set()
        self.texts: set[tuple[Place, str]] = set()
        """Contents that were on disk when everything was recorded, and that git need not have."""
        self.refused: list[tuple[Place, str]] = []
        self.seq = 0
        self._differing: set[Place] = set()
        self._moved: set[int] = set()
        """The trees in which git ran since the last time everything was recorded."""
        self._numbers = 0
        self._stack = ExitStack()

    def _fill(self) -> None:
        self.repository.write(".gitignore", "build/\n*.o\n")
        for name in NAMES:
            self.repository.write(name, "".join(f"{name!r} line {n}\n" for n in range(8)))
        root = self.repository.folder
        (root / "crlf.txt").write_bytes(b"one\r\ntwo\r\nthree\r\n")
        (root / "noend.txt").write_bytes(b"one\ntwo\nthree")
        (root / "empty.txt").write_bytes(b"")
        (root / "bin.dat").write_bytes(bytes(range(256)))
        (root / "run.sh").chmod(0o755)
        self.repository.git("config", "core.autocrlf", "false")
        self.repository.commit()

    def __enter__(self) -> Self:
        opened = Workspace.open(self.repository.root, agents=AGENTS)
        self.workspace = self._stack.enter_context(opened)
        assert self.workspace.keep()
        self.seq = self.workspace.journal.last_seq()
        kinds = ("claude", "claude", "codex")
        self.clients = [
            ScriptedClient(self.workspace, agent, self.folders[0], client=kind)
            for agent, kind in zip(AGENTS, kinds, strict=True)
        ]
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    # -- the disk

    def _look(self, folder: Path) -> dict[str, State]:
        found: dict[str, State] = {}
        for above, folders, files in os.walk(folder):
            folders[:] = [each for each in folders if each not in (".git", "build")]
            for each in files:
                path = Path(above, each)
                if each == ".git" or each.endswith(".o") or path.is_symlink():
                    continue
                data = path.read_bytes()
                state = State(hashlib.sha256(data).hexdigest(), bool(path.stat().st_mode & 0o100))
                found[os.path.relpath(path, folder)] = state
        return found

    def step(
        self, actor: str, change: Callable[[], object], *, windows: Sequence[str] = (), is_git: bool = False
    ) -> None:
        """Make a ``change``, and note what it did to which files."""
        change()
        for number, folder in enumerate(self.folders):
            before, after = self.now[number], self._look(folder)
            for name in {*before, *after}:
                if before.get(name) != after.get(name):
                    place = Place(number, name)
                    one, other = before.get(name), after.get(name)
                    is_common = other is None or (one is not None and one.sha256 == other.sha256)
                    truth = Truth(other, actor, tuple(windows), is_git, is_common)
                    self.truths.setdefault(place, []).append(truth)
                    self.changed.add(place)
            self.now[number] = after

    def run_git(self, number: int, *arguments: str) -> None:
        """Run git, which can fail."""
        self._moved.add(number)
        subprocess.run(
            ["git", *arguments],
            cwd=self.folders[number],
            env={"PATH": os.environ["PATH"], "HOME": str(self.folders[0]), **ENVIRONMENT},
            capture_output=True,
            check=False,
        )

    # -- texts

    def fresh(self) -> str:
        """Return a text that is nowhere else."""
        self._numbers += 1
        return f"fresh {self._numbers} {self.dice.getrandbits(32):x}"

    def texts_in(self, number: int) -> list[str]:
        """Return the names of the files of a tree that an agent's own tool can edit."""
        found = []
        for name in sorted(self.now[number]):
            data = (self.folders[number] / name).read_bytes()
            if data.strip() and b"\0" not in data and name != ".gitignore":
                found.append(name)
        return found

    def any_name(self, number: int) -> str:
        names = [each for each in sorted(self.now[number]) if each != ".gitignore"]
        return self.dice.choice([*names, *UNTRACKED, *NAMES])

    # -- comparing with the rows

    def settle(self) -> None:
        """Have everything recorded, and compare the rows with the record and the disk."""
        self.workspace.trees.refresh_all()
        trees = {os.fspath(tree.git.folder): tree for tree in self.workspace.trees.all()}
        ids = [trees[os.path.realpath(folder)].id for folder in self.folders]
        for row in self._new_rows():
            tree, _, name = row.path.partition("/")
            if tree not in ids:
                self.fault(f"a row of an unknown tree: {row.path!r}")
                continue
            self._check_author(Place(ids.index(tree), name), row)
        self._differing = {place for number in range(3) for place in self._differs_from_git(number)}
        for place in sorted(self.changed):
            self._check_head(place, f"{ids[place.tree]}/{place.name}")
        self.truths.clear()
        self._moved.clear()

    def _differs_from_git(self, number: int) -> Iterator[Place]:
        """Yield the files of a tree that git's index does not have as they are on disk."""
        for asked in (("diff", "--name-only"), ("ls-files", "--others", "--exclude-standard")):
            for name in git(self.folders[number], *asked, "-z").split("\0"):
                if name:
                    yield Place(number, name)

    def _new_rows(self) -> Iterator[Row]:
        journal = self.workspace.journal
        while rows := journal.rows(self.seq):
            for row in rows:
                self.seq = row.seq
                if row.zone == REPO and row.version is not None and row.tool != BASELINE:
                    yield row

    def _check_author(self, place: Place, row: Row) -> None:
        found = self.truths.get(place, [])
        is_git = place.tree in self._moved and grade_of(row) == "git"
        if not found and is_git:
            # Git has dropped a file that stays.
            return
        if not found:
            self.fault(f"nobody changed {place}, but {_show(row)}")
            return
        state = None if row.deleted else State(file_checksum(row) or "", is_executable(row))
        same = [each for each in found if each.state == state]
        if is_git and any(each.is_common for each in same):
            return
        # A version between two steps, such as a file that was just made empty.
        if not any(each.admits(row) for each in same or found):
            self.fault(f"{place}: {_show(row)}, but {same or found}")

    def _check_head(self, place: Place, path: str) -> None:
        state = self.now[place.tree].get(place.name)
        head = self.workspace.journal.head(REPO, path)
        if head is None:
            if place in self._differing:
                self.fault(f"no row of {place}: {self.truths.get(place)}")
            return
        known = None if head.deleted else State(file_checksum(head) or "", is_executable(head))
        if known != state:
            self.fault(f"{place} is {state}, but {_show(head)}; {self.truths.get(place)}")
        truths = self.truths.get(place, [])
        if truths and not truths[-1].is_git and state is not None:
            self.texts.add((place, state.sha256))

    def check_texts(self) -> None:
        """Check that every text that was on disk, or was refused, has a row."""
        trees = {tree.git.folder: tree.id for tree in self.workspace.trees.all()}
        journal = self.workspace.journal
        for place, checksum in self.texts:
            path = f"{trees[os.path.realpath(self.folders[place.tree])]}/{place.name}"
            if not any(file_checksum(row) == checksum for row in journal.history(REPO, path)):
                self.fault(f"a text of {place} has no row")
        for place, text in self.refused:
            path = f"{trees[os.path.realpath(self.folders[place.tree])]}/{place.name}"
            if not any(journal.content(row.seq) == text for row in journal.refused(REPO, path)):
                self.fault(f"a refused text of {place} has no row: {text!r}")

    def fault(self, text: str) -> None:
        self.faults.append(f"{len(self.log)} {self.log[-1] if self.log else ''}: {text}")


def _show(row: Row) -> str:
    return (
        f"version {row.version} of {row.actor} ({grade_of(row)}, {row.tool}, {row.sha256 and row.sha256[:8]},"
        f" candidates {candidates_of(row)})"
    )


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        with suppress(FileNotFoundError, NotADirectoryError):
            path.unlink()


def put(path: Path, data: bytes) -> None:
    """Write a file. Whatever is in its way is removed, such as a file where a folder has to be."""
    for above in reversed(path.parents):
        if above.is_file() or above.is_symlink():
            above.unlink()
            break
    if path.is_symlink() or path.is_dir():
        remove(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


__all__ = ["AGENTS", "NAMES", "Place", "Refused", "World", "put", "remove"]
