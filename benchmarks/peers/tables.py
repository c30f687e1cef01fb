"""Comparisons as Markdown tables, and as JSON."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence

from peers.comparison import Comparison, Group, Row, Unit, Unmeasured

_UNEXPLAINED = "not known why"
_HEADER = "| | | theirs | Watchroom | theirs ÷ ours | rounds | |"
_SECONDS = ((1.0, "s"), (1e-3, "ms"), (0.0, "µs"))
_BYTES = ((1e6, "MB"), (1e3, "KB"), (0.0, "bytes"))


def render_markdown(measured: Mapping[Group, Sequence[Row]]) -> str:
    """Return a section with a table for each group, in Markdown."""
    return "\n\n".join(_section(group, rows) for group, rows in measured.items())


def render_json(machine: str, measured: Mapping[Group, Sequence[Row]]) -> str:
    """Return the ``machine``, and each group's comparisons and missing peers, as JSON."""
    groups = {
        group.name: [
            {**dataclasses.asdict(row), "ratio": row.ratio}
            if isinstance(row, Comparison)
            else dataclasses.asdict(row)
            for row in rows
        ]
        for group, rows in measured.items()
    }
    return json.dumps({"machine": machine, "groups": groups}, ensure_ascii=False, indent=2)


def _section(group: Group, rows: Sequence[Row]) -> str:
    lines = [f"## {group.title}", "", group.introduction]
    compared = [row for row in rows if isinstance(row, Comparison)]
    if compared:
        lines += ["", _HEADER, "|---|---|---:|---:|---:|---|---|"]
        lines += map(_line, compared)
    for row in rows:
        if isinstance(row, Unmeasured):
            lines += ["", f"{row.peer}: {row.reason}."]
    return "\n".join(lines)


def _line(row: Comparison) -> str:
    ratio = f"**{_number(row.ratio)}**" if row.is_behind else _number(row.ratio)
    low, high = min(row.ratios), max(row.ratios)
    spread = f"{_number(low)} to {_number(high)}" if len(row.ratios) > 1 else ""
    behind = f"We are behind: {row.behind or _UNEXPLAINED}" if row.is_behind else ""
    said = ". ".join(f"{each[0].upper()}{each[1:]}" for each in (row.remark, behind) if each)
    cells = (
        row.task,
        f"{row.peer} {row.version}",
        _quantity(row.theirs, row.unit),
        _quantity(row.ours, row.unit),
        ratio,
        spread,
        said,
    )
    return f"| {' | '.join(cells)} |"


def _quantity(value: float, unit: Unit) -> str:
    units = _SECONDS if unit == "s" else _BYTES
    size, name = next((size, name) for size, name in units if value >= size)
    return f"{_number(value / (size or units[0][0] / 1e6))} {name}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2g}"
