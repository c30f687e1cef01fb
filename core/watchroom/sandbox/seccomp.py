"""The system calls that no command needs, refused: a filter in the form that the kernel loads.

What is left out by bubblewrap's namespaces is refused here once more, so that a mistake in one of them is
not enough. Numbers are those of linux/arch/x86/entry/syscalls/syscall_64.tbl and asm-generic/unistd.h.
"""

from __future__ import annotations

import errno
import platform
import socket
import struct
from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple


class _Machine(NamedTuple):
    architecture: int
    refused: Mapping[str, int]
    modes: Sequence[tuple[int, int]]
    """The calls that give a file its mode, and in which argument."""
    opening: Sequence[tuple[int, int, int]]
    """Those that may make a file: its flags' argument, and its mode's."""
    clone: int
    unshare: int
    ioctl: int
    socket: int
    other_numbers: int | None = None
    """From here on, the same calls have a second number each (x32)."""


_SAME_EVERYWHERE: Final = {
    "io_uring_setup": 425,
    "io_uring_enter": 426,
    "io_uring_register": 427,
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "fspick": 433,
    "pidfd_getfd": 438,
    "process_madvise": 440,
    "mount_setattr": 442,
    "quotactl_fd": 443,
}
_X86_64: Final = _SAME_EVERYWHERE | {
    "ptrace": 101,
    "syslog": 103,
    "uselib": 134,
    "sysfs": 139,
    "vhangup": 153,
    "modify_ldt": 154,
    "pivot_root": 155,
    "_sysctl": 156,
    "adjtimex": 159,
    "chroot": 161,
    "acct": 163,
    "settimeofday": 164,
    "mount": 165,
    "umount2": 166,
    "swapon": 167,
    "swapoff": 168,
    "reboot": 169,
    "sethostname": 170,
    "setdomainname": 171,
    "iopl": 172,
    "ioperm": 173,
    "init_module": 175,
    "delete_module": 176,
    "quotactl": 179,
    "nfsservctl": 180,
    "lookup_dcookie": 212,
    "clock_settime": 227,
    "kexec_load": 246,
    "add_key": 248,
    "request_key": 249,
    "keyctl": 250,
    "migrate_pages": 256,
    "move_pages": 279,
    "perf_event_open": 298,
    "fanotify_init": 300,
    "open_by_handle_at": 304,
    "clock_adjtime": 305,
    "setns": 308,
    "process_vm_readv": 310,
    "process_vm_writev": 311,
    "kcmp": 312,
    "finit_module": 313,
    "kexec_file_load": 320,
    "bpf": 321,
    "userfaultfd": 323,
}
_AARCH64: Final = _SAME_EVERYWHERE | {
    "lookup_dcookie": 18,
    "umount2": 39,
    "mount": 40,
    "pivot_root": 41,
    "nfsservctl": 42,
    "chroot": 51,
    "vhangup": 58,
    "quotactl": 60,
    "acct": 89,
    "kexec_load": 104,
    "init_module": 105,
    "delete_module": 106,
    "clock_settime": 112,
    "syslog": 116,
    "ptrace": 117,
    "reboot": 142,
    "sethostname": 161,
    "setdomainname": 162,
    "settimeofday": 170,
    "adjtimex": 171,
    "add_key": 217,
    "request_key": 218,
    "keyctl": 219,
    "swapon": 224,
    "swapoff": 225,
    "migrate_pages": 238,
    "move_pages": 239,
    "perf_event_open": 241,
    "fanotify_init": 262,
    "open_by_handle_at": 265,
    "clock_adjtime": 266,
    "setns": 268,
    "process_vm_readv": 270,
    "process_vm_writev": 271,
    "kcmp": 272,
    "finit_module": 273,
    "bpf": 280,
    "userfaultfd": 282,
    "kexec_file_load": 294,
}
_MACHINES: Final = {
    "x86_64": _Machine(
        architecture=0xC000003E,
        refused=_X86_64,
        # creat, chmod, fchmod, mknod, mknodat, fchmodat, fchmodat2
        modes=((85, 1), (90, 1), (91, 1), (133, 1), (259, 2), (268, 2), (452, 2)),
        # open, openat
        opening=((2, 1, 2), (257, 2, 3)),
        clone=56,
        unshare=272,
        ioctl=16,
        socket=41,
        other_numbers=0x40000000,
    ),
    "aarch64": _Machine(
        architecture=0xC00000B7,
        refused=_AARCH64,
        # mknodat, fchmod, fchmodat, fchmodat2
        modes=((33, 2), (52, 1), (53, 2), (452, 2)),
        # openat
        opening=((56, 2, 3),),
        clone=220,
        unshare=97,
        ioctl=29,
        socket=198,
    ),
}

