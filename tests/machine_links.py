"""Connections to other machines in tests: a program ``ssh`` that runs the command on this machine."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
from watchroom import Workspace
from watchroom.features.requests.rows import PendingCall, Request
from watchroom.kernel.call_context import CallContext
from watchroom.serving.machines.address import Machine, parse_machine
from watchroom.serving.machines.connection import Machines, MachineView, Outcome
from watchroom.serving.machines.messages import FarNeed

PATIENCE: Final = 40.0
PROGRAM: Final = str(Path(sys.executable).with_name("watchroom"))
PLAN: Final = PendingCall(
    "c1", "collab_write", '{"filepath": "plan.md", "content": "two\\n", "message": "m"}'
)
# The last argument is the command. The shell becomes the command, so that its process can be frozen.
_SSH: Final = """#!/bin/sh
for last; do :; done
if [ -e "{folder}/down" ]; then echo "ssh: connect to host lab: No route to host" >&2; exit 255; fi
printf '%s\\n' "$@" > "{folder}/arguments"
echo $$ >> "{folder}/processes"
exec sh -c "$last"
"""


class Ssh:
    """The program ``ssh`` on the PATH, and the far ends that it has started."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        program = folder / "ssh"
        program.write_text(_SSH.format(folder=folder))
        program.chmod(0o755)

    def replace(self, code: str) -> None:
        """Let ``code``, a program of a shell, be the far end."""
        program = self._folder / "ssh"
        program.write_text(f'#!/bin/sh\necho $$ >> "{self._folder}/processes"\n{code}')

    @property
    def arguments(self) -> list[str]:
        """The arguments of the newest call."""
        return (self._folder / "arguments").read_text().splitlines()

    @property
    def processes(self) -> list[int]:
        """The far ends, oldest first."""
        path = self._folder / "processes"
        return [int(line) for line in path.read_text().split()] if path.exists() else []

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the newest far end."""
        os.kill(self.processes[-1], number)

    def block(self, is_blocked: bool) -> None:
        """Let connections fail, or succeed again."""
        path = self._folder / "down"
        if is_blocked:
            path.touch()
        else:
            path.unlink()


@pytest.fixture
def ssh(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Ssh:
    folder = tmp_path_factory.mktemp("ssh")
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return Ssh(folder)


def machine_at(root: Path | str, name: str = "lab") -> Machine:
    return parse_machine(name, f"ssh://{name}{root}", PROGRAM)


class Near:
    """The near end, and what it has reported."""

    def __init__(self, machines: list[Machine], person: str = "dana", version: str = "0") -> None:
        self.views: list[tuple[MachineView, ...]] = []
        self.outcomes: list[Outcome] = []
        self.machines = Machines(machines, person, "en", version, self.views.append, self.outcomes.append)

    @property
    def view(self) -> MachineView:
        return self.machines.views[0]

    @property
    def fates(self) -> list[str]:
        return [each.fate for each in self.outcomes]

    def until(self, holds: Callable[[], object], what: str, seconds: float = PATIENCE) -> float:
        """Wait until ``holds`` is true. Return the seconds."""
        began = time.monotonic()
        while not holds():
            waited = time.monotonic() - began
            assert waited < seconds, f"{what}: {self.machines.views} {self.outcomes}"
            time.sleep(0.05)
        return time.monotonic() - began

    def need(self) -> FarNeed:
        """Return the only need, as soon as there is one."""
        self.until(lambda: self.view.is_connected and self.view.needs, "a need")
        (need,) = self.view.needs
        return need


@contextmanager
def near(*machines: Machine, person: str = "dana", version: str = "0") -> Iterator[Near]:
    found = Near([*machines], person, version)
    found.machines.start()
    try:
        yield found
    finally:
        found.machines.close()


def ask(workspace: Workspace, request: Request | None = None, name: str = "1") -> int:
    """Open a request of alice, and return its number."""
    asked = request or Request("approve", calls=(PLAN,))
    return workspace.requests.ask(CallContext("alice"), f"alice/mcp/{name}", asked).seq
