"""The handoffs, as the dashboard shows them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from watchroom.features.handoffs.rows import Delivery, delivers
from watchroom.model import Row

MAX_ACKNOWLEDGED: Final = 500
"""Maximum number of acknowledged handoffs that are kept. The most recently acknowledged are kept. Open
handoffs are always kept."""


class DeliveryProjection:
    """The deliveries of handoffs. Takes the rows of handoffs in order."""

    DERIVED: ClassVar[Mapping[str, object]] = {"_changed": True, "_current": ()}
    """Attributes that a snapshot leaves out, each with its value after loading."""

    def __init__(self) -> None:
        self._deliveries: dict[str, Delivery] = {}
        """The deliveries by path, in the order of delivery."""
        self._acknowledged: dict[str, None] = {}
        """The paths of acknowledged deliveries, in the order of acknowledgement."""
        self._current: tuple[Delivery, ...] = ()
        self._changed = False

    def apply(self, row: Row) -> None:
        """Apply ``row``."""
        self._changed = True
        if delivers(row):
            self._deliveries.pop(row.path, None)
            self._acknowledged.pop(row.path, None)
            if not row.deleted:
                self._deliveries[row.path] = Delivery.from_row(row)
        elif row.path in self._deliveries:
            self._deliveries[row.path] = self._deliveries[row.path].advance(row)
            self._drop_oldest(row.path)

    def current(self) -> tuple[Delivery, ...]:
        """Return the deliveries, newest first; the same object if none changed."""
        if self._changed:
            self._changed = False
            self._current = tuple(reversed(self._deliveries.values()))
        return self._current

    def _drop_oldest(self, path: str) -> None:
        """If the delivery at ``path`` is acknowledged and there are too many acknowledged deliveries, drop
        the oldest."""
        if self._deliveries[path].acknowledged is None or path in self._acknowledged:
            return
        self._acknowledged[path] = None
        if len(self._acknowledged) > MAX_ACKNOWLEDGED:
            oldest = next(iter(self._acknowledged))
            del self._acknowledged[oldest], self._deliveries[oldest]
