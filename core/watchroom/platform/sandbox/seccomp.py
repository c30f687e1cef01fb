"""Builds a seccomp filter that refuses the system calls which no command needs.

It also refuses calls that bubblewrap's namespaces already exclude, so that a single mistake is not enough to
escape. For a command without namespaces, it also refuses calls that affect other processes of the user. Calls
that Landlock does not limit are passed to the supervisor. The numbers are from
linux/arch/x86/entry/syscalls/syscall_64.tbl and asm-generic/unistd.h.
"""

from __future__ import annotations

import errno
import platform
import socket
import struct
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from watchroom.platform.sandbox.supervisor import NO_LINKS, CallArguments


class SharedCalls(NamedTuple):
    """System calls for resources that a command without namespaces shares with other processes."""

    refused: Sequence[int]
    attributes: Sequence[int]
    """Calls for extended attributes. Programs expect file systems without them."""
    obsolete: Sequence[int]
    """Old calls with a newer replacement, which programs use instead."""
    process_calls: Sequence[tuple[int, int]]
    """Calls that can change another process, and the position of the argument with its id. 0 means the
    caller."""
    user_calls: Sequence[tuple[int, int]]
    """Calls that can change all processes of a user, and the value of the first argument that selects
    this."""
    notified: Mapping[int, CallArguments]
    """Calls that the filter passes to the supervisor, by number."""
    socketpair: int
    call_numbers: tuple[int, int]
    """The numbers of seccomp and capset."""


class _Architecture(NamedTuple):
    audit_number: int
    refused: Mapping[str, int]
    modes: Sequence[tuple[int, int]]
    """The calls that set the mode of a file, and the argument with the mode."""
    opening: Sequence[tuple[int, int, int]]
    """The calls that can create a file, and the positions of the arguments with its flags and its mode."""
    clone: int
    unshare: int
    ioctl: int
    socket: int
    shared: SharedCalls
    second_numbers: int | None = None
    """The number from which on each call has a second number (x32)."""


def _table(text: str) -> dict[str, int]:
    """Parse names and numbers of system calls."""
    words = text.split()
    return dict(zip(words[::2], map(int, words[1::2]), strict=True))


