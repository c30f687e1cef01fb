"""The command changes: print the differences from HEAD, by file and author."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from rich.cells import cell_len
from watchroom.features.overview.snapshots import read_model
from watchroom.features.trees.reads import AuthorChanges, ChangedFile
from watchroom.features.trees.rows import REPO, Tree
from watchroom.model import Json
from watchroom.texts import Catalogue
from watchroom_tui.formatters.columns import pad
from watchroom_tui.formatters.tree_changes import KIND_SIGNS, authors_line
from watchroom_tui.presentation.sanitize import sanitize

from watchroom_cli.arguments.workspace_argument import add_workspace_argument
from watchroom_cli.command import print_json
from watchroom_cli.history.tree_argument import choose_tree, open_trees


def declare_changes(parser: ArgumentParser, texts: Catalogue) -> None:
    add_workspace_argument(parser, texts)
    parser.add_argument("--tree", metavar="TREE", help=texts("cli.argument.tree"))
    parser.add_argument("--json", action="store_true", help=texts("cli.argument.json"))


def run_changes(args: Namespace, texts: Catalogue) -> int:
    with open_trees(args.dir, texts) as (workspace, reader):
        journal = workspace.journal
        model = read_model(journal, journal.last_seq())
        conflicts = {each.path for each in model.conflicts if each.zone == REPO}
        trees = [choose_tree(reader, args.tree, texts)] if args.tree else reader.list_trees()
        found = [(tree, reader.list_changes(tree.id, conflicts)) for tree in trees]
    if args.json:
        print_json({"trees": [_tree_as_json(*each) for each in found]}, indent=2)
        return 0
    for tree, files in found:
        if len(found) > 1:
            print(f"{sanitize(tree.branch or tree.head[:12])}  {sanitize(tree.folder)}")
        if not files:
            print(texts("cli.changes.none"))
        width = min(48, max((cell_len(sanitize(each.name)) for each in files), default=0))
        for file in files:
            _print_file(file, width, texts)
    return 0


def _print_file(file: ChangedFile, width: int, texts: Catalogue) -> None:
    authors = "".join(span.text for span in authors_line(file.authors))
    conflict = f"  ⚔ {texts('cli.changes.conflict')}" if file.has_conflict else ""
    print(f"{KIND_SIGNS[file.kind].text} {pad(sanitize(file.name), width)}  {authors}{conflict}".rstrip())


def _tree_as_json(tree: Tree, files: tuple[ChangedFile, ...]) -> dict[str, Json]:
    return {
        "tree": tree.id,
        "folder": tree.folder,
        "branch": tree.branch,
        "head": tree.head,
        "files": [_file_as_json(each) for each in files],
    }


def _file_as_json(file: ChangedFile) -> dict[str, Json]:
    return {
        "path": file.name,
        "change": file.kind,
        "version": file.head.version,
        "row": file.head.seq,
        "conflict": file.has_conflict,
        "authors": [_author_as_json(each) for each in file.authors],
    }


def _author_as_json(change: AuthorChanges) -> dict[str, Json]:
    author = change.author
    return {
        "name": author.name,
        "actor": author.actor,
        "grade": author.grade,
        "candidates": [*author.candidates],
        "added": change.added,
        "removed": change.removed,
    }
