"""What goes wrong between a journal and its server, made on purpose: writers that keep what they were told, and a
proxy that swallows answers."""

from __future__ import annotations

import socket
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from threading import Condition, Event, Lock, Thread
from typing import Final
from urllib.parse import quote

from evidence import all_rows
from psycopg.conninfo import conninfo_to_dict
from watchroom.errors import JournalUnreachable, OutcomeUnknown
from watchroom.features.overview.model import Model
from watchroom.kernel.journal import Journal, open_journal
from watchroom.model import Draft, Note, Write
from watchroom_tui.services.feed import Feed

PATIENCE: Final = 60.0
_ANSWER_TO_APPEND: Final = b"row_seq\0"
"""Stands in the description of what `append` gives."""
_READY: Final = b"Z\0\0\0\5I"
"""How an answer ends whose transaction was committed."""


class Writers:
    """Threads that append to ``journals``, in turn, until they are stopped, and what they were told."""

    def __init__(self, journals: Sequence[Journal], threads: int = 8) -> None:
        self._changed = Condition()
        self._stopping = Event()
        self.acknowledged: dict[str, int] = {}
        """What was written, and the row that it was said to be."""
        self.unknown: set[str] = set()
        self.refused: set[str] = set()
        """What certainly made no row."""
        self.errors: list[BaseException] = []
        self._threads = [
            Thread(target=self._write, args=(journals[n % len(journals)], n)) for n in range(threads)
        ]

    def _write(self, journal: Journal, writer: int) -> None:
        n = 0
        try:
            while not self._stopping.is_set():
                n += 1
                self._append(journal, writer, n)
        except BaseException as error:  # noqa: BLE001  # told by the thread that waits
            with self._changed:
                self.errors.append(error)
                self._changed.notify_all()

    def _append(self, journal: Journal, writer: int, n: int) -> None:
        actor, path = f"w{writer}", "shared" if n % 2 else f"{writer}/{n % 7}"
        names = [f"{writer}.{n}.write", f"{writer}.{n}.note"]
        drafts: list[Draft] = [
            # Some contents stand beside their rows, and several writers bring the same ones.
            Write(actor, "t", "collab", path, "x" * (70_000 + n % 3 if n % 10 == 0 else 1_000), names[0]),
            Note(actor, "t", "collab", path, message=names[1]),
        ]
        try:
            seqs = [each.row.seq for each in journal.append(drafts)]
        except OutcomeUnknown:
            self.unknown.update(names)
        except JournalUnreachable:
            self.refused.update(names)
        else:
            with self._changed:
                self.acknowledged.update(zip(names, seqs, strict=True))
                self._changed.notify_all()

    def wait_for(self, more: int, seconds: float = PATIENCE) -> None:
        """Wait until ``more`` rows than now are acknowledged."""
        with self._changed:
            wanted = len(self.acknowledged) + more
            came = self._changed.wait_for(
                lambda: len(self.acknowledged) >= wanted or bool(self.errors), seconds
            )
        assert not self.errors, self.errors
        assert came, "nothing is acknowledged any more"

    @contextmanager
    def writing(self) -> Iterator[None]:
        for thread in self._threads:
            thread.start()
        try:
            yield
        finally:
            self._stopping.set()
            for thread in self._threads:
                thread.join(PATIENCE)
        assert not any(thread.is_alive() for thread in self._threads)
        assert not self.errors, self.errors

    def check(self, journal: Journal) -> None:
        """Nothing that was acknowledged is lost, nothing is there twice, and ``journal`` is whole."""
        rows = all_rows(journal)
        assert [row.seq for row in rows] == list(range(1, len(rows) + 1))
        times = [row.time for row in rows]
        assert times == sorted(times)
        found = {row.message: row.seq for row in rows}
        assert [name for name, times in Counter(row.message for row in rows).items() if times > 1] == []
        assert {name: found.get(name) for name in self.acknowledged} == self.acknowledged
        assert found.keys() - self.acknowledged.keys() <= self.unknown
        assert not self.refused & found.keys()
        versions = defaultdict(list)
        for row in rows:
            if row.version is not None:
                versions[row.path].append(row.version)
        assert {path: each for path, each in versions.items() if each != list(range(1, len(each) + 1))} == {}
        assert journal.problems() == []


