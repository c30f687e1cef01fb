"""What `attach` wrote into a client's files, and what was there before: kept for `detach`.

The record is in this user's state folder, one file for each project and client. Without it entries are still
found by their content; with it a file that nobody has changed since becomes what it was, byte for byte.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Final, NamedTuple

_FOLDER: Final = "attached"
_MAX_BYTES: Final = 50_000_000


class FileRecord(NamedTuple):
    """The text of a file before and after; None: there was no file."""

    before: str | None
    after: str | None


class AttachRecord(NamedTuple):
    """What was written: by the files' paths from the project, and the folders that were made."""

    files: Mapping[str, FileRecord] = {}
    folders: tuple[str, ...] = ()


def record_path(state: str, project: str, client: str) -> str:
    """Return the path of the record of ``client`` in ``project``, in the folder ``state``."""
    own = hashlib.sha256(os.fsencode(os.path.realpath(project))).hexdigest()[:32]
    return os.path.join(state, _FOLDER, f"{own}-{client}.json")


def read_record(path: str) -> AttachRecord:
    """Return the record at ``path``, an empty one if there is none that can be read."""
    try:
        with open(path, encoding="utf-8") as file:
            fields = json.loads(file.read(_MAX_BYTES))
        files = {
            str(name): FileRecord(each["before"], each["after"]) for name, each in fields["files"].items()
        }
        return AttachRecord(files, tuple(map(str, fields["folders"])))
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return AttachRecord()


def write_record(path: str, record: AttachRecord) -> None:
    """Write ``record`` to ``path``, for this user alone. Raises OSError."""
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    fields = {
        "files": {name: each._asdict() for name, each in record.files.items()},
        "folders": list(record.folders),
    }
    new = f"{path}.new"
    with suppress(FileNotFoundError):
        os.unlink(new)
    # What was in a client's files may be secret.
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        json.dump(fields, file, ensure_ascii=False)
    os.replace(new, path)


def remove_record(path: str) -> None:
    """Remove the record at ``path``, if there is one. Raises OSError."""
    with suppress(FileNotFoundError):
        os.unlink(path)
