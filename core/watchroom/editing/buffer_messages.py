"""The texts of editors and bindings: a table of summaries and one of guidance, by code (EDIT-4.1)."""

from __future__ import annotations

from watchroom.merge import TextStyle
from watchroom.texts import Catalogue, Language, catalogue


class BufferMessages:
    """The texts for the tools of the buffer ``name``, in ``language``."""

    def __init__(self, name: str, language: Language) -> None:
        self.name = name
        self.language: Language = language
        self._texts: Catalogue = catalogue(language)

    def summary(self, code: str, **values: object) -> str:
        """What happened, in one line: the text for ``code``, with ``values``."""
        return self._texts(f"editing.summary.{code}", buffer=self.name, **values)

    def guidance(self, code: str, **values: object) -> str | None:
        """What to do next after ``code``, with ``values``; None where nothing has to be done."""
        key = f"editing.guidance.{code}"
        return self._texts(key, buffer=self.name, **values) if key in self._texts else None

    def describe_style(self, style: TextStyle) -> str:
        """``style`` in a few words."""
        return style.describe(self._texts)
