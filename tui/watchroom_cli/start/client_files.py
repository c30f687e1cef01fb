"""The configuration files of clients: write entries, and remove the entries byte for byte."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple, cast

import tomli_w
from watchroom.agents.clients.configuration import (
    AttachedAs,
    ClientConfiguration,
    find_entries,
    has_other_server,
    remove_entries,
    remove_tables,
)
from watchroom.agents.clients.json_fields import merge_configuration
from watchroom.agents.clients.registry import hooks_of
from watchroom.history.seal.anchors import state_folder
from watchroom.model import Json
from watchroom.texts import Catalogue
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.presentation.usage import WrongUsage

_RECORDS: Final = "attached"
"""The folder in the state folder with the record of each `attach`."""
_MAX_RECORD_BYTES: Final = 50_000_000


class FileRecord(NamedTuple):
    """A file's text before and after `attach`, None for no file."""

    before: str | None
    after: str | None


class AttachRecord(NamedTuple):
    """The files that `attach` wrote, kept for `detach` in this user's state folder.

    - ``files``: the texts of the files, by path relative to the project's folder.
    - ``folders``: the folders that were created.

    `detach` finds entries by their content. The record allows it to restore an unchanged file byte for byte.
    """

    files: Mapping[str, FileRecord] = {}
    folders: tuple[str, ...] = ()


def _record_path(project: str, client: str) -> str:
    """Return the path of the record for ``client`` in the project folder ``project``."""
    own = hashlib.sha256(os.fsencode(os.path.realpath(project))).hexdigest()[:32]
    return os.path.join(state_folder(), _RECORDS, f"{own}-{client}.json")


def _read_record(path: str) -> AttachRecord:
    """Return the record at ``path``, an empty one if it is missing or unreadable."""
    try:
        with open(path, encoding="utf-8") as file:
            fields = json.loads(file.read(_MAX_RECORD_BYTES))
        files = {
            str(name): FileRecord(each["before"], each["after"]) for name, each in fields["files"].items()
        }
        return AttachRecord(files, tuple(map(str, fields["folders"])))
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return AttachRecord()


def _write_record(path: str, record: AttachRecord) -> None:
    """Write ``record`` to ``path``, readable by this user only. Raise OSError."""
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    fields = {
        "files": {name: each._asdict() for name, each in record.files.items()},
        "folders": list(record.folders),
    }
    new = f"{path}.new"
    with suppress(FileNotFoundError):
        os.unlink(new)
    # A client's files may contain secrets.
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        json.dump(fields, file, ensure_ascii=False)
    os.replace(new, path)


def _remove_record(path: str) -> None:
    """Remove the record at ``path``, if it exists. Raise OSError."""
    with suppress(FileNotFoundError):
        os.unlink(path)


