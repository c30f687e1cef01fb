"""A screen with the newest operations that were refused."""

from watchroom.features.overview.model import Model
from watchroom.kernel.journal import Journal
from watchroom_tui.readers.plugin_screens import ScreenPlugin, ScreenTable

COLUMNS = ("Row", "Time", "Who", "Tool", "Path", "Reason")
MAX_READ = 2000


def read_refusals(model: Model, journal: Journal) -> ScreenTable:
    """Return the refused operations among the newest rows up to the shown moment, newest first."""
    rows = journal.rows(max(0, model.seq - MAX_READ), until=model.seq, limit=MAX_READ)
    refused = [row for row in reversed(rows) if row.outcome != "ok"]
    cells = [(str(row.seq), row.timestamp, row.actor, row.tool, row.path, row.error) for row in refused]
    return ScreenTable(COLUMNS, cells)


SCREEN = ScreenPlugin({"en": "Refusals", "zh": "被拒绝的操作"}, read_refusals, key="f6")
