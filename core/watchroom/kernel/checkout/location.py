"""The location of a workspace's rows: in its folder, or in a database whose address is in its folder."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing
from typing import TYPE_CHECKING, Final

from watchroom.errors import JournalError, WorkspaceNotFound
from watchroom.kernel.checkout.layout import CONTROL, JOURNAL_NAME, URL_NAME
from watchroom.kernel.journal import is_server_address
from watchroom.kernel.journal.side_stores import BLOBS_NAME
from watchroom.platform.files import FILE_FLAGS, make_private
from watchroom.validation import escape_unstorable

if TYPE_CHECKING:
    from watchroom.kernel.journal.moving import Moved

IN_FILE: Final = "file"
"""The target of a move into the workspace's own folder."""
_LONGEST_ADDRESS: Final = 4096


def find_journal(root: str | os.PathLike[str]) -> str | None:
    """Return the address of the journal of the workspace at ``root``: the path of a file, or the address of a
    database (``postgresql://…``). None if there is no workspace.

    Raise `JournalError` if the address is invalid, or if the control folder is or contains a symbolic link.
    In a copied folder, a link could lead to reads and writes of other files.
    """
    control = os.path.join(root, CONTROL)
    _check_no_links(control)
    try:
        with open(os.path.join(control, URL_NAME), encoding="utf-8") as file:
            address = file.read(_LONGEST_ADDRESS).strip()
    except (FileNotFoundError, NotADirectoryError):
        path = os.path.join(control, JOURNAL_NAME)
        return path if os.path.exists(path) else None
    except (OSError, UnicodeDecodeError) as error:
        raise JournalError(reason=f"{CONTROL}/{URL_NAME}: {error}") from error
    if not is_server_address(address):
        raise JournalError(reason=f"{CONTROL}/{URL_NAME}: no address of a database")
    return address


def _check_no_links(control: str) -> None:
    try:
        with os.scandir(control) as found:
            links = [entry.name for entry in found if entry.is_symlink()]
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise JournalError(reason=f"{CONTROL}: {error.strerror}") from error
    if os.path.islink(control) or links:
        name = "/".join([CONTROL, *links[:1]])
        raise JournalError(reason=f"{escape_unstorable(name)} is a symbolic link")


def is_workspace(root: str | os.PathLike[str]) -> bool:
    """Whether ``root`` is the folder of a workspace."""
    control = os.path.join(root, CONTROL)
    return any(os.path.exists(os.path.join(control, name)) for name in (JOURNAL_NAME, URL_NAME))


def keep_journal_address(root: str | os.PathLike[str], address: str) -> None:
    """Record in the folder ``root`` the ``address`` of the database with its journal. Raise OSError.

    Only the owner can read the file, because it may contain a password.
    """
    control = os.path.join(root, CONTROL)
    os.makedirs(control, mode=0o700, exist_ok=True)
    make_private(control)
    path = os.path.join(control, URL_NAME)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | FILE_FLAGS
    with open(os.open(f"{path}.new", flags, 0o600), "w") as file:
        file.write(f"{address}\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(f"{path}.new", path)


def move_journal(
    root: str | os.PathLike[str], target: str, on_progress: Callable[[int, int], None] = lambda _, __: None
) -> Moved:
    """Move the rows of a workspace to another journal. An interrupted move is continued.

    Both journals are compared, row by row with contents, before the folder names the target. Then the source
    refuses writes. It is kept; a file is renamed to ``journal.db.moved``.

    Args:
        root: The workspace's folder.
        target: The address of a database, or ``file`` for a file in the folder.
        on_progress: Called with the number of finished steps and the number of all steps.

    Returns:
        The number and the checksum of the rows in the target.

    Raises:
        WorkspaceNotFound, JournalInUse, MoveDiffers, WorkspaceLocked, JournalError, OSError: Nothing was
            moved, and the source stays in use.
    """
    # These modules are needed only for a move.
    from watchroom.kernel.journal.moving import copy_blobs, copy_rows, open_move_side

    address = find_journal(root)
    if address is None:
        raise WorkspaceNotFound(root=os.fspath(root))
    path = os.path.join(root, CONTROL, JOURNAL_NAME)
    goal = path if target == IN_FILE else target
    if goal != path and not is_server_address(goal):
        raise JournalError(reason=f"{target}: neither the address of a database nor {IN_FILE}")
    if goal == address:
        raise JournalError(reason="the rows are there already")
    with closing(open_move_side(address)) as source, closing(open_move_side(goal)) as into, source.frozen():
        moved = copy_rows(source, into, on_progress)
        copy_blobs(source.journal, into.journal)
        source.retire()
        if goal == path:
            os.remove(os.path.join(root, CONTROL, URL_NAME))
        else:
            keep_journal_address(root, goal)
    if address == path:
        _set_aside(path)
        _set_aside(os.path.join(root, CONTROL, BLOBS_NAME))
    return moved


def _set_aside(path: str) -> None:
    """Rename the file of a moved journal, and SQLite's files beside it."""
    for suffix in ("", "-wal", "-shm"):
        if os.path.exists(path + suffix):
            os.replace(path + suffix, f"{path}.moved{suffix}")


def cached_checkout(address: str) -> str:
    """The default folder, in this user's cache, for the files of the workspace with the journal at
    ``address``."""
    import hashlib

    from platformdirs import user_cache_path

    digest = hashlib.sha256(address.encode()).hexdigest()[:16]
    return str(user_cache_path("watchroom") / "checkouts" / digest)