class ClientFiles:
    """The configuration files of ``client`` in the folder ``project``.

    - ``names``: the files, default: all files of the client that can have our entries.
    - ``is_shared``: whether the files can have independent entries for several workspaces.

    All files are read before any is written. Raises `WrongUsage` if a file cannot be read or parsed.
    """

    def __init__(
        self,
        project: Path,
        client: str,
        texts: Catalogue,
        names: Sequence[str] = (),
        *,
        is_shared: bool = False,
    ) -> None:
        if not project.is_dir():
            raise WrongUsage(texts("cli.no_folder", path=sanitize(str(project))))
        self._project = project
        self._texts = texts
        self._client = client
        self._hooks = hooks_of(client)
        self._names = tuple(names) or self._hooks.files
        self.is_shared = is_shared
        self._record_path = _record_path(str(project), client)
        self._record = _read_record(self._record_path)
        self._there = {name: self._read(name) for name in self._names}

    def find_attached(self, root: str = "") -> AttachedAs:
        """Return the agents attached here to the workspace at ``root`` (default: any workspace). Raise
        `WrongUsage` if another workspace is attached, because all clients in a folder read the same files."""
        agents: dict[str, None] = {}
        is_strict = False
        for name, known in self._entries():
            if root not in ("", known.root):
                if self.is_shared:
                    continue
                raise WrongUsage(
                    self._texts(
                        "cli.attach.taken",
                        path=str(self._project / name),
                        agents=", ".join(known.agents) or "-",
                        root=known.root,
                        client=self._client,
                        project=shlex.quote(str(self._project)),
                    )
                )
            root = known.root
            agents |= dict.fromkeys(known.agents)
            is_strict = is_strict or known.is_strict
        return AttachedAs(root, tuple(agents), is_strict)

    def is_attached(self, root: str) -> bool:
        """Return whether there are hooks without an agent's name for the workspace at ``root``."""
        return any(known.root == root and not known.agents for _, known in self._entries())

    def has_entries(self, root: str) -> bool:
        """Return whether there are entries for the workspace at ``root``."""
        return any(known.root == root for _, known in self._entries())

    def _entries(self) -> Iterator[tuple[str, AttachedAs]]:
        for name, text in self._there.items():
            for known in find_entries(self._parse(name, text or ""), self._hooks):
                yield name, known

    def attach(self, wanted: ClientConfiguration, root: str = "") -> list[Path]:
        """Replace our entries for the workspace at ``root`` (default: any) with ``wanted``, and keep
        everything else. Return the changed files."""
        originals = {name: self._without_ours(name) for name in self._names}
        cleaned = {name: self._without_ours(name, root) for name in self._names} if root else originals
        files = dict(cleaned)
        for name, table in wanted.json.items():
            files[name] = self._merged(name, cleaned[name] or "", table)
        for name, table in wanted.toml.items():
            files[name] = self._with_tables(name, cleaned[name] or "", table)
        folders = {*self._record.folders, *(each for each in map(self._new_folder, wanted.json) if each)}
        self._keep_record(originals, files, folders)
        return self._write(files)

    def _keep_record(
        self, originals: Mapping[str, str | None], files: Mapping[str, str | None], folders: Iterable[str]
    ) -> None:
        kept = {
            name: FileRecord(originals[name], text) for name, text in files.items() if text != originals[name]
        }
        _write_record(self._record_path, AttachRecord(kept, tuple(sorted(folders))))

    def detach(self, root: str = "") -> list[Path]:
        """Remove our entries for the workspace at ``root`` (default: any), and nothing else. Return the
        changed files."""
        originals = {name: self._without_ours(name) for name in self._names}
        files = {name: self._without_ours(name, root) for name in self._names} if root else originals
        if any(files[name] != originals[name] for name in self._names):
            # Keep the record, because another workspace is still attached.
            self._keep_record(originals, files, self._record.folders)
            return self._write(files)
        written = self._write(files)
        for name in self._record.folders:
            with suppress(OSError):
                # The folder may contain other files by now.
                (self._project / name).rmdir()
        _remove_record(self._record_path)
        return written

    def _write(self, files: Mapping[str, str | None]) -> list[Path]:
        changed = [name for name, text in files.items() if text != self._there[name]]
        for name in changed:
            text, path = files[name], self._project / name
            if text is None:
                path.unlink()
            else:
                _replace(path, text)
        return [self._project / name for name in changed]

    def _new_folder(self, name: str) -> str:
        """Return the folder to create for the file ``name``, empty if it exists."""
        folder = name.rpartition("/")[0]
        return folder if folder and not (self._project / folder).exists() else ""

    def _read(self, name: str) -> str | None:
        path = self._project / name
        try:
            with path.open(encoding="utf-8", newline="") as file:
                return file.read()
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise self._unreadable(name) from error

    def _parse(self, name: str, text: str) -> dict[str, Json]:
        try:
            fields = tomllib.loads(text) if name.endswith(".toml") else json.loads(text or "{}")
        except (ValueError, RecursionError) as error:
            raise self._unreadable(name) from error
        if not isinstance(fields, dict):
            raise self._unreadable(name)
        return fields

    def _without_ours(self, name: str, root: str = "") -> str | None:
        """Return a file's text without our entries for the workspace at ``root`` (default: any). None if the
        file is missing, or if we created it and nothing is left."""
        text, known = self._there[name], self._record.files.get(name)
        if text is None:
            return None
        fields = self._parse(name, text if text.strip() else "")
        is_alone = root and all(each.root == root for each in find_entries(fields, self._hooks))
        if known is not None and known.after == text and (not root or is_alone):
            return known.before
        try:
            if name.endswith(".toml"):
                left = remove_tables(text, self._hooks)
                is_empty = not left.strip()
            else:
                cleaned = remove_entries(fields, self._hooks, root)
                left, is_empty = (text if cleaned == fields else _as_json(cleaned, text)), not cleaned
        except ValueError as error:
            raise self._unreadable(name) from error
        was_ours = left != text and (known is None or known.before is None)
        return None if is_empty and was_ours else left

    def _merged(self, name: str, text: str, table: Mapping[str, Json]) -> str:
        fields = self._parse(name, text if text.strip() else "")
        if name == self._hooks.servers.file and has_other_server(fields, self._hooks):
            raise self._other_server(name)
        try:
            return _as_json(merge_configuration(fields, table), text)
        except ValueError as error:
            raise self._unreadable(name) from error

    def _with_tables(self, name: str, text: str, table: Mapping[str, Json]) -> str:
        """Return a TOML file's text with our tables added at its end. Comments are kept."""
        try:
            for own, value in table.items():
                added = _with_table(text, {own: value})
                if added is None and own == self._hooks.servers.names[0]:
                    raise self._other_server(name)
                # The marker of the agent's commands is optional.
                text = text if added is None else added
        except (ValueError, RecursionError) as error:
            raise self._unreadable(name) from error
        return text

    def _other_server(self, name: str) -> WrongUsage:
        return WrongUsage(self._texts("cli.attach.other", path=str(self._project / name)))

    def _unreadable(self, name: str) -> WrongUsage:
        kind = "TOML" if name.endswith(".toml") else "JSON"
        return WrongUsage(self._texts("cli.attach.unreadable", path=str(self._project / name), format=kind))


