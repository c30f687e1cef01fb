"""The filter of system calls, interpreted as the kernel does, for other architectures as well."""

from __future__ import annotations

import struct

import pytest
from watchroom.platform.sandbox.seccomp import INTERNET, UNIX_ONLY, build_filter

ALLOW, KILL, REFUSE = 0x7FFF0000, 0x80000000, 0x00050000
X86_64, AARCH64 = 0xC000003E, 0xC00000B7
ASK = 0x7FC00000
EPERM, ENOSYS, EOPNOTSUPP, EAFNOSUPPORT = 1, 38, 95, 97


def verdict(code: bytes, architecture: int, number: int, *arguments: int) -> int:
    padded = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("<IIQ6Q", number, architecture, 0, *padded)
    loaded = at = 0
    while True:
        operation, jump_true, jump_false, value = struct.unpack_from("<HBBI", code, at * 8)
        at += 1
        if operation == 0x20:
            (loaded,) = struct.unpack_from("<I", data, value)
        elif operation == 0x06:
            return int(value)
        else:
            true = {0x15: loaded == value, 0x35: loaded >= value, 0x45: bool(loaded & value)}[operation]
            at += jump_true if true else jump_false


@pytest.fixture(params=["x86_64", "aarch64"])
def machine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


NUMBERS = {
    "x86_64": {"read": 0, "clone": 56, "execve": 59, "ptrace": 101, "mount": 165, "socket": 41, "ioctl": 16, "unshare": 272, "fchmod": 91, "openat": 257},
    "aarch64": {"read": 63, "clone": 220, "execve": 221, "ptrace": 117, "mount": 40, "socket": 198, "ioctl": 29, "unshare": 97, "fchmod": 52, "openat": 56},
}  # fmt: skip


def test_calls_are_let_through_or_refused(machine: str) -> None:
    code = build_filter(INTERNET | UNIX_ONLY, machine)
    assert code
    architecture = X86_64 if machine == "x86_64" else AARCH64
    calls = NUMBERS[machine]

    def asked(name: str, *arguments: int) -> int:
        return verdict(code, architecture, calls[name], *arguments)

    thread, fork, new_user = 0x3D0F00, 17, 0x10000000 | 17
    assert {asked("read"), asked("execve"), asked("clone", thread), asked("clone", fork)} == {ALLOW}
    assert {asked("ptrace"), asked("mount"), asked("clone", new_user)} == {REFUSE | EPERM}
    assert verdict(code, architecture, 435) == REFUSE | ENOSYS
    assert (asked("unshare", 0x400), asked("unshare", 0x80)) == (ALLOW, REFUSE | EPERM)
    assert (asked("ioctl", 0, 0x5401), asked("ioctl", 0, 0x5412)) == (ALLOW, REFUSE | EPERM)
    # The kernel uses only its lower half.
    assert asked("ioctl", 0, 0x1_0000_5412) == REFUSE | EPERM
    assert (asked("fchmod", 3, 0o755), asked("fchmod", 3, 0o4755)) == (ALLOW, REFUSE | EPERM)
    assert (asked("openat", 0, 0, 0, 0o6000), asked("openat", 0, 0, 0x41, 0o644)) == (ALLOW, ALLOW)
    assert asked("openat", 0, 0, 0x41, 0o4755) == REFUSE | EPERM
    assert {asked("socket", family) for family in (1, 2, 10, 16)} == {ALLOW}
    assert {asked("socket", family) for family in (17, 38, 40)} == {REFUSE | EAFNOSUPPORT}


def test_families_are_those_that_were_asked_for(machine: str) -> None:
    code = build_filter(UNIX_ONLY, machine)
    assert code
    architecture = X86_64 if machine == "x86_64" else AARCH64
    families = [verdict(code, architecture, NUMBERS[machine]["socket"], family) for family in (1, 2)]
    assert families == [ALLOW, REFUSE | EAFNOSUPPORT]


def test_calls_of_another_architecture_end_the_process(machine: str) -> None:
    code = build_filter(UNIX_ONLY, machine)
    assert code
    assert verdict(code, AARCH64 if machine == "x86_64" else X86_64, 0) == KILL


def test_second_numbers_of_calls_are_refused() -> None:
    code = build_filter(UNIX_ONLY, "x86_64")
    assert code
    assert verdict(code, X86_64, 0x40000000 | 59) == REFUSE | ENOSYS


SHARED = {
    "x86_64": {"shmget": 29, "setxattr": 188, "fchmodat": 268, "utimensat": 280, "prlimit64": 302, "setpriority": 141, "socketpair": 53},
    "aarch64": {"shmget": 194, "setxattr": 5, "fchmodat": 53, "utimensat": 88, "prlimit64": 261, "setpriority": 140, "socketpair": 199},
}  # fmt: skip


def test_without_namespaces_more_is_refused_and_the_supervisor_asked(machine: str) -> None:
    alone, shared = build_filter((), machine), build_filter((), machine, shared=True)
    assert alone
    assert shared
    architecture = X86_64 if machine == "x86_64" else AARCH64
    calls = NUMBERS[machine] | SHARED[machine]

    def asked(name: str, *arguments: int) -> int:
        return verdict(shared, architecture, calls[name], *arguments)

    assert {verdict(alone, architecture, number) for number in SHARED[machine].values()} == {ALLOW}
    assert {asked(name, 1, 1, 0o755) for name in ("fchmod", "fchmodat", "utimensat")} == {ASK}
    assert asked("fchmodat", 1, 1, 0o4755) == REFUSE | EPERM
    assert (asked("shmget"), asked("setxattr")) == (REFUSE | EPERM, REFUSE | EOPNOTSUPP)
    assert (asked("prlimit64", 0), asked("prlimit64", 1)) == (ALLOW, REFUSE | EPERM)
    assert [asked("setpriority", *each) for each in ((0, 0), (0, 9), (2, 0))] == [
        ALLOW,
        *[REFUSE | EPERM] * 2,
    ]
    assert [asked("socketpair", 1, kind) for kind in (1, 0x80801, 5)] == [ALLOW] * 3
    assert [asked("socketpair", 1, kind) for kind in (2, 0x80802, 3)] == [REFUSE | EPERM] * 3
    assert asked("socket", 1) == REFUSE | EAFNOSUPPORT


def test_there_is_none_for_a_machine_that_is_not_known() -> None:
    assert build_filter(UNIX_ONLY, "vax") is None
