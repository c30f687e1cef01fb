"""Imports the files of a commit as versions of shared files, or into a task's folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from watchroom import validation
from watchroom.errors import GitError, InvalidPath, InvalidRepository, NotText, TooLarge
from watchroom.features.files.rows import SHARED_FILE_ZONE
from watchroom.features.tasks.files import ChangeAuthor
from watchroom.history.git.branch import COMMIT
from watchroom.history.git.process import GitRepository
from watchroom.history.git.stream import is_safe_path, one_line
from watchroom.kernel.call_context import CallContext
from watchroom.kernel.rules.file_versions import EXECUTABLE, is_executable
from watchroom.model import MAX_TEXT_BYTES, Json, Write

if TYPE_CHECKING:
    from watchroom.features.config.store import Store
    from watchroom.features.tasks.files import TaskFiles

IMPORT: Final = "import_git"
"""The tool of the rows of imported files. Their details have the ``commit`` and the ``blob``."""
MAX_FILES: Final = 10_000
MAX_BYTES: Final = 200 * 1024 * 1024
_CHUNK: Final = 500
_MAX_NAME: Final = 500
_MAX_LISTING: Final = 100_000
_EXECUTABLE: Final = b"100755"
_FILES: Final = (b"100644", _EXECUTABLE)

ImportReason: TypeAlias = Literal["link", "submodule", "name", "bytes", "size", "too_many", "exists"]
"""The reason why a file is not imported.

