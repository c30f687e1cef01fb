"""The loop of the plain dashboard: rows come in, lines go out, and people answer one question at a time."""

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
from watchroom_tui.output_stream import is_output_lost
from watchroom_tui.plain.news import Announcement, Identity, News, gone_sentence
from watchroom_tui.plain.question import (
    Question,
    UnusableAnswer,
    answer_call,
    keys_line,
    read_question,
    review_hunks,
)
from watchroom_tui.plain.sentences import (
    end_sentence,
    need_sentence,
    needs_line,
    row_sentence,
    state_lines,
    time_left,
)
from watchroom_tui.sanitize import sanitize
from watchroom_tui.services.person_calls import PersonCall

if TYPE_CHECKING:
    from watchroom_tui.plain.alert_sender import AlertSender

PAGE_LINES: Final = 20
"""So many lines of a difference are printed at a time."""
FRAME_SECONDS: Final = 0.05
"""What comes within so short a time is told together."""
PIPE_SECONDS: Final = 1.0
"""How often it is looked whether somebody still reads a pipe."""
_CHUNK: Final = 2000

Act = Callable[[PersonCall], Mapping[str, Json]]
"""Makes a call as the person; the result is that of the tool."""


class WatchOptions(NamedTuple):
    """How to watch.

    - ``place``: the workspace's name.
    - ``folder``: its folder, for commands that are shown; empty for a placeholder.
    - ``language``: the language of what agents are told about hunks.
    - ``all_rows``: print a line for every operation.
    - ``seconds``: end after this time; None for never.
    """

    place: str
    folder: str = ""
    language: Language = "en"
    all_rows: bool = False
    seconds: float | None = None


class LineReader:
    """The lines that are typed on the terminal at descriptor ``fd``, read by a thread of its own, which calls
    ``wake`` at each. The thread ends with the process."""

    def __init__(self, fd: int, wake: Callable[[], None]) -> None:
        self.lines: deque[str | None] = deque()
        """What was typed, in order; None at the end of the input."""
        self._fd = fd
        self._wake = wake
        Thread(target=self._read, name="watchroom-input", daemon=True).start()

    def _read(self) -> None:
        pending = b""
        while data := self._read_some():
            *lines, pending = (pending + data).split(b"\n")
            self.lines.extend(line.decode(errors="replace") for line in lines)
            self._wake()
        self.lines.append(None)
        self._wake()

    def _read_some(self) -> bytes:
        try:
            return os.read(self._fd, 1 << 16)
        except OSError:  # EIO: the terminal was closed
            return b""


class Watcher:
    """Tells on standard output what comes into ``journal``. With ``act``, by which a person acts, it asks for
    answers on the terminal that is standard input. With ``alerts`` it has what needs people sent."""

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
        self._untold: list[Row] = []
        """Rows that were read, and of which nothing was said yet."""
        self._date = ""
        self._asked: Question | None = None
        self._shown = 0
        """So many lines of the details were shown."""
        self._postponed: set[Identity] = set()
        self._reviews: dict[Identity, Mapping[str, Review]] = {}
        """What was taken, and said, of what calls would write, and not sent yet."""
        self._is_interrupted = False
        """Whether what was asked went away by itself: a line may have been begun for it."""

    def run(self) -> None:
        """Until the input ends, the person quits, nobody reads any more, the time is over, or `stop` was
        called. Raises `JournalError`."""
        self._follow()
        if self._alerts is not None:
            # What is under way is sent, and said.
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
                    wait = self._longest_wait()
                    changes.wait(wait if rest is None else min(wait, rest))

    def stop(self) -> None:
        """End `run` within `PIPE_SECONDS`, if alerts are sent. For the handler of a signal: it takes no
        lock."""
        self._is_stopped = True

    def _longest_wait(self) -> float:
        """Seconds until something may change by itself."""
        now = self._journal.now()
        left = [(need.deadline - now) / 1e9 for need in self._model.needs if need.deadline is not None]
        most = PRESENCE_SECONDS if sys.stdout.isatty() and self._alerts is None else PIPE_SECONDS
        return max(FRAME_SECONDS, min(each for each in (most, *left) if each > 0))

    def _begin(self) -> None:
        self._fold = open_fold(self._journal)
        self._read_rows()
        self._untold.clear()
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
        """Read and tell what is new. Returns whether there were rows."""
        self._read_rows()
        rows, self._untold = self._untold, []
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
        """Have what needs people at ``now`` sent, and say what came of earlier alerts."""
        if self._alerts is None:
            return
        self._alerts.hand_on(urgent_needs(self._model, now))
        self._say_alerts(now)

    def _say_alerts(self, now: int) -> None:
        lines = self._alerts.lines if self._alerts is not None else deque[str]()
        while lines:
            self._announce([Announcement(now, lines.popleft())])

    def _read_rows(self) -> None:
        """Take in the rows that came."""
        while rows := self._journal.rows(self._fold.seq, limit=_CHUNK):
            self._fold.apply(rows)
            self._untold += rows

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
        """Ask ``question``, that about a need or about a hunk of it."""
        self._asked, self._shown = question, 0
        for line in question.lead:
            self._say(line)
        if question.need.deadline is not None:
            self._say(time_left(question.need.deadline, self._journal.now(), self._texts))
        self._say(end_sentence(keys_line(question, self._texts), self._texts))

    def _take_line(self, line: str | None) -> bool:
        """Do what was typed. Returns whether to go on."""
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
        """The next page of the details; after the last one, the first."""
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
        """Act, and say what came of it. Then the next question is asked, or this one again."""
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
        """That a need which could not be answered waits no more, if so."""
        now = self._journal.now()
        model = self._fold.model()
        if need.identity not in {each.identity for each in urgent_needs(model, now)}:
            self._news.mark_settled(need)
            self._say(end_sentence(gone_sentence(need, model, now, self._texts), self._texts))


def _done(question: Question, call: PersonCall, result: Mapping[str, Json], texts: Catalogue) -> str:
    """What came of an answer that was taken."""
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
