"""The command diff: print the differences between two moments."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from contextlib import closing

from watchroom.features.overview.reads import UnreadableVersionError
from watchroom.history.comparison import PathDifference, read_changed_paths, read_differences, read_patch
from watchroom.kernel.journal import Journal
from watchroom.model import Json
from watchroom.texts import Catalogue
from watchroom_tui.formatters import labels

from watchroom_cli.arguments.known_names import check_paths
from watchroom_cli.arguments.time_argument import moment_range, open_journal
from watchroom_cli.arguments.workspace_argument import add_workspace_argument
from watchroom_cli.command import print_json
from watchroom_cli.output.table import format_table


def declare_diff(parser: ArgumentParser, texts: Catalogue) -> None:
    add_workspace_argument(parser, texts)
    parser.add_argument("paths", nargs="*", metavar="PATH", help=texts("cli.argument.diff_paths"))
    parser.add_argument("--from", dest="since", metavar="SEQ | TIME", help=texts("cli.argument.range_from"))
    parser.add_argument("--to", dest="until", metavar="SEQ | TIME", help=texts("cli.argument.range_to"))
    parser.add_argument("--patch", action="store_true", help=texts("cli.argument.diff_patch"))
    parser.add_argument("--json", action="store_true", help=texts("cli.argument.json"))


def run_diff(args: Namespace, texts: Catalogue) -> int:
    with closing(open_journal(args.dir)) as journal:
        after, until = moment_range(journal, args.since, args.until, texts)
        check_paths(journal, args.paths, texts)
        changed = read_changed_paths(journal, after, until, args.paths)
        shows_patch = args.patch or (bool(args.paths) and not args.json)
        found = list(read_differences(journal, changed))
        has_trees = labels.has_several_trees((each.zone, each.path) for each in changed)
        if args.json:
            paths = [_as_json(journal, each, shows_patch, has_trees) for each in found]
            print_json({"from": after, "to": until, "paths": paths}, indent=2)
        elif not found:
            print(texts("cli.diff.none", after=after, until=until))
        elif shows_patch:
            for each in found:
                _print_patch(journal, each, has_trees, texts)
        else:
            print("\n".join(format_table([_as_entry(each, texts) for each in found], texts)))
    return 0


def _print_patch(journal: Journal, found: PathDifference, has_trees: bool, texts: Catalogue) -> None:
    patch = _patch_of(journal, found, has_trees)
    if patch is None:
        name = f"{found.path.zone}/{found.path.path}"
        text = texts("cli.diff.no_text", path=name, before=found.path.before, version=found.path.last)
        # Not part of a patch, so it goes to standard error.
        print(text, file=sys.stderr)
    elif patch:
        print(patch, end="")


def _patch_of(journal: Journal, found: PathDifference, has_trees: bool) -> str | None:
    """Return the patch, None if a version is binary or unreadable."""
    try:
        return read_patch(journal, found.pair, has_trees=has_trees)
    except UnreadableVersionError:
        return None


def _as_json(journal: Journal, found: PathDifference, with_patch: bool, has_trees: bool) -> dict[str, Json]:
    path = found.path
    fields: dict[str, Json] = {
        "zone": path.zone,
        "path": path.path,
        "change": found.kind,
        "before": path.before,
        "version": path.last,
        "row": path.seq,
        "versions": path.versions,
        "actors": dict(path.actors),
        "added": found.added,
        "removed": found.removed,
    }
    return {**fields, "patch": _patch_of(journal, found, has_trees)} if with_patch else fields


def _as_entry(found: PathDifference, texts: Catalogue) -> dict[str, Json]:
    path = found.path
    return {
        "path": f"{path.zone}/{path.path}",
        "change": texts(f"change.{found.kind}"),
        "versions": path.versions,
        "added": found.added,
        "removed": found.removed,
        "by": ", ".join(f"{actor} {count}" for actor, count in path.actors),
    }
