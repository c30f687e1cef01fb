"""One line about what waits for a person, for status lines of terminals and prompts of shells. Pure."""

from __future__ import annotations

from typing import Final

from rich.cells import cell_len
from watchroom.features.overview.model import Model, urgent_needs
from watchroom.texts import LANGUAGES, Catalogue
from watchroom_tui.formatters.columns import fit
from watchroom_tui.formatters.labels import SUBJECT_WIDTH
from watchroom_tui.formatters.need_texts import need_sentence
from watchroom_tui.presentation.localization import load_texts
from watchroom_tui.presentation.sanitize import sanitize

MAX_CELLS: Final = 80
"""Maximum width of the line, in cells."""


def describe_status(model: Model, language: str) -> str:
    """Return `status_line` in ``language``, in English if the language is unknown."""
    return status_line(model, load_texts(next((each for each in LANGUAGES if each == language), "en")))


def status_line(model: Model, texts: Catalogue) -> str:
    """Return how many needs are open at the time of ``model``, how many agents wait if there are several, and
    what the most urgent need is. Empty if nothing waits.

    The line is plain text, without characters that tmux reads as styles.
    """
    needs = urgent_needs(model, model.time)
    if not needs:
        return ""
    waiting = sum(each.status(model.time) == "waiting" for each in model.agents)
    count = texts("status.need") if len(needs) == 1 else texts("status.needs", count=len(needs))
    if waiting > 1:
        count = texts("status.waiting", needs=count, count=waiting)
    what = sanitize(need_sentence(needs[0], texts, max_subject=SUBJECT_WIDTH))
    # Tmux reads styles and commands after this sign.
    line = texts("status.line", count=count, what=what).replace("#", "＃")
    return line if cell_len(line) <= MAX_CELLS else fit(line, MAX_CELLS).rstrip()
