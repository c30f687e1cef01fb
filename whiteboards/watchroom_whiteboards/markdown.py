"""The Markdown that boards are written in: CommonMark with tables and struck-out text (BOARDS-3.2)."""

from __future__ import annotations

from functools import cache
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock, blockquote, list_block

_DEEPEST: Final = 18
"""At this level lists and quotes begin no more: their marks are text. A list takes two levels. At its own
limit (20) markdown-it drops all the rest of the text, so that nine lists within each other would hide it."""


def parser() -> MarkdownIt:
    """A new parser of the boards' Markdown. HTML is parsed as such, since it is shown as text."""
    made = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    made.block.ruler.at("blockquote", _quote, {"alt": ["paragraph", "reference", "blockquote", "list"]})
    made.block.ruler.at("list", _list, {"alt": ["paragraph", "reference", "blockquote"]})
    return made


@cache
def block_parser() -> MarkdownIt:
    """A shared parser of blocks only, much quicker: the text inside paragraphs, headings and cells stays
    unparsed. Its ``inline`` attribute parses such text."""
    return parser().disable("inline")


def _quote(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    return (silent or state.level < _DEEPEST) and blockquote(state, start, end, silent)


def _list(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    return (silent or state.level < _DEEPEST) and list_block(state, start, end, silent)
