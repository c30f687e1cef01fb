"""What this machine's processes look like from outside of the sandbox."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from watchroom.checkout.layout import CONTROL

_numbers = itertools.count()


def token() -> str:
    """A number of seconds to sleep, by which the sleeper is found again."""
    return f"98765.{os.getpid()}{next(_numbers)}"


def marked_processes(marked: str) -> list[int]:
    """The living processes that have ``marked`` in their command line, ours left out."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            continue
        pid = int(path.parent.name)
        if marked.encode() in line and pid != os.getpid():
            found.append(pid)
    return found


class Held(NamedTuple):
    """What this process holds: its children, those too that ended and nobody waited for; and its open files,
    each with what it is of, but for those of workspaces, which other tests may have left to threads. Other
    leftovers of theirs may go meanwhile, so compare with ``since``."""

    children: frozenset[int]
    files: frozenset[str]

    @classmethod
    def now(cls) -> Held:
        return cls(frozenset(_children()), frozenset(_files()))

    def since(self, before: Held) -> Held:
        """What was not held before."""
        return Held(self.children - before.children, self.files - before.files)

    def __bool__(self) -> bool:
        return bool(self.children or self.files)


def _children() -> Iterator[int]:
    for path in Path("/proc/self/task").glob("*/children"):
        # A thread that has ended meanwhile hands its children on to the others.
        with contextlib.suppress(FileNotFoundError):
            yield from map(int, path.read_text(encoding="ascii").split())


def _files() -> Iterator[str]:
    for fd in os.listdir("/proc/self/fd"):
        # The folder that is listed is open itself, and gone by now.
        with contextlib.suppress(FileNotFoundError):
            target = os.readlink(f"/proc/self/fd/{fd}")
            if f"/{CONTROL}/" not in target:
                yield f"{fd} {target}"


def groups_left() -> list[Path]:
    # Other runs' groups come and go meanwhile, which os.walk does not mind.
    mine = f"watchroom-{os.getpid()}-"
    return [
        Path(folder, name)
        for folder, names, _ in os.walk("/sys/fs/cgroup")
        for name in names
        if name.startswith(mine)
    ]
