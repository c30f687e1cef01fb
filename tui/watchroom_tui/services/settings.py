"""A person's settings for all workspaces, and the dashboard's memory of each workspace.

The settings are a TOML file in the system's folder for settings. The dashboard writes only settings that the
person changed, and preserves comments, order and key bindings. The memory of a workspace is a file in the
person's state folder.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from platformdirs import user_config_path
from watchroom import validation
from watchroom.kernel.rules.publication import SEAL_BRANCH, Publication
from watchroom.serving.machines.address import MAX_MACHINES, AddressProblem, Machine, parse_machine
from watchroom.texts import LANGUAGES, Catalogue, Language

from watchroom_tui.keys.actions import ACTIONS, SCREENS
from watchroom_tui.keys.keymap import find_ambiguous_key, is_key
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.presentation.usage import WrongUsage
from watchroom_tui.services.alert_policy import MODES, AlertMode

MAX_BYTES: Final = 64 * 1024
"""Maximum size of a file in bytes."""

_IDS: Final = frozenset(action.id for action in ACTIONS)

_CHOICES: Final[Mapping[str, Sequence[str]]] = {
    "theme": ("dark", "light"),
    "language": LANGUAGES,
    "alerts": MODES,
    "screen": [name for _, name in SCREENS],
}
"""The settings with a fixed set of values."""

_PUBLISH: Final = ("folder", "git", "branch", "webhook")
"""The keys of the table ``publish``."""


_MACHINE: Final = ("address", "program")
"""The keys of a table in ``machines``."""

_OBSOLETE: Final = ("filters",)
"""Settings of earlier versions, which have no effect."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of one person, all optional.

    - ``publish``: the places where journal seals are published: a folder, or a table of ``folder``, ``git``
      (a repository), ``branch`` and ``webhook``.
    - ``screen``: the screen to open if none is remembered for the workspace.
    - ``keys``: the person's key bindings, by action id. Other actions keep the default keys.
    - ``machines``: workspaces on other machines, by name: an address, or a table of ``address`` and
      ``program``.
    """

    theme: Literal["dark", "light"] | None = None
    language: Language | None = None
    alerts: AlertMode | None = None
    publish: str | Mapping[str, str] | None = None
    screen: str | None = None
    keys: Mapping[str, str | list[str]] = field(default_factory=dict)
    machines: Mapping[str, str | Mapping[str, str]] = field(default_factory=dict)

    @property
    def publication(self) -> Publication:
        """The places where journal seals are published."""
        table = self._publish_table
        folder, repository = (os.path.expanduser(table.get(name, "")) for name in ("folder", "git"))
        return Publication(folder, repository, table.get("branch", SEAL_BRANCH))

    @property
    def webhook(self) -> str:
        """The webhook for journal seals: its address, or an environment variable with the address
        (``$NAME``). Empty without a webhook."""
        return self._publish_table.get("webhook", "")

    @property
    def _publish_table(self) -> Mapping[str, str]:
        return {"folder": self.publish} if isinstance(self.publish, str) else self.publish or {}

    @property
    def machine_list(self) -> tuple[Machine, ...]:
        """The workspaces on other machines."""
        return tuple(_machine(name, entry) for name, entry in self.machines.items())

    @property
    def keymap(self) -> Mapping[str, tuple[str, ...]]:
        """The keys of each remapped action."""
        return {
            action: (keys,) if isinstance(keys, str) else tuple(keys) for action, keys in self.keys.items()
        }


def _machine(name: str, entry: str | Mapping[str, str]) -> Machine:
    """Return the machine ``name`` of an entry in the settings. Raise `AddressProblem`."""
    if isinstance(entry, str):
        return parse_machine(name, entry)
    return parse_machine(name, entry.get("address", ""), entry.get("program", ""))


def settings_path() -> Path:
    """Return the path of the settings on this system."""
    return user_config_path("watchroom", appauthor=False) / "settings.toml"


def read_settings(path: Path, texts: Catalogue) -> Settings:
    """Return the settings in the file at ``path``, or the defaults if the file does not exist.

    Raise `WrongUsage` with the file and the line if a setting, an action or a key is unknown, or if a key
    has two meanings.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return Settings()
    except OSError as error:
        raise _problem(path, None, error.strerror or str(error), texts) from error
    if len(data) > MAX_BYTES:
        raise _problem(path, None, texts("settings.too_long", most=MAX_BYTES), texts)
    source = data.decode("utf-8", "replace")
    try:
        values = validation.parse_toml(source)
    except ValueError as error:
        raise _problem(path, None, str(error), texts) from error
    mistake = next(_mistakes(values, texts), None)
    if mistake is not None:
        place, said = mistake
        raise _problem(path, _line_of(source, place), said, texts)
    settings = Settings(**{name: value for name, value in values.items() if name not in _OBSOLETE})
    _check_keys(settings, source, path, texts)
    return settings


