"""Evidence for tests about loss: the bytes of a tree, and the rows of a journal."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Collection, Iterator
from pathlib import Path

from watchroom import Row, Workspace, Zone
from watchroom.kernel.checkout.layout import path_at
from watchroom.kernel.journal import Journal
from watchroom.validation import sha256


def snapshot(root: Path, without: Collection[str] = ()) -> dict[str, bytes | str]:
    """Return everything below ``root`` except the control folder: path → bytes, or a description of a link or
    other file. ``without``: folders in ``root`` that are left out."""
    found: dict[str, bytes | str] = {}
    for folder, folders, files in os.walk(root):
        if folder == str(root):
            folders[:] = [each for each in folders if each not in without]
        if ".watchroom" in folders:
            folders.remove(".watchroom")
        for name in (*folders, *files):
            path = Path(folder, name)
            mode = path.lstat().st_mode
            if stat.S_ISLNK(mode):
                content: bytes | str = f"link to {path.readlink()}"
            elif stat.S_ISREG(mode):
                content = path.read_bytes()
            else:
                content = f"kind {stat.S_IFMT(mode):o}"
            found[os.fsdecode(os.fsencode(path.relative_to(root)))] = content
    return found


def all_rows(journal: Journal, after: int = 0) -> list[Row]:
    return journal.rows(after, limit=10_000_000)


def torn(files: dict[str, bytes | str], journal: Journal) -> Iterator[str]:
    """Yield the files of a snapshot that match no version of their path, and JSON views that cannot be
    parsed."""
    for name, data in files.items():
        if isinstance(data, str):
            continue
        if name.endswith(("history.json", ".meta.json", ".lock")):
            if not _is_json(data):
                yield name
            continue
        place = _place(name)
        if place is not None and sha256(data) not in {row.sha256 for row in journal.history(*place)}:
            yield name


def _place(name: str) -> tuple[Zone, str] | None:
    """Return the zone and path of the version in a file, None for other files."""
    kept = re.fullmatch(r"whiteboard-history/(.+)-v\d+\.md", name)
    if kept:
        return "board", kept[1]
    return path_at(tuple(name.split("/")))


def _is_json(data: bytes) -> bool:
    try:
        json.loads(data)
    except ValueError:
        return False
    return True


def outside_rows(workspace: Workspace, after: int = 0) -> list[Row]:
    return [row for row in all_rows(workspace.journal, after) if row.actor == "outside"]
