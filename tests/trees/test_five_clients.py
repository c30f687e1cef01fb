"""Five clients and a person change 50 files at the same time: no line is lost unseen, and each has its author.

What nobody can notice is left out. No two programs write at the same instant: one that has read a file and
replaces it takes what came in between. Between the checks before and after a command, no other command and no
person writes the file that it names: a text that is there for an instant is in no row.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from random import Random
from threading import Event, Lock
from typing import Final, NamedTuple

import pytest
from effort import IS_HUNTING, seed, seeds
from trees.git_repo import git
from trees.git_repository import Repository
from trees.tree_client import Refused, ScriptedClient
from watchroom import Row, Workspace
from watchroom.errors import NothingToCommit
from watchroom.features.trees.rows import FORMATTER, REPO, candidates_of, grade_of
from watchroom.kernel.call_context import CallContext

AGENTS: Final = {"ada": "claude", "ben": "claude", "cyd": "claude", "dan": "codex", "eve": "opencode"}
PERSON: Final = "pat"
FILES: Final = tuple(f"src/part{number // 10}/file{number}.txt" for number in range(50))
LINES: Final = 12


class Ledger:
    """Who wrote which line, and which lines were removed on purpose. Each line is there once."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._count = 0
        self.written: dict[str, tuple[str, str]] = {}
        """By line: its author and file."""
        self.removed: set[str] = set()
        self.refused: dict[str, str] = {}
        """By line of a refused write: its file."""
        self.places = {name: Lock() for name in FILES}
        """Held by the command that changes a file, or the person."""
        self.log: list[tuple[str, str]] = []
        """What was done to which file, for the report of a fault."""

    def fresh(self, author: str) -> str:
        with self._lock:
            self._count += 1
            return f"line {self._count} by {author}."

    def note(self, author: str, name: str, line: str, removed: set[str]) -> None:
        """Note that ``author`` has written a line, and removed others that it had seen."""
        with self._lock:
            self.written[line] = (author, name)
            self.removed |= removed

    def say(self, name: str, text: str) -> None:
        with self._lock:
            self.log.append((name, f"{time.monotonic():.3f} {text}"))

    def note_refused(self, name: str, line: str) -> None:
        with self._lock:
            self.refused[line] = name


class Change(NamedTuple):
    """A text with one more line. ``removed``: the lines that it lacks."""

    text: str
    removed: set[str]


def change(text: str, line: str, dice: Random) -> Change:
    """Replace a line of ``text``, or insert one."""
    lines = text.splitlines()
    at = dice.randrange(len(lines))
    if dice.random() < 0.5:
        return Change("\n".join([*lines[:at], line, *lines[at + 1 :], ""]), {lines[at]})
    return Change("\n".join([*lines[:at], line, *lines[at:], ""]), set())


