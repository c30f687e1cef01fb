"""The machine's processes, seen from outside of the sandbox."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from watchroom.kernel.checkout.layout import CONTROL

_numbers = itertools.count()


def token() -> str:
    """Return a number of seconds to sleep, which identifies the sleeping process."""
    return f"98765.{os.getpid()}{next(_numbers)}"


def marked_processes(marked: str) -> list[int]:
    """Return the living processes with ``marked`` in their command line, without this one."""
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
    """The children of this process, zombies included, and its open files with their targets.

    Files of workspaces are left out, because threads of other tests can have them open. Other leftovers can
    go at any time, so compare with ``since``.
    """

    children: frozenset[int]
    files: frozenset[str]

    @classmethod
    def now(cls) -> Held:
        return cls(frozenset(_children()), frozenset(_files()))

    def since(self, before: Held) -> Held:
        """Return what was not held before."""
        return Held(self.children - before.children, self.files - before.files)

    def __bool__(self) -> bool:
        return bool(self.children or self.files)


def _children() -> Iterator[int]:
    for path in Path("/proc/self/task").glob("*/children"):
        # The children of a thread that ends go to other threads.
        with contextlib.suppress(FileNotFoundError):
            yield from map(int, path.read_text(encoding="ascii").split())


def _files() -> Iterator[str]:
    for fd in os.listdir("/proc/self/fd"):
        # The descriptor of the listed folder itself is closed by now.
        with contextlib.suppress(FileNotFoundError):
            target = os.readlink(f"/proc/self/fd/{fd}")
            if f"/{CONTROL}/" not in target:
                yield f"{fd} {target}"


def groups_left() -> list[Path]:
    # Groups of other runs can appear and disappear, which os.walk tolerates.
    mine = f"watchroom-{os.getpid()}-"
    return [
        Path(folder, name)
        for folder, names, _ in os.walk("/sys/fs/cgroup")
        for name in names
        if name.startswith(mine)
    ]