- ``link``, ``submodule``: it is not a regular file.
- ``name``: its name is not allowed as a path.
- ``bytes``: it is not text. Only tasks can have such files.
- ``size``: it is larger than 10 MB.
- ``too_many``: there are more than 10,000 files, or more than 200 MB.
- ``exists``: its path already exists with other content.
"""
_KINDS: Final[Mapping[bytes, ImportReason]] = {b"120000": "link", b"160000": "submodule"}


class Omitted(NamedTuple):
    """A file that was not imported, and the reason."""

    path: str
    reason: ImportReason


class CommittedFile(NamedTuple):
    """A file of a commit: its path, the id of its content, the content, and whether it is executable."""

    path: str
    blob: str
    data: bytes
    executable: bool


class Imported(NamedTuple):
    """The result of importing ``commit``.

    - ``versions``: the number of new versions.
    - ``conflicts``: the number of conflicts, for paths with another text.
    - ``unchanged``: the number of files that already existed with the same text.
    - ``omitted``: the files that were not imported.
    """

    commit: str
    versions: int
    conflicts: int
    unchanged: int
    omitted: Sequence[Omitted]


def import_shared(store: Store, path: str, actor: str, revision: str = "HEAD") -> Imported:
    """Import a commit into the shared files, in one batch. A path with another text becomes a conflict.

    - ``store``: the store of the workspace.
    - ``path``: the repository.
    - ``actor``: the actor of the import.
    - ``revision``: the commit, default HEAD.

    Raise `InvalidRepository`, `GitError`, `JournalError`.
    """
    repository, commit = _find_commit(path, revision)
    omitted: list[Omitted] = []
    files: list[tuple[CommittedFile, str]] = []
    for each in _read_files(repository, commit, omitted):
        try:
            files.append((each, validation.decode_text(each.data)))
        except (NotText, TooLarge):
            omitted.append(Omitted(each.path, "bytes"))
    heads = store.journal.heads_of([(SHARED_FILE_ZONE, each.path) for each, _ in files])
    message = _message(repository, commit)
    drafts = []
    unchanged = 0
    for (each, text), head in zip(files, heads, strict=True):
        is_same_text = head is not None and head.sha256 == validation.sha256(each.data)
        if is_same_text and is_executable(head) == each.executable:
            unchanged += 1
            continue
        detail: dict[str, Json] = {COMMIT: commit, "blob": each.blob}
        if each.executable:
            detail[EXECUTABLE] = True
        expected = (head.version or 0) if head is not None and is_same_text else 0
        draft = Write(actor, IMPORT, SHARED_FILE_ZONE, each.path, text, message, expected, detail)
        try:
            store.check_place(draft)
        except InvalidPath:
            omitted.append(Omitted(each.path, "name"))
        else:
            drafts.append(draft)
    rows = [each.row for each in store.commits.commit_all(drafts)]
    made = sum(row.version is not None for row in rows)
    conflicts = sum(row.outcome == "conflict" for row in rows)
    omitted += [Omitted(row.path, "exists") for row in rows if row.outcome == "failed"]
    return Imported(commit, made, conflicts, unchanged, omitted)


def import_into_task(files: TaskFiles, task: str, path: str, actor: str, revision: str = "HEAD") -> Imported:
    """Import the commit ``revision`` of the repository at ``path`` into the folder of ``task``.

    Files become versions by ``actor``. Existing files are not changed. Raise the errors of `import_shared`,
    and `TaskNotFound`, `OtherMachine`, `TaskQuotaExceeded`.
    """
    repository, commit = _find_commit(path, revision)
    omitted: list[Omitted] = []
    found = list(_read_files(repository, commit, omitted))
    executables = {each.path for each in found if each.executable}
    author = ChangeAuthor(CallContext(actor, IMPORT), _message(repository, commit), {COMMIT: commit})
    rows, taken = files.add_files(task, {each.path: each.data for each in found}, author, executables)
    omitted += [Omitted(each, "exists") for each in taken]
    return Imported(commit, len(rows), 0, 0, omitted)


def _find_commit(path: str, revision: str) -> tuple[GitRepository, str]:
    repository = GitRepository.find(path)
    commit = repository.head(revision)
    if commit is None:
        raise InvalidRepository(path=one_line(revision, _MAX_NAME), rule="no_commit")
    return repository, commit


def _message(repository: GitRepository, commit: str) -> str:
    return f"{one_line(repository.path, _MAX_NAME)} {commit[:12]}"


def _read_files(repository: GitRepository, commit: str, omitted: list[Omitted]) -> Iterator[CommittedFile]:
    """Yield the files of ``commit``. Append files that cannot be imported to ``omitted``."""
    wanted: list[tuple[str, str, bool]] = []
    total = 0
    for entry in repository.read("ls-tree", "-r", "-z", "-l", "--full-tree", commit).split(b"\0"):
        what, tab, name = entry.partition(b"\t")
        if not tab:
            continue
        mode, _, identity, size = what.split()
        path = name.decode("utf-8", "backslashreplace")
        reason = _reason_against(mode, size, path)
        if reason is None and (len(wanted) >= MAX_FILES or total + int(size) > MAX_BYTES):
            reason = "too_many"
        if reason is None:
            total += int(size)
            wanted.append((path, identity.decode(), mode == _EXECUTABLE))
        elif len(omitted) < _MAX_LISTING:
            omitted.append(Omitted(path, reason))
    for first in range(0, len(wanted), _CHUNK):
        chunk = wanted[first : first + _CHUNK]
        given = "".join(f"{identity}\n" for _, identity, _ in chunk).encode()
        contents = _split(repository.read("cat-file", "--batch", given=given))
        for (path, blob, executable), data in zip(chunk, contents, strict=True):
            yield CommittedFile(path, blob, data, executable)


def _reason_against(mode: bytes, size: bytes, path: str) -> ImportReason | None:
    if mode not in _FILES:
        return _KINDS.get(mode, "link")
    if int(size) > MAX_TEXT_BYTES:
        return "size"
    try:
        validation.check_path(path)
    except InvalidPath:
        return "name"
    return None if is_safe_path(path) else "name"


def _split(printed: bytes) -> Iterator[bytes]:
    """Yield the contents that ``git cat-file --batch`` printed. Raise `GitError` if one is missing."""
    at = 0
    while at < len(printed):
        end = printed.index(b"\n", at)
        head = printed[at:end].split()
        if len(head) < 3:
            # A partial clone lacks some contents.
            raise GitError(reason=printed[at:end].decode("ascii", "replace"))
        size = int(head[2])
        yield printed[end + 1 : end + 1 + size]
        at = end + 2 + size
