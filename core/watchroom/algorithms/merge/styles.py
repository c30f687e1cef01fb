"""The style of a text: its line ends, its final newline, and its byte order mark (BOM).

Styles are merged separately from the lines, so that a change of all line ends conflicts with no other edit.

    styles = merge_styles(base, current, incoming)
    text = styles.apply(join_regions(merge(base, current, incoming)))
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, TypeAlias, TypeVar

from watchroom.algorithms.merge.diff import unified_diff
from watchroom.texts import Catalogue

LineEnd: TypeAlias = Literal["lf", "crlf", "cr", "mixed"]
Value = TypeVar("Value")

BOM: Final = "\ufeff"
_BREAKS: Final = {"lf": "\n", "crlf": "\r\n", "cr": "\r"}


class TextStyle(NamedTuple):
    """The style of a text. A property is None if the text does not show it, for example in an empty text."""

    line_end: LineEnd | None
    has_final_newline: bool | None
    has_bom: bool | None

    def differs_from(self, other: TextStyle) -> bool:
        """Return whether the styles differ in a property that both texts show."""
        return any(
            mine is not None and theirs is not None and mine != theirs
            for mine, theirs in zip(self, other, strict=True)
        )

    def describe(self, texts: Catalogue) -> str:
        """Return a short description in the language of ``texts``, the core's catalogue."""
        parts = [texts(f"style.{self.line_end}")] if self.line_end else []
        if self.has_final_newline is False:
            parts.append(texts("style.no_final_newline"))
        if self.has_bom:
            parts.append(texts("style.bom"))
        return texts("style.separator").join(parts) or texts("style.none")


def detect_style(text: str) -> TextStyle:
    """Return the style of ``text``.

    A carriage return ends a line only before a line feed, or if the text has no line feeds.
    """
    lines = text.removeprefix(BOM)
    windows = lines.count("\r\n")
    others = lines.count("\n") - windows
    line_end: LineEnd | None
    if windows and others:
        line_end = "mixed"
    elif windows or others:
        line_end = "crlf" if windows else "lf"
    else:
        line_end = "cr" if "\r" in lines else None
    ends = lines.endswith("\r" if line_end == "cr" else "\n") if lines else None
    return TextStyle(line_end, ends, text.startswith(BOM) if text else None)


def normalize_style(text: str) -> str:
    """Return ``text`` in normal form: line feeds, a final newline, no BOM."""
    text = text.removeprefix(BOM)
    text = text.replace("\r\n", "\n") if "\n" in text else text.replace("\r", "\n")
    return text if not text or text.endswith("\n") else text + "\n"


def apply_style(text: str, style: TextStyle) -> str:
    """Convert ``text`` from normal form to ``style``. If the line ends are mixed, only add the BOM."""
    if not text:
        return text
    if style.has_final_newline is False and style.line_end != "mixed":
        text = text.removesuffix("\n")
    return (BOM if style.has_bom else "") + text.replace("\n", _BREAKS.get(style.line_end or "", "\n"))


class MergedStyles(NamedTuple):
    """The styles of the three texts of a merge.

    ``is_normal``: the texts are merged in normal form, because their styles differ.
    """

    base: TextStyle
    current: TextStyle
    incoming: TextStyle
    is_normal: bool

    @property
    def differ(self) -> bool:
        """Whether any two texts differ in style."""
        return (
            self.base.differs_from(self.current)
            or self.base.differs_from(self.incoming)
            or self.current.differs_from(self.incoming)
        )

    @property
    def merged(self) -> TextStyle:
        """The style of the merged text: each property from the side that changed it.

        If both sides changed a property differently, current wins, unless its line ends are mixed.
        """
        line_end: LineEnd | None = _merge_value(
            self.base.line_end, self.current.line_end, self.incoming.line_end
        )
        if line_end == "mixed" and self.incoming.line_end not in (None, self.base.line_end):
            line_end = self.incoming.line_end
        return TextStyle(
            line_end,
            _merge_value(
                self.base.has_final_newline, self.current.has_final_newline, self.incoming.has_final_newline
            ),
            _merge_value(self.base.has_bom, self.current.has_bom, self.incoming.has_bom),
        )

    def normalize(self, text: str) -> str:
        """Convert ``text`` to the form in which texts are merged.

        If the merged text has mixed line ends, all line ends stay unchanged.
        """
        if not self.is_normal:
            return text
        return text.removeprefix(BOM) if self.keeps_line_ends else normalize_style(text)

    def apply(self, text: str) -> str:
        """Convert ``text`` from normal form to the merged style."""
        return apply_style(text, self.merged) if self.is_normal else text

    def apply_offset(self, text: str, at: int) -> int:
        """Return the position to which `apply` moves the character at position ``at`` of ``text``."""
        style = self.merged
        if not self.is_normal:
            return at
        return at + bool(style.has_bom) + (text.count("\n", 0, at) if style.line_end == "crlf" else 0)

    @property
    def keeps_line_ends(self) -> bool:
        """Whether the lines keep the line ends of their texts."""
        return not self.is_normal or self.merged.line_end == "mixed"

    def with_current(self, text: str) -> MergedStyles:
        """Return the styles after the current text has changed to ``text``. Normal form is kept."""
        style = detect_style(text)
        if style.line_end == "mixed" and not self.keeps_line_ends:
            style = style._replace(line_end=self.current.line_end)
        after = self._replace(current=style)
        return after._replace(is_normal=self.is_normal or after.differ)


def merge_styles(base: str, current: str, incoming: str) -> MergedStyles:
    """Return the styles for a three-way merge. ``current`` and ``incoming`` are both based on ``base``."""
    styles = MergedStyles(detect_style(base), detect_style(current), detect_style(incoming), is_normal=False)
    return styles._replace(is_normal=styles.differ)


class StyledDiff(NamedTuple):
    """A unified ``diff``. ``styles``: the old and the new style, None if the diff already shows the change of
    style."""

    diff: str
    styles: tuple[TextStyle, TextStyle] | None


def diff_apart_from_style(old: str, new: str, old_name: str, new_name: str) -> StyledDiff:
    """Return a unified diff that ignores changes of all line ends or of the BOM; see `unified_diff`.

    If only the final newline changed, the diff shows it, as in git.
    """
    styles = merge_styles(old, old, new)
    before, after = styles.current, styles.incoming
    if not before._replace(has_final_newline=None).differs_from(after):
        return StyledDiff(unified_diff(old, new, old_name, new_name), None)
    diff = unified_diff(styles.normalize(old), styles.normalize(new), old_name, new_name)
    return StyledDiff(diff, (before, after))


def _merge_value(base: Value | None, current: Value | None, incoming: Value | None) -> Value | None:
    if current is None or incoming is None:
        return incoming if current is None else current
    return incoming if current == base else current
