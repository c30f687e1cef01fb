"""Templates: texts and arguments with placeholders, filled from values and a seeded generator. Pure.

A placeholder is ``${NAME.FIELD.0|FILTER:ARGUMENT}``. If it is the whole text, its value keeps its type.
Inside a text, it becomes text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random
from typing import Final, cast

from watchroom.model import Json

PLACEHOLDER: Final = re.compile(r"\$\{([^{}]+)\}")
_COMPARISON: Final = re.compile(r"(.+?) (==|!=|>=|<|in) (.+)", re.DOTALL)
_MAX_DEPTH: Final = 8
"""Maximum nesting of texts."""
_MAX_TEXT: Final = 2_000_000


def placeholders(value: object) -> Iterator[str]:
    """Yield the expressions of all placeholders in ``value``, a text or a structure with texts."""
    if isinstance(value, str):
        yield from PLACEHOLDER.findall(value)
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from placeholders(each)
    elif isinstance(value, Sequence):
        for each in value:
            yield from placeholders(each)


class Template:
    """Fills placeholders.

    - ``values``: the values by name.
    - ``texts``: the templates of ``${text.NAME}``. From a list, one template is chosen at random.
    - ``files``: the texts of ``${file.NAME}``. Their placeholders are not filled.
    - ``random``: the generator.
    """

    def __init__(
        self,
        values: Mapping[str, Json],
        texts: Mapping[str, str | Sequence[str]],
        files: Mapping[str, str],
        random: Random,
    ) -> None:
        self.values = dict(values)
        self._texts = texts
        self._files = files
        self.random = random

    def fill(self, value: Json, depth: int = 0) -> Json:
        """Fill the placeholders in ``value``, and apply its edits. Return the result. An edit is a table with
        the key ``edit`` or ``edit_file``.

        ``depth``: the nesting depth of ``value``.
        """
        if isinstance(value, str):
            whole = PLACEHOLDER.fullmatch(value)
            if whole:
                return self._look_up(whole[1], depth)
            return PLACEHOLDER.sub(lambda match: as_text(self._look_up(match[1], depth)), value)
        if isinstance(value, Mapping):
            filled = {name: self.fill(each, depth) for name, each in value.items()}
            if "edit_file" in filled:
                filled = {**filled, "edit": self._files.get(as_text(filled["edit_file"]), "")}
            return edited(filled) if "edit" in filled else filled
        return [self.fill(each, depth) for each in value] if isinstance(value, list) else value

    def text(self, value: str | Sequence[str]) -> str:
        """Fill ``value``, a template or several templates to choose from at random. Return the text."""
        chosen = value if isinstance(value, str) else self.random.choice(value) if value else ""
        return as_text(self.fill(chosen))

    def holds(self, condition: str) -> bool:
        """Return whether ``condition`` is true: a placeholder, or a comparison of two values.

        Comparisons are ``==``, ``!=``, ``>=``, ``<`` and ``in``.
        """
        match = _COMPARISON.fullmatch(condition)
        if match is None:
            return bool(self.fill(condition))
        left, sign, right = self.fill(match[1]), match[2], self.fill(match[3])
        if sign in (">=", "<"):
            return (_number(left) >= _number(right)) == (sign == ">=")
        if sign == "in":
            return left in right if isinstance(right, list) else as_text(left) in as_text(right)
        return (as_text(left) == as_text(right)) == (sign == "==")

    def _look_up(self, expression: str, depth: int) -> Json:
        path, *filters = expression.split("|")
        root, *fields = path.strip().split(".")
        value: Json
        if depth > _MAX_DEPTH:
            return ""
        if root == "text":
            found = self._texts.get(".".join(fields), "")
            chosen = found if isinstance(found, str) else self.random.choice(found)
            value = self.fill(chosen, depth + 1)
        elif root == "file":
            value = self._files.get(".".join(fields), "")
        elif root == "number":
            value = self.random.randint(int(fields[0]), int(fields[1]))
        elif root == "other":
            value = self._chosen(self.values.get("others"))
        else:
            value = self.values.get(root)
            for field in fields:
                value = _field(value, field)
        for each in filters:
            name, _, argument = each.partition(":")
            if argument.startswith("@"):
                argument = as_text(self._look_up(argument[1:], depth + 1))
            value = self._chosen(value) if name == "pick" else FILTERS[name](value, argument)
        return "" if value is None else value

    def _chosen(self, value: Json) -> Json:
        return self.random.choice(value) if isinstance(value, list) and value else ""


def edited(edit: Mapping[str, Json]) -> str:
    """Apply an edit. Its keys:

    - ``edit``: the text.
    - ``replace``, ``by``: the first occurrence is replaced; with ``all``, every occurrence.
    - ``add``: a line to append, to the text or to the section ``under`` a heading.
    - ``keep``: the number of newest lines that the section keeps.
    """
    text = as_text(edit["edit"])
    if edit.get("replace"):
        text = text.replace(as_text(edit["replace"]), as_text(edit.get("by")), -1 if edit.get("all") else 1)
    if edit.get("add"):
        keep = edit.get("keep")
        text = _with_line(text, as_text(edit["add"]), as_text(edit.get("under")), keep)
    return text[:_MAX_TEXT]


def _with_line(text: str, line: str, heading: str, keep: Json) -> str:
    lines = text.rstrip("\n").split("\n")
    start = lines.index(heading) + 1 if heading in lines else 0
    if heading and not start:
        lines += ["", heading]
        start = len(lines)
    level = len(heading) - len(heading.lstrip("#"))
    ends = (at for at in range(start, len(lines)) if level and re.match(rf"#{{1,{level}}} ", lines[at]))
    end = next(ends, len(lines))
    while end > start and not lines[end - 1]:
        end -= 1
    if heading and end == start:
        lines[start:start] = [""]
        end = start = start + 1
    lines[end:end] = [line]
    entries = [at for at in range(start, end + 1) if lines[at]]
    if isinstance(keep, int):
        for at in reversed(entries[:-keep]):
            del lines[at]
    return "\n".join(lines) + "\n"


def as_text(value: Json) -> str:
    """Return ``value`` as text. The elements of a list are separated by commas."""
    if isinstance(value, list):
        return ", ".join(map(as_text, value))
    return "" if value is None else value if isinstance(value, str) else str(value)


def _field(value: Json, name: str) -> Json:
    if isinstance(value, Mapping):
        found: Json = value.get(name)
        return found
    if isinstance(value, list) and name.isdigit() and int(name) < len(value):
        return cast("list[Json]", value)[int(name)]
    return None


def _number(value: Json) -> float:
    """Return ``value`` as a number, 0 if it is not a number."""
    try:
        return float(as_text(value))
    except ValueError:
        return 0.0


def _match(value: Json, pattern: str) -> Json:
    found = re.search(pattern, as_text(value))
    return found[1] if found else ""


def _free_name(value: Json, name: str) -> Json:
    taken = {as_text(_field(each, "name")) for each in _list(value)}
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name}_{number}"
    return free


def _position_after(value: Json, line: str) -> Json:
    """Return the position after ``line`` and its line break, 0 if there is no such line."""
    at = f"\n{as_text(value)}".find(f"\n{line}\n")
    return at + len(line) + 1 if at >= 0 else 0


def _line_above(value: Json, heading: str) -> Json:
    """Return the start and the end of the last line before a heading, with its line break.

    Empty if there is no such line, or if it is another heading.
    """
    text = as_text(value)
    above = text[: max(f"\n{text}".find(f"\n{heading}\n"), 0)].rstrip("\n")
    start = above.rfind("\n") + 1
    return [start, len(above) + 1] if above[start:] and not above[start:].startswith("#") else ""


def _line_words(value: Json, _: str) -> Json:
    return " ".join(as_text(value).split())


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


FILTERS: Final[Mapping[str, Callable[[Json, str], Json]]] = {
    "match": _match,
    "count": lambda value, _: len(_list(value)),
    "free": _free_name,
    "after": _position_after,
    "above": _line_above,
    "end_of": lambda value, part: as_text(value).find(part) + len(part) if part in as_text(value) else "",
    "lines": lambda value, _: as_text(value).count("\n") + 1,
    "body": lambda value, _: as_text(value).partition("\n")[2].strip("\n"),
    "line": _line_words,
    "first": lambda value, _: as_text(value).strip().split("\n", 1)[0],
    "name": lambda value, _: as_text(value).rsplit("/", 1)[-1],
    "cut": lambda value, most: as_text(value)[: int(most)],
    "plus": lambda value, more: int(_number(value)) + int(more),
}
"""The filters by name. Each takes the value and its argument. ``pick`` is not here, because it is random."""
