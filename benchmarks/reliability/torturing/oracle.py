"""Keep acknowledged work outside of the program, and find what a workspace has lost."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from watchroom import Workspace
from watchroom.kernel.call_context import CallContext
from watchroom.kernel.journal import Journal

from reliability.torturing.workers import AGENTS, DOCUMENT, FIELD, LOG, Told, open_draft

_TOKEN: Final = re.compile(r"<\d+\.\d+>")
_BATCH: Final = 5000
_UNCERTAIN: Final = ("outcome_unknown",)
"""Errors after which a caller checks before it repeats a call."""
_FILES: Final = ("private", "handoff", "board", "collab")


class Oracle:
    """Reads the workers' reports, and compares them with a workspace.

    - ``folder``: the folder of the reports, one file per worker.
    - ``task``: the folder in which commands run.
    """

    def __init__(self, folder: Path, task: Path) -> None:
        self._folder = folder
        self._task = task
        self._read: dict[str, int] = {}
        self._seen_rows = 0
        self._answered: dict[str, Told] = {}
        self._versions: dict[str, list[str]] = defaultdict(list)
        """The versions with each token: who wrote them where."""
        self._kept: set[str] = set()
        self.edited_by_hand: set[str] = set()
        self.acknowledged = 0
        self.refused = 0
        self.uncertain = 0

    def listen(self) -> list[Told]:
        """Read new reports, and return the answers. An incomplete last line is ignored."""
        new = []
        for file in sorted(self._folder.iterdir()):
            data = file.read_bytes()[self._read.get(file.name, 0) :]
            whole = data[: data.rfind(b"\n") + 1]
            self._read[file.name] = self._read.get(file.name, 0) + len(whole)
            told: list[Told] = [json.loads(line) for line in whole.splitlines()]
            new += [each for each in told if "success" in each]
        for each in new:
            self._answered[each["token"]] = each
        self.acknowledged += sum(each["success"] for each in new)
        self.refused += sum(not each["success"] for each in new)
        self.uncertain += sum(each["error"] in _UNCERTAIN for each in new)
        return new

    def problems(self, workspace: Workspace) -> Iterator[str]:
        """Yield reported work that is lost, duplicated, or present although it was refused."""
        new = self.listen()
        self._count_versions(workspace.journal)
        for each in new:
            if each["zone"] in _FILES:
                yield from self._problems_of_version(workspace.journal, each)
        for token, versions in self._versions.items():
            if len(versions) > 1:
                yield f"{token} is in {', '.join(versions)}: {self._answered.get(token)}"
        texts = dict(_texts(workspace))
        for token, each in self._answered.items():
            if each["zone"] in texts and each["error"] not in _UNCERTAIN:
                found = texts[each["zone"]].count(token)
                if found != each["success"]:
                    yield f"{token} is there {found} times: {each}"
        log = self._task / LOG
        lines = Counter(log.read_text().split() if log.exists() else ())
        for token, each in self._answered.items():
            if each["zone"] == "command" and each["success"] and lines[token] != 1:
                yield f"{token} was run {lines[token]} times: {each}"
        yield from (f"an edit by hand is lost: {each}" for each in self.edited_by_hand - self._kept)

    def _count_versions(self, journal: Journal) -> None:
        while rows := journal.rows(self._seen_rows, limit=_BATCH):
            self._seen_rows = rows[-1].seq
            for row in rows:
                # A refused conflict keeps its text, but creates no version. Each version of a flushed draft
                # contains all its lines.
                if row.zone not in _FILES or row.path.endswith("/draft.md") or row.sha256 is None:
                    continue
                tokens = _TOKEN.findall((journal.content(row.seq) or "")[:100])
                self._kept.update(tokens)
                # A refused conflict keeps its text, but creates no version.
                if row.version is not None:
                    for token in tokens:
                        self._versions[token].append(
                            f"{row.path} v{row.version} by {row.tool} of {row.actor}"
                        )

    def _problems_of_version(self, journal: Journal, each: Told) -> Iterator[str]:
        token, version, row = each["token"], each.get("version"), each.get("row")
        if version is not None:
            found = journal.version(each["zone"], each["path"], version)
            if found is None or token not in (journal.content(found.seq) or ""):
                yield f"lost: {each}"
        elif each["success"]:
            yield f"acknowledged without a version: {each}"
        elif row is not None and token not in (journal.content(row) or ""):
            yield f"what was refused is not kept: {each}"
        elif token in self._versions and each["error"] not in _UNCERTAIN:
            yield f"refused, and there: {each}"


def _texts(workspace: Workspace) -> Iterator[tuple[str, str]]:
    """Yield the text of the document, and of all buffers."""
    toolbox = workspace.tools(AGENTS[0])
    field = toolbox.dispatch_tool_call("realtime_get_field", {"doc_id": DOCUMENT, "field_name": FIELD})
    yield "realtime", str(field["value"])
    drafts = []
    for agent in AGENTS:
        open_draft(workspace.tools(agent))
        drafts.append(workspace.buffers.find(CallContext(agent), "draft").text)
    yield "buffer", "\n".join(drafts)
