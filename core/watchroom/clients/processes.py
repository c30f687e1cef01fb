"""The process of a client: whether it is still there, and signals to it and to no other.

A number is given to another process later; with the time at which it began it names one alone.
"""

from __future__ import annotations

import os
import re
import signal
from typing import Final, NamedTuple

from watchroom.platforms import Platform

_SHELLS: Final = ("sh", "dash", "bash", "zsh")
_HAS_COMMAND: Final = re.compile(r"-[a-z]*c$")
"""The option of a shell that is given a command."""


class ClientProcess(NamedTuple):
    """The process ``pid`` that ``started`` then, as ``platform`` says it."""

    pid: int
    started: float
    platform: Platform

    @property
    def is_alive(self) -> bool:
        """Whether it is still there, and not merely waits to be collected."""
        return self.started > 0 and self.platform.process_start(self.pid) == self.started

    def send_signal(self, number: signal.Signals) -> bool:
        """Send it the signal ``number``. Returns whether it was there to get it. Raises PermissionError."""
        return self.platform.send_signal(self.pid, self.started, number)

    def wait_gone(self, seconds: float) -> bool:
        """Wait for at most ``seconds`` until it is gone. Returns whether it is."""
        return self.platform.wait_ended(self.pid, self.started, seconds)


def parent_process(platform: Platform) -> ClientProcess:
    """The process that started this one."""
    pid = os.getppid()
    return ClientProcess(pid, platform.process_start(pid), platform)


def client_of_hook(platform: Platform) -> ClientProcess:
    """The client that started this process, a hook, or had a shell start it."""
    pid = os.getppid()
    parent = next((each for each in platform.processes() if each.pid == pid), None)
    name, *options = (parent.arguments if parent is not None else ()) or ("",)
    # A shell that a person types into, or that runs a script, is no client's.
    if parent is not None and os.path.basename(name) in _SHELLS and _HAS_COMMAND.match((*options, "")[0]):
        pid = parent.parent
    return ClientProcess(pid, platform.process_start(pid), platform)
