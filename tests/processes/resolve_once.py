"""A process in which a person resolves one conflict, once.

Run as: ``python resolve_once.py ROOT PERSON PATH EXPECTED CONFLICT``. It says ``ready``, waits for a line on its
input, so that all start together, and prints the result as one line of JSON.
"""

from __future__ import annotations

import json
import sys

from watchroom import Workspace


def main(root: str, person: str, path: str, expected: str, conflict: str) -> None:
    with Workspace.open(root, scan=False) as workspace:
        toolbox = workspace.tools_for_human(person)
        print("ready", flush=True)
        sys.stdin.readline()
        result = toolbox.dispatch_tool_call(
            "resolve_conflict",
            {
                "filepath": path,
                "content": f"as {person} says",
                "message": f"decided by {person}",
                "expected_version": int(expected),
                "conflicts": [int(conflict)],
            },
        )
    print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
