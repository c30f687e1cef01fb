"""The catalogues of the boards."""

from typing import Final

TEXTS: Final = __name__
"""The package of the catalogues, as `watchroom.texts.catalogue` takes it."""
