"""A process with a lease, whose end shows what a dashboard says about a process that is gone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from damage import journal_of
from watchroom import Workspace
from watchroom.model import PRESENCE, Write

HOLD_A_LEASE = """
import sys
from watchroom.kernel.journal import open_journal

journal = open_journal(sys.argv[1])
print(journal.presence.hold("watchroom demo team"), flush=True)
sys.stdin.read()
journal.close()
"""


class OtherProcess:
    """A process with a lease on the journal of ``root``, under which rows of others can be written."""

    def __init__(self, root: Path | str) -> None:
        command = [sys.executable, "-c", HOLD_A_LEASE, journal_of(root)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.lease = self.process.stdout.readline().strip()

    def runs_session(self, workspace: Workspace, agent: str) -> None:
        """Write the start of a session of ``agent`` in this process."""
        detail = {"status": "running", PRESENCE: self.lease}
        step = Write(agent, "begin_session", "session", f"{agent}/1", "{}", expected=0, detail=detail)
        workspace.journal.append([step])

    def runs_command(self, workspace: Workspace, agent: str, task: str) -> None:
        """Write the start of a command of ``agent`` in this process."""
        detail = {PRESENCE: self.lease}
        begun = Write(agent, "run_command", "command", f"{task}/c1", "make all", "make all", 0, detail)
        workspace.journal.append([begun])

    def kill(self) -> None:
        """Kill it before it can release its lease."""
        self.process.kill()
        self.process.wait()

    def end(self) -> None:
        """Let it end by itself."""
        self.process.communicate()
