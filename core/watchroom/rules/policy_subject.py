"""What a tool call is about, for rules of the policy: paths, and a command. Pure.

Known are the arguments of Watchroom's own tools and of the tools of common clients: ``file_path`` of
``Write``, ``command`` of ``Bash``, the files of a patch.
"""

from __future__ import annotations

import re
import shlex
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from posixpath import join, normpath
from typing import Final, NamedTuple

from watchroom import validation
from watchroom.model import Json

MAX_PATHS: Final = 200
_MAX_PATCH_CHARACTERS: Final = 10_000_000
_PATHS: Final = (
    "filepath",
    "filename",
    "path",
    "board",
    "doc_id",
    "file_path",
    "notebook_path",
    "target_file",
    "relative_path",
    "source_path",
    "destination_path",
    "destination",
    "old_path",
    "new_path",
    "directory",
    "paths",
    "files",
)
"""Arguments that name a path, or a list of them."""
_LISTS: Final = ("edits", "files", "locations", "changes", "content")
"""Arguments that list objects of which each may name a path."""
_COMMANDS: Final = ("command", "cmd", "script")
_PATCHES: Final = ("patch", "input", *_COMMANDS)
_SHELL: Final = re.compile("(?:/bin/|/usr/bin/|/usr/local/bin/|/opt/homebrew/bin/)?(?:sh|bash|dash|zsh)")
_SCRIPT: Final = re.compile("-[elux]*c")
_PATCHED: Final = re.compile(r"^[ \t]*+\*\*\* (?:(?:Add|Update|Delete) File|Move to):(.+)$", re.MULTILINE)


class PolicySubject(NamedTuple):
    """What a call is about.

    ``paths``: the paths that it names, normalized.
    ``commands``: the texts that a shell may read, one for each argument with a command. The tool uses one of
    them; which one is not known here.
    ``is_cut``: there are more paths than `MAX_PATHS`.
    """

    paths: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    is_cut: bool = False

    @property
    def command(self) -> str:
        """The commands as one text, to show."""
        return "\n".join(self.commands)


def policy_subject(
    arguments: Mapping[str, Json],
    *,
    folder: str = "",
    cwd: str = "",
    worktrees: Sequence[str] = (),
    resolve: Callable[[str], str] | None = None,
) -> PolicySubject:
    """Return what a tool call with ``arguments`` is about.

    The tool does not matter, because common clients mean the same by the same argument names. Without
    ``folder`` and ``cwd``, paths are those of a zone.

    ``folder``: the absolute path of the folder that the caller was started in. Paths below it are relative to
    it; others stay absolute.
    ``cwd``: the absolute path of the folder that the caller is in now, default ``folder``.
    ``worktrees``: the absolute paths of the working trees of the repository. A path below one of them counts
    relative to it, too.
    ``resolve``: follows links (`os.path.realpath`). A path with a link counts by both names.
    """
    # Clients replace characters that no path has, each in its own way, but within the same folder.
    folder, cwd = map(validation.replace_non_path_characters, (folder, cwd))
    roots = (folder, *map(validation.replace_non_path_characters, worktrees))
    commands = tuple(text for name in _COMMANDS if (text := _command(arguments.get(name))))
    found: dict[str, None] = {}
    for path in _paths(arguments):
        for each in _normalized(path, roots, cwd or folder, resolve):
            found[each] = None
        if len(found) > MAX_PATHS:
            return PolicySubject(tuple(found)[:MAX_PATHS], commands, is_cut=True)
    return PolicySubject(tuple(found), commands)


def _command(value: Json) -> str:
    """A command, which some clients give by its words."""
    if isinstance(value, list | tuple):
        words = [each for each in value if isinstance(each, str)]
        script = _script_of(words)
        return shlex.join(words) if script is None else script
    return value if isinstance(value, str) else ""


def _script_of(words: Sequence[str]) -> str | None:
    """Return the script if ``words`` are only a common shell, ``-c`` and a script; otherwise None."""
    is_script = len(words) == 3 and bool(_SHELL.fullmatch(words[0])) and bool(_SCRIPT.fullmatch(words[1]))
    return words[2] if is_script else None


def _paths(arguments: Mapping[str, Json]) -> Iterator[str]:
    for name in _PATHS:
        yield from _texts(arguments.get(name))
    if "destination" in arguments:
        # Alone it may be anything: the zone of a buffer, for one.
        yield from _texts(arguments.get("source"))
    for name in _LISTS:
        value = arguments.get(name)
        if isinstance(value, Mapping):
            # By path, as Codex names the changes of a patch.
            yield from value if name == "changes" else ()
            continue
        for each in value if isinstance(value, list | tuple) else ():
            if isinstance(each, Mapping):
                for key in _PATHS:
                    yield from _texts(each.get(key))
    for name in _PATCHES:
        value = arguments.get(name)
        text = value if isinstance(value, str) else "\n".join(_texts(value))
        if "*** " in text:
            yield from patched_files(text[:_MAX_PATCH_CHARACTERS])


def patched_files(patch: str) -> Iterator[str]:
    """The paths of the files in ``patch`` as Codex reads it, which makes little of blanks."""
    return (path.strip() for path in _PATCHED.findall(patch))


def _texts(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | tuple):
        yield from (each for each in value if isinstance(each, str))


def _normalized(
    path: str, roots: Sequence[str], cwd: str, resolve: Callable[[str], str] | None
) -> Iterator[str]:
    path = unicodedata.normalize("NFC", validation.replace_non_path_characters(path.strip()))
    if not path:
        return
    whole = join(cwd, path) if cwd else path
    yield from _shorten(whole, roots)
    if resolve is not None:
        yield from _shorten(resolve(whole), [resolve(root) if root else root for root in roots])


def _shorten(path: str, roots: Sequence[str]) -> Iterator[str]:
    """``path`` relative to the first of ``roots``, or absolute outside of it; and relative to the others that
    it is below."""
    path = normpath(path)
    # A path may begin with two slashes, by which POSIX could mean something else.
    path = path[1:] if path.startswith("//") else path
    for index, root in enumerate(roots):
        beneath = normpath(root).rstrip("/") + "/" if root else ""
        if beneath and f"{path}/".startswith(beneath):
            yield path[len(beneath) :] or "."
        elif not index:
            yield path
