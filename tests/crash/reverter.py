"""``python reverter.py ROOT``: reads numbers, one a line. For each it forks a process that reverts what alice did,
with the id ``once``, and ends, as if killed, when it is about to touch the disk for that time; prints ``done`` or
``killed``."""

from __future__ import annotations

import os
import signal
import sys
import tempfile

from watchroom import Workspace
from watchroom.features.reverts.rules import RevertSelection
from watchroom.kernel.call_context import CallContext

_TOUCHING = ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.truncate", "os.chmod")


def revert(root: str, at: int) -> None:
    touched = 0

    def count(event: str, _: object) -> None:
        nonlocal touched
        if event in _TOUCHING:
            touched += 1
            if touched == at:
                os.kill(os.getpid(), signal.SIGKILL)

    with Workspace.open(root, scan=False) as workspace:
        sys.addaudithook(count)
        workspace.reverts.apply(CallContext("human:ann"), RevertSelection(("alice",)), revert_id="once")
        workspace.flush()
        # What the end of a process does to the disk is no part of a revert.
        os._exit(0)


def fork_reverters(root: str) -> None:
    with tempfile.TemporaryDirectory() as elsewhere, Workspace.open(elsewhere, ["alice"]) as workspace:
        workspace.reverts.apply(CallContext("human:ann"), RevertSelection(("alice",)))
    for at in sys.stdin:
        process = os.fork()
        if process == 0:
            revert(root, int(at))
        _, status = os.waitpid(process, 0)
        os.write(1, b"done\n" if os.WIFEXITED(status) and not os.WEXITSTATUS(status) else b"killed\n")


if __name__ == "__main__":
    fork_reverters(sys.argv[1])
