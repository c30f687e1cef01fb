"""The loop of a fuzzer: generate inputs, run them, keep those with new results, and report.

Results are distinguished by the answer (its kind, rule and shape), which every target returns. Tracing lines
would cost more than it finds here.
"""

from __future__ import annotations

import hashlib
import logging
import math
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import FrameType
from typing import Final, Protocol, Self

from progress import ProgressBar

from reliability.fuzzing.oracle import Broken

SLOW_SECONDS: Final = 0.5
"""Max seconds of CPU for an input of allowed size. More is a finding."""
HANGING_SECONDS: Final = 30.0
MEMORY_BYTES: Final = 256 * 1024 * 1024
"""Max bytes by which an input may grow the process. More is a finding."""
_CORPUS: Final = 4000
_MAX_KEPT: Final = 8000
"""Max bytes of an input that is mutated further, because all following inputs would be as long."""
_FRESH: Final = 0.3
_SLOWEST: Final = 3
_FINDINGS: Final = 200
_BROKEN: Final = "broken"
"""The kind of an input after which a target is opened again."""
_PAGE_KB: Final = 1024


class Target(Protocol):
    """A parser or dispatcher of external input."""

    name: str
    size: int
    """Max bytes of an input."""
    period: int
    """Number of inputs after which it is closed and opened again."""
    slow_seconds: float
    """Max seconds of CPU for an input. More is a finding."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...

    def generate(self, chance: Random) -> bytes:
        """Return a new input."""

    def mutate(self, data: bytes, other: bytes, chance: Random) -> bytes:
        """Return an input made of one or two earlier ones."""

    def run(self, data: bytes) -> Hashable:
        """Process the input, and return the kind of the answer. Raises an error for a wrong answer."""

    def check(self) -> Sequence[str]:
        """Return the problems after all inputs so far."""


class Hanging(Exception):
    """An input takes longer than anyone would wait."""


@dataclass(slots=True)
class Result:
    """The inputs of a target, and their results."""

    name: str
    inputs: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    kinds: int = 0
    findings: dict[str, str] = field(default_factory=dict)
    """The descriptions of distinct findings."""
    slowest: list[tuple[float, int, bytes]] = field(default_factory=list)
    """CPU seconds, bytes, and the input, the slowest first."""
    grown: int = 0
    """Bytes by which the process has grown."""

    @property
    def rate(self) -> float:
        return self.inputs / self.seconds if self.seconds else 0.0

    @property
    def rate_of_cpu(self) -> float:
        """Inputs per second of CPU."""
        return self.inputs / self.cpu_seconds if self.cpu_seconds else 0.0


def fuzz(
    open_target: Callable[[], Target],
    seed: str,
    *,
    seconds: float,
    inputs: int | None = None,
    keep: Path | None = None,
    progress: ProgressBar | None = None,
) -> Result:
    """Fuzz a target for ``seconds``, or for a number of ``inputs``, deterministically by ``seed``.

    ``keep``: the folder for files with the findings and the slowest inputs.
    """
    result, begin = Result(open_target().name), time.monotonic()
    chance, corpus, seen = Random(seed), list[bytes](), set[Hashable]()
    before, drawn = _peak_bytes(), 0.0
    while (left := seconds - (time.monotonic() - begin)) > 0 and (inputs is None or result.inputs < inputs):
        with open_target() as target, _logged_defects() as defects:
            until = time.monotonic() + left
            for _ in range(min(target.period, 10**9 if inputs is None else inputs - result.inputs)):
                data = _next_input(target, corpus, chance)
                kind = _run_one(target, data, result, keep)
                result.inputs += 1
                if kind is not None and kind is not _BROKEN and kind not in seen:
                    seen.add(kind)
                    _add(corpus, data, chance)
                now = time.monotonic()
                if kind is _BROKEN:
                    break
                if progress is not None and now - drawn > 0.5:
                    drawn = now
                    result.seconds, result.kinds = now - begin, len(seen)
                    _draw(progress, result, seconds, inputs)
                if now >= until:
                    break
            for problem in [*target.check(), *defects]:
                said = f"after {result.inputs} inputs: {problem}"
                _keep(result, keep, said, problem.splitlines()[-1][:80], problem.encode("utf-8", "replace"))
    result.seconds, result.kinds = time.monotonic() - begin, len(seen)
    result.grown = _peak_bytes() - before
    if progress is not None:
        progress.clear()
    if keep is not None:
        for number, (_, _, data) in enumerate(result.slowest, 1):
            (keep / f"{result.name}-slow-{number}.bin").write_bytes(data)
    return result


@contextmanager
def _logged_defects() -> Iterator[list[str]]:
    """Collect the defects that background threads log within the context."""
    found: list[str] = []
    handler, log = logging.Handler(logging.ERROR), logging.getLogger("watchroom")
    formatter = logging.Formatter()
    handler.emit = lambda record: found.append(formatter.format(record))  # type: ignore[method-assign]
    propagates, log.propagate = log.propagate, False
    log.addHandler(handler)
    try:
        yield found
    finally:
        log.removeHandler(handler)
        log.propagate = propagates


def _next_input(target: Target, corpus: Sequence[bytes], chance: Random) -> bytes:
    if not corpus or chance.random() < _FRESH:
        return target.generate(chance)
    # New inputs find more than old ones.
    one = corpus[max(chance.randrange(len(corpus)), chance.randrange(len(corpus)))]
    return target.mutate(one, chance.choice(corpus), chance)


def _add(corpus: list[bytes], data: bytes, chance: Random) -> None:
    if len(data) > _MAX_KEPT:
        return
    if len(corpus) >= _CORPUS:
        del corpus[chance.randrange(len(corpus))]
    corpus.append(data)


def _run_one(target: Target, data: bytes, result: Result, keep: Path | None) -> Hashable:
    memory, start = _peak_bytes(), time.process_time()
    kind: Hashable = None
    try:
        with _time_limit(HANGING_SECONDS):
            kind = target.run(data)
    except Exception as error:  # noqa: BLE001  # every error is a finding
        said = f"{type(error).__name__}: {error}"[:2000]
        if isinstance(error, Hanging | TimeoutError):
            kind = _BROKEN
        # A broken promise is identified by its text, other errors by their place.
        signature = said[:60] if isinstance(error, Broken) else f"{type(error).__name__} at {_place(error)}"
        _keep(result, keep, f"{said}\n{traceback.format_exc()}", signature, data)
    taken = time.process_time() - start
    result.cpu_seconds += taken
    if taken > target.slow_seconds and kind is not _BROKEN:
        # Measured again, because it may be the garbage collector, or the first import of a module.
        taken = min(taken, _measure_again(target, data))
    if taken > target.slow_seconds:
        said = f"{taken:.2f} s for {len(data):,} bytes, kind {kind!r}"
        _keep(result, keep, said, f"slow {str(kind)[:60]}", data)
    if (grown := _peak_bytes() - memory) > MEMORY_BYTES:
        _keep(result, keep, f"{grown:,} bytes for an input of {len(data):,}", "memory", data)
    if len(result.slowest) < _SLOWEST or taken > result.slowest[-1][0]:
        result.slowest = sorted([*result.slowest, (taken, len(data), data)], reverse=True)[:_SLOWEST]
    return kind


def _measure_again(target: Target, data: bytes) -> float:
    """Return the seconds of CPU of an earlier input, infinite if it fails."""
    start = time.process_time()
    try:
        with _time_limit(HANGING_SECONDS):
            target.run(data)
    except Exception:  # noqa: BLE001  # the input stays a finding
        return math.inf
    return time.process_time() - start


@contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    def stop(number: int, frame: FrameType | None) -> None:
        raise Hanging(f"more than {seconds:g} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _place(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    ours = [
        frame for frame in frames if "watchroom" in frame.filename and "site-packages" not in frame.filename
    ]
    last = (ours or list(frames))[-1]
    return f"{Path(last.filename).name}:{last.lineno}"


def _keep(result: Result, keep: Path | None, said: str, signature: str, data: bytes) -> None:
    if signature in result.findings or len(result.findings) >= _FINDINGS:
        return
    result.findings[signature] = said
    # At once: a run that is ended early prints no results.
    print(f"\n{result.name}: {signature}\n{said}", file=sys.stderr)
    if keep is not None:
        name = f"{result.name}-{hashlib.sha256(signature.encode()).hexdigest()[:10]}"
        (keep / f"{name}.bin").write_bytes(data)
        (keep / f"{name}.txt").write_text(
            f"{signature}\n{said}\n", encoding="utf-8", errors="backslashreplace"
        )


def _peak_bytes() -> int:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * _PAGE_KB


def _draw(progress: ProgressBar, result: Result, seconds: float, inputs: int | None) -> None:
    if inputs is None:
        done, left = result.seconds / seconds, seconds - result.seconds
    else:
        done = result.inputs / inputs
        left = (inputs - result.inputs) / result.rate if result.rate else 0.0
    slowest = result.slowest[0][0] if result.slowest else 0.0
    progress.show(
        done,
        left,
        f"{result.name}: {result.inputs:,} inputs, {result.rate:,.0f} a second, {result.kinds:,} kinds,"
        f" {len(result.findings)} findings, slowest {slowest:.3f} s",
    )