def new_files(wanted: ClientConfiguration) -> dict[str, str]:
    """Return the text of each file of ``wanted``, as if the file were new."""
    jsons = {name: _as_json(table) for name, table in wanted.json.items()}
    return {**jsons, **{name: _as_toml(table) for name, table in wanted.toml.items()}}


def _with_table(text: str, table: Mapping[str, Json]) -> str | None:
    """Return ``text`` with ``table`` at its end, None if other settings prevent that. Raise ValueError if
    ``text`` is not TOML."""
    known = tomllib.loads(text)
    wanted = merge_configuration(known, table)
    if wanted == known:
        return text
    end = "" if not text or text.endswith("\n") else "\n"
    longer = text + end + "\n" * bool(text.strip()) + _as_toml(table)
    try:
        return longer if tomllib.loads(longer) == wanted else None
    except tomllib.TOMLDecodeError:
        return None


def _as_json(table: Mapping[str, Json], like: str = "") -> str:
    """Return ``table`` as JSON, with the indentation and the final newlines of ``like``."""
    with suppress(ValueError, RecursionError):
        fields = json.loads(like)
        for indent in (2, 4, "\t", None, 1, 3, 8):
            if like.rstrip("\n") == json.dumps(fields, ensure_ascii=False, indent=indent) and like != "{}":
                end = like[len(like.rstrip("\n")) :]
                return json.dumps(table, ensure_ascii=False, indent=indent) + end
    return json.dumps(table, ensure_ascii=False, indent=2) + "\n"


def _as_toml(table: Mapping[str, Json]) -> str:
    return tomli_w.dumps(cast("dict[str, Any]", table))


def _replace(path: Path, text: str) -> None:
    """Replace the file at ``path`` atomically. Symbolic links are kept."""
    target = path.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=target.parent) as scratch:
        new = Path(scratch, target.name)
        new.write_text(text, encoding="utf-8", newline="")
        if target.exists():
            shutil.copymode(target, new)
        os.replace(new, target)
