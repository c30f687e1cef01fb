"""The command search: find texts, messages and calls by words."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from contextlib import closing
from threading import Event
from typing import Final, get_args

from watchroom.errors import JournalError
from watchroom.history.search import Hit, SearchIndex, SearchQuery, SearchResult, open_index
from watchroom.kernel.journal import Journal
from watchroom.model import Json, Zone
from watchroom.texts import Catalogue
from watchroom_tui.formatters.local_time import zoned_time
from watchroom_tui.formatters.search_hit import excerpt_line, place_of
from watchroom_tui.presentation.sanitize import sanitize

from watchroom_cli.arguments.known_names import check_actor
from watchroom_cli.arguments.time_argument import moment_range, open_journal
from watchroom_cli.arguments.workspace_argument import add_workspace_argument
from watchroom_cli.command import add_utc_argument, print_json

_INDEX_SECONDS: Final = 10.0
"""Max seconds to index missing rows before the search."""


def declare_search(parser: ArgumentParser, texts: Catalogue) -> None:
    add_workspace_argument(parser, texts)
    parser.add_argument("words", nargs="+", metavar="WORDS", help=texts("cli.argument.search_words"))
    parser.add_argument("--agent", help=texts("cli.argument.search_agent"))
    parser.add_argument("--zone", choices=get_args(Zone))
    parser.add_argument("--from", dest="since", metavar="SEQ | TIME", help=texts("cli.argument.range_from"))
    parser.add_argument("--to", dest="until", metavar="SEQ | TIME", help=texts("cli.argument.range_to"))
    parser.add_argument("--limit", type=int, default=50, help=texts("cli.argument.limit"))
    parser.add_argument("--best", action="store_true", help=texts("cli.argument.search_best"))
    parser.add_argument("--json", action="store_true", help=texts("cli.argument.json"))
    add_utc_argument(parser, texts)


def run_search(args: Namespace, texts: Catalogue) -> int:
    with closing(open_journal(args.dir)) as journal:
        after, until = moment_range(journal, args.since, args.until, texts)
        query = SearchQuery(
            " ".join(args.words),
            args.agent,
            args.zone,
            after,
            None if args.until is None else until,
            args.limit,
            "best" if args.best else "newest",
        )
        index = open_index(args.dir)
        # Refuse an invalid query before indexing.
        index.search(journal, query)
        _catch_up(index, journal, texts)
        found = index.search(journal, query)
        if args.agent is not None and not found.hits:
            check_actor(journal, args.agent)
    if args.json:
        print_json(_as_json(found), indent=2)
        return 0
    for hit in found.hits:
        _print_hit(hit)
    for note in _notes(found, texts):
        print(note, file=sys.stderr)
    return 0


def _catch_up(index: SearchIndex, journal: Journal, texts: Catalogue) -> None:
    """Index missing rows for at most `_INDEX_SECONDS`, unless another process indexes them."""
    try:
        index.index_missing(journal, Event(), share=1.0, seconds=_INDEX_SECONDS)
    except JournalError as error:
        # The indexed part can be searched even if the disk is read-only.
        print(f"watchroom: {texts('cli.search.not_indexed', reason=sanitize(str(error)))}", file=sys.stderr)


def _print_hit(hit: Hit) -> None:
    row = hit.row
    print(f"{zoned_time(row.time)}  {sanitize(row.actor)}  {place_of(hit)}  #{row.seq}")
    line, matches = excerpt_line(hit)
    shown, at = "", 0
    for start, end in matches:
        shown += f"{line[at:start]}«{line[start:end]}»"
        at = end
    print(f"    {shown}{line[at:]}".rstrip())


def _notes(found: SearchResult, texts: Catalogue) -> list[str]:
    notes = [] if found.hits else [texts("search.none")]
    if found.has_more:
        notes.append(texts("cli.search.more", count=len(found.hits)))
    if found.is_cut_off:
        notes.append(texts("search.cut_off"))
    if found.is_behind:
        notes.append(texts("search.behind", indexed=found.indexed, last=found.last))
    if found.oldest > 1 and found.indexed:
        notes.append(texts("search.oldest", oldest=found.oldest))
    return notes


def _as_json(found: SearchResult) -> dict[str, Json]:
    return {
        "indexed": found.indexed,
        "last": found.last,
        "oldest": found.oldest,
        "more": found.has_more,
        "cut_off": found.is_cut_off,
        "hits": [_hit_as_json(hit) for hit in found.hits],
    }


def _hit_as_json(hit: Hit) -> dict[str, Json]:
    row = hit.row
    return {
        "row": row.seq,
        "time": row.timestamp,
        "actor": row.actor,
        "tool": row.tool,
        "zone": row.zone,
        "path": row.path,
        "version": row.version,
        "outcome": row.outcome,
        "line": hit.line or None,
        "excerpt": hit.excerpt,
        "matches": [[*place] for place in hit.matches],
    }
