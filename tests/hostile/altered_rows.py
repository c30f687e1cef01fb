"""Rows of a workspace, written again with something else in them: nearly valid, and so read further than random ones."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from random import Random
from typing import Any, Final

from hostile.rows import ACTORS, TOOLS, ZONES, HostileRow, hostile_paths
from watchroom.kernel.journal import Journal
from watchroom.model import OUTCOMES, Row

TEXTS: Final = (
    *("", "x", "zzz", "alice/", "{}", "[]", "null", "_to_", "a_to_b/", "alice/1/1", "x" * 5000, "-1"),
    *("\ud7ff", "a\nb", "config_invalid", "agent_cannot_answer", "top-layer"),
)
VALUES: Final[Sequence[Any]] = (
    *(None, True, False, 0, -1, 1, 2**63, 2**200, 1e308, float("inf"), float("nan"), -(2**63), 0.5),
    *("", "x", "alice", "ok", [], {}, [[]], {"a": 1}, [None], ["x", {}], [1, 2], [1, 2, 3], "\ud800"),
)
WRONG_JSON: Final = (
    "{",
    "x",
    "[]",
    "null",
    "1",
    '"s"',
    '{"a":',
    "[" * 200_000,
    '{"a":' * 3000,
    "NaN",
    "{}",
    "\\ud800",
)
FIELDS: Final = (
    *(
        "actor",
        "tool",
        "zone",
        "path",
        "outcome",
        "error",
        "message",
        "sha256",
        "size",
        "version",
        "base",
        "time",
    ),
    *("detail", "detail", "detail", "content", "content", "content"),
)


class RowChanger:
    """Writes rows of ``journal`` again, after its last one, with other values in some columns.

    ``kept``: the beginning of paths whose rows are left alone: what a reader has to show in the end.
    """

    def __init__(self, random: Random, journal: Journal, outside: Any, *, kept: str) -> None:
        self._random = random
        self._rows = [
            (row, journal.content(row.seq))
            for row in journal.rows(0, limit=10_000)
            if not row.path.startswith(kept)
        ]
        self._paths = [*{row.path for row, _ in self._rows}, *hostile_paths(outside)[-40:]]
        self._actors = [*{row.actor for row, _ in self._rows}, *ACTORS]
        self._tools = [*{row.tool for row, _ in self._rows}, *TOOLS]
        self._seq = journal.last_seq()
        self._heads: dict[tuple[str, str], int] = {}
        for row in journal.rows(0, limit=10_000):
            self._heads[row.zone, row.path] = max(self._heads.get((row.zone, row.path), 0), row.version or 0)

    def rows(self, count: int) -> Iterator[HostileRow]:
        """``count`` rows."""
        return (self._change(*self._random.choice(self._rows)) for _ in range(count))

    def _change(self, row: Row, content: str | None) -> HostileRow:
        pick = self._random
        self._seq += 1
        fields: dict[str, Any] = {**row._asdict(), "seq": self._seq, "content": content}
        fields["detail"] = fields.pop("detail_json")
        for name in pick.choices(FIELDS, k=pick.choice([0, 1, 1, 2, 2, 3])):
            fields[name] = self._value(name, fields[name])
        if fields["outcome"] != "ok":
            fields["version"] = None
        if fields["version"] is not None:
            fields["version"] = self._next_version(fields["zone"], fields["path"])
        for name in ("detail", "content"):
            if fields[name] is not None:
                data: bytes = fields[name].encode("utf-8", "replace")
                fields[name] = data if pick.random() > 0.01 else b"\xff\xfeA" + data
        return HostileRow(**fields)

    def _value(self, name: str, before: Any) -> Any:
        pick = self._random
        given: dict[str, Sequence[Any]] = {
            "actor": self._actors,
            "tool": self._tools,
            "zone": ZONES,
            "path": self._paths,
            "outcome": OUTCOMES,
            "error": TEXTS,
            "message": TEXTS,
            "sha256": (None, "x", "0" * 64),
            "size": (None, 0, -1, 2**62, 1),
            "base": (None, -1, 0, 1, 2**62, -(2**63)),
            "time": (0, -1, 2**63 - 1, -(2**63), before),
            "version": (None, 1),
        }
        if name in given:
            return pick.choice(given[name])
        if name == "content":
            return pick.choice([None, pick.choice(TEXTS), self._other_json(before or "")])
        return self._other_json(before)

    def _next_version(self, zone: str, path: str) -> int:
        head = self._heads.get((zone, path), 0)
        kind = self._random.random()
        version = head + 1 if kind < 0.85 else head + self._random.randrange(1, 5)
        self._heads[zone, path] = version if kind < 0.99 else min(head + 2**40, 2**62)
        return self._heads[zone, path]

    def _other_json(self, text: str) -> str:
        if self._random.random() < 0.12:
            return self._random.choice(WRONG_JSON)
        try:
            value = json.loads(text) if text else {}
        except (ValueError, RecursionError):
            return self._random.choice(["{}", "zzz", text[: len(text) // 2]])
        for _ in range(self._random.choice([1, 1, 2, 3])):
            value = self._alter(value, 0)
        return json.dumps(value, ensure_ascii=self._random.random() < 0.5)

    def _alter(self, value: Any, depth: int) -> Any:
        pick = self._random
        if depth and pick.random() < 0.25:
            return pick.choice(VALUES)
        if isinstance(value, dict):
            fields = value.items() if pick.random() < 0.9 else list(value.items())[:-1]
            other = {
                name: self._alter(each, depth + 1) if pick.random() < 0.5 else each for name, each in fields
            }
            names = (
                "need",
                "row",
                "actor",
                "task",
                "version",
                "status",
                "tokens",
                "kind",
                "resolves",
                "agents",
            )
            return other if pick.random() < 0.85 else {**other, pick.choice(names): pick.choice(VALUES)}
        if isinstance(value, list):
            items = [self._alter(each, depth + 1) if pick.random() < 0.5 else each for each in value]
            return items if pick.random() < 0.8 else [pick.choice(VALUES), *items[1:]]
        return value if pick.random() < 0.5 else pick.choice(VALUES)


def mixed(random: Random, several: Sequence[Iterator[HostileRow]]) -> Iterable[HostileRow]:
    """The rows of ``several``, renumbered so that they follow each other."""
    rows = [row for each in several for row in each]
    last = min(row.seq for row in rows)
    random.shuffle(rows)
    return (row._replace(seq=last + number) for number, row in enumerate(rows))
