"""A journal with chosen times, recorded from calls of toolboxes.

The journal takes its times from the clock, so rows are created first, and then copied with other times into a
new journal. As of its last row, it looks the same on every day.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Final

from calls import ok, refused
from evidence import all_rows
from watchroom import Agent, Workspace
from watchroom.kernel.checkout.layout import CONTROL, JOURNAL_NAME
from watchroom.kernel.journal import Journal, SqliteJournal

SECOND: Final = 1_000_000_000
NOON: Final = 1_767_268_800 * SECOND
"""2026-01-01T12:00:00Z"""
FIELDS: Final = "seq,time,actor,tool,zone,path,version,base,outcome,error,message,sha256,size,detail,content"

REPORT: Final = """# Harbour report

## Findings

The harbour handled 12 % more cargo than last year.
Night shifts carried most of the growth.
港口吞吐量增长了 12 %。

## Open questions

- Who pays for the second crane?
- When does dredging begin?
"""


def at_work(root: Path) -> None:
    """Let four agents and a person work in ``root``, with one of everything that a dashboard shows."""
    agents = [
        Agent("editor", role="edits", layer="top"),
        Agent("analyst", role="counts", layer="mid", supervisor="editor"),
        Agent("researcher", role="looks things up", supervisor="analyst"),
        Agent("writer", role="writes", supervisor="editor"),
    ]
    with Workspace.open(root, agents=agents) as workspace:
        box = {agent.id: workspace.tools(agent.id) for agent in agents}
        ok(box["researcher"], "save_to_my_workspace", filename="notes/harbour.md", content="- 12 % more\n")
        ok(
            box["researcher"],
            "save_to_my_workspace",
            filename="notes/harbour.md",
            content="- 12 % more cargo\n- two cranes\n",
            message="second look",
        )
        ok(box["researcher"], "save_to_my_workspace", filename="sources.csv", content="port,tons\na,12\n")
        for name, message in (("raw.csv", "the raw numbers"), ("港口.md", "中文摘要")):
            ok(
                box["researcher"],
                "handoff_file",
                to_agent="analyst",
                filename=name,
                content=f"content of {name}\n",
                message=message,
            )
        ok(box["analyst"], "acknowledge_handoff", from_agent="researcher", filename="raw.csv", message="ta")
        ok(
            box["analyst"],
            "handoff_file",
            to_agent="writer",
            filename="table.md",
            content="| port | tons |\n|---|---|\n| a | 12 |\n",
            message="ready to use",
        )
        write = {"filepath": "report.md", "message": "first draft"}
        ok(box["writer"], "collab_write", **write, content=REPORT, expected_version=0)
        polished = REPORT.replace("Who pays", "Which authority pays")
        ok(
            box["editor"],
            "collab_write",
            filepath="report.md",
            content=polished,
            message="polish",
            expected_version=1,
        )
        refused(
            box["analyst"],
            "collab_write",
            filepath="report.md",
            content=REPORT.replace("12 %", "12.4 %"),
            message="exact figure",
            expected_version=1,
        )
        ok(
            box["writer"],
            "collab_write",
            filepath="计划/plan.md",
            content="1. write\n2. edit\n",
            message="计划",
            expected_version=0,
        )
        ok(
            box["editor"],
            "collab_write",
            filepath="计划/plan.md",
            content="1. edit\n",
            message="simpler",
            expected_version=-1,
        )
        for _ in range(3):
            refused(box["writer"], "read_from_workspace", agent_id="nobody", filename="x.md")
            refused(box["writer"], "save_to_my_workspace", filename="../outside.md", content="")
        (root / "collaborative/current/计划/plan.md").write_text("by hand\n", encoding="utf-8")
        workspace.scan()
        ok(workspace.tools_for_human("dana"), "collab_read", filepath="report.md")
        workspace.flush()


def recorded(
    folder: Path, work: Callable[[Path], None] = at_work, *, end: int = NOON, apart: int = 17 * SECOND
) -> Journal:
    """Run ``work`` in a new workspace. Return its rows as a journal that ends at ``end``.

    ``apart``: nanoseconds between two rows.
    """
    root = folder / "made"
    work(root)
    source = SqliteJournal(root / CONTROL / JOURNAL_NAME)
    rows = [(row, source.content(row.seq)) for row in all_rows(source)]
    source.close()
    path = folder / "recorded.db"
    journal = SqliteJournal(path)
    first = end - (len(rows) - 1) * apart
    with sqlite3.connect(path, isolation_level=None) as database:
        marks = ",".join("?" * len(FIELDS.split(",")))
        for number, (row, content) in enumerate(rows):
            moved = row._replace(time=first + number * apart)
            database.execute(f"INSERT INTO rows ({FIELDS}) VALUES ({marks})", (*moved, content))
    database.close()
    return journal
