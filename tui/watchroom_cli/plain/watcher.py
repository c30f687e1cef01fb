"""The loop of the plain dashboard: read rows, print lines, and ask one question at a time."""

from __future__ import annotations

import os
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import closing
from threading import Thread
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from watchroom.features.overview.fold import Fold
from watchroom.features.overview.model import Model, Need, urgent_needs
from watchroom.features.overview.presence import PRESENCE_SECONDS, with_presences
from watchroom.features.overview.snapshots import open_fold
from watchroom.features.requests.reviews import Review
from watchroom.kernel.journal import Journal
from watchroom.model import ANSWER, RESOLVE, Json, Row, is_step
from watchroom.texts import Catalogue, Language, catalogue
from watchroom_tui.formatters.labels import file_name
from watchroom_tui.formatters.local_time import local_clock, local_date, utc_offset, zoned_time
from watchroom_tui.formatters.need_texts import need_sentence
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.services.person_calls import PersonCall

from watchroom_cli.output.stream import is_output_lost
from watchroom_cli.plain.news import Announcement, Identity, News, gone_sentence
from watchroom_cli.plain.question import (
    Question,
    UnusableAnswer,
    answer_call,
    keys_line,
    read_question,
    review_hunks,
)
from watchroom_cli.plain.sentences import (
    end_sentence,
    needs_line,
    row_sentence,
    state_lines,
    time_left,
)

if TYPE_CHECKING:
    from watchroom.features.alerts.sender import AlertSender

PAGE_LINES: Final = 20
"""Max lines of details to print at a time."""
FRAME_SECONDS: Final = 0.05
"""Seconds during which rows are collected before they are announced."""
PIPE_SECONDS: Final = 1.0
"""Seconds between checks for a lost reader of a pipe."""
_CHUNK: Final = 2000

Act = Callable[[PersonCall], Mapping[str, Json]]
"""A function that makes a call as the person, and returns the tool's result."""


class WatchOptions(NamedTuple):
    """The options of a `Watcher`.

    - ``place``: the workspace's name.
    - ``folder``: the workspace's folder in displayed commands, empty for a placeholder.
    - ``language``: the language of messages to agents about hunks.
    - ``all_rows``: whether to print a line for every operation.
    - ``seconds``: the timeout in seconds, None for no timeout.
    """

    place: str
    folder: str = ""
    language: Language = "en"
    all_rows: bool = False
    seconds: float | None = None


class LineReader:
    """Reads lines from the terminal on its own thread, which ends with the process.

    - ``fd``: the terminal's file descriptor.
    - ``wake``: a callback after new lines, and at the end of the input.
    """

    def __init__(self, fd: int, wake: Callable[[], None]) -> None:
        self.lines: deque[str | None] = deque()
        """The typed lines in order, then None at the end of the input."""
        self._fd = fd
        self._wake = wake
        Thread(target=self._read, name="watchroom-input", daemon=True).start()

    def _read(self) -> None:
        pending = b""
        while data := self._read_some():
            *lines, pending = (pending + data).split(b"\n")
            self.lines.extend(line.decode(errors="replace") for line in lines)
            self._wake()
        if pending:
            self.lines.append(pending.decode(errors="replace"))
        self.lines.append(None)
        self._wake()

    def _read_some(self) -> bytes:
        try:
            return os.read(self._fd, 1 << 16)
        except OSError:  # EIO: the terminal was closed
            return b""