def _mistakes(values: Mapping[str, Any], texts: Catalogue) -> Iterator[tuple[Sequence[str], str]]:
    """Yield the place and the error of each invalid setting. This does not use pydantic, because pydantic
    would delay the first paint."""
    for name, value in values.items():
        if name in _CHOICES and value not in _CHOICES[name]:
            yield (name,), texts("settings.one_of", name=name, values=", ".join(_CHOICES[name]))
        elif name in ("filters", "keys"):
            entries = value.items() if isinstance(value, dict) else [("", None)]
            for entry, text in entries:
                texts_of_entry = text if isinstance(text, list) and name == "keys" else [text]
                if not all(isinstance(each, str) for each in texts_of_entry):
                    yield (name, entry), texts("settings.no_text", name=entry or name)
        elif name == "publish":
            yield from _publish_mistakes(value, texts)
        elif name == "machines":
            yield from _machine_mistakes(value, texts)
        elif name not in _CHOICES:
            yield (name,), texts("settings.unknown", name=name)


def _publish_mistakes(value: Any, texts: Catalogue) -> Iterator[tuple[Sequence[str], str]]:
    entries = value.items() if isinstance(value, dict) else [("", value)]
    for entry, text in entries:
        if entry and entry not in _PUBLISH:
            yield ("publish", entry), texts("settings.unknown", name=f"publish.{entry}")
        elif not isinstance(text, str):
            yield ("publish", entry), texts("settings.no_text", name=entry or "publish")
        elif "\0" in text:
            # No path has a null character, and resolving a home folder with one raises an error.
            yield ("publish", entry), texts("settings.nul", name=entry or "publish")


def _machine_mistakes(value: Any, texts: Catalogue) -> Iterator[tuple[Sequence[str], str]]:
    if not isinstance(value, dict) or len(value) > MAX_MACHINES:
        yield ("machines",), texts("machine.problem.number", most=MAX_MACHINES)
        return
    for name, entry in value.items():
        fields = entry if isinstance(entry, dict) else {"address": entry}
        unknown = next((key for key in fields if key not in _MACHINE), None)
        if unknown is not None:
            yield ("machines", name), texts("settings.unknown", name=f"machines.{name}.{unknown}")
        elif not all(isinstance(each, str) for each in fields.values()):
            yield ("machines", name), texts("settings.no_text", name=f"machines.{name}")
        else:
            try:
                _machine(name, fields)
            except AddressProblem as problem:
                yield ("machines", name), f"{name}: {texts(f'machine.problem.{problem.rule}')}"


def _check_keys(settings: Settings, source: str, path: Path, texts: Catalogue) -> None:
    for action, keys in settings.keymap.items():
        said = _key_mistake(action, keys, settings, texts)
        if said is not None:
            raise _problem(path, _line_of(source, ("keys", action)), said, texts)


