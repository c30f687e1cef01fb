"""macOS' backend: its profile, and how a command runs whose backend leaves all but the profile to us."""

from __future__ import annotations

import os
import re
import threading
from pathlib import Path

import pytest
from sandbox.processes import marked_processes, token
from watchroom.sandbox.backend import (
    LaunchDescriptors,
    LaunchRequest,
    LaunchSpec,
    NetworkAccess,
    SandboxBackend,
    shell_command,
)
from watchroom.sandbox.cgroups import CgroupFactory
from watchroom.sandbox.limits import ResourceLimits
from watchroom.sandbox.runner import CommandResult, run_command
from watchroom.sandbox.seatbelt import SeatbeltBackend, build_profile

HOSTILE = ['a"b', "a)b", '"))(allow default)(x "', "a\\b", "a\nb", "(param FOLDER)", "-D", "a;b", "=", "你"]


def parsed(text: str) -> int:
    """How many rules there are; fails where strings or parentheses do not close."""
    depth = rules = 0
    for part in re.findall(r'"[^"]*"|[()]', text):
        depth += {"(": 1, ")": -1}.get(part, 0)
        rules += part == "(" and depth == 1
        assert depth >= 0
    assert depth == 0
    assert text.count('"') % 2 == 0
    return rules


def launched(folder: Path, network: NetworkAccess = False) -> tuple[str, ...]:
    descriptors = LaunchDescriptors()
    try:
        request = LaunchRequest("true", str(folder), ResourceLimits(), network, descriptors)
        return SeatbeltBackend("/usr/bin/sandbox-exec", CgroupFactory()).prepare(request).argv
    finally:
        descriptors.close()


@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_of_a_folder_stands_in_the_profile(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    (folder / name / ".git").mkdir(parents=True)
    argv = launched(folder)
    assert argv[:3] == ("/usr/bin/sandbox-exec", "-p", build_profile(1, network=False))
    given = [argv[n + 1] for n, each in enumerate(argv) if each == "-D" and n < argv.index("/usr/bin/env")]
    assert f"FOLDER={os.path.realpath(folder)}" in given
    assert f"KEPT0={os.path.realpath(folder)}/{name}/.git" in given


def test_all_is_denied_that_is_not_allowed() -> None:
    text = build_profile(2, network=False)
    assert text.startswith("(version 1)\n(deny default)\n")
    assert parsed(text) == len(text.splitlines())
    assert "network" not in text
    assert "(allow network*)" in build_profile(0, network=True)
    assert "(allow default)" not in text


def test_what_is_kept_is_denied_after_its_folder_was_allowed() -> None:
    """Of two rules the later counts."""
    lines = build_profile(2, network=False).splitlines()
    allowed = max(n for n, line in enumerate(lines) if line.startswith("(allow file-"))
    for what in (
        '(deny file-write* (subpath (param "KEPT0")))',
        '(deny file-write* (subpath (param "KEPT1")))',
    ):
        assert lines.index(what) > allowed
    assert lines.index('(deny file-read* file-write* (subpath (param "HIDDEN")))') > allowed


def test_a_command_has_no_environment_but_its_own(folder: Path) -> None:
    argv = launched(folder)
    start = argv.index("/usr/bin/env")
    variables = argv[start + 2 : argv.index("/bin/sh")]
    assert argv[start + 1] == "-i"
    assert {each.partition("=")[0] for each in variables} == {"PATH", "HOME", "TMPDIR", "LANG", "TERM", "PWD"}


class Bare(SandboxBackend):
    """Like macOS' sandbox, without it: the process that is started is the command's first."""

    name = "bare"
    protects_git = True

    def prepare(self, request: LaunchRequest) -> LaunchSpec:
        return LaunchSpec(shell_command(request.command))

    def start_failure(self, status: bytes, exit_code: int, stderr: str) -> str | None:
        return None


def bare(
    command: str, folder: Path, seconds: float = 20, stop: threading.Event | None = None
) -> CommandResult:
    return run_command(
        command, str(folder), backend=Bare(CgroupFactory()), limits=ResourceLimits(seconds=seconds), stop=stop
    )


def test_its_result_is_whole(folder: Path) -> None:
    finished = bare("echo one; echo two >&2; cat; exit 5", folder)
    assert (finished.stdout, finished.stderr, finished.exit_code) == ("one\n", "two\n", 5)


def test_its_group_ends_with_it(folder: Path) -> None:
    marked = token()
    assert bare(f"sleep {marked} & echo done", folder).stdout == "done\n"
    assert marked_processes(marked) == []
    finished = bare(f"sleep {marked} & sleep {marked}", folder, seconds=0.3)
    assert (finished.timed_out, finished.exit_code) == (True, 137)
    assert marked_processes(marked) == []


def test_it_can_be_stopped(folder: Path) -> None:
    stop = threading.Event()
    stop.set()
    finished = bare("sleep 60", folder, stop=stop)
    assert (finished.stopped, finished.exit_code) == (True, 137)