class Watcher:
    """Prints the news of ``journal`` on standard output.

    - ``act``: makes calls as a person, None to ask no questions on the terminal.
    - ``alerts``: the sender of alerts, None to send no alerts.
    """

    def __init__(
        self,
        journal: Journal,
        texts: Catalogue,
        options: WatchOptions,
        act: Act | None,
        alerts: AlertSender | None = None,
    ) -> None:
        self._journal = journal
        self._texts = texts
        self._options = options
        self._act = act
        self._alerts = alerts
        self._is_stopped = False
        self._fold = Fold(journal.content, journal.row)
        self._news = News(texts)
        self._model = Model()
        self._unannounced: list[Row] = []
        """The rows that were read and not yet announced."""
        self._date = ""
        self._asked: Question | None = None
        self._shown = 0
        """The number of detail lines already printed."""
        self._postponed: set[Identity] = set()
        self._reviews: dict[Identity, Mapping[str, Review]] = {}
        """The begun reviews of calls by need and call id, not yet sent."""
        self._is_interrupted = False
        """Whether the question was settled elsewhere. The person may already be typing an answer."""

    def run(self) -> None:
        """Watch until the input ends, the person quits, the output loses its reader, the timeout passes, or
        `stop` is called. Raise `JournalError`."""
        self._follow()
        if self._alerts is not None:
            # Wait for alerts in progress, and report them.
            self._alerts.close()
            self._say_alerts(self._journal.now())

    def _follow(self) -> None:
        end = None if self._options.seconds is None else time.monotonic() + self._options.seconds
        with closing(self._journal.changes()) as changes:
            if self._alerts is not None:
                self._alerts.start(changes.wake)
            self._begin()
            typed = LineReader(sys.stdin.fileno(), changes.wake) if self._act else None
            while not (self._is_stopped or is_output_lost()):
                while typed and typed.lines:
                    if not self._take_line(typed.lines.popleft()):
                        return
                rest = None if end is None else end - time.monotonic()
                if rest is not None and rest <= 0:
                    return
                if self._advance():
                    time.sleep(FRAME_SECONDS)
                elif not (typed and typed.lines):
                    wait = self._find_timeout()
                    changes.wait(wait if rest is None else min(wait, rest))

    def stop(self) -> None:
        """End `run` within `PIPE_SECONDS`, if alerts are sent. It takes no lock, so a signal handler can call
        it."""
        self._is_stopped = True

    def _find_timeout(self) -> float:
        """Return the seconds until the next deadline or check."""
        now = self._journal.now()
        left = [(need.deadline - now) / 1e9 for need in self._model.needs if need.deadline is not None]
        most = PRESENCE_SECONDS if sys.stdout.isatty() and self._alerts is None else PIPE_SECONDS
        return max(FRAME_SECONDS, min(each for each in (most, *left) if each > 0))

    def _begin(self) -> None:
        self._fold = open_fold(self._journal)
        self._read_rows()
        self._unannounced.clear()
        now = self._journal.now()
        self._model = with_presences(self._fold.model(), self._journal.presence.all, self._options.folder)
        self._date = local_date(now)
        self._say(self._texts("watch.begin", place=sanitize(self._options.place), time=zoned_time(now)))
        for line in state_lines(self._model, now, self._texts):
            self._say(line)
        self._announce(self._news.begin(self._model, now))
        self._send_alerts(now)
        self._ask_next()

    def _advance(self) -> bool:
        """Read new rows and print the news. Return whether new rows were read."""
        self._read_rows()
        rows, self._unannounced = self._unannounced, []
        now = self._journal.now()
        self._model = with_presences(self._fold.model(), self._journal.presence.all, self._options.folder)
        if self._options.all_rows:
            self._announce([self._row_line(row) for row in rows if not is_step(row)])
        self._announce(self._news.advance(self._model, now))
        self._send_alerts(now)
        waiting = {need.identity for need in urgent_needs(self._model, now)}
        self._postponed &= waiting
        self._reviews = {each: begun for each, begun in self._reviews.items() if each in waiting}
        if self._asked is not None and self._asked.need.identity not in waiting:
            self._asked, self._is_interrupted = None, True
            self._say(self._texts("watch.interrupted"))
        if self._asked is None and not self._is_interrupted:
            self._ask_next()
        return bool(rows)

    def _send_alerts(self, now: int) -> None:
        """Pass the current needs to the sender, and print the results of earlier alerts."""
        if self._alerts is None:
            return
        self._alerts.set_needs(urgent_needs(self._model, now))
        self._say_alerts(now)

    def _say_alerts(self, now: int) -> None:
        lines = self._alerts.lines if self._alerts is not None else deque[str]()
        while lines:
            self._announce([Announcement(now, lines.popleft())])

    def _read_rows(self) -> None:
        """Apply the new rows."""
        while rows := self._journal.rows(self._fold.seq, limit=_CHUNK):
            self._fold.apply(rows)
            self._unannounced += rows

    def _row_line(self, row: Row) -> Announcement:
        return Announcement(row.time, end_sentence(row_sentence(row, self._texts), self._texts))

    def _announce(self, announcements: list[Announcement]) -> None:
        for each in announcements:
            date = local_date(each.time)
            if date > self._date:
                self._date = date
                self._say(self._texts("watch.date", date=date, offset=utc_offset(each.time)))
            self._say(f"{local_clock(each.time)} {each.text}")

    def _say(self, line: str) -> None:
        print(line, flush=True)

    # -- one question at a time

    def _ask_next(self) -> None:
        if self._act is None:
            return
        needs = urgent_needs(self._model, self._journal.now())
        need = next((each for each in needs if each.identity not in self._postponed), None)
        if need is not None:
            self._ask(need)

    def _ask(self, need: Need) -> None:
        begun = self._reviews.get(need.identity, {})
        self._say(
            self._texts("watch.question", need=end_sentence(need_sentence(need, self._texts), self._texts))
        )
        self._put(read_question(self._journal, need, self._texts, begun))

    def _put(self, question: Question) -> None:
        """Ask ``question`` about a need or a hunk."""
        self._asked, self._shown = question, 0
        for line in question.lead:
            self._say(line)
        if question.need.deadline is not None:
            self._say(time_left(question.need.deadline, self._journal.now(), self._texts))
        self._say(end_sentence(keys_line(question, self._texts), self._texts))

    def _take_line(self, line: str | None) -> bool:
        """Handle a typed line. Return whether to continue."""
        if line is None or line.strip() == "q":
            return False
        key, _, text = line.strip().partition(" ")
        if key == "?":
            for each in self._texts("watch.help").split("\n"):
                self._say(each)
        elif self._is_interrupted:
            self._is_interrupted = False
            if line.strip():
                self._say(self._texts("watch.not_taken", given=sanitize(line.strip())))
            self._ask_next()
        elif key == "n":
            self._list_needs()
        elif self._asked is None:
            self._postponed.clear()
            self._ask_next()
            if self._asked is None:
                self._say(needs_line(0, self._texts))
        else:
            self._answer(self._asked, key, text.strip())
        return True

    def _list_needs(self) -> None:
        now = self._journal.now()
        for line in state_lines(self._model, now, self._texts):
            self._say(line)
        for need in urgent_needs(self._model, now):
            self._say(end_sentence(need_sentence(need, self._texts), self._texts))

    def _answer(self, question: Question, key: str, text: str) -> None:
        if not key and question.review.at is not None:
            self._put(question)
        elif not key:
            self._ask(question.need)
        elif key == "s" and question.details:
            self._show(question)
        elif key == "l":
            self._postpone(question)
        else:
            try:
                following = review_hunks(question, key, text, self._texts)
                if following is not None:
                    self._reviews[question.need.identity] = following.review.reviews
                    self._put(following)
                    return
                call = answer_call(question, key, text, self._texts, catalogue(self._options.language))
            except UnusableAnswer as problem:
                self._say(str(problem))
                self._say(end_sentence(keys_line(question, self._texts), self._texts))
            else:
                self._carry_out(question, call)

    def _show(self, question: Question) -> None:
        """Print the next page of the details. Start again after the last page."""
        start = self._shown if self._shown < len(question.details) else 0
        for line in question.details[start : start + PAGE_LINES]:
            self._say(line)
        self._shown = start + PAGE_LINES
        left = len(question.details) - self._shown
        self._say(self._texts("watch.more_lines", count=left) if left > 0 else self._texts("watch.all_shown"))

    def _postpone(self, question: Question) -> None:
        self._postponed.add(question.need.identity)
        self._asked = None
        self._say(self._texts("watch.postponed"))
        self._ask_next()
        self._say_if_all_are_postponed()

    def _say_if_all_are_postponed(self) -> None:
        if self._asked is None and self._postponed:
            self._say(self._texts("watch.all_postponed", count=len(self._postponed)))

    def _carry_out(self, question: Question, call: PersonCall) -> None:
        """Make the call and print its result. Then ask the next question, or the same question again after an
        error."""
        if self._act is None:
            raise RuntimeError("nobody is there to act")
        result = self._act(call)
        self._asked = None
        if result["success"]:
            self._news.mark_settled(question.need)
            self._say(end_sentence(_done(question, call, result, self._texts), self._texts))
        else:
            self._say(sanitize(f"{result['message']} {result['suggestion']}"))
            self._read_rows()
            self._say_if_gone(question.need)
        self._advance()
        self._say_if_all_are_postponed()

    def _say_if_gone(self, need: Need) -> None:
        """Print that ``need`` is no longer open, if so. Called after an answer failed."""
        now = self._journal.now()
        model = self._fold.model()
        if need.identity not in {each.identity for each in urgent_needs(model, now)}:
            self._news.mark_settled(need)
            self._say(end_sentence(gone_sentence(need, model, now, self._texts), self._texts))


def _done(question: Question, call: PersonCall, result: Mapping[str, Json], texts: Catalogue) -> str:
    """Return the sentence about an accepted answer."""
    row = question.need.row
    if call.tool == ANSWER:
        outcome = texts(f"request.outcome.{cast(str, result['outcome'])}")
        return texts("request.done", agent=sanitize(row.actor), outcome=outcome)
    if call.tool == RESOLVE:
        return texts(
            "watch.took_incoming",
            path=sanitize(file_name(row.zone, row.path)),
            version=result["version"],
            who=sanitize(row.actor),
        )
    path = sanitize(file_name(row.zone, row.path))
    return texts(f"watch.done.{call.tool}", path=path, agent=sanitize(row.actor))
