"""Calls of Codex and opencode that apply a patch in Codex's format. Pure."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

from watchroom.agents.clients.adapter import Event
from watchroom.agents.clients.json_fields import absolute_path
from watchroom.features.trees.patches import (
    FilePatch,
    PatchInvalid,
    build_add,
    build_update,
    format_patch,
    parse_patch,
)
from watchroom.features.trees.uses import FileWrite, MovedText, NewText
from watchroom.features.trees.write_rules import Deletion, Update, WholeText


def list_patch_writes(event: Event, patch: str, folder: str = "") -> tuple[FileWrite, ...] | None:
    """Return the file writes of ``patch``, which the call of ``event`` applies in ``folder``.

    Empty if the client refuses the patch. None if the patch has a file twice.
    """
    try:
        files = parse_patch(patch)
    except PatchInvalid:
        return ()
    writes = tuple(each for file in files for each in _describe_writes(event, folder, file))
    return writes if len({os.path.normpath(each.path) for each in writes}) == len(writes) else None


def _describe_writes(event: Event, folder: str, file: FilePatch) -> Iterator[FileWrite]:
    path = absolute_path(event, os.path.join(folder, file.path))
    if file.kind == "add":
        yield FileWrite(path, WholeText(file.text, is_patch=True))
    elif file.kind == "delete":
        yield FileWrite(path, Deletion())
    else:
        yield FileWrite(path, Update(file))
        if file.move_to:
            yield FileWrite(absolute_path(event, os.path.join(folder, file.move_to)), MovedText(path))


def replace_patch_texts(event: Event, patch: str, texts: Sequence[NewText]) -> str:
    """Return the ``patch`` of the call in ``event``, rewritten so that its files get ``texts``.

    Raise ValueError if a patch cannot express one of them.
    """
    new = {each.path: each for each in texts}
    files = [_replace_text(each, new, absolute_path(event, each.path)) for each in parse_patch(patch)]
    return format_patch(files)


def _replace_text(file: FilePatch, texts: Mapping[str, NewText], path: str) -> FilePatch:
    new = texts.get(path)
    if new is None:
        return file
    if file.kind == "add":
        built = build_add(file.path, new.text)
    else:
        built = build_update(file.path, new.before, new.text, file.move_to)
    if built is None:
        raise ValueError(path)
    return built
