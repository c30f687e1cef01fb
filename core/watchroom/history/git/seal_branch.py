"""A branch of seals: a file with the newest seal of each workspace, and earlier seals in earlier commits.

Only objects and one ref are written. No work tree, index, checked-out branch, or branch with other files is
touched, and nothing is pushed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from watchroom.errors import GitError, InvalidRepository, InvalidSeal
from watchroom.history.git.branch import check_ref
from watchroom.history.git.process import GitRepository
from watchroom.history.git.stream import DOMAIN, one_line
from watchroom.kernel.rules.publication import SEAL_BRANCH
from watchroom.kernel.rules.seal_note import MAX_CHARACTERS, SignedSeal, parse_signed

MAX_READ: Final = 10_000
"""The number of newest seals that are read."""
_FILE: Final = re.compile(rb"100644 blob ([0-9a-f]{40,64})\t([0-9a-f]{32})\.txt")
_IDENTITY: Final = ("-c", "user.name=Watchroom", "-c", f"user.email=watchroom@{DOMAIN}")


class SealBranch:
    """The seals on the branch ``name`` of the repository at ``path``.

    May be used from any thread and by several processes: a commit is only added on top of the commit that was
    read.
    """

    def __init__(self, path: str, name: str = SEAL_BRANCH) -> None:
        self._path = path
        self._name = name

    @property
    def place(self) -> str:
        """The display name of the branch and its repository."""
        return f"{self._path} ({self._name})"

    def read(self, workspace: str) -> list[SignedSeal]:
        """Return the seals of ``workspace`` (its id), newest first, at most `MAX_READ`. Other texts are
        skipped. Raise `InvalidRepository`, `GitError`."""
        repository = GitRepository.find(self._path)
        ref = f"refs/heads/{self._name}"
        if repository.head(ref) is None:
            return []
        file = f"{workspace}.txt"
        listed = repository.read(
            "rev-list", "--first-parent", f"--max-count={MAX_READ}", ref, "--", file
        ).decode("ascii", "replace")
        return [*_read_texts(repository, [f"{commit}:{file}" for commit in listed.split()])]

    def newest(self, workspace: str) -> SignedSeal | None:
        """Return the newest seal of ``workspace`` (its id). Raise `InvalidRepository`, `GitError`."""
        repository = GitRepository.find(self._path)
        return next(_read_texts(repository, [f"refs/heads/{self._name}:{workspace}.txt"]), None)

    def add(self, signed: SignedSeal) -> None:
        """Commit ``signed`` as the file of its workspace.

        Raise `InvalidRepository` if the branch is checked out or has other files. Raise `GitError`, also if
        another process committed at the same moment.
        """
        repository = GitRepository.find(self._path)
        ref = check_ref(repository, self._name)
        parent = repository.head(ref)
        files = _read_tree(repository, self._name, parent) if parent else {}
        seal = signed.seal
        blob = repository.ask("hash-object", "-w", "--stdin", given=signed.text.encode("ascii")) or ""
        files[seal.workspace] = blob
        lines = (f"100644 blob {each}\t{name}.txt\n" for name, each in sorted(files.items()))
        tree = repository.ask("mktree", given="".join(lines).encode()) or ""
        message = f"Seal {seal.workspace} to row {seal.seq}: {seal.short}\n"
        upon = ("-p", parent) if parent else ()
        commit = repository.ask(*_IDENTITY, "commit-tree", tree, *upon, given=message.encode()) or ""
        repository.update_refs([f"update {ref} {commit} {parent or '0' * len(commit)}"])


def _read_tree(repository: GitRepository, branch: str, commit: str) -> dict[str, str]:
    """Return the blobs of ``commit`` by workspace. Raise `InvalidRepository` if it has other files."""
    files = {}
    for line in repository.read("ls-tree", "-z", commit).split(b"\0")[:-1]:
        found = _FILE.fullmatch(line)
        if found is None:
            raise InvalidRepository(path=one_line(branch, 100), rule="no_seal_branch")
        files[found[2].decode()] = found[1].decode()
    return files


def _read_texts(repository: GitRepository, names: list[str]) -> Iterator[SignedSeal]:
    """Yield the seals in the objects ``names``, in this order. Other objects are skipped."""
    asked = "".join(f"{each}\n" for each in names).encode()
    checked = repository.read(
        "cat-file", "--batch-check=%(objectname) %(objecttype) %(objectsize)", given=asked
    )
    blobs = []
    for line in checked.decode("utf-8", "replace").splitlines():
        name, _, rest = line.partition(" ")
        kind, _, size = rest.partition(" ")
        if kind == "blob" and int(size) <= MAX_CHARACTERS:
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
        except InvalidSeal:
            continue
