"""The catalogues of the whiteboards."""

from typing import Final

TEXTS: Final = __name__
"""The package of the catalogues, for `watchroom.texts.catalogue`."""