@contextmanager
def opened(*urls: str) -> Iterator[list[Journal]]:
    """The journals at ``urls``, each opened as another process would."""
    with ExitStack() as stack:
        yield [stack.enter_context(closing(open_journal(url))) for url in urls]


class Reader:
    """The feed of a dashboard that is open on ``journal``, and up to which row it has shown."""

    def __init__(self, journal: Journal) -> None:
        self._changed = Condition()
        self._shown = 0
        self._feed = Feed(journal, self._show)

    def _show(self, model: Model, _: float) -> None:
        with self._changed:
            self._shown = model.seq
            self._changed.notify_all()

    @contextmanager
    def reading(self) -> Iterator[None]:
        self._feed.start()
        try:
            yield
        finally:
            self._feed.stop()

    def wait_until(self, seq: int, seconds: float = PATIENCE) -> None:
        """Wait until row ``seq`` is shown."""
        with self._changed:
            assert self._changed.wait_for(lambda: self._shown >= seq, seconds), (self._shown, seq)


class Proxy:
    """Stands on a socket in ``folder`` before the server at ``url``, which is on one as well. It asks ``swallows`` at
    each answer to an append that was committed; one that it swallows is not handed on, and its connection is
    closed, or left open and silent, where ``is_silent``."""

    def __init__(self, url: str, swallows: Callable[[], bool], is_silent: bool = False) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="wr-px-"))
        self.swallowed = 0
        self.has_swallowed = Event()
        told = conninfo_to_dict(url)
        self._behind = f"{told['host']}/.s.PGSQL.{told['port']}"
        self.url = url.replace(quote(str(told["host"]), safe=""), quote(str(self.folder), safe=""))
        """The server's address through the proxy."""
        self._swallows = swallows
        self._is_silent = is_silent
        self._lock = Lock()
        self._sockets: list[socket.socket] = []
        self._threads: list[Thread] = []
        self._door = socket.socket(socket.AF_UNIX)
        self._door.bind(str(self.folder / Path(self._behind).name))
        self._door.listen(64)
        self._begin(self._accept)

    def close(self) -> None:
        self._door.shutdown(socket.SHUT_RDWR)
        self._door.close()
        with self._lock:
            sockets = list(self._sockets)
        for each in sockets:
            _end(each)
        for thread in list(self._threads):
            thread.join(PATIENCE)
        for each in sockets:
            each.close()
        (self.folder / Path(self._behind).name).unlink()
        self.folder.rmdir()

    def _begin(self, work: Callable[..., None], *values: object) -> None:
        thread = Thread(target=work, args=values, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._door.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(self._behind)
            with self._lock:
                self._sockets += [client, server]
            self._begin(self._hand_on, client, server)
            self._begin(self._hand_back, server, client)

    def _hand_on(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := client.recv(1 << 16):
                server.sendall(data)
        _end(server)

    def _hand_back(self, server: socket.socket, client: socket.socket) -> None:
        answer = b""
        with suppress(OSError):
            while data := server.recv(1 << 16):
                answer += data
                if _ANSWER_TO_APPEND not in answer:
                    client.sendall(answer)
                    answer = b""
                elif answer.endswith(_READY):
                    if self._is_swallowed():
                        break
                    client.sendall(answer)
                    answer = b""
        if not self._is_silent:
            _end(client)
            _end(server)

    def _is_swallowed(self) -> bool:
        with self._lock:
            if not self._swallows():
                return False
            self.swallowed += 1
        self.has_swallowed.set()
        return True


def _end(each: socket.socket) -> None:
    with suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)


@contextmanager
def proxy(url: str, swallows: Callable[[], bool], *, is_silent: bool = False) -> Iterator[Proxy]:
    """A proxy for as long as the context lasts."""
    with closing(Proxy(url, swallows, is_silent)) as made:
        yield made