_SAME_EVERYWHERE: Final = _table("""
    io_uring_setup 425  io_uring_enter 426  io_uring_register 427  open_tree 428  move_mount 429
    fsopen 430  fsconfig 431  fsmount 432  fspick 433  pidfd_getfd 438  process_madvise 440
    mount_setattr 442  quotactl_fd 443  open_tree_attr 467
""")
_ATTRIBUTES_EVERYWHERE: Final = (463, 466, 469)
"""setxattrat, removexattrat, file_setattr."""
_X86_64: Final = _SAME_EVERYWHERE | _table("""
    ptrace 101  syslog 103  uselib 134  sysfs 139  vhangup 153  modify_ldt 154  pivot_root 155
    _sysctl 156  adjtimex 159  chroot 161  acct 163  settimeofday 164  mount 165  umount2 166
    swapon 167  swapoff 168  reboot 169  sethostname 170  setdomainname 171  iopl 172  ioperm 173
    init_module 175  delete_module 176  quotactl 179  nfsservctl 180  lookup_dcookie 212
    clock_settime 227  kexec_load 246  add_key 248  request_key 249  keyctl 250  migrate_pages 256
    move_pages 279  perf_event_open 298  fanotify_init 300  open_by_handle_at 304  clock_adjtime 305
    setns 308  process_vm_readv 310  process_vm_writev 311  kcmp 312  finit_module 313
    kexec_file_load 320  bpf 321  userfaultfd 323
""")
_AARCH64: Final = _SAME_EVERYWHERE | _table("""
    lookup_dcookie 18  umount2 39  mount 40  pivot_root 41  nfsservctl 42  chroot 51  vhangup 58
    quotactl 60  acct 89  kexec_load 104  init_module 105  delete_module 106  clock_settime 112
    syslog 116  ptrace 117  reboot 142  sethostname 161  setdomainname 162  settimeofday 170
    adjtimex 171  add_key 217  request_key 218  keyctl 219  swapon 224  swapoff 225  migrate_pages 238
    move_pages 239  perf_event_open 241  fanotify_init 262  open_by_handle_at 265  clock_adjtime 266
    setns 268  process_vm_readv 270  process_vm_writev 271  kcmp 272  finit_module 273  bpf 280
    userfaultfd 282  kexec_file_load 294
""")
_ARCHITECTURES: Final = {
    "x86_64": _Architecture(
        audit_number=0xC000003E,
        refused=_X86_64,
        # creat, chmod, fchmod, mknod, mknodat, fchmodat, fchmodat2
        modes=((85, 1), (90, 1), (91, 1), (133, 1), (259, 2), (268, 2), (452, 2)),
        # open, openat
        opening=((2, 1, 2), (257, 2, 3)),
        clone=56,
        unshare=272,
        ioctl=16,
        socket=41,
        shared=SharedCalls(
            # shmget to shmctl, semget to semctl, shmdt, msgget to msgctl, semtimedop, mq_open, mq_unlink,
            # inotify_init, inotify_add_watch, inotify_init1
            refused=(29, 30, 31, 64, 65, 66, 67, 68, 69, 70, 71, 220, 240, 241, 253, 254, 294),
            attributes=(188, 189, 190, 197, 198, 199),
            # utime, utimes, futimesat
            obsolete=(132, 235, 261),
            # setpriority, sched_setparam, sched_setscheduler, sched_setaffinity, ioprio_set, prlimit64,
            # sched_setattr
            process_calls=((141, 1), (142, 0), (144, 0), (203, 0), (251, 1), (302, 0), (314, 0)),
            # setpriority, ioprio_set
            user_calls=((141, 2), (251, 3)),
            notified={
                90: ("mode", -1, 0, 1, -1),
                91: ("mode", 0, -1, 1, -1),
                268: ("mode", 0, 1, 2, -1),
                452: ("mode", 0, 1, 2, 3),
                92: ("owner", -1, 0, 1, -1),
                93: ("owner", 0, -1, 1, -1),
                94: ("owner", -1, 0, 1, NO_LINKS),
                260: ("owner", 0, 1, 2, 4),
                280: ("times", 0, 1, 2, 3),
            },
            socketpair=53,
            call_numbers=(317, 126),
        ),
        second_numbers=0x40000000,
    ),
    "aarch64": _Architecture(
        audit_number=0xC00000B7,
        refused=_AARCH64,
        # mknodat, fchmod, fchmodat, fchmodat2
        modes=((33, 2), (52, 1), (53, 2), (452, 2)),
        # openat
        opening=((56, 2, 3),),
        clone=220,
        unshare=97,
        ioctl=29,
        socket=198,
        shared=SharedCalls(
            # inotify_init1, inotify_add_watch, mq_open, mq_unlink, and all of System V
            refused=(26, 27, 180, 181, *range(186, 198)),
            attributes=(5, 6, 7, 14, 15, 16),
            obsolete=(),
            # The same as above, in their order.
            process_calls=((140, 1), (118, 0), (119, 0), (122, 0), (30, 1), (261, 0), (274, 0)),
            user_calls=((140, 2), (30, 3)),
            notified={
                52: ("mode", 0, -1, 1, -1),
                53: ("mode", 0, 1, 2, -1),
                452: ("mode", 0, 1, 2, 3),
                54: ("owner", 0, 1, 2, 4),
                55: ("owner", 0, -1, 1, -1),
                88: ("times", 0, 1, 2, 3),
            },
            socketpair=199,
            call_numbers=(277, 91),
        ),
    ),
}

_CLONE3: Final = 435
_OPENAT2: Final = 437
_SET_ID_BITS: Final = 0o6000
"""Set-user-id and set-group-id: a program left behind by a command must not run as its owner."""
_CREATE_FLAGS: Final = 0x400040
"""O_CREAT and O_TMPFILE, the same on all architectures here."""
_NEW_NAMESPACES: Final = 0x7E020000
_NEW_TIME_NAMESPACE: Final = 0x80
_TIOCSTI: Final = 0x5412
"""Simulates input on a terminal."""
_TIOCLINUX: Final = 0x541C
_ATTRIBUTES: Final = (0x40086602, 0x40087602, 0x401C5820, 0x40806685)
"""Calls that can change a file through a descriptor opened for reading: FS_IOC_SETFLAGS, FS_IOC_SETVERSION,
FS_IOC_FSSETXATTR, FS_IOC_ENABLE_VERITY."""
_DATAGRAMS: Final = 2
"""This bit is set in the types of sockets that can reach other sockets, even from a pair."""

_KILL: Final = 0x80000000
_NOTIFY: Final = 0x7FC00000
_ERRNO: Final = 0x00050000
_ALLOW: Final = 0x7FFF0000
_NUMBER: Final = 0
_ARCHITECTURE: Final = 4

