"""The files in a task's folder that git ignores, as git itself reports them.

Git applies nested ``.gitignore`` files, ``.git/info/exclude``, the person's ``core.excludesFile``, negated
patterns, and the index: a tracked file is never ignored. One process is started per repository and scan.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from watchroom.errors import IgnoredFilesUnknown
from watchroom.platform.child_process import ChildResult, run_child
from watchroom.platform.disk import Parts
from watchroom.platform.sandbox.repositories import GIT_FOLDER, is_git_folder

SAFE_SETTINGS: Final = (
    "core.hooksPath=/dev/null",
    "protocol.allow=never",
    "core.fsmonitor=false",
    "submodule.recurse=false",
)
"""Git settings that override programs in a repository's own settings, so that none of them is started, and
that keep submodules unchanged."""
_SECONDS: Final = 30.0
"""Timeout for all calls of git in one scan."""
_MAX_OUTPUT: Final = 128 * 1024 * 1024
"""Maximum output of git in bytes. A scan lists at most 200,000 files by default."""
_MAX_REASON: Final = 500
_MAX_GITFILE_BYTES: Final = 4096
_GITDIR: Final = "gitdir:"
_PERSONAL: Final = (
    "HOME",
    "XDG_CONFIG_HOME",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
)
"""Environment variables that locate a person's settings, among them ``core.excludesFile``."""
_HERE: Final = b"./"
_NOT_ASKABLE: Final = (b"beyond a symbolic link", b"is in submodule")
"""Errors of git for paths to which its ignore rules do not apply."""


class IgnoredFiles(NamedTuple):
    """The files that git ignores. ``folders``: ignored with everything in them."""

    files: frozenset[Parts] = frozenset()
    folders: frozenset[Parts] = frozenset()

    def covers(self, parts: Parts) -> bool:
        """Return whether git ignores the file at ``parts``."""
        if parts in self.files:
            return True
        return bool(self.folders) and any(parts[:depth] in self.folders for depth in range(1, len(parts)))


class _Repository(NamedTuple):
    """A repository: the absolute paths of its work tree and of its ``.git``."""

    tree: str
    git: str


def list_ignored(folder: str, nested: Iterable[Parts] = ()) -> IgnoredFiles:
    """Return the files beneath ``folder`` that git ignores.

    - ``folder``: an absolute path. The rules of the enclosing repository apply, unless it ignores the folder
      itself.
    - ``nested``: folders beneath it with their own ``.git``, in which their own rules apply.

    Raise `IgnoredFilesUnknown` if git is missing, fails, or takes more than 30 seconds.
    """
    deadline = time.monotonic() + _SECONDS
    files: set[Parts] = set()
    folders: set[Parts] = set()
    outer = _enclosing(folder, deadline)
    places: list[tuple[Parts, _Repository]] = [((), outer)] if outer is not None else []
    for parts in sorted(set(nested)):
        path = os.path.join(folder, *parts)
        if parts and _is_repository(os.path.join(path, GIT_FOLDER)):
            places.append((parts, _Repository(path, os.path.join(path, GIT_FOLDER))))
    for parts, repository in places:
        where = os.path.join(folder, *parts)
        printed = _ask(
            repository,
            ("ls-files", "--others", "--ignored", "--exclude-standard", "-z", "--", "."),
            where,
            deadline,
        )
        for name in printed.output.split(b"\0"):
            found = (*parts, *os.fsdecode(name).rstrip("/").split("/"))
            if name:
                (folders if name.endswith(b"/") else files).add(found)
    return IgnoredFiles(frozenset(files), frozenset(folders))


def is_ignored(folder: str, parts: Parts) -> bool:
    """Return whether git ignores the file at ``parts`` beneath ``folder``. The file need not exist. Raise
    the errors of `list_ignored`."""
    deadline = time.monotonic() + _SECONDS
    repository, asked = _enclosing(folder, deadline), parts
    place = folder
    for depth in range(len(parts)):
        path = os.path.join(folder, *parts[:depth])
        if depth and _is_repository(os.path.join(path, GIT_FOLDER)):
            if repository is not None and _ignores(repository, place, [_name(asked)], deadline):
                return True
            repository = _Repository(path, os.path.join(path, GIT_FOLDER))
            place, asked = path, parts[depth:]
    return repository is not None and bool(_ignores(repository, place, [_name(asked)], deadline))


def ignored_among(git: str, paths: Sequence[str]) -> frozenset[str]:
    """Return the ``paths`` that git ignores in the work tree of the repository ``git``.

    ``git``: the path of a ``.git``. A bare repository ignores nothing. Raise the errors of `list_ignored`.
    """
    if os.path.basename(git) != GIT_FOLDER or not paths:
        return frozenset()
    tree = os.path.dirname(git)
    deadline = time.monotonic() + _SECONDS
    found = _ignores(_Repository(tree, git), tree, [os.fsencode(each) for each in paths], deadline)
    return frozenset(os.fsdecode(each) for each in found)


