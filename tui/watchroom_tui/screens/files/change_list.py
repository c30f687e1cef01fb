"""The list of files that differ from HEAD in the working trees, by file, agent or tree."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Final, Literal, NamedTuple, TypeAlias, get_args

from watchroom.features.trees.rows import Tree
from watchroom.features.trees.view import join_authors

from watchroom_tui.formatters.columns import Column
from watchroom_tui.formatters.styled_text import Line, Span
from watchroom_tui.formatters.tree_changes import (
    KIND_SIGNS,
    author_style,
    authors_line,
    branch_text,
    count_text,
)
from watchroom_tui.keys.actions import Scope, bindings
from watchroom_tui.presentation.localization import texts_of
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.widgets.item_list import ItemList

if TYPE_CHECKING:
    from watchroom.features.trees.reads import AuthorChanges, ChangedFile

Grouping: TypeAlias = Literal["file", "agent", "tree"]
GROUPINGS: Final[tuple[Grouping, ...]] = get_args(Grouping)


class ChangeItem(NamedTuple):
    """A line of the list: a changed file, or the head of a group of files.

    - ``group``: the name of the line's group, empty without groups.
    - ``file``: the changed file, None in the head of a group.
    - ``authors``: the authors of the line's changes.
    - ``files``: the number of files of the group, 0 for a file.
    """

    group: str
    file: ChangedFile | None
    authors: tuple[AuthorChanges, ...]
    files: int = 0

    @property
    def actors(self) -> list[str]:
        """The actors of the line's changes with the grade ``tool`` or ``window``."""
        named = (each.author for each in self.authors)
        return [each.actor for each in named if each.grade in ("tool", "window")]


class ChangeList(ItemList[ChangeItem]):
    """The files that differ from HEAD. A mark shows an open conflict, or a predicted conflict with another
    tree."""

    BINDINGS = [*bindings("list"), *bindings("changes")]  # noqa: RUF012  # as textual has it
    SCOPES: ClassVar[tuple[Scope, ...]] = ("list", "changes")
    COLUMNS: ClassVar = (
        Column(least=2),
        Column(least=12, cut="middle", grows=True),
        Column(least=8),
        Column(least=1),
        # With little space, the authors are more useful than the age.
        Column(least=4, align="right", from_width=64),
    )

    def __init__(self, *, title: str, empty: str, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002
        super().__init__(title=title, empty=empty, id=id, classes=classes)
        self._grouping: Grouping = "file"
        self._files: Sequence[ChangedFile] = ()
        self._trees: Mapping[str, Tree] = {}
        self._predicted: Collection[tuple[str, str]] = ()

    @property
    def files(self) -> Sequence[ChangedFile]:
        """All files that differ from HEAD."""
        return self._files

    def show_changes(
        self,
        trees: Iterable[Tree],
        files: Sequence[ChangedFile],
        predicted: Collection[tuple[str, str]] = (),
    ) -> None:
        """Show ``files`` of ``trees``. ``predicted``: the tree and name of each file with a predicted
        conflict with another tree."""
        self._predicted = predicted
        self._trees = {each.id: each for each in trees}
        self._files = files
        self._arrange_groups()

    def action_group(self) -> None:
        """Switch to the next grouping: file, agent, tree, file again."""
        self._grouping = GROUPINGS[(GROUPINGS.index(self._grouping) + 1) % len(GROUPINGS)]
        self._arrange_groups()
        self._retitle()

    def _arrange_groups(self) -> None:
        if self._grouping == "agent":
            self.show([*self._by_author()])
        elif self._grouping == "tree" or len({each.tree for each in self._files}) > 1:
            self.show([*self._by_tree()])
        else:
            self.show([ChangeItem("", each, each.authors) for each in self._files])

    def _by_author(self) -> Iterator[ChangeItem]:
        found: dict[tuple[str, tuple[str, ...]], list[tuple[ChangedFile, AuthorChanges]]] = {}
        for file in self._files:
            for each in file.authors:
                found.setdefault((each.author.actor, each.author.candidates), []).append((file, each))
        for changes in found.values():
            added, removed = sum(each.added for _, each in changes), sum(each.removed for _, each in changes)
            author = join_authors(each.author for _, each in changes)
            total = changes[0][1]._replace(author=author, added=added, removed=removed)
            yield ChangeItem(author.name, None, (total,), len(changes))
            for file, each in changes:
                yield ChangeItem(author.name, file, (each,))

    def _by_tree(self) -> Iterator[ChangeItem]:
        for tree in self._trees.values():
            mine = [each for each in self._files if each.tree == tree.id]
            yield ChangeItem(tree.id, None, (), len(mine))
            yield from (ChangeItem(tree.id, each, each.authors) for each in mine)

    def item_key(self, item: ChangeItem) -> Hashable:
        return (item.group, item.file.tree, item.file.name) if item.file else (item.group,)

    def move_to_file(self, path: str) -> bool:
        """Put the cursor on the file with the row path ``path``. Return False if the list lacks the file."""
        found = next((each for each in self.items if each.file and each.file.head.path == path), None)
        return found is not None and self.move_to(self.item_key(found))

    def move_to_tree(self, tree: str) -> bool:
        """Put the cursor on the first change in ``tree``. Return False if the list lacks the tree."""
        mine = next((each for each in self.items if each.file and each.file.tree == tree), None)
        head = next((each for each in self.items if each.file is None and each.group == tree), None)
        found = mine or head
        return found is not None and self.move_to(self.item_key(found))

    def title_text(self, title: str) -> str:
        return (
            title
            if self._grouping == "file"
            else f"{title} · {texts_of(self)(f'changes.by_{self._grouping}')}"
        )

    def cells(self, item: ChangeItem) -> Sequence[Line]:
        if item.file is None:
            return self._head_cells(item)
        file = item.file
        authors = authors_line(item.authors)
        if self._grouping == "agent":
            # The head of the group has the name, so that a file shows only the certainty.
            sign = "~ " if item.authors[0].author.grade == "window" else ""
            authors = [Span(sign + count_text(item.authors[0].added, item.authors[0].removed))]
        indent = "  " if item.group else " "
        return (
            [Span(indent), KIND_SIGNS[file.kind]],
            [Span(sanitize(file.name))],
            authors,
            [self._mark(file)],
            [Span(self.age_of(file.head), "dim")],
        )

    def _mark(self, file: ChangedFile) -> Span:
        """Return the mark of an open or predicted conflict of ``file``, empty without a conflict."""
        if file.has_conflict:
            return Span("⚔", "error")
        return Span("⚔" if (file.tree, file.name) in self._predicted else "", "warning")

    def _head_cells(self, item: ChangeItem) -> Sequence[Line]:
        texts = texts_of(self)
        files = Span(texts("changes.files", count=item.files), "dim")
        if item.authors:
            (total,) = item.authors
            name = Span(sanitize(item.group), f"{author_style(total.author)} strong")
            return ([Span("▾", "dim")], [name], [Span(count_text(total.added, total.removed))], (), [files])
        tree = self._trees[item.group]
        place = [Span(branch_text(tree), "strong"), Span(f"  {sanitize(tree.folder)}", "dim")]
        return ([Span("▾", "dim")], place, (), (), [files])

    def copy_text(self, item: ChangeItem) -> str:
        tree = self._trees.get(item.group)
        group = tree.folder if tree is not None else item.group
        return item.file.name if item.file is not None else group