UNIX_ONLY: Final = frozenset({int(socket.AF_UNIX)})
INTERNET: Final = frozenset({2, 10, 16})
"""AF_INET, AF_INET6 and AF_NETLINK. Programs find their own addresses through netlink."""

_Instruction = tuple[int, int, int, int]


def shared_calls() -> SharedCalls | None:
    """Return the shared calls of this machine, None if its architecture is not in this module."""
    known = _ARCHITECTURES.get(platform.machine())
    return known.shared if known else None


def build_filter(
    families: Collection[int], machine: str | None = None, *, shared: bool = False
) -> bytes | None:
    """Return the code of a filter, None if the architecture is not in this module.

    - ``families``: the address families of sockets that a command can create.
    - ``machine``: the architecture, default this machine's.
    - ``shared``: the shared calls, for a command without its own namespaces.
    """
    known = _ARCHITECTURES.get(machine or platform.machine())
    if known is None:
        return None
    code: list[_Instruction] = [
        _load(_ARCHITECTURE),
        (0x15, 1, 0, known.audit_number),
        _return(_KILL),
        _load(_NUMBER),
    ]
    if known.second_numbers is not None:
        code += [(0x35, 0, 1, known.second_numbers), _refuse(errno.ENOSYS)]
    code += _if_any(sorted(known.refused.values()), _refuse(errno.EPERM))
    # Programs fall back on older calls. A filter can check the arguments of the older calls, but not of the
    # newer calls.
    code += _if_any((_CLONE3, _OPENAT2), _refuse(errno.ENOSYS))
    owner = [(0x45, 0, 1, _SET_ID_BITS), _refuse(errno.EPERM)]
    for number, mode in known.modes:
        code += _with_argument(number, mode, owner)
    for number, flags, mode in known.opening:
        code += _with_argument(number, flags, [(0x45, 0, 3, _CREATE_FLAGS), _load(16 + 8 * mode), *owner])
    code += _with_argument(known.clone, 0, [(0x45, 0, 1, _NEW_NAMESPACES), _refuse(errno.EPERM)])
    new = _NEW_NAMESPACES | _NEW_TIME_NAMESPACE
    code += _with_argument(known.unshare, 0, [(0x45, 0, 1, new), _refuse(errno.EPERM)])
    requests = (_TIOCSTI, _TIOCLINUX, *(_ATTRIBUTES if shared else ()))
    code += _with_argument(known.ioctl, 1, _if_any(requests, _refuse(errno.EPERM)))
    allowed = _if_any(sorted(families), _return(_ALLOW))
    code += _with_argument(known.socket, 0, [*allowed, _refuse(errno.EAFNOSUPPORT)])
    if shared:
        code += _shared_rules(known.shared)
    code.append(_return(_ALLOW))
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in code)


def _shared_rules(shared: SharedCalls) -> list[_Instruction]:
    code = _if_any(shared.refused, _refuse(errno.EPERM))
    code += _if_any((*shared.attributes, *_ATTRIBUTES_EVERYWHERE), _refuse(errno.EOPNOTSUPP))
    code += _if_any(shared.obsolete, _refuse(errno.ENOSYS))
    for number, process in shared.process_calls:
        code += _with_argument(number, process, [(0x15, 1, 0, 0), _refuse(errno.EPERM)])
    for number, which in shared.user_calls:
        code += _with_argument(number, 0, _if_any((which,), _refuse(errno.EPERM)))
    code += _with_argument(shared.socketpair, 1, [(0x45, 0, 1, _DATAGRAMS), _refuse(errno.EPERM)])
    return code + _if_any(shared.notified, _return(_NOTIFY))


def _with_argument(number: int, index: int, checks: Sequence[_Instruction]) -> list[_Instruction]:
    """Apply ``checks`` to the lower half of an argument of a call, then load the call's number again."""
    checked = [_load(16 + 8 * index), *checks, _load(_NUMBER)]
    return [_if_equal(number, skip=len(checked)), *checked]


def _load(offset: int) -> _Instruction:
    return (0x20, 0, 0, offset)


def _if_equal(value: int, *, skip: int) -> _Instruction:
    """Continue if the loaded value is ``value``, else skip the next ``skip`` instructions."""
    return (0x15, 0, skip, value)


def _if_any(values: Iterable[int], verdict: _Instruction) -> list[_Instruction]:
    """End with ``verdict`` if the loaded value is one of ``values``, else continue."""
    return [each for value in values for each in (_if_equal(value, skip=1), verdict)]


def _return(verdict: int) -> _Instruction:
    return (0x06, 0, 0, verdict)


def _refuse(error: int) -> _Instruction:
    return _return(_ERRNO | error)