class Agent:
    """A client that edits, writes and runs commands. It has seen what it has read."""

    def __init__(self, client: ScriptedClient, kind: str, ledger: Ledger, dice: Random) -> None:
        self._client = client
        self._kind = kind
        self._ledger = ledger
        self._dice = dice
        self._seen: dict[str, str] = {}

    def act(self) -> None:
        name = self._dice.choice(FILES)
        if name not in self._seen or self._dice.random() < 0.6:
            self._read(name)
        operation = self._dice.choices((self._edit, self._write, self._bash), (5, 3, 4))[0]
        line = self._ledger.fresh(self._client.agent)
        self._ledger.say(name, f"{operation.__name__} begins: {line}")
        try:
            operation(name, line)
            self._ledger.say(name, f"{operation.__name__} ends: {line}")
        except Refused:
            self._ledger.say(name, f"{operation.__name__} is refused: {line}")
            if operation is self._write:
                self._ledger.note_refused(name, line)
            self._read(name)

    def _read(self, name: str) -> None:
        self._seen[name] = ""
        # A file that is just being written can be empty.
        while not self._seen[name]:
            is_codex = self._kind == "codex"
            self._seen[name] = self._client.bash(f"cat {name}") if is_codex else self._client.read(name)

    def _note(self, name: str, line: str, removed: set[str]) -> None:
        self._ledger.note(self._client.agent, name, line, removed)

    def _pause(self) -> None:
        time.sleep(self._dice.random() * 0.01)

    def _edit(self, name: str, line: str) -> None:
        old = self._dice.choice(self._seen[name].splitlines())
        is_kept = self._dice.random() < 0.5
        new = f"{old}\n{line}" if is_kept else line
        if self._kind == "codex":
            kept = f" {old}\n" if is_kept else f"-{old}\n"
            lines = f"*** Begin Patch\n*** Update File: {name}\n@@\n{kept}+{line}\n*** End Patch\n"
            is_made = self._client.patch(lines)
        else:
            begun = self._client.begin_edit(name, old + "\n", new + "\n")
            self._pause()
            is_made = self._client.end_edit(*begun)
        if is_made:
            self._note(name, line, set() if is_kept else {old})
            self._seen[name] = self._seen[name].replace(old + "\n", new + "\n")

    def _write(self, name: str, line: str) -> None:
        changed = change(self._seen[name], line, self._dice)
        if self._kind == "codex":
            # Codex has no other tool for a whole text.
            self._run(name, line, f"printf %s {shlex.quote(changed.text)} > {name}", changed)
            return
        begun = self._client.begin_write(name, changed.text)
        self._pause()
        self._client.end_write(*begun)
        self._note(name, line, changed.removed)
        self._seen[name] = changed.text

    def _bash(self, name: str, line: str) -> None:
        seen = self._seen[name]
        old = self._dice.choice(seen.splitlines())
        kind = self._dice.choice(("append", "replace", "insert", "stale"))
        if kind == "append":
            self._run(name, line, f"echo '{line}' >> {name}", Change(f"{seen}{line}\n", set()))
        elif kind == "stale":
            changed = change(seen, line, self._dice)
            self._run(name, line, f"printf %s {shlex.quote(changed.text)} > {name}", changed)
        else:
            command, kept = (f"s/.*/{line}/", "") if kind == "replace" else (f"a {line}", f"{old}\n")
            changed = Change(seen.replace(f"{old}\n", f"{kept}{line}\n"), set() if kept else {old})
            script = f"/^{old.replace('.', '[.]')}$/{{ w /dev/stdout\n{command}\n}}"
            self._run(name, line, f"sed -i -e {shlex.quote(script)} {name}", changed, prints=True)

    def _run(self, name: str, line: str, command: str, changed: Change, *, prints: bool = False) -> None:
        """Run a ``command`` that writes ``line``. ``prints``: only if it prints something."""
        with self._ledger.places[name]:
            self._ledger.say(name, f"runs {command}")
            printed = self._client.bash(command)
        if printed or not prints:
            self._note(name, line, changed.removed)
            self._seen[name] = changed.text


def edit_by_hand(folder: Path, ledger: Ledger, dice: Random, disk: Lock, until: Event) -> None:
    """Save files as an editor does, which looks whether the file is still as it was read."""
    while not until.is_set():
        name = dice.choice(FILES)
        line = ledger.fresh(PERSON)
        with ledger.places[name], disk:
            changed = change((folder / name).read_text(), line, dice)
            (folder / name).write_text(changed.text)
        ledger.note(PERSON, name, line, changed.removed)
        ledger.say(name, f"saved by hand: {line} in place of {changed.removed}")
        until.wait(dice.random() * 0.2)


