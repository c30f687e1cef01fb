"""A process that edits one document many times, reading it now and then.

Run in the folder of the tests as: ``python -m realtime.edit_many ROOT AGENT NUMBER SEED COUNT``. It says
``ready`` and waits for a line on its input, so that all processes start together; prints its edits as one line
of JSON, waits for another line, and prints the text as it stands then.
"""

from __future__ import annotations

import json
import sys

from marked import Editor
from watchroom import Workspace

READ_EVERY = 100


def main(root: str, agent: str, number: str, seed: str, count: str) -> None:
    with Workspace.open(root, scan=False) as workspace:
        editor = Editor(workspace.tools(agent), int(number), int(seed))
        print("ready", flush=True)
        sys.stdin.readline()
        edits = []
        for turn in range(1, int(count) + 1):
            edits.append(editor.edit())
            if turn % READ_EVERY == 0:
                editor.read()
        print(json.dumps(edits), flush=True)
        sys.stdin.readline()
        print(json.dumps(editor.read()), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
