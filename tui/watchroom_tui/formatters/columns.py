"""Text in columns. Widths are in terminal cells, so that wide characters keep columns aligned. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

from rich.cells import cell_len, chop_cells, set_cell_size

BARS: Final = " ▁▂▃▄▅▆▇█"
_SEPARATORS: Final = "/\\_-."
"""Characters after which a long word may be split."""
_CLOSING: Final = "，。、；：？！）》」』”’…·%,.;:?!)]} "  # Chinese punctuation
"""Characters that no line begins with."""
_OPENING: Final = "（《「『“‘([{"  # Chinese punctuation
"""Characters that no line ends with."""
_MAX_STEPS_BACK: Final = 8
"""Maximum number of characters between the edge and a break beside a wide character."""


class Column(NamedTuple):
    """A column of a list.

    - ``least``: minimum number of cells if space is short.
    - ``most``: maximum number of cells.
    - ``cut``: where long texts are cut.
    - ``grows``: whether the column gets the remaining cells.
    - ``from_width``: minimum number of cells of the list. Narrower lists leave the column out.
    - ``optional``: whether to leave the column out unless all texts fit beside it.
    """

    least: int = 0
    most: int = 1000
    align: Literal["left", "right"] = "left"
    cut: Literal["end", "middle"] = "end"
    grows: bool = False
    from_width: int = 0
    optional: bool = False


def share_width(columns: Sequence[Column], needs: Sequence[int], width: int) -> list[int]:
    """Return the number of cells of each column in a list of ``width`` cells. The number is 0 for columns
    that are left out.

    ``needs``: the width of the widest text of each column. The widest columns shrink first if space is short,
    so that no text is cut beside blank cells.
    """
    wanted = [
        min(need, column.most) if width >= column.from_width else 0
        for column, need in zip(columns, needs, strict=True)
    ]
    for at, column in enumerate(columns):
        if column.optional and sum(wanted) + _blanks(wanted) > width:
            wanted[at] = 0
    least = [min(column.least, want) for column, want in zip(columns, wanted, strict=True)]
    free = width - _blanks(wanted)
    shares = wanted
    widest = max(wanted, default=0)
    while sum(shares) > free and widest > 0:
        widest -= 1
        shares = [min(want, max(low, widest)) for want, low in zip(wanted, least, strict=True)]
    growing = next((at for at, each in enumerate(columns) if each.grows and shares[at]), None)
    # Cells can be left over, because one step of the loop can shrink several columns.
    left = free - sum(shares)
    if growing is not None and left > 0:
        shares = [share + left * (at == growing) for at, share in enumerate(shares)]
    return shares


def _blanks(widths: Sequence[int]) -> int:
    """Return the number of cells between columns of these widths."""
    return max(0, sum(map(bool, widths)) - 1)


def fit(text: str, width: int, align: Literal["left", "right"] = "left") -> str:
    """Return ``text`` in exactly ``width`` cells: padded, or cut at its end with an ellipsis."""
    if width <= 0:
        return ""
    length = cell_len(text)
    if length > width:
        return set_cell_size(text, width - 1) + "…"
    return text + " " * (width - length) if align == "left" else " " * (width - length) + text


def pad(text: str, width: int, align: Literal["left", "right"] = "left") -> str:
    """Return ``text`` in at least ``width`` cells. Longer texts are not cut."""
    return text if cell_len(text) >= width else fit(text, width, align)


def fit_path(path: str, width: int) -> str:
    """Return ``path`` in exactly ``width`` cells. Leave out folders before the name, so that names can be
    distinguished. Cut the first folder if it does not fit. Cut a longer name, or another text, in its
    middle."""
    if cell_len(path) <= width or width < 5:
        return fit(path, width)
    *folders, name = path.split("/")
    free = width - cell_len(name) - 2
    if folders and free >= 0 and " " not in path:
        for kept in range(len(folders) - 1, 0, -1):
            shorter = "/".join([*folders[:kept], "…", name])
            if cell_len(shorter) <= width:
                return fit(shorter, width)
        return fit(f"{set_cell_size(path, free)}…/{name}", width)
    tail_width = (width - 1) * 2 // 3
    name_width = cell_len(path[path.rfind("/") :])
    if tail_width < name_width <= width - 2:
        tail_width = name_width
    tail = path
    while cell_len(tail) > tail_width:
        tail = tail[1:]
    return fit(set_cell_size(path, width - 1 - cell_len(tail)) + "…" + tail, width)


def format_age(then: int, now: int) -> str:
    """Return the age as ``12 s``, ``4 m``, ``3 h`` or ``2 d``. Both times are nanoseconds since the epoch."""
    seconds = max(0, (now - then) // 1_000_000_000)
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def sparkline(counts: Sequence[int], width: int) -> str:
    """Return ``counts`` as ``width`` bars, the newest at the right. Zero is blank."""
    if width <= 0:
        return ""
    chunk = max(1, -(-len(counts) // width))
    sums = [sum(counts[max(0, end - chunk) : end]) for end in range(len(counts), 0, -chunk)][:width]
    highest = max(sums, default=0)
    steps = len(BARS) - 1
    bars = [BARS[0] if not each else BARS[max(1, round(each / highest * steps))] for each in reversed(sums)]
    return "".join(bars).rjust(width)


def size(count: int | None) -> str:
    """Return a number of bytes as ``812 B``, ``3.4 KB`` or ``1.2 MB``."""
    if count is None:
        return "–"
    if count < 1000:
        return f"{count} B"
    return f"{count / 1000:.1f} KB" if count < 999_950 else f"{count / 1_000_000:.1f} MB"


def wrap(text: str, width: int, *, first: int | None = None) -> list[str]:
    """Split ``text`` into pieces of at most ``width`` cells, after a space if the next word fits into one
    piece. Longer words, such as paths, are split after a separator if one is near the edge. Chinese text is
    split between any two characters, except before closing and after opening punctuation.

    ``first``: the width of the first piece, if the piece continues a line. The first piece then ends after
    any space. Return the text in one piece if ``width`` is below 2.
    """
    if width < 2:
        return [text]
    pieces: list[str] = []
    start = 0
    space = width if first is None else first
    is_plain = text.isascii()
    while True:
        # Only a part of the rest, because a line may be megabytes long.
        near = text[start : start + space + 1]
        if cell_len(near) <= space:
            if start + len(near) == len(text):
                return [*pieces, near]
            # Zero-width characters such as accents leave space for more.
            near = text[start : start + 4 * space]
        head = (near[:space] if is_plain else (chop_cells(near, space) or [near])[0]) if space > 1 else ""
        is_rest_of_line = first is not None and not pieces and first < width
        length = _find_break(text, start, len(head), width, is_rest_of_line=is_rest_of_line)
        pieces.append(head[:length])
        start += length
        space = width


def _find_break(text: str, start: int, length: int, width: int, *, is_rest_of_line: bool) -> int:
    """Return the length of the next piece of ``text``. ``length`` is the number of characters from ``start``
    on that fit."""
    end = start + length
    word = text.rfind(" ", start, end) + 1 - start
    wide = _find_wide_break(text, start, end)
    if wide > max(word, 0):
        return wide
    if word > 0 or is_rest_of_line:
        next_space = text.find(" ", end, start + word + width + 1)
        if next_space < 0 and len(text) <= start + word + width:
            next_space = len(text)
        fits = next_space >= 0 and cell_len(text[start + word : next_space]) <= width
        if fits or (is_rest_of_line and word > 0) or word > length * 2 // 3:
            return word
    separator = max(text.rfind(each, start, end) for each in _SEPARATORS) + 1 - start
    return separator if separator > length // 2 else length


def _find_wide_break(text: str, start: int, end: int) -> int:
    """Return the length of the longest piece from ``start`` that ends beside a wide character, at ``end`` or
    shortly before it. 0 if there is none."""
    for at in range(min(end, len(text) - 1), max(start, end - _MAX_STEPS_BACK), -1):
        before, after = text[at - 1], text[at]
        is_wide = cell_len(before) > 1 or cell_len(after) > 1
        if is_wide and before not in _OPENING and after not in _CLOSING:
            return at - start
    return 0


def format_duration(start: int, end: int) -> str:
    """Return the duration as ``0.4 s``, ``12 s`` or ``4 m``. Both times are nanoseconds since the epoch."""
    tenths = max(0, end - start) // 100_000_000
    return format_age(start, end) if tenths >= 100 else f"{tenths / 10:.1f} s"
