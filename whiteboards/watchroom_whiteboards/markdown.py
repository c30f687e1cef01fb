"""The Markdown of boards: CommonMark with tables and strikethrough (BOARDS-3.2).

One rule differs from CommonMark: emphasis can begin and end next to Chinese, Japanese and Korean characters
without spaces, as in ``**状态：**进行中``. The rule comes from markdown-cjk-friendly.
"""

from __future__ import annotations

from functools import cache
from typing import Final
from unicodedata import category, east_asian_width

from markdown_it import MarkdownIt
from markdown_it.common.utils import isMdAsciiPunct, isPunctChar, isWhiteSpace
from markdown_it.parser_inline import ParserInline
from markdown_it.rules_block import StateBlock, blockquote, list_block
from markdown_it.rules_inline import StateInline
from markdown_it.rules_inline.state_inline import Scanned
from markdown_it.token import Token
from markdown_it.utils import EnvType

_MAX_LEVEL: Final = 18
"""The nesting level above which the marks of lists and quotes are text. A list takes two levels. At its own
limit of 20, markdown-it drops the rest of the text, so nine nested lists would hide it."""


def parser() -> MarkdownIt:
    """Return a new parser of the boards' Markdown. It parses HTML blocks, which are shown as text."""
    made = MarkdownIt()
    made.inline = _InlineParser()
    made.configure("commonmark").enable(["table", "strikethrough"])
    made.block.ruler.at("blockquote", _quote, {"alt": ["paragraph", "reference", "blockquote", "list"]})
    made.block.ruler.at("list", _list, {"alt": ["paragraph", "reference", "blockquote"]})
    return made


@cache
def block_parser() -> MarkdownIt:
    """Return a shared parser of blocks only, which is much faster. It does not parse the text in paragraphs,
    headings and cells; its ``inline`` attribute parses such text."""
    return parser().disable("inline")


def _quote(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    return (silent or state.level < _MAX_LEVEL) and blockquote(state, start, end, silent)


def _list(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    return (silent or state.level < _MAX_LEVEL) and list_block(state, start, end, silent)


class _InlineParser(ParserInline):
    def parse(self, src: str, md: MarkdownIt, env: EnvType, tokens: list[Token]) -> list[Token]:
        """Parse ``src`` into ``tokens`` like the base class, but with the emphasis rules of
        `_InlineState`."""
        state = _InlineState(src, md, env, tokens)
        self.tokenize(state)
        for rule in self.ruler2.getRules(""):
            rule(state)
        return state.tokens


class _InlineState(StateInline):
    """Finds the places where emphasis can begin and end. CJK punctuation counts as a letter. Other
    punctuation needs no space next to a CJK character."""

    def scanDelims(self, start: int, canSplitWord: bool) -> Scanned:  # noqa: N802, N803  # markdown-it's names
        found = super().scanDelims(start, canSplitWord)
        before = self.src[start - 1 : start] or " "
        after = self.src[start + found.length : start + found.length + 1] or " "
        if not canSplitWord or not (_is_cjk(before) or _is_cjk(after)):
            return found
        opens = not isWhiteSpace(ord(after)) and (not _is_foreign_mark(after) or _is_boundary(before))
        closes = not isWhiteSpace(ord(before)) and (not _is_foreign_mark(before) or _is_boundary(after))
        return Scanned(opens, closes, found.length)


def _is_boundary(character: str) -> bool:
    return isWhiteSpace(ord(character)) or _is_foreign_mark(character) or _is_cjk(character)


def _is_foreign_mark(character: str) -> bool:
    """Return whether ``character`` is punctuation other than CJK punctuation."""
    is_mark = isMdAsciiPunct(ord(character)) or isPunctChar(character)
    return is_mark and not _is_cjk(character)


def _is_cjk(character: str) -> bool:
    """Return whether ``character`` is a wide character other than an emoji."""
    return east_asian_width(character) in "FHW" and category(character) != "So"
