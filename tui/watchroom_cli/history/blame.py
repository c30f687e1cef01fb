"""The command blame: print the author of each line of a file in a working tree."""

from __future__ import annotations

import os
import sys
import time
import uuid
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence

import watchroom
from rich.cells import cell_len
from watchroom.features.trees.agent_trace import build_trace
from watchroom.features.trees.reads import FileLine, TreeReader
from watchroom.features.trees.rows import Tree
from watchroom.model import Json
from watchroom.texts import Catalogue
from watchroom_tui.formatters.columns import fit
from watchroom_tui.formatters.local_time import local_time
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.presentation.usage import WrongUsage

from watchroom_cli.arguments.workspace_argument import add_workspace_argument
from watchroom_cli.command import add_utc_argument, print_json
from watchroom_cli.history.tree_argument import choose_tree, open_trees


def declare_blame(parser: ArgumentParser, texts: Catalogue) -> None:
    add_workspace_argument(parser, texts)
    parser.add_argument("path", nargs="?", metavar="PATH", help=texts("cli.argument.blame_path"))
    parser.add_argument("--tree", metavar="TREE", help=texts("cli.argument.tree"))
    parser.add_argument("--agent-trace", metavar="FILE", help=texts("cli.argument.agent_trace"))
    parser.add_argument("--json", action="store_true", help=texts("cli.argument.json"))
    add_utc_argument(parser, texts)


def run_blame(args: Namespace, texts: Catalogue) -> int:
    if bool(args.path) == bool(args.agent_trace):
        raise WrongUsage(texts("cli.blame.which"))
    with open_trees(args.dir, texts) as (_, reader):
        if args.agent_trace:
            return _export(reader, args, texts)
        tree, name = _find(reader, args, texts)
        found = reader.read_file(tree.id, name)
    if found.text is None:
        raise WrongUsage(texts("cli.blame.no_text", path=sanitize(args.path)))
    if args.json:
        lines = [_as_json(number, each) for number, each in enumerate(found.lines, 1)]
        print_json({"tree": tree.id, "path": name, "lines": lines}, indent=2)
        return 0
    for line in _format(found.lines):
        print(line)
    return 0


def _find(reader: TreeReader, args: Namespace, texts: Catalogue) -> tuple[Tree, str]:
    if args.tree is not None:
        return choose_tree(reader, args.tree, texts), os.path.normpath(args.path)
    found = reader.find_file(args.path)
    if found is None:
        raise WrongUsage(texts("cli.blame.no_file", path=sanitize(args.path)))
    return found


def _format(lines: Sequence[FileLine]) -> Iterator[str]:
    """Yield the lines for people: author, time, number, text, and a plus sign for uncommitted lines."""
    width = min(24, max((cell_len(each.author.name) for each in lines), default=0))
    digits = len(str(len(lines)))
    for number, line in enumerate(lines, 1):
        when = local_time(line.row.time) if line.row is not None else ""
        sign = " " if line.is_committed else "+"
        name = fit(sanitize(line.author.name), width)
        yield f"{name}  {when:<19}  {number:>{digits}} {sign} {sanitize(line.text)}".rstrip()


def _as_json(number: int, line: FileLine) -> dict[str, Json]:
    row, author = line.row, line.author
    return {
        "line": number,
        "author": author.name,
        "actor": author.actor or None,
        "grade": author.grade,
        "candidates": [*author.candidates],
        "version": row.version if row is not None else None,
        "row": row.seq if row is not None else None,
        "time": row.timestamp if row is not None else None,
        "committed": line.is_committed,
        "text": line.text,
    }


def _export(reader: TreeReader, args: Namespace, texts: Catalogue) -> int:
    """Write the authors of a tree's lines in the format of Agent Trace."""
    tree = choose_tree(reader, args.tree, texts)
    files = ((name, reader.read_file(tree.id, name).lines) for name in reader.list_names(tree.id))
    record = build_trace(
        files,
        record_id=uuid.uuid4(),
        time=time.time_ns(),
        head=tree.head,
        version=watchroom.__version__,
    )
    if args.agent_trace == "-":
        print_json(record, indent=2)
        return 0
    import json

    with open(args.agent_trace, "w", encoding="utf-8") as file:
        json.dump(record, file, indent=2, ensure_ascii=False)
        file.write("\n")
    count = len(record["files"]) if isinstance(record["files"], list) else 0
    print(texts("cli.blame.exported", count=count, file=sanitize(args.agent_trace)), file=sys.stderr)
    return 0
