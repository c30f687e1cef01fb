"""Random commands, decided by the policy and run by real shells: none evades a rule."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest
from effort import IS_HUNTING, rounds
from policy.shell_commands import random_command
from policy.shell_oracle import PROGRAMS
from watchroom.features.config.rows import parse_config
from watchroom.features.policy.rules import decide

ALLOW = parse_config(
    '[[policy.rules]]\ncommand = ["git log*", "git status*"]\nverdict = "allow"\n[[policy.rules]]\nverdict = "deny"\n'
).policy
DENY = parse_config('[[policy.rules]]\ncommand = ["make", "make *"]\nverdict = "deny"\n').policy
COVERED = re.compile("git (?:log|status).*", re.DOTALL)
SHELLS = ("bash", "dash")
COMMANDS = 400
SEEDS = range(rounds(1, 250))
FIRST_SEED = Random().randrange(10**6) if IS_HUNTING else 46


@contextmanager
def oracle(folder: Path) -> Iterator[Any]:
    """Start a process that runs commands below ``folder``, in a sandbox if possible."""
    command = [sys.executable, "-I", str(Path(__file__).with_name("shell_oracle.py")), str(folder)]
    sandbox = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-all"]
    # The environment and these files may be below /dev/shm, which the sandbox does not have.
    for needed in (sys.prefix, str(Path(__file__).parent)):
        sandbox += ["--ro-bind", needed, needed]
    sandbox += ["--die-with-parent", "--bind", str(folder), str(folder)]
    if shutil.which("bwrap") and subprocess.run([*sandbox, "true"], capture_output=True).returncode == 0:
        command = [*sandbox, *command]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:

        def run(shell: str, text: str) -> dict[str, Any]:
            assert process.stdin is not None
            assert process.stdout is not None
            print(json.dumps([shell, text]), file=process.stdin, flush=True)
            answer: dict[str, Any] = json.loads(process.stdout.readline())
            return answer

        yield run


def is_covered(call: list[str]) -> bool:
    """Return whether the pattern covers the words. Blanks within a word do not end it."""
    return bool(COVERED.fullmatch(" ".join(re.sub(r"\s", "_", each) for each in call)))


def test_the_oracle_sees_programs_builtins_and_files(tmp_path: Path) -> None:
    with oracle(tmp_path) as run:
        for shell in SHELLS:
            assert run(shell, "git log 'a b' | make & echo hi; cd . > out")["ran"] in (
                [["git", "log", "a b"], ["make"]],
                [["make"], ["git", "log", "a b"]],
            )
            seen = run(shell, "git log; cd . > out; export A=1")
            assert (seen["traced"] >= 3, seen["files"], set(PROGRAMS) > {"git", "make"}) == (
                True,
                ["out"],
                True,
            )


@pytest.mark.parametrize("number", SEEDS)
def test_no_command_runs_past_a_rule(tmp_path: Path, number: int) -> None:
    """An `allow` covers every program that runs, and no denied program runs."""
    seed = FIRST_SEED + number
    random = Random(seed)
    allowed = denied = 0
    passed: list[str] = []
    with oracle(tmp_path) as run:
        for _ in range(COMMANDS):
            command = random_command(random)
            arguments = {"command": command}
            is_allowed = decide(ALLOW, "alice", "Bash", arguments, 0).verdict == "allow"
            is_denied = decide(DENY, "alice", "Bash", arguments, 0).verdict == "deny"
            allowed += is_allowed
            denied += is_denied
            if "\0" in command or (is_denied and not is_allowed):
                continue
            for shell in SHELLS:
                seen = run(shell, command)
                if is_allowed:
                    is_plain = seen["traced"] == len(seen["ran"]) and not seen["files"]
                    if not is_plain or not all(is_covered(call) for call in seen["ran"]):
                        passed.append(f"allowed in {shell}: {command!r}: {seen}")
                if not is_denied and any(call[:1] == ["make"] for call in seen["ran"]):
                    passed.append(f"not denied in {shell}: {command!r}: {seen['ran']}")
    assert not passed, f"seed {seed}:\n" + "\n".join(passed[:20])
    assert allowed > COMMANDS // 5
    assert denied > COMMANDS // 5
