"""The table of a race: the work of each agent, and its cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from watchroom.errors import GitError
from watchroom.features.budgets.rows import UsageTotal
from watchroom.features.races.reads import EntryUsage, Race, RaceEntry, RaceReader
from watchroom.features.races.rows import ChangeCounts
from watchroom.model import Json
from watchroom.texts import Catalogue
from watchroom.workspace import Workspace
from watchroom_tui.formatters.columns import format_duration
from watchroom_tui.formatters.labels import cost_text, format_count
from watchroom_tui.presentation.sanitize import sanitize

from watchroom_cli.command import print_json
from watchroom_cli.output.table import format_table

if TYPE_CHECKING:
    from watchroom.agents.clients.race_run import RaceProgress


class _Line(NamedTuple):
    """The data of an agent in the table. ``changes``: None if unknown."""

    entry: RaceEntry
    changes: ChangeCounts | None
    usage: EntryUsage
    is_waiting: bool


def print_race(workspace: Workspace, race: Race, texts: Catalogue, *, as_json: bool = False) -> None:
    """Print the table of ``race``, the refs with work that was not picked, and how to pick."""
    reader = RaceReader(workspace.journal)
    found = [_read_line(workspace, reader, each) for each in race.entries]
    if as_json:
        agents: list[Json] = [_as_json(each) for each in found]
        picked = race.picked.entrant.number if race.picked is not None else None
        print_json({"race": race.name, "prompt": race.prompt, "picked": picked, "agents": agents}, indent=2)
        return
    for line in format_table([_as_entry(each, texts) for each in found], texts):
        print(line)
    for each in race.entries:
        if each.kept is not None:
            values = {"number": each.entrant.number, "ref": sanitize(each.kept.ref)}
            print(texts("cli.race.kept", **values))
    if race.picked is None and not any(each.state == "running" for each in race.entries):
        print(texts("cli.race.next", name=sanitize(race.name)))


def progress_lines(progress: Sequence[RaceProgress], texts: Catalogue) -> list[str]:
    """Return a line for each agent of a running race: its state, its time, and its changes."""
    return [progress_line(each, texts) for each in progress]


def progress_line(progress: RaceProgress, texts: Catalogue) -> str:
    """Return the line of one agent, see `progress_lines`."""
    entrant = progress.entry.entrant
    words = [
        sanitize(entrant.name),
        sanitize(entrant.client),
        texts(f"cli.race.state.{progress.state or ('waiting' if progress.is_waiting else 'running')}"),
        format_seconds(progress.seconds),
    ]
    if progress.changes is not None:
        words.append(texts("cli.race.changed", **progress.changes._asdict()))
    return "  ".join(words)


def format_seconds(seconds: float) -> str:
    """Return a duration in seconds for display."""
    return format_duration(0, round(seconds * 1e9))


def _read_line(workspace: Workspace, reader: RaceReader, entry: RaceEntry) -> _Line:
    is_waiting = entry.state == "running" and reader.is_waiting(entry)
    return _Line(entry, _find_changes(workspace, entry), reader.read_usage(entry), is_waiting)


def _find_changes(workspace: Workspace, entry: RaceEntry) -> ChangeCounts | None:
    """Return the changes of the agent: the recorded changes, else the changes in its tree now; None if
    unknown."""
    if entry.finish is not None and entry.finish.changes is not None:
        return entry.finish.changes
    try:
        return workspace.races.measure(entry)
    except GitError:
        # The agent changes files at this moment.
        return None


def _as_entry(line: _Line, texts: Catalogue) -> dict[str, Json]:
    entry, changes, usage = line.entry, line.changes, line.usage
    state = "picked" if entry.is_picked else "waiting" if line.is_waiting else entry.state
    return {
        "number": entry.entrant.number,
        "agent": ", ".join(usage.agents),
        "client": entry.entrant.client,
        "files": changes.files if changes else None,
        "added": changes.added if changes else None,
        "removed": changes.removed if changes else None,
        "check": _check_text(entry, texts),
        "cost": _cost_text(usage.total, texts),
        "time": format_seconds(entry.finish.seconds) if entry.finish else None,
        "state": texts(f"cli.race.state.{state}"),
    }


def _check_text(entry: RaceEntry, texts: Catalogue) -> str:
    check = entry.check
    if check is None:
        return texts("cli.race.check.missing") if entry.entrant.check else ""
    if check.status is None:
        return texts("cli.race.check.timeout")
    return texts("cli.race.check.failed" if check.status else "cli.race.check.passed", status=check.status)


def _cost_text(used: UsageTotal, texts: Catalogue) -> str:
    """Return the cost. Tokens without a price cost something, so no amount is shown for them."""
    if not used.tokens:
        return ""
    if used.known_cost is None:
        return texts("cli.race.unpriced", tokens=format_count(used.tokens))
    return cost_text(used)


def _as_json(line: _Line) -> dict[str, Json]:
    entry, changes, usage = line.entry, line.changes, line.usage
    entrant, finish, check, kept = entry.entrant, entry.finish, entry.check, entry.kept
    return {
        "number": entrant.number,
        "agents": [*usage.agents],
        "client": entrant.client,
        "tree": entrant.name,
        "folder": entrant.folder,
        "state": entry.state,
        "waiting": line.is_waiting,
        "status": finish.status if finish else None,
        "seconds": round(finish.seconds, 3) if finish else None,
        "files": changes.files if changes else None,
        "added": changes.added if changes else None,
        "removed": changes.removed if changes else None,
        "check": None if check is None else {**check.detail},
        "tokens": usage.total.tokens,
        "cost": usage.total.known_cost if usage.total.tokens else None,
        "unpriced": usage.total.unpriced,
        "picked": entry.is_picked,
        "ref": kept.ref if kept else None,
    }
