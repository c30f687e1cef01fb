"""Writes docs/reference.md from the docstrings of the public face: ``python docs/make_reference.py``.

With ``--check``, nothing is written, and the exit status is 1 where the page is not as it would be.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import griffe
from griffe2md import default_config, render_object_docs

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = ROOT / "docs" / "reference.md"
SECTIONS: Final[dict[str, tuple[str, ...]]] = {
    "A workspace and its tools": (
        "watchroom.workspace.Workspace",
        "watchroom.toolbox.toolbox.Toolbox",
        "watchroom.rules.config.Agent",
        "watchroom.model.Row",
        "watchroom.verify.Problem",
        "watchroom.errors.WatchroomError",
    ),
    "Running agents": (
        "watchroom.runtime.agent.AgentProgram",
        "watchroom.runtime.agent.Policies",
        "watchroom.runtime.agent.Limits",
        "watchroom.runtime.agent.RuntimeConfig",
        "watchroom.runtime.chat_agent.ChatAgent",
        "watchroom.runtime.tools.tool",
        "watchroom.runtime.runtime.AgentRuntime",
        "watchroom.runtime.sessions.Sessions",
        "watchroom.runtime.session.Session",
        "watchroom.runtime.state.AgentState",
        "watchroom.runtime.state.create_initial_state",
    ),
    "Details for a front end": (
        "watchroom.queries.rows.find_row",
        "watchroom.queries.rows.read_page",
        "watchroom.queries.versions.read_history",
        "watchroom.queries.versions.read_text",
        "watchroom.queries.versions.read_merge",
        "watchroom.queries.sessions.read_steps",
        "watchroom.queries.requests.read_request",
        "watchroom.queries.commands.read_output",
        "watchroom.queries.spans.SpanReader",
        "watchroom.queries.span_records.SpanRecord",
        "watchroom.rules.details.StepDetail",
    ),
    "Searching": (
        "watchroom.search.query.SearchQuery",
        "watchroom.search.result.SearchResult",
        "watchroom.search.result.Hit",
        "watchroom.search.index.SearchIndex",
        "watchroom.search.index.open_index",
    ),
    "What a journal must answer": ("watchroom.journal.protocol.Journal",),
    "What a buffer can be bound to": ("watchroom.editing.source.DataSource",),
}
INTRODUCTION: Final = """\
# Reference

The public face of `watchroom`, from its docstrings. How to begin is in the [README](../README.md), how it is
built in the [architecture](architecture.md). Every error is a `WatchroomError` with a stable `code`.
"""


def render() -> str:
    """The page, as Markdown."""
    packages = griffe.load("watchroom", search_paths=[ROOT / "core"])
    config = {
        **default_config,
        "filters": ["!^_"],
        "heading_level": 3,
        "members_order": "source",
        "show_root_full_path": False,
        "show_object_full_path": False,
        "show_signature_annotations": True,
        "show_if_no_docstring": False,
        "summary": False,
    }
    parts = [INTRODUCTION]
    for title, names in SECTIONS.items():
        parts.append(f"## {title}\n")
        for name in names:
            module = name.rpartition(".")[0]
            shown = render_object_docs(packages[name.removeprefix("watchroom.")], config)
            shown = shown.replace(f"# `{module}.", "# `")
            parts.append("\n".join(line.rstrip() for line in shown.splitlines()).strip() + "\n")
    return "\n".join(parts)


def main() -> int:
    page = render()
    if "--check" in sys.argv[1:]:
        is_same = PAGE.read_text("utf-8") == page
        print("docs/reference.md is up to date" if is_same else "run python docs/make_reference.py")
        return 0 if is_same else 1
    PAGE.write_text(page, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
