"""Control groups: the kernel holds all processes of a command together, and limits them as one.

A group is a folder beneath one that this process may write, in both kinds of hierarchy (v1, v2). Where none
can be created, `limits.exceeds_limits` looks after the processes instead.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import time
from collections.abc import Iterator, Sequence
from typing import Final, Literal, NamedTuple

from watchroom.sandbox.limits import ResourceLimits

_PREFIX: Final = "watchroom-"
_REMOVAL_SECONDS: Final = 2.0
_numbers: Final = itertools.count()


class CgroupParent(NamedTuple):
    """A folder in which control groups can be created. ``kind`` is the controller of a v1 hierarchy, or
    "unified"."""

    path: str
    kind: Literal["pids", "memory", "unified"]


class Cgroup:
    """The control group of one command: ``paths`` are its folders, one in each hierarchy."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = list(paths)

    @classmethod
    def create(cls, parents: tuple[CgroupParent, ...], limits: ResourceLimits) -> Cgroup:
        """A new group beneath ``parents`` that holds its processes to ``limits``. Raises OSError."""
        group = cls(())
        name = f"{_PREFIX}{os.getpid()}-{next(_numbers)}"
        try:
            for parent in parents:
                path = os.path.join(parent.path, name)
                os.mkdir(path)
                group._paths.append(path)
                _set_limits(path, parent.kind, limits)
        except OSError:
            group.close()
            raise
        return group

    def add(self, pid: int) -> None:
        """Move process ``pid`` into the group; all that it starts from now on belongs to it."""
        for path in self._paths:
            _write(path, "cgroup.procs", str(pid))

    def kill(self) -> None:
        """Kill every process of the group, those too that are just being started."""
        for path in self._paths:
            if os.path.exists(os.path.join(path, "cgroup.kill")):
                _write(path, "cgroup.kill", "1")
            elif os.path.exists(os.path.join(path, "pids.max")):
                _write(path, "pids.max", "0")
        for path in self._paths:
            for pid in _members(path):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def close(self) -> None:
        """Kill what is still in the group, and remove it. Raises OSError if that takes too long."""
        until = time.monotonic() + _REMOVAL_SECONDS
        while self._paths:
            try:
                os.rmdir(self._paths[-1])
            except OSError:
                if time.monotonic() > until:
                    raise
                self.kill()
                time.sleep(0.001)
            else:
                self._paths.pop()


class CgroupFactory(NamedTuple):
    """Creates control groups beneath ``parents``; none where those are empty."""

    parents: tuple[CgroupParent, ...] = ()

    @classmethod
    def detect(cls) -> CgroupFactory:
        """What this process may use: of v1 the controllers for processes and memory, else v2 with both."""
        if not os.path.exists("/proc/self/cgroup"):
            return cls()
        for parents in _candidates():
            try:
                _remove_stale(parents)
                Cgroup.create(parents, ResourceLimits()).close()
            except OSError:
                continue
            return cls(parents)
        return cls()

    def create(self, limits: ResourceLimits) -> Cgroup | None:
        """A new group with these ``limits``, None where groups cannot be created. Raises OSError."""
        return Cgroup.create(self.parents, limits) if self.parents else None


def _candidates() -> Iterator[tuple[CgroupParent, ...]]:
    mounts = _mounts()
    own = {}
    with open("/proc/self/cgroup", encoding="utf-8") as file:
        for line in file:
            _, controllers, path = line.rstrip("\n").split(":", 2)
            for controller in controllers.split(","):
                own[controller] = path
    if {"pids", "memory"} <= mounts.keys() & own.keys():
        pids, memory = (mounts[kind].resolve(own[kind]) for kind in ("pids", "memory"))
        yield CgroupParent(pids, "pids"), CgroupParent(memory, "memory")
    if "" in mounts and "" in own:
        # A group with processes in it cannot delegate controllers: take the nearest one above that does.
        top, path = mounts[""].path, mounts[""].resolve(own[""])
        while path.startswith(top):
            yield (CgroupParent(path, "unified"),)
            path = os.path.dirname(path)


class _Mount(NamedTuple):
    root: str
    path: str

    def resolve(self, group: str) -> str:
        """The folder of ``group``, of which the mount may show only what is beneath its root."""
        return os.path.join(self.path, group.removeprefix(self.root).strip("/")).rstrip("/")


def _mounts() -> dict[str, _Mount]:
    """Where each v1 controller is mounted, and v2 as ""."""
    mounts = {}
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        for line in file:
            before, after = line.rstrip("\n").split(" - ", 1)
            mount = _Mount(*before.split()[3:5])
            kind, _, options = after.split(" ", 2)
            if kind == "cgroup2":
                mounts[""] = mount
            elif kind == "cgroup":
                mounts.update(dict.fromkeys(options.split(","), mount))
    return mounts


def _set_limits(path: str, kind: str, limits: ResourceLimits) -> None:
    if kind in ("pids", "unified"):
        _write(path, "pids.max", str(limits.processes))
    if kind == "unified":
        _write(path, "memory.max", str(limits.memory_bytes))
        if os.path.exists(os.path.join(path, "memory.swap.max")):
            _write(path, "memory.swap.max", "0")
    if kind == "memory":
        _write(path, "memory.limit_in_bytes", str(limits.memory_bytes))
        if os.path.exists(os.path.join(path, "memory.memsw.limit_in_bytes")):
            _write(path, "memory.memsw.limit_in_bytes", str(limits.memory_bytes))


def _remove_stale(parents: tuple[CgroupParent, ...]) -> None:
    """Remove the groups of programs that ended before they could, with what they left running."""
    for parent in parents:
        for name in os.listdir(parent.path):
            owner = name.removeprefix(_PREFIX).split("-")[0]
            if name.startswith(_PREFIX) and owner.isdecimal() and not os.path.exists(f"/proc/{owner}"):
                with contextlib.suppress(FileNotFoundError):
                    Cgroup([os.path.join(parent.path, name)]).close()


def _members(path: str) -> list[int]:
    with open(os.path.join(path, "cgroup.procs"), encoding="ascii") as file:
        return [pid for pid in map(int, file) if pid > 0]


def _write(path: str, name: str, text: str) -> None:
    with open(os.path.join(path, name), "w", encoding="ascii") as file:
        file.write(text)
