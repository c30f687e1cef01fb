"""A branch of checkpoints: the newest of each workspace as a file, each earlier one in the commits before.

Only objects and one ref are written; no work tree, no index, and no branch that somebody has checked out or
uses for anything else. Nothing is pushed: that is for whoever wants it elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from watchroom.git.branch import check_ref
from watchroom.git.errors import GitError, InvalidRepository
from watchroom.git.names import DOMAIN, one_line
from watchroom.git.process import Repository
from watchroom.rules.checkpoint_note import (
    MOST_CHARACTERS,
    InvalidCheckpoint,
    SignedCheckpoint,
    parse_signed,
)
from watchroom.rules.publication import SEAL_BRANCH

MOST_READ: Final = 10_000
"""So many of the newest checkpoints are read."""
_FILE: Final = re.compile(rb"100644 blob ([0-9a-f]{40,64})\t([0-9a-f]{32})\.txt")
_IDENTITY: Final = ("-c", "user.name=Watchroom", "-c", f"user.email=watchroom@{DOMAIN}")


class SealBranch:
    """The checkpoints on the branch ``name`` of the repository at ``path``. May be used from any thread, and
    by several processes: a commit is made only upon the one that was read."""

    def __init__(self, path: str, name: str = SEAL_BRANCH) -> None:
        self._path = path
        self._name = name

    @property
    def place(self) -> str:
        """Where it is, for people."""
        return f"{self._path} ({self._name})"

    def read(self, workspace: str) -> list[SignedCheckpoint]:
        """The checkpoints of ``workspace`` (its id), newest first, at most `MOST_READ`; what is none is left
        out. Raises `InvalidRepository`, `GitError`."""
        repository = Repository.find(self._path)
        ref = f"refs/heads/{self._name}"
        if repository.head(ref) is None:
            return []
        file = f"{workspace}.txt"
        listed = repository.read(
            "rev-list", "--first-parent", f"--max-count={MOST_READ}", ref, "--", file
        ).decode("ascii", "replace")
        return [*_read_texts(repository, [f"{commit}:{file}" for commit in listed.split()])]

    def newest(self, workspace: str) -> SignedCheckpoint | None:
        """The checkpoint of ``workspace`` that the branch has now. Raises `InvalidRepository`, `GitError`."""
        repository = Repository.find(self._path)
        return next(_read_texts(repository, [f"refs/heads/{self._name}:{workspace}.txt"]), None)

    def add(self, signed: SignedCheckpoint) -> None:
        """Make a commit in which the file of its workspace is ``signed``. Raises `InvalidRepository` where
        the branch is checked out or has other files; `GitError`, also where somebody else added one just
        now."""
        repository = Repository.find(self._path)
        ref = check_ref(repository, self._name)
        parent = repository.head(ref)
        files = _read_tree(repository, self._name, parent) if parent else {}
        checkpoint = signed.checkpoint
        blob = repository.ask("hash-object", "-w", "--stdin", given=signed.text.encode("ascii")) or ""
        files[checkpoint.workspace] = blob
        lines = (f"100644 blob {each}\t{name}.txt\n" for name, each in sorted(files.items()))
        tree = repository.ask("mktree", given="".join(lines).encode()) or ""
        message = f"Seal {checkpoint.workspace} to row {checkpoint.seq}: {checkpoint.short}\n"
        upon = ("-p", parent) if parent else ()
        commit = repository.ask(*_IDENTITY, "commit-tree", tree, *upon, given=message.encode()) or ""
        repository.update_refs([f"update {ref} {commit} {parent or '0' * len(commit)}"])


def _read_tree(repository: Repository, branch: str, commit: str) -> dict[str, str]:
    """The blobs of ``commit`` by workspace. Raises `InvalidRepository` where it has anything else."""
    files = {}
    for line in repository.read("ls-tree", "-z", commit).split(b"\0")[:-1]:
        found = _FILE.fullmatch(line)
        if found is None:
            raise InvalidRepository(path=one_line(branch, 100), rule="no_seal_branch")
        files[found[2].decode()] = found[1].decode()
    return files


def _read_texts(repository: Repository, names: list[str]) -> Iterator[SignedCheckpoint]:
    """The checkpoints that objects with these ``names`` are, in this order; what is none is left out."""
    asked = "".join(f"{each}\n" for each in names).encode()
    checked = repository.read(
        "cat-file", "--batch-check=%(objectname) %(objecttype) %(objectsize)", given=asked
    )
    blobs = []
    for line in checked.decode("utf-8", "replace").splitlines():
        name, _, rest = line.partition(" ")
        kind, _, size = rest.partition(" ")
        if kind == "blob" and int(size) <= MOST_CHARACTERS:
            blobs.append((name, int(size)))
    data = repository.read("cat-file", "--batch", given="".join(f"{name}\n" for name, _ in blobs).encode())
    start = 0
    for name, length in blobs:
        start = data.find(b"\n", start) + 1
        text = data[start : start + length]
        if not start or len(text) != length:
            raise GitError(reason=f"cat-file: {name}")
        start += length + 1
        try:
            yield parse_signed(text.decode("ascii", "replace"))
        except InvalidCheckpoint:
            continue
