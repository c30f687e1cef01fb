"""The style of a text: its line ends, its final newline, and its byte order mark.

It is merged apart from the lines, so that a side that changed every line end conflicts with no edit. Pure.

    styles = merge_styles(base, current, incoming)
    text = styles.apply(join_regions(merge(base, current, incoming)))
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, TypeAlias, TypeVar

from watchroom.merge.line_diff import unified_diff
from watchroom.texts import Catalogue

LineEnd: TypeAlias = Literal["lf", "crlf", "cr", "mixed"]
Value = TypeVar("Value")

BOM: Final = "\ufeff"
_BREAKS: Final = {"lf": "\n", "crlf": "\r\n", "cr": "\r"}


class TextStyle(NamedTuple):
    """The style of one text; None for what the text does not show, as an empty text shows nothing."""

    line_end: LineEnd | None
    has_final_newline: bool | None
    has_bom: bool | None

    def differs_from(self, other: TextStyle) -> bool:
        """Whether both texts show something different."""
        return any(
            mine is not None and theirs is not None and mine != theirs
            for mine, theirs in zip(self, other, strict=True)
        )

    def describe(self, texts: Catalogue) -> str:
        """The style in a few words of ``texts``, the catalogue of the core."""
        parts = [texts(f"style.{self.line_end}")] if self.line_end else []
        if self.has_final_newline is False:
            parts.append(texts("style.no_final_newline"))
        if self.has_bom:
            parts.append(texts("style.bom"))
        return texts("style.separator").join(parts) or texts("style.none")


def style_of(text: str) -> TextStyle:
    """The style of ``text``. A carriage return ends a line only before a line feed, or where the text has no
    line feed."""
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
    """``text`` with line feeds, a final newline and no byte order mark."""
    text = text.removeprefix(BOM)
    text = text.replace("\r\n", "\n") if "\n" in text else text.replace("\r", "\n")
    return text if not text or text.endswith("\n") else text + "\n"


def apply_style(text: str, style: TextStyle) -> str:
    """``text``, which is in normal form, in ``style``. With mixed line ends only the byte order mark is
    added."""
    if not text:
        return text
    if style.has_final_newline is False and style.line_end != "mixed":
        text = text.removesuffix("\n")
    return (BOM if style.has_bom else "") + text.replace("\n", _BREAKS.get(style.line_end or "", "\n"))


class MergedStyles(NamedTuple):
    """The styles of three texts. If they differ, `merge` works on the normal form of the texts, with line
    feeds, a final newline and no byte order mark: ``is_normal``."""

    base: TextStyle
    current: TextStyle
    incoming: TextStyle
    is_normal: bool

    @property
    def differ(self) -> bool:
        """Whether any two of the texts differ in style."""
        return (
            self.base.differs_from(self.current)
            or self.base.differs_from(self.incoming)
            or self.current.differs_from(self.incoming)
        )

    @property
    def merged(self) -> TextStyle:
        """For each property the value of the side that changed it. If both did so differently, the current
        one; mixed line ends give way."""
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
        """``text``, one of the three or a newer one, in normal form. If the merged text has mixed line ends,
        all ends stay as they are."""
        if not self.is_normal:
            return text
        return text.removeprefix(BOM) if self.keeps_line_ends else normalize_style(text)

    def apply(self, text: str) -> str:
        """``text``, which is in normal form, in the merged style."""
        return apply_style(text, self.merged) if self.is_normal else text

    def apply_offset(self, text: str, at: int) -> int:
        """Where the character at the offset ``at`` of ``text`` is after `apply`."""
        style = self.merged
        if not self.is_normal:
            return at
        return at + bool(style.has_bom) + (text.count("\n", 0, at) if style.line_end == "crlf" else 0)

    @property
    def keeps_line_ends(self) -> bool:
        """Whether lines have the ends that they have in the texts."""
        return not self.is_normal or self.merged.line_end == "mixed"

    def with_current(self, text: str) -> MergedStyles:
        """The styles after the current text has become ``text``. What is in normal form stays so."""
        style = style_of(text)
        if style.line_end == "mixed" and not self.keeps_line_ends:
            style = style._replace(line_end=self.current.line_end)
        after = self._replace(current=style)
        return after._replace(is_normal=self.is_normal or after.differ)


def merge_styles(base: str, current: str, incoming: str) -> MergedStyles:
    """The styles of a three-way merge of the texts ``current`` and ``incoming``, both made from ``base``."""
    styles = MergedStyles(style_of(base), style_of(current), style_of(incoming), is_normal=False)
    return styles._replace(is_normal=styles.differ)


class StyledDiff(NamedTuple):
    """A unified ``diff``. ``styles``: of the old and the new text, None if the diff shows the change of style
    itself."""

    diff: str
    styles: tuple[TextStyle, TextStyle] | None


def diff_apart_from_style(old: str, new: str, old_name: str, new_name: str) -> StyledDiff:
    """The changes from ``old`` to ``new`` as `unified_diff`. If all line ends changed, or the byte order mark
    did, the diff is that of the normal forms. A final newline alone is shown in the diff, as git does."""
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
