"""A process that commits versions of one shared file until enough of them are acknowledged.

Run as: ``python write_many.py ROOT AGENT PATH COUNT PLATFORM``. It says ``ready``, waits for a line on its input, so
that all processes start together, and in the end prints what it was told as one line of JSON.
"""

from __future__ import annotations

import json
import sys
from typing import Any, NamedTuple, TypedDict

from watchroom import Toolbox, Workspace
from watchroom.kernel.checkout import materializer
from watchroom.platform import Platform, detect_platform


class Told(NamedTuple):
    """What a writer was told: version → content of what was accepted, row → content of what was refused."""

    accepted: dict[int, str]
    refused: dict[int, str]


class Report(TypedDict):
    accepted: list[tuple[int, str]]
    refused: list[tuple[int, str]]


def write_many(toolbox: Toolbox, path: str, count: int) -> Told:
    """Read, write what was read plus one, and try again after a conflict, until ``count`` are accepted."""
    told = Told({}, {})
    tries = 0
    while len(told.accepted) < count:
        tries += 1
        content = f"{toolbox.actor}, try {tries}"
        read: dict[str, Any] = toolbox.dispatch_tool_call("collab_read", {"filepath": path})
        written: dict[str, Any] = toolbox.dispatch_tool_call(
            "collab_write",
            {
                "filepath": path,
                "content": content,
                "message": f"after {read.get('version', 0)}",
                "expected_version": read.get("version", 0),
            },
        )
        if written["success"]:
            told.accepted[written["version"]] = content
        elif written.get("is_conflict"):
            told.refused[written["conflict_id"]] = content
        else:
            raise RuntimeError(written)
    return told


def main(root: str, agent: str, path: str, count: str, platform: str) -> None:
    on = Platform() if platform == "posix" else detect_platform()
    # Histories are written often, so that a reader can find many of them while this runs.
    vars(materializer)["DERIVED_SECONDS"] = 0.02
    with Workspace.open(root, scan=False, platform=on) as workspace:
        toolbox = workspace.tools(agent)
        print("ready", flush=True)
        sys.stdin.readline()
        told = write_many(toolbox, path, int(count))
    report = Report(accepted=list(told.accepted.items()), refused=list(told.refused.items()))
    print(json.dumps(report), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
