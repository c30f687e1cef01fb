"""Two tasks with an agent each, the files in their folders, and the sandboxes of this machine."""

from __future__ import annotations

import ctypes
import shutil
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from subprocess import Popen
from time import monotonic
from typing import Final, NamedTuple

from watchroom import Toolbox, Workspace
from watchroom.kernel.journal import Journal
from watchroom.platform.sandbox.probe import SandboxProbe

PATIENCE: Final = 20.0


@cache
def machine_sandbox() -> SandboxProbe:
    """Return the sandboxes of this machine, tested once per process."""
    return SandboxProbe.run()


class Team(NamedTuple):
    """Two tasks with an agent each."""

    workspace: Workspace
    one: Toolbox
    other: Toolbox
    folder: Path
    others: Path


def emptied(folder: Path) -> Path:
    """Return the folder, without files of an earlier example."""
    for left in folder.iterdir():
        if left.is_dir() and left.name != ".watchroom":
            shutil.rmtree(left)
        elif left.is_file():
            left.unlink()
    return folder


def on_disk(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink() and ".watchroom" not in path.parts
    }


def kill_and_miss(process: Popen[bytes], journal: Journal) -> None:
    """Kill ``process``, and wait until only this process is alive: immediate for a journal in a folder,
    seconds later on a server."""
    process.kill()
    own, changes, until = journal.presence.hold(), journal.changes(), monotonic() + PATIENCE
    try:
        while any(each.is_alive and each.id != own for each in journal.presence.all()):
            assert monotonic() < until
            changes.wait(0.1)
    finally:
        changes.close()


@contextmanager
def without_privileges() -> Iterator[None]:
    """Drop the capabilities of root, to whom the system denies nothing, on this thread while the context
    lasts."""
    libc = ctypes.CDLL(None, use_errno=True)
    header = struct.pack("=Ii", 0x20080522, 0)
    before = ctypes.create_string_buffer(24)
    assert libc.capget(header, before) == 0
    fields = list(struct.unpack("=6I", before.raw))
    # Only the effective ones, because the permitted ones can restore them.
    fields[0] = fields[3] = 0
    assert libc.capset(header, struct.pack("=6I", *fields)) == 0
    try:
        yield
    finally:
        assert libc.capset(header, before) == 0
