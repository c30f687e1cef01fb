"""An editor that is killed at a random moment: its buffer goes on from the last thing it was told, and a flush
that was cut off between its two rows loses nothing and writes nothing twice."""

from __future__ import annotations

import random
from pathlib import Path

from calls import ok
from crash import buffer_writer
from crash.buffer_writer import AGENT, SOURCE, line, opened
from crash.nursery import nursery
from effort import rounds, seed
from watchroom import Workspace
from watchroom.kernel.call_context import CallContext

KILLS = rounds(16, 40)


def test_killed_again_and_again_every_line_stands_there_once(root: Path) -> None:
    Workspace.open(root, agents=[AGENT]).close()
    chance = random.Random(seed(8))
    with nursery(buffer_writer.__file__, root) as writers:
        for number in range(KILLS):
            acknowledged = writers.run_and_kill(seed(number), after=chance.randint(1, 12))
            with Workspace.open(root) as workspace:
                toolbox, lines = opened(workspace)
                assert lines > acknowledged[-1]
                text = "".join(line(number) for number in range(lines))
                assert workspace.buffers.find(CallContext(AGENT), "draft").text == text
                head = workspace.journal.head("collab", SOURCE)
                written = workspace.journal.content(head.seq) if head else ""
                assert text.startswith(written or "")
                assert workspace.verify() == []
                toolbox.dispatch_tool_call("draft_discard_selection", {})
                ok(toolbox, "draft_flush")
                assert ok(toolbox, "collab_read", filepath=SOURCE)["content"] == text
