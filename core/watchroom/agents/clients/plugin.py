"""Builds the generated files of the plugin for Claude Code and Codex. Pure.

Unlike the files of `attach`, the plugin's files are the same on every machine. Its hooks find the workspace
around the client's folder, and the programs on the ``PATH``. Where there is no workspace, they do nothing.

All hooks source one script, `build_script`. It must run in the shell that the client starts with ``-c``: such
a shell belongs to the client, but a shell that runs a script does not.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from typing import Final

from watchroom.agents.clients.adapter import PLUGIN
from watchroom.agents.clients.client_program import INPUT_SECONDS, MAX_FOLDER, SAFE
from watchroom.agents.clients.configuration import (
    AGENT_VARIABLE,
    FIND_COMMON,
    SERVER,
    AskingWords,
    format_asking,
    format_mark,
)
from watchroom.agents.clients.hook_answers import HOLDING, START
from watchroom.agents.clients.registry import hooks_of
from watchroom.features.trees.place import FOLDER
from watchroom.kernel.checkout.layout import CONTROL, JOURNAL_NAME, URL_NAME
from watchroom.model import Json
from watchroom.texts import Catalogue, Language

CLIENTS: Final = ("claude", "codex")
"""The clients that have plugins."""
OPTION: Final = "--plugin"
"""The last option of ``watchroom hook`` in a hook of the plugin."""
SWITCH: Final = "WATCHROOM_PLUGIN"
"""The environment variable that turns the plugin off, with the value `OFF`."""
OFF: Final = "off"
_NAME: Final = PLUGIN.partition("@")[0]
_SCRIPT: Final = "hook.sh"
_CALLED: Final = f'hook "$root" --client "$client" {OPTION}'
_ROOTS: Final = {"claude": "CLAUDE_PLUGIN_ROOT", "codex": "PLUGIN_ROOT"}
"""The variable of each client with the plugin's folder."""
_VARIABLES: Final = ("XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "CODEX_HOME", SWITCH)
"""The variables that Codex must pass to the server. Without them, it could reach another service than the
hooks, or start one."""
_ABOUT: Final = (
    "Supervises the session with Watchroom: refuses edits that would overwrite the work of others, "
    "notifies the agent of their changes, and shows the session in the dashboard."
)


def build_marketplace(source: str) -> str:
    """Return the file of a marketplace. ``source``: the path of the plugin from the marketplace's folder."""
    entry: Json = {"name": _NAME, "source": source, "description": _ABOUT}
    return _as_json(
        {
            "name": PLUGIN.partition("@")[2],
            "owner": {"name": "Watchroom"},
            "description": "The plugin of Watchroom.",
            "plugins": [entry],
        }
    )


def build_plugin(version: str, texts: Sequence[tuple[Language, Catalogue]]) -> dict[str, str]:
    """Return the generated files, by their paths from the plugin's folder.

    - ``version``: the version of Watchroom
    - ``texts``: the core's texts in each language. Other languages get the first
    """
    about: dict[str, Json] = {
        "name": _NAME,
        # Clients accept semantic versions only.
        "version": version.replace(".dev", "-dev"),
        "description": _ABOUT,
        "author": {"name": "Watchroom"},
        "license": "MIT",
    }
    claude: Json = {**about, "hooks": "./hooks/claude.json", "mcpServers": {SERVER: _server("claude")}}
    server = {**_server("codex"), "env_vars": [*_VARIABLES]}
    codex: Json = {
        **about,
        "skills": "./skills/",
        "hooks": "./hooks/codex.json",
        "mcpServers": "./servers/codex.json",
    }
    return {
        ".claude-plugin/plugin.json": _as_json(claude),
        ".codex-plugin/plugin.json": _as_json(codex),
        "servers/codex.json": _as_json({"mcpServers": {SERVER: server}}),
        **{f"hooks/{client}.json": _as_json({"hooks": _hooks(client)}) for client in CLIENTS},
        _SCRIPT: build_script(texts),
    }


def _server(client: str) -> dict[str, Json]:
    return {"command": "watchroom", "args": ["plugin", "--serve", client]}


def _hooks(client: str) -> Json:
    support = hooks_of(client)
    hooks: dict[str, Json] = {}
    for event, seconds in support.events.items():
        given = f'client={client} event={event} seconds={seconds} f="${{{_ROOTS[client]}}}/{_SCRIPT}"'
        # A missing script would end the shell with a status that refuses the call.
        line = f'{given}; [ ! -r "$f" ] || . "$f"'
        entry: dict[str, Json] = {"type": "command", "command": line, "timeout": seconds}
        hooks[event] = [{"hooks": [{**entry, **support.entry_fields(event, False)}]}]
    return hooks


def build_script(texts: Sequence[tuple[Language, Catalogue]]) -> str:
    """Return the script of all hooks. It takes ``client``, ``event`` and ``seconds`` (the client's timeout).

    ``texts``: the core's texts in each language. Other languages get the first.
    """
    direct = "|".join(f"{each}:{event}" for each in CLIENTS for event in hooks_of(each).needs_status)
    asking = AskingWords(
        "curl", '"$r"', '"$r/service.sock"', '"$url"', '"$seconds"', "within ", f"watchroom {_CALLED}"
    )
    return f"""\
# Runs a hook of Watchroom's plugin, with $client, $event and $seconds.
# Generated by docs/make_plugin.py.

used() {{ [ -e "$1/{CONTROL}/{JOURNAL_NAME}" ] || [ -e "$1/{CONTROL}/{URL_NAME}" ]; }}

leave() {{
  [ "$event" = {START} ] || exit 0
  case $1:${{WATCHROOM_LANGUAGE-}} in
{_list_texts(texts)}
  esac
  exit 0
}}

[ "${{{SWITCH}-}}" != {OFF} ] || exit 0
command -v watchroom >/dev/null || leave missing

# The workspace around the client's folder, by builtins only, because this runs in every folder.
here=$PWD
[ "$client" != claude ] || here=${{CLAUDE_PROJECT_DIR:-$PWD}}
d=$here
while [ "$d" ] && [ ! -e "$d/.git" ] && ! used "$d"; do d=${{d%/*}}; done
[ "$d" ] || exit 0
root=$d main=$d
if ! used "$d"; then
  g=$d/.git
  {FIND_COMMON}
  root=$g/{FOLDER} main=${{g%/.git}}
  used "$root" || exit 0
fi
cd -P "$root" || exit 0
root=$PWD

# Hooks of attach for the same workspace would report each event a second time.
case $client in
{_list_files()}
esac
! grep -qsF -e "hook $root --" -e "hook '$root' --" "$@" || leave attached

if [ "$client:$event" = claude:{START} ] && [ "${{CLAUDE_ENV_FILE-}}" ]; then
  echo "export {AGENT_VARIABLE}='{format_mark((), "claude")}'" >>"$CLAUDE_ENV_FILE"
fi

case $client:$event in {direct}) exec watchroom {_CALLED} ;; esac
case $root in *[!{SAFE}]*) exec watchroom {_CALLED} ;; esac
command -v curl >/dev/null || exec watchroom {_CALLED}
within() {{ "$@"; }}
! command -v timeout >/dev/null || within() {{ timeout {INPUT_SECONDS:.0f} "$@"; }}
r=${{XDG_RUNTIME_DIR:-/run/user/$(id -u)}}/watchroom
if [ ! -d "${{r%/*}}" ] || [ "${{#r}}" -gt {MAX_FOLDER} ]; then r=/tmp/watchroom-$(id -u); fi
url="http://w/hook?root=$root&client=$client"
case $event in
  {"|".join(sorted(HOLDING))})
    {format_asking(asking, is_holding=True)} ;;
  *)
    {format_asking(asking, is_holding=False)} ;;
esac
"""


def _list_texts(texts: Sequence[tuple[Language, Catalogue]]) -> str:
    """Return the cases of a shell that print a text, by the text and the language."""
    lines = []
    for kind in ("missing", "attached"):
        for language, own in reversed(texts):
            said = json.dumps({"systemMessage": own(f"hook.plugin_{kind}")}, ensure_ascii=False)
            pattern = "*" if language == texts[0][0] else language
            lines.append(f"    {kind}:{pattern}) echo {shlex.quote(said)} ;;")
    return "\n".join(lines)


def _list_files() -> str:
    """Return the cases of a shell that put the files with hooks of `attach` into its arguments."""
    lines = []
    for client in CLIENTS:
        support = hooks_of(client)
        words = [f'"$here/{support.hooks.file}"', f'"$main/{support.hooks.file}"']
        if support.personal is not None:
            variable, folder, name = support.personal
            own = folder.replace("~", "$HOME")
            words.append(f'"${{{variable}:-{own}}}/{name}"')
        lines.append(f"  {client}) set -- {' '.join(words)} ;;")
    return "\n".join(lines)


def _as_json(fields: Json) -> str:
    return json.dumps(fields, ensure_ascii=False, indent=2) + "\n"
