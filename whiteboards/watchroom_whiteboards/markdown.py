"""The Markdown that boards are written in: CommonMark with tables and struck-out text (spec 3 §3.2)."""

from __future__ import annotations

from markdown_it import MarkdownIt


def parser() -> MarkdownIt:
    """A parser of that Markdown. HTML is parsed, for it is shown as the text that it is."""
    return MarkdownIt("commonmark").enable(["table", "strikethrough"])
