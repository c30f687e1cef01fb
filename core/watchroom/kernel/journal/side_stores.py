"""What a journal keeps beside its rows: leases of processes, snapshots of readers, and bytes of files.

No row names what is kept here. All but a lease that is held may be lost at any moment: a snapshot then costs
time, and of a blob the rows still have the checksum and the size.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple, Protocol

SNAPSHOT_ROWS: Final = 2_000
"""Rows between two snapshots."""
MAX_SNAPSHOTS: Final = 512
"""Snapshots of one format that are kept. Of old ones fewer are kept than of new ones."""
MIN_SNAPSHOTS: Final = 8
"""Snapshots of one format that are kept however large they are."""
MAX_SNAPSHOT_BYTES: Final = 64 * 1024 * 1024
"""Bytes that the snapshots of one format take, if all are as large as the newest one."""
BLOBS_NAME: Final = "blobs.db"
"""The file of an embedded journal's blobs, beside the journal."""
MAX_BLOB_BYTES: Final = 1024**3
"""Bytes of blobs that are kept. The oldest are removed first."""
MIN_COUNTED_BYTES: Final = 4096
"""Bytes as which the smallest blob counts, so that their number is bounded too."""


class Presence(NamedTuple):
    """The lease of a process that runs sessions, a society or commands.

    - ``is_alive``: false once the lease has run out.
    - ``process``: the id of the process on ``machine``.
    - ``since``: when the process took the lease, in nanoseconds since the epoch.
    - ``resume``: the command that continues what the process ran, empty if there is none.
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

        Rows of what the process runs carry the id. ``resume`` is the command that continues what the process
        runs if it dies; that of the first call counts. Raise `JournalError`.
        """
        ...

    def all(self) -> list[Presence]:
        """Return the leases that are held, and those that ran out and were not forgotten.

        If rows that were read before name a lease that is missing here, the lease was released.
        """
        ...

    def forget(self, lease: str) -> None:
        """Remove the lease with the id ``lease`` once a row says that it ran out. Do nothing if it is
        held."""
        ...


class Snapshot(NamedTuple):
    """The state ``data`` of a reader that has read all rows up to ``seq``."""

    seq: int
    data: bytes


class SnapshotStore(Protocol):
    """Snapshots, so that readers do not have to begin at the first row. Any may be deleted at any moment."""

    def newest(self, form: str, *, as_of: int | None = None) -> Snapshot | None:
        """Return the newest snapshot of the format ``form`` (at or before row ``as_of``, if given), or None.

        The reader checks it: it may be damaged, or of another journal.
        """
        ...

    def keep(self, form: str, seq: int, data: bytes) -> None:
        """Keep ``data`` as the snapshot of the format ``form`` at row ``seq``, and remove some old ones (see
        `excess_snapshots`). Raise `JournalError`."""
        ...


class BlobStore(Protocol):
    """The bytes of files that are no texts, by SHA-256, so that a revert can bring them back."""

    def keep(self, blobs: Sequence[bytes]) -> None:
        """Keep ``blobs``, at most 10 MB each, as the newest ones, and remove the oldest (see
        `MAX_BLOB_BYTES`). Raise `JournalError`."""
        ...

    def find(self, checksum: str) -> bytes | None:
        """Return the blob with the SHA-256 (hex) ``checksum``, None if it is not kept."""
        ...

    def kept(self, among: Sequence[str] | None = None) -> list[str]:
        """Return the SHA-256 (hex) of all blobs that are kept, or of those ``among`` that are; oldest
        first."""
        ...


def max_snapshots(size: int) -> int:
    """Return how many snapshots are kept if the newest one has ``size`` bytes."""
    return max(MIN_SNAPSHOTS, min(MAX_SNAPSHOTS, MAX_SNAPSHOT_BYTES // max(1, size)))


def excess_snapshots(seqs: Sequence[int], limit: int = MAX_SNAPSHOTS) -> list[int]:
    """Return which of the snapshots at ``seqs``, in ascending order, to remove so that ``limit`` (> 2) are
    left.

    Those are removed whose neighbours are the closest in relation to their age. The first and the newest two
    stay.
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
    """Return as how many bytes a blob of ``size`` bytes counts."""
    return max(size, MIN_COUNTED_BYTES)


def excess_blobs(
    oldest_first: Iterable[tuple[str, int]], counted: int, limit: int = MAX_BLOB_BYTES
) -> Iterator[str]:
    """Yield the SHA-256 of the blobs to remove so that ``limit`` bytes are left of the ``counted`` ones.

    ``oldest_first`` has the SHA-256 and the size of each blob.
    """
    for sha256, size in oldest_first:
        if counted <= limit:
            return
        counted -= counted_size(size)
        yield sha256
