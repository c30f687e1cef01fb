"""Data that a journal keeps outside of its rows: leases of processes, snapshots of readers, and bytes of
files.

Everything except a held lease may be lost at any moment. A lost snapshot only costs time. For a lost blob,
the rows still have the checksum and the size.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple, Protocol

SNAPSHOT_ROWS: Final = 2_000
"""Rows between two snapshots."""
MAX_SNAPSHOTS: Final = 512
"""Maximum number of snapshots of one format. Fewer old snapshots are kept than new ones."""
MIN_SNAPSHOTS: Final = 8
"""Number of snapshots of one format that are kept regardless of their size."""
MAX_SNAPSHOT_BYTES: Final = 64 * 1024 * 1024
"""Maximum bytes of the snapshots of one format, if all were as large as the newest."""
BLOBS_NAME: Final = "blobs.db"
"""The file of an embedded journal's blobs, beside the journal."""
MAX_BLOB_BYTES: Final = 1024**3
"""Maximum total bytes of blobs. The oldest are removed first."""
MIN_COUNTED_BYTES: Final = 4096
"""A smaller blob counts as this number of bytes, so that the number of blobs is also limited."""


class Presence(NamedTuple):
    """The lease of a process that runs sessions, a society or commands.

    - ``is_alive``: False once the lease has expired.
    - ``process``: the id of the process on ``machine``.
    - ``since``: the time at which the process took the lease, in nanoseconds since the epoch.
    - ``resume``: the command that continues the process's work, empty if there is none.
    """

    id: str
    is_alive: bool
    process: int
    machine: str
    since: int
    resume: str = ""


class PresenceStore(Protocol):
    """The leases of all processes that use a journal."""

    def hold(self, resume: str = "") -> str:
        """Hold a lease until the journal is closed. Return its id, which is the same in each call.

        Rows about the process's work contain the id. ``resume``: the command that continues this work if the
        process dies; the value in the first call counts. Raise `JournalError`.
        """
        ...

    def all(self) -> list[Presence]:
        """Return the held leases, and the expired leases that were not forgotten.

        If an earlier row names a lease that is missing here, the lease was released.
        """
        ...

    def forget(self, lease: str) -> None:
        """Remove the lease with the id ``lease`` after a row has recorded its expiry. Do nothing if it is
        held."""
        ...


class Snapshot(NamedTuple):
    """The state ``data`` of a reader that has read all rows up to ``seq``."""

    seq: int
    data: bytes


class SnapshotStore(Protocol):
    """Snapshots, so that readers need not begin at the first row. Any snapshot may be deleted at any time."""

    def newest(self, form: str, *, as_of: int | None = None) -> Snapshot | None:
        """Return the newest snapshot of the format ``form`` (at or before row ``as_of``, if given), or None.

        The reader must check it, because it may be damaged or from another journal.
        """
        ...

    def keep(self, form: str, seq: int, data: bytes) -> None:
        """Store ``data`` as the snapshot of the format ``form`` at row ``seq``, and remove some old snapshots
        (see `excess_snapshots`). Raise `JournalError`."""
        ...


class BlobStore(Protocol):
    """The bytes of binary files, by SHA-256, so that a revert can restore them."""

    def keep(self, blobs: Sequence[bytes]) -> None:
        """Store ``blobs``, at most 10 MB each. Remove the oldest blobs above `MAX_BLOB_BYTES`. Raise
        `JournalError`."""
        ...

    def find(self, checksum: str) -> bytes | None:
        """Return the blob with the SHA-256 (hex) ``checksum``, None if it is not kept."""
        ...

    def kept(self, among: Sequence[str] | None = None) -> list[str]:
        """Return the SHA-256 (hex) of all stored blobs, or of the stored blobs in ``among``; oldest first."""
        ...


def max_snapshots(size: int) -> int:
    """Return the maximum number of snapshots if the newest has ``size`` bytes."""
    return max(MIN_SNAPSHOTS, min(MAX_SNAPSHOTS, MAX_SNAPSHOT_BYTES // max(1, size)))


def excess_snapshots(seqs: Sequence[int], limit: int = MAX_SNAPSHOTS) -> list[int]:
    """Return the snapshots in ``seqs`` (ascending) to remove so that ``limit`` (> 2) are left.

    The snapshots with the closest neighbours in relation to their age are removed. The first and the newest
    two stay.
    """
    kept = list(seqs)
    dropped = []
    while len(kept) > limit:
        newest = kept[-1]
        gaps = [((kept[n + 1] - kept[n - 1]) / (newest - kept[n]), kept[n]) for n in range(1, len(kept) - 2)]
        _, seq = min(gaps)
        kept.remove(seq)
        dropped.append(seq)
    return dropped


def counted_size(size: int) -> int:
    """Return the number of bytes that a blob of ``size`` bytes counts."""
    return max(size, MIN_COUNTED_BYTES)


def excess_blobs(
    oldest_first: Iterable[tuple[str, int]], counted: int, limit: int = MAX_BLOB_BYTES
) -> Iterator[str]:
    """Yield the SHA-256 of the blobs to remove so that at most ``limit`` of the ``counted`` bytes are left.

    ``oldest_first``: the SHA-256 and the size of each blob.
    """
    for sha256, size in oldest_first:
        if counted <= limit:
            return
        counted -= counted_size(size)
        yield sha256
