"""Hook of MkDocs: the pages at the top and the pictures join the site, and every link keeps its target.

The files stay where they are, so their links also work on disk and in a repository's browser.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT: Final = Path(__file__).parents[1]
LINK: Final = re.compile(r"(?<=\]\()(?!https?:|#)([^)#\s]+)")
LABEL: Final = re.compile(r"(?<=^```python) [\w-]+$", re.MULTILINE)
"""The names by which tests find examples. MkDocs would not read the example as code."""
SOURCE_LINK: Final = re.compile(r"\[([^\]]+)\]\(<>[^)]*\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the files outside of ``docs/``."""
    for path in (*ROOT.glob("*.md"), *ROOT.glob("screenshots/pictures/*.png")):
        name = path.relative_to(ROOT).as_posix()
        files.append(File.generated(config, name, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point the links of ``page`` at pages of the site. A link to source code becomes its text. Remove the
    names of examples."""
    here = posixpath.dirname(page.file.src_uri)
    folder = here if (ROOT / page.file.src_uri).exists() else posixpath.join("docs", here)

    def point(found: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(folder, found[1]))
        inside = target.removeprefix("docs/")
        if files.get_file_from_path(inside) is None and (ROOT / target).exists():
            return "<>"
        return posixpath.relpath(inside, here or ".")

    return SOURCE_LINK.sub(r"\1", LINK.sub(point, LABEL.sub("", markdown)))
