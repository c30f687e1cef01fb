"""Write a report on the rows between two moments into a file."""

from __future__ import annotations

import asyncio
import json
import os
import re
from typing import Final

from watchroom.errors import WatchroomError
from watchroom.history.report import read_report

from watchroom_tui.context import Dashboard
from watchroom_tui.dialogs.text_input import TextDraft, enter_text
from watchroom_tui.formatters.report_formats import as_html, as_json, as_markdown
from watchroom_tui.formatters.report_page import lay_out_report
from watchroom_tui.presentation.sanitize import sanitize

_NAME: Final = re.compile(r"[\w][\w .+-]{0,99}\.(md|html|json)")
"""Pattern for file names without a folder, because a dashboard in a browser must not reach other folders."""
_DRAFT: Final = "report"


async def write_report(app: Dashboard, after: int, until: int) -> None:
    """Ask for a file name, and write a report on the rows after ``after`` up to ``until`` into the file.
    Await this in a worker.

    The extension selects Markdown, HTML or JSON. The file is created in the folder in which the dashboard was
    started. Existing files are never replaced.
    """
    texts = app.texts
    if not app.may_act:
        app.show_message(texts("report.only_looking"), "warning")
        return
    draft = TextDraft(_DRAFT, texts("report.writing"), f"report-{after}-{until}.md")
    name = await enter_text(app, draft, texts("report.writing"), texts("report.name_hint"))
    app.drafts.drop(TextDraft, _DRAFT)
    if name is None:
        return
    name = name.strip()
    if not _NAME.fullmatch(name):
        app.show_message(texts("report.bad_name", name=sanitize(name[:100])), "warning")
        return
    try:
        path = await asyncio.to_thread(_write, app, after, until, name)
    except WatchroomError as error:
        app.show_message(f"{error.message(app.language)} {error.suggestion(app.language)}", "error")
    except OSError as error:
        reason = sanitize(error.strerror or str(error))
        app.show_message(texts("report.not_written", name=sanitize(name), reason=reason), "error")
    else:
        app.show_message(texts("report.written", path=sanitize(path)))


def _write(app: Dashboard, after: int, until: int, name: str) -> str:
    """Write the report into a new file called ``name``. Return its path. Raise `JournalError`, OSError."""
    report = read_report(app.journal, after, until)
    if name.endswith(".json"):
        text = json.dumps(as_json(report), ensure_ascii=False, indent=2) + "\n"
    else:
        page = lay_out_report(report, app.texts)
        text = as_markdown(page) if name.endswith(".md") else as_html(page, app.texts("report.language"))
    path = os.path.abspath(name)
    with open(path, "x", encoding="utf-8") as file:
        file.write(text)
    return path
