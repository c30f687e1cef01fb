"""What a signed decision costs beside an unsigned one: ``python benchmarks/deciding.py [DECISIONS]``."""

from __future__ import annotations

import os
import statistics
import sys
import time

from measure import Measure, scratch, table
from watchroom import Workspace
from watchroom.rules.people import Person
from watchroom.rules.requests import PendingCall, Request, decide_all
from watchroom.signing import SignerProcess, create_key_file

_CALL = PendingCall("call", "run_command", '{"command": "make"}')
_GOAL_MS = 5.0
"""A decision, once the key is unlocked: the design's figure."""
_PASSPHRASE = "benchmark"


def measure(decisions: int = 200) -> list[Measure]:
    """With so many ``decisions`` of each kind, medians; agents' writes before and after the workspace is
    closed."""
    with scratch() as folder:
        key = os.path.join(folder, "key.json")
        public = create_key_file(key, _PASSPHRASE)
        begin = time.perf_counter()
        signer = SignerProcess.unlock(key, _PASSPHRASE)
        unlocked = time.perf_counter() - begin
        with Workspace.open(os.path.join(folder, "team"), agents=["alice"]) as workspace:
            unsigned = _decide(workspace, decisions, "open")
            open_save = _save(workspace, decisions)
            workspace.signing.signer = signer
            workspace.people.add("human:dana", Person("dana", "owner", (public.line,)))
            signed = _decide(workspace, decisions, "closed")
            closed_save = _save(workspace, decisions)
            begin = time.perf_counter()
            for number in range(decisions):
                workspace.requests.ended(f"alice/closed/{number}")
            read = (time.perf_counter() - begin) / decisions
    return [
        Measure("unlocking a key", unlocked * 1000, "ms"),
        Measure("a decision, signed", signed, "ms", _GOAL_MS, remark=f"unsigned {unsigned:.2f}"),
        Measure("a decision, signed ÷ unsigned", signed / unsigned, "×"),
        Measure("reading a signed answer", read * 1000, "ms"),
        Measure("an agent's save, closed ÷ open", closed_save / open_save, "×", 1.1),
    ]


def _decide(workspace: Workspace, decisions: int, session: str) -> float:
    """Milliseconds that an answer takes, until it is on disk."""
    taken = []
    for number in range(decisions):
        request = Request("approve", calls=(_CALL,))
        asked = workspace.requests.ask("alice", f"alice/{session}/{number}", request).seq
        begin = time.perf_counter()
        workspace.requests.answer("human:dana", asked, decide_all(request, True))
        taken.append(time.perf_counter() - begin)
    return statistics.median(taken) * 1000


def _save(workspace: Workspace, times: int) -> float:
    """Milliseconds that a private save takes."""
    taken = []
    for number in range(times):
        begin = time.perf_counter()
        workspace.private.write("alice", "alice", "a.md", f"{number}\n", tool="save_to_my_workspace")
        taken.append(time.perf_counter() - begin)
    return statistics.median(taken) * 1000


if __name__ == "__main__":
    print(table(measure(*(int(each) for each in sys.argv[1:]))))
