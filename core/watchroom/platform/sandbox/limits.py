"""The limits of a command, and their enforcement: control groups, resource limits, or checks.

A control group is a folder in a parent folder that is writable for this process. This applies to both
hierarchies (v1 and v2). If no control group can be created, `exceeds_limits` checks the processes instead.
"""

from __future__ import annotations

import contextlib
import math
import os
import resource
import secrets
import signal
import time
from collections.abc import Iterator, Sequence
from typing import Final, Literal, NamedTuple

from watchroom.platform.sandbox.supervisor import list_children

_MIB: Final = 1024 * 1024
_SPARE_CPU_SECONDS: Final = 5
_PREFIX: Final = "watchroom-"
"""The prefix in the names of control groups. The id of the process that created them follows."""
_REMOVAL_SECONDS: Final = 2.0
"""Timeout for the removal of a control group, in seconds."""


class ResourceLimits(NamedTuple):
    """The limits of one command together with all its child processes."""

    seconds: float = 60.0
    """Wall-clock time in seconds."""
    memory_bytes: int = 1024 * _MIB
    """Maximum bytes of memory and temporary files. Without control groups: maximum memory of each process."""
    processes: int = 128
    """Maximum number of processes and threads at the same time."""
    output_bytes: int = _MIB
    """Maximum bytes that are kept of each output stream. The rest is read and dropped."""
    tmp_bytes: int = 256 * _MIB
    """Maximum bytes of its /tmp, and of its /dev/shm."""
    file_bytes: int = 1024 * _MIB
    """Maximum bytes of each file that it writes."""
    open_files: int = 4096
    """Maximum number of open files of each process."""


def limit_process(pid: int, limits: ResourceLimits, *, in_cgroup: bool, counts_own_processes: bool) -> None:
    """Set the resource limits of a process. Its child processes inherit them. Raise OSError.

    - ``pid``: the first process of a command.
    - ``limits``: the limits of the whole command.
    - ``in_cgroup``: whether a control group limits the memory of all processes together. Otherwise, the
      memory that each process writes to is limited; memory that is only reserved does not count.
    - ``counts_own_processes``: whether the kernel counts the command's processes separately from the user's
      other processes.
    """
    cpu_seconds = (math.ceil(limits.seconds) + _SPARE_CPU_SECONDS) * (os.cpu_count() or 1)
    values = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_CPU: cpu_seconds,
        resource.RLIMIT_FSIZE: limits.file_bytes,
        resource.RLIMIT_NOFILE: limits.open_files,
    }
    if counts_own_processes or not in_cgroup:
        # The kernel does not apply this limit to root.
        others = 0 if counts_own_processes else _count_user_threads()
        values[resource.RLIMIT_NPROC] = limits.processes + others
    if not in_cgroup:
        values[resource.RLIMIT_DATA] = limits.memory_bytes
    for kind, wanted in values.items():
        _, hard = resource.prlimit(pid, kind)
        value = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.prlimit(pid, kind, (value, value))


def exceeds_limits(pid: int, limits: ResourceLimits) -> bool:
    """Return whether the processes beneath ``pid``, the sandbox, use more than ``limits``.

    This only detects an excess: between two checks, a command can use more. As root it can use much more,
    because the kernel does not count the processes of root.
    """
    threads = memory = 0
    page = os.sysconf("SC_PAGE_SIZE")
    for each in _descendants(pid):
        try:
            threads += len(os.listdir(f"/proc/{each}/task"))
            with open(f"/proc/{each}/statm", encoding="ascii") as file:
                _, resident, shared = map(int, file.read().split()[:3])
        except (FileNotFoundError, ProcessLookupError):
            continue
        memory += (resident - shared) * page
        if threads > limits.processes or memory > limits.memory_bytes:
            return True
    return False


def _descendants(pid: int) -> Iterator[int]:
    """Yield all processes beneath ``pid``. Orphans of a command are included, because they become children of
    its first process."""
    waiting = list_children(pid)
    while waiting:
        each = waiting.pop()
        yield each
        waiting.extend(list_children(each))


def _count_user_threads() -> int:
    """Return the number of processes and threads of this user."""
    user = os.getuid()
    count = 0
    for name in os.listdir("/proc"):
        if name.isdecimal():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                if os.stat(f"/proc/{name}").st_uid == user:
                    count += len(os.listdir(f"/proc/{name}/task"))
    return count


class CgroupParent(NamedTuple):
    """A folder in which control groups can be created. ``kind``: the v1 controller, or "unified" for v2."""

    path: str
    kind: Literal["pids", "memory", "unified"]


class Cgroup:
    """The control group of one command. ``paths``: its folders, one in each hierarchy."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = list(paths)

    @classmethod
    def create(cls, parents: tuple[CgroupParent, ...], limits: ResourceLimits) -> Cgroup:
        """Create a group with ``limits`` beneath ``parents``. Raise OSError."""
        group = cls(())
        name = f"{_PREFIX}{os.getpid()}-{secrets.token_hex(6)}"
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
        """Move the process ``pid`` into the group. Its later child processes will belong to the group."""
        for path in self._paths:
            _write(path, "cgroup.procs", str(pid))

    def kill(self) -> None:
        """Kill every process of the group, including those that are being started."""
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
        """Kill all processes of the group, and remove it. Raise OSError after 2 seconds."""
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
    """Creates control groups beneath ``parents``. Creates none if ``parents`` is empty."""

    parents: tuple[CgroupParent, ...] = ()

    @classmethod
    def detect(cls) -> CgroupFactory:
        """Find the control groups that this process can use: the v1 controllers for processes and memory,
        else v2."""
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
        """Create a group with ``limits``; None if groups cannot be created here. Raise OSError."""
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
        # A group with processes cannot delegate controllers, so also try its parents.
        top, path = mounts[""].path, mounts[""].resolve(own[""])
        while path.startswith(top):
            yield (CgroupParent(path, "unified"),)
            path = os.path.dirname(path)


class _Mount(NamedTuple):
    root: str
    path: str

    def resolve(self, group: str) -> str:
        """Return the folder of ``group``. The mount may show only the groups beneath its root."""
        return os.path.join(self.path, group.removeprefix(self.root).strip("/")).rstrip("/")


def _mounts() -> dict[str, _Mount]:
    """Return the mount of each v1 controller, and of v2 under the key ""."""
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
    """Remove the groups of killed processes, and kill processes that are left in these groups."""
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