def _key_mistake(action: str, keys: Sequence[str], settings: Settings, texts: Catalogue) -> str | None:
    """Return the error in the keys of ``action``, or None if the keys are valid."""
    if action not in _IDS:
        return texts("settings.no_action", name=action)
    # Textual would keep the old keys for an empty list.
    unknown = next((key for key in keys or ("[]",) if not is_key(key)), None)
    if unknown is not None:
        return texts("settings.no_key", name=unknown)
    other = find_ambiguous_key(action, settings.keymap)
    if other is None:
        return None
    return texts("settings.ambiguous", shared=other.key, action=action, other=other.action)


def _line_of(source: str, place: Sequence[str | int]) -> int | None:
    """Return the line of a setting, or the line of its table. Called only for an error."""
    from watchroom.agents.simulation.toml_lines import line_numbers

    lines = line_numbers(source)
    ends = range(len(place), 0, -1)
    return next((lines[found] for end in ends if (found := tuple(place[:end])) in lines), None)


def _problem(path: Path, line: int | None, said: str, texts: Catalogue) -> WrongUsage:
    key = "settings.problem" if line is None else "settings.problem_at"
    # Names in the file can have any character.
    return WrongUsage(texts(key, path=path, line=line, problem=sanitize(said)))


def write_machines(path: Path, machines: Mapping[str, str | Mapping[str, str]]) -> None:
    """Replace the machines in the file at ``path``. Raise as `remember`, and ValueError for more than
    `MAX_MACHINES`."""
    if len(machines) > MAX_MACHINES:
        raise ValueError(f"more than {MAX_MACHINES} machines")
    remember(path, machines=dict(machines))


def remember(path: Path, **values: object) -> None:
    """Write settings into the file at ``path``, and preserve its other content. Raise OSError, and
    ValueError if the file is not TOML or would be longer than `MAX_BYTES`. An error leaves the file
    unchanged."""
    import tomlkit

    try:
        document = tomlkit.parse(path.read_text("utf-8"))
    except FileNotFoundError:
        document = tomlkit.document()
    before = tomlkit.dumps(document)
    for name, value in values.items():
        if document.get(name) != value:
            document[name] = value
    text = tomlkit.dumps(document)
    if text != before:
        _write(path, text)


def _write(path: Path, text: str) -> None:
    """Replace the file at ``path``. Raise OSError, and ValueError if ``text`` is longer than `MAX_BYTES`."""
    if len(text.encode()) > MAX_BYTES:
        raise ValueError(f"more than {MAX_BYTES} bytes")
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    part.write_text(text, "utf-8")
    part.replace(path)


@dataclass(frozen=True, slots=True)
class WorkspaceMemory:
    """The dashboard's memory of a workspace.

    - ``screen``: the last screen, None if it is unknown.
    - ``filters``: the filters of lists, by ``screen.list``.
    """

    screen: str | None = None
    filters: Mapping[str, str] = field(default_factory=dict)


def read_memory(path: Path) -> WorkspaceMemory:
    """Return the content of the file at ``path``, or an empty memory if the file is missing or damaged."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        values = validation.parse_toml(data.decode("utf-8")) if len(data) <= MAX_BYTES else {}
    except (OSError, ValueError):
        return WorkspaceMemory()
    screen, filters = values.get("screen"), values.get("filters")
    return WorkspaceMemory(
        screen if screen in _CHOICES["screen"] else None,
        {name: text for name, text in filters.items() if isinstance(text, str)}
        if isinstance(filters, dict)
        else {},
    )


def write_memory(path: Path, memory: WorkspaceMemory) -> None:
    """Write ``memory`` into the file at ``path``, unless the file already contains it. Raise OSError, and
    ValueError if the content is longer than `MAX_BYTES`."""
    if memory == read_memory(path):
        return
    import tomlkit

    values = {"screen": memory.screen, "filters": dict(memory.filters)}
    _write(path, tomlkit.dumps({name: value for name, value in values.items() if value}))