_CLONE3: Final = 435
_OPENAT2: Final = 437
_AS_ITS_OWNER: Final = 0o6000
"""Set-user-id and set-group-id: a program that a command leaves behind must not run as who owns it."""
_MAKING: Final = 0x400040
"""O_CREAT and O_TMPFILE, which no two machines here number differently."""
_NEW_NAMESPACES: Final = 0x7E020000
_NEW_TIME_NAMESPACE: Final = 0x80
_TIOCSTI: Final = 0x5412
"""Types into a terminal, as if its user had."""
_TIOCLINUX: Final = 0x541C

_KILL: Final = 0x80000000
_ERRNO: Final = 0x00050000
_ALLOW: Final = 0x7FFF0000
_NUMBER: Final = 0
_ARCHITECTURE: Final = 4

UNIX_ONLY: Final = frozenset({int(getattr(socket, "AF_UNIX", 1))})
INTERNET: Final = frozenset({2, 10, 16})
"""IPv4, IPv6 and netlink, by which programs learn their own addresses (AF_INET, AF_INET6, AF_NETLINK)."""

_Instruction = tuple[int, int, int, int]


def program(families: Collection[int], machine: str | None = None) -> bytes | None:
    """The filter, None for a ``machine`` (default: this one) whose numbers are not known here.

    Sockets can be made of ``families`` only.
    """
    known = _MACHINES.get(machine or platform.machine())
    if known is None:
        return None
    code: list[_Instruction] = [
        _load(_ARCHITECTURE),
        (0x15, 1, 0, known.architecture),
        _return(_KILL),
        _load(_NUMBER),
    ]
    if known.other_numbers is not None:
        code += [(0x35, 0, 1, known.other_numbers), _refuse(errno.ENOSYS)]
    for number in sorted(known.refused.values()):
        code += [_if_equal(number, skip=1), _refuse(errno.EPERM)]
    # Where these do not exist, programs fall back on older ones, whose arguments can be looked at.
    for number in (_CLONE3, _OPENAT2):
        code += [_if_equal(number, skip=1), _refuse(errno.ENOSYS)]
    owner = [(0x45, 0, 1, _AS_ITS_OWNER), _refuse(errno.EPERM)]
    for number, mode in known.modes:
        code += _with_argument(number, mode, owner)
    for number, flags, mode in known.opening:
        code += _with_argument(number, flags, [(0x45, 0, 3, _MAKING), _load(16 + 8 * mode), *owner])
    code += _with_argument(known.clone, 0, [(0x45, 0, 1, _NEW_NAMESPACES), _refuse(errno.EPERM)])
    new = _NEW_NAMESPACES | _NEW_TIME_NAMESPACE
    code += _with_argument(known.unshare, 0, [(0x45, 0, 1, new), _refuse(errno.EPERM)])
    for request in (_TIOCSTI, _TIOCLINUX):
        code += _with_argument(known.ioctl, 1, [_if_equal(request, skip=1), _refuse(errno.EPERM)])
    allowed = [each for family in sorted(families) for each in (_if_equal(family, skip=1), _return(_ALLOW))]
    code += _with_argument(known.socket, 0, [*allowed, _refuse(errno.EAFNOSUPPORT)])
    code.append(_return(_ALLOW))
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in code)


def _with_argument(number: int, index: int, checks: Sequence[_Instruction]) -> list[_Instruction]:
    """Let the call of ``number`` through ``checks`` of the lower half of an argument. The number is loaded
    again afterwards, for what comes next."""
    checked = [_load(16 + 8 * index), *checks, _load(_NUMBER)]
    return [_if_equal(number, skip=len(checked)), *checked]


def _load(offset: int) -> _Instruction:
    return (0x20, 0, 0, offset)


def _if_equal(value: int, *, skip: int) -> _Instruction:
    """Go on if what is loaded equals ``value``, else leave out the next ``skip`` instructions."""
    return (0x15, 0, skip, value)


def _return(verdict: int) -> _Instruction:
    return (0x06, 0, 0, verdict)


def _refuse(error: int) -> _Instruction:
    return _return(_ERRNO | error)