@contextmanager
def five_clients(
    repository: Repository, number: int
) -> Iterator[tuple[Workspace, Ledger, Callable[[int], None]]]:
    """Yield a workspace, what is written in it, and a function that makes so many operations."""
    for name in FILES:
        repository.write(name, "".join(f"line {n} of {name.rpartition('/')[2]}.\n" for n in range(LINES)))
    repository.commit()
    dice, disk, ledger = Random(number), Lock(), Ledger()
    with Workspace.open(repository.root, agents=[*AGENTS]) as workspace:
        assert workspace.keep()
        workspace.trees.refresh_all()
        agents = [
            Agent(
                ScriptedClient(workspace, name, repository.folder, client=kind, disk=disk),
                *(kind, ledger, Random(dice.random())),
            )
            for name, kind in AGENTS.items()
        ]

        def work(operations: int) -> None:
            def act(agent: Agent) -> None:
                for _ in range(operations // len(agents)):
                    agent.act()

            over = Event()
            with ThreadPoolExecutor(len(agents) + 1) as pool:
                hand = Random(dice.random())
                person = pool.submit(edit_by_hand, repository.folder, ledger, hand, disk, over)
                try:
                    for each in [pool.submit(act, agent) for agent in agents]:
                        each.result()
                finally:
                    over.set()
                person.result()
            workspace.trees.refresh_all()

        yield workspace, ledger, work


def check(workspace: Workspace, repository: Repository, ledger: Ledger) -> None:
    """Fail if a line is lost, or has a wrong author, and say what was done to its file."""
    (tree,) = workspace.trees.all()
    workspace.flush()
    faults: list[str] = []
    for name in FILES:
        versions = workspace.journal.versions(REPO, tree.path(name), limit=10_000)
        refused = workspace.journal.refused(REPO, tree.path(name), limit=10_000)
        now = set(repository.read(name).splitlines())
        kept = {line for row in refused for line in (workspace.journal.content(row.seq) or "").splitlines()}
        found: list[str] = []
        for line, (author, where) in ledger.written.items():
            if where != name:
                continue
            if not {line} & (now | ledger.removed | kept):
                found.append(f"{line!r} is lost")
            first = next((row for row, text in versions if line in (text or "").splitlines()), None)
            if first is not None and not names_author(first, author):
                found.append(f"{line!r} has the author of {_show(first)}")
        lost = (line for line, where in ledger.refused.items() if where == name and line not in kept)
        found += [f"{line!r} was refused, and is not kept" for line in lost]
        if found:
            faults += [name, *found, *(text for where, text in ledger.log if where == name)]
            faults += [f"{_show(row)}: {text}" for row, text in versions]
    if faults:
        pytest.fail("\n".join(faults), pytrace=False)


def names_author(row: Row, author: str) -> bool:
    """Return whether ``row`` names the author of a line, or nobody."""
    grade = grade_of(row)
    if author == PERSON:
        # While a command runs, and right after a tool has written, a person cannot be told apart.
        return grade != "tool" or row.tool == FORMATTER
    return row.actor == author or grade == "external" or (grade == "shared" and author in candidates_of(row))


def _show(row: Row) -> str:
    return f"version {row.version} of {row.actor} ({grade_of(row)}, {row.tool}, {candidates_of(row)})"


def commit_all(workspace: Workspace, repository: Repository) -> None:
    """Commit the work of each agent, and then what is left; all of it is the tree as it is on disk."""
    (tree,) = workspace.trees.all()
    call = CallContext("human:pat")
    index = str(repository.folder / ".git" / "expected")
    git(repository.folder, "read-tree", "HEAD", GIT_INDEX_FILE=index)
    git(repository.folder, "add", "--all", GIT_INDEX_FILE=index)
    expected = git(repository.folder, "write-tree", GIT_INDEX_FILE=index)
    for agents in (*([each] for each in AGENTS), None):
        try:
            workspace.agent_commits.commit(call, tree.git, agents, "work")
        except NothingToCommit:
            continue
    assert repository.git("rev-parse", "HEAD^{tree}") == expected
    assert repository.git("status", "--porcelain") == ""


@pytest.mark.parametrize("number", seeds(2, 2))
def test_no_line_is_lost_unseen(repository: Repository, number: int) -> None:
    with five_clients(repository, number) as (workspace, ledger, work):
        work(100)
        check(workspace, repository, ledger)
        commit_all(workspace, repository)


@pytest.mark.real
def test_no_line_of_a_thousand_operations_is_lost_unseen(repository: Repository) -> None:
    number = seed(0)
    with five_clients(repository, number) as (workspace, ledger, work):
        for _ in range(1_000_000 if IS_HUNTING else 1):
            work(1000)
            check(workspace, repository, ledger)
            commit_all(workspace, repository)