def _name(parts: Parts) -> bytes:
    return os.fsencode("/".join(parts))


def _enclosing(folder: str, deadline: float) -> _Repository | None:
    """Return the repository that contains ``folder``; None if there is none, or if it ignores the folder."""
    above = folder
    while not _is_repository(os.path.join(above, GIT_FOLDER)):
        if above == os.path.dirname(above):
            return None
        above = os.path.dirname(above)
    repository = _Repository(above, os.path.join(above, GIT_FOLDER))
    if above != folder:
        relative = os.fsencode(os.path.relpath(folder, above))
        if _ignores(repository, above, [relative], deadline):
            return None
    return repository


def _is_repository(git: str) -> bool:
    """Return whether the ``.git`` at ``git`` is a repository, or a file with the path of a repository."""
    try:
        if os.path.isdir(git):
            return is_git_folder({each.casefold() for each in os.listdir(git)})
        with open(os.open(git, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
            text = os.fsdecode(file.read(_MAX_GITFILE_BYTES))
        if not text.startswith(_GITDIR) or "\0" in text:
            return False
        target = os.path.join(os.path.dirname(git), text.removeprefix(_GITDIR).strip())
        return is_git_folder({each.casefold() for each in os.listdir(target)})
    except OSError:
        return False


def _ignores(
    repository: _Repository, place: str, paths: Sequence[bytes], deadline: float
) -> frozenset[bytes]:
    """Return the ``paths`` that ``repository`` ignores. ``place``: the folder that ``paths`` are relative
    to."""
    # "./" keeps git from reading a path as a pattern with special characters.
    given = b"".join(_HERE + path + b"\0" for path in paths)
    command = ("check-ignore", "-z", "--stdin")
    done = _ask(repository, command, place, deadline, given=given, accepted=(0, 1, 128))
    if done.status != 128:
        return frozenset(path.removeprefix(_HERE) for path in done.output.split(b"\0") if path)
    if not any(each in done.errors for each in _NOT_ASKABLE):
        raise IgnoredFilesUnknown(reason=_reason(done.errors))
    if len(paths) == 1:
        return frozenset()
    # If git refuses one path, it refuses all of them.
    half = len(paths) // 2
    return _ignores(repository, place, paths[:half], deadline) | _ignores(
        repository, place, paths[half:], deadline
    )


def _ask(
    repository: _Repository,
    arguments: Sequence[str],
    place: str,
    deadline: float,
    *,
    given: bytes = b"",
    accepted: Sequence[int] = (0,),
) -> ChildResult:
    """Run git in ``repository``.

    - ``arguments``: its command line.
    - ``place``: its working directory.
    - ``deadline``: by `time.monotonic`.
    - ``given``: its standard input.
    - ``accepted``: the expected exit codes.

    Raise `IgnoredFilesUnknown` if git cannot be run, ends with another exit code, prints more than 128 MiB,
    or exceeds the deadline.
    """
    settings = [part for setting in SAFE_SETTINGS for part in ("-c", setting)]
    try:
        done = run_child(
            ["git", "--no-pager", *settings, *arguments],
            given=given,
            timeout=max(0.0, deadline - time.monotonic()),
            max_output=_MAX_OUTPUT,
            folder=place,
            environment=_environment(repository),
        )
    except TimeoutError as error:
        raise IgnoredFilesUnknown(reason=f"git: {_SECONDS:.0f} s") from error
    except OSError as error:
        is_missing = isinstance(error, FileNotFoundError) and error.filename == "git"
        reason = "git is not installed" if is_missing else f"git: {error.strerror or '?'}"
        raise IgnoredFilesUnknown(reason=reason) from error
    if done.status not in accepted:
        raise IgnoredFilesUnknown(reason=_reason(done.errors))
    return done


def _reason(printed: bytes) -> str:
    text = "".join(each if each.isprintable() else " " for each in printed.decode("utf-8", "replace"))
    return " ".join(text.split())[:_MAX_REASON] or "?"


def _environment(repository: _Repository) -> dict[str, str]:
    """Return the environment of git. A person's own settings apply, because they name files to ignore."""
    personal = {name: os.environ[name] for name in _PERSONAL if name in os.environ}
    return {
        **personal,
        "PATH": os.environ.get("PATH", os.defpath),
        "LC_ALL": "C",
        "GIT_DIR": repository.git,
        "GIT_WORK_TREE": repository.tree,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
    }
