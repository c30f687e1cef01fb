"""Agents, their commands, a person and git change files at random: everything is recorded, with its author."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Final

import pytest
from effort import rounds, seeds
from trees.random_world import Place, Refused, World, put, remove
from trees.tree_client import ScriptedClient

OPERATIONS: Final = rounds(120, 10_000)
SETTLE_EVERY: Final = 5
CHANGES: Final = (
    *("write", "write", "write", "binary", "empty", "remove", "mode", "move", "fold", "ignored", "link"),
)


@pytest.mark.parametrize("seed", seeds(2, 1))
def test_rows_are_the_disk_and_name_who_changed_it(tmp_path: Path, seed: int) -> None:
    dice = Random(seed)
    with World(tmp_path, dice) as world:
        kinds, weights = zip(*OPERATION_WEIGHTS, strict=True)
        for number in range(OPERATIONS):
            (operation,) = dice.choices(kinds, weights)
            world.log.append(operation.__name__)
            operation(world)
            if number % SETTLE_EVERY == 0 or dice.random() < 0.3:
                world.settle()
            assert not world.faults, _explain(world, seed)
        world.settle()
        world.check_texts()
        assert not world.faults, _explain(world, seed)


def _explain(world: World, seed: int) -> str:
    return "\n".join([f"seed {seed}", *world.faults[:10], "after", *world.log[-8:]])


def _say(world: World, text: str) -> None:
    world.log[-1] += f" {text}"


# -- agents' own tools


def _pick(world: World, kind: str = "claude") -> tuple[ScriptedClient, int]:
    """Choose a client of a kind, in a tree."""
    client = world.clients[world.dice.randrange(2) if kind == "claude" else 2]
    number = world.dice.randrange(3)
    client.folder = world.folders[number]
    return client, number


def read(world: World) -> None:
    client, number = _pick(world)
    names = world.texts_in(number)
    if names:
        client.read(world.dice.choice(names))


def edit(world: World) -> None:
    client, number = _pick(world)
    name, old = _find_line(world, number)
    if not old:
        return
    _say(world, f"{client.agent} {number} {name!r}")
    if world.dice.random() < 0.5:
        client.read(name)
    try:
        begun = client.begin_edit(name, old, world.fresh())
    except Refused:
        return
    world.step(client.agent, lambda: client.end_edit(*begun))


def _find_line(world: World, number: int) -> tuple[str, str]:
    """Return the name of a file and a line that is in it once; empty texts for none."""
    names = world.texts_in(number)
    if not names:
        return "", ""
    name = world.dice.choice(names)
    text = (world.folders[number] / name).read_bytes().decode()
    lines = [each for each in text.splitlines() if each.strip() and text.count(each) == 1]
    return (name, world.dice.choice(lines)) if lines else ("", "")


def write_whole(world: World) -> None:
    client, number = _pick(world)
    name = _name_of_text(world, number)
    _say(world, f"{client.agent} {number} {name!r}")
    path = world.folders[number] / name
    if path.is_file() and world.dice.random() < 0.7:
        client.read(name)
    text = _change_text(world, path)
    try:
        begun = client.begin_write(name, text)
    except Refused:
        world.refused.append((Place(number, name), text))
        return
    if world.dice.random() < 0.2:
        # A person saves between the check and the write.
        world.step("person", lambda: put(path, (world.fresh() + "\n").encode()))
    world.step(client.agent, lambda: client.end_write(*begun))


def _name_of_text(world: World, number: int) -> str:
    names = world.texts_in(number)
    new = [each for each in ("new1.txt", "new2.txt", "src/new3.py") if each not in world.now[number]]
    free = [each for each in new if not os.path.lexists(world.folders[number] / each)]
    blocked = [each for each in free if not (world.folders[number] / each).parent.is_dir()]
    return world.dice.choice([*names, *[each for each in free if each not in blocked]])


def _change_text(world: World, path: Path) -> str:
    """Return the text of a file with one line replaced, or a new one."""
    lines = path.read_bytes().decode().splitlines(keepends=True) if path.is_file() else []
    if not lines or world.dice.random() < 0.2:
        return "".join(world.fresh() + "\n" for _ in range(3))
    lines[world.dice.randrange(len(lines))] = world.fresh() + "\n"
    return "".join(lines)


def patch(world: World) -> None:
    client, number = _pick(world, "codex")
    kind = world.dice.choice(("Update", "Update", "Add", "Delete"))
    name, old = _find_line(world, number)
    if not old or name.strip() != name or "\n" in name or "\r" in old:
        return
    lines = [f"*** {kind} File: {name}"]
    if kind == "Update":
        lines += ["@@", f"-{old}", f"+{world.fresh()}"]
    elif kind == "Add":
        lines = ["*** Add File: added.txt", f"+{world.fresh()}"]
        if (world.folders[number] / "added.txt").is_dir():
            return
    _say(world, f"{client.agent} {number} {lines[0]!r}")
    text = "\n".join(["*** Begin Patch", *lines, "*** End Patch", ""])
    try:
        world.step(client.agent, lambda: client.patch(text))
    except Refused:
        return


# -- commands, a person, and git


def _change_one(world: World, number: int) -> None:
    """Change a file as a command or a person does."""
    folder, dice = world.folders[number], world.dice
    name, kind = world.any_name(number), dice.choice(CHANGES)
    _say(world, f"{kind} {number} {name!r};")
    path = folder / name
    data = (world.fresh() + dice.choice(("", "\n", "\r\nmore\r\n"))).encode()
    if kind in ("write", "binary", "empty"):
        put(path, {"write": data, "binary": b"\0\xff" + data, "empty": b""}[kind])
    elif kind == "remove":
        remove(path)
    elif kind == "mode" and path.is_file():
        path.chmod(path.stat().st_mode ^ 0o111)
    elif kind == "move" and path.is_file():
        moved = path.read_bytes()
        remove(path)
        put(folder / world.any_name(number), moved)
    elif kind == "fold" and path.parent != folder and dice.random() < 0.5:
        # A folder becomes a file.
        remove(path.parent)
        put(path.parent, data)
    elif kind == "fold":
        put(path / "inner.txt", data)
    elif kind == "ignored":
        put(folder / "build" / "out.txt", data)
        put(folder / "x.o", data)
    elif kind == "link" and not os.path.lexists(path) and path.parent.is_dir():
        path.symlink_to("run.sh")


def _change(world: World) -> Callable[[], object]:
    def run() -> None:
        number = world.dice.randrange(3)
        for _ in range(world.dice.randint(1, 4)):
            _change_one(world, number)

    return run


def by_hand(world: World) -> None:
    world.step("person", _change(world))


def command(world: World) -> None:
    client, _ = _pick(world)
    _say(world, client.agent)
    begun = client.begin_bash("make")
    world.step(client.agent, _change(world), windows=[client.agent])
    client.end_bash(*begun)


def overlapping_commands(world: World) -> None:
    one, other = world.dice.sample(world.clients, 2)
    _say(world, f"{one.agent} {other.agent}")
    first = one.begin_bash("make")
    world.step(one.agent, _change(world), windows=[one.agent])
    second = other.begin_bash("make")
    world.step(one.agent, _change(world), windows=[one.agent, other.agent])
    one.end_bash(*first)
    world.step(other.agent, _change(world), windows=[other.agent])
    other.end_bash(*second)


def _git_command(world: World, number: int) -> tuple[str, ...]:
    dice = world.dice
    branches = ("main", "branch0", "branch1", "extra")
    name = dice.choice([*sorted(world.now[number])] or ["src/m0.py"])
    return dice.choice(
        (
            ("add", "--all"),
            ("commit", "--quiet", "--message=work"),
            ("commit", "--quiet", "--all", "--message=work"),
            ("checkout", "--quiet", dice.choice(branches)),
            ("checkout", "--quiet", "--detach"),
            ("checkout", "--quiet", "-B", "extra"),
            ("checkout", "--quiet", "--force", "--detach", dice.choice(branches)),
            ("stash", "push", "--quiet"),
            ("stash", "push", "--quiet", "--include-untracked"),
            ("stash", "pop", "--quiet"),
            ("--literal-pathspecs", "restore", "--", name),
            ("reset", "--quiet", "--hard"),
            ("merge", "--quiet", "--no-edit", dice.choice(branches)),
            ("merge", "--abort"),
            ("commit", "--quiet", "--amend", "--no-edit", "--allow-empty"),
            ("cherry-pick", dice.choice(branches)),
            ("cherry-pick", "--abort"),
            ("clean", "--quiet", "--force", "-d"),
            ("gc", "--quiet", "--prune=now"),
        )
    )


def git_by_hand(world: World) -> None:
    number = world.dice.randrange(3)
    arguments = _git_command(world, number)
    # What was not recorded before git changes it is lost to everybody.
    world.settle()
    _say(world, f"{number} {' '.join(arguments)}")
    world.step("git", lambda: world.run_git(number, *arguments), is_git=True)


def git_by_command(world: World) -> None:
    client, number = _pick(world)
    arguments = _git_command(world, number)
    _say(world, f"{client.agent} {number} {' '.join(arguments)}")
    begun = client.begin_bash("make")
    world.step(client.agent, _change(world), windows=[client.agent])
    if world.dice.random() < 0.5:
        world.step(
            client.agent, lambda: world.run_git(number, "add", "-A"), windows=[client.agent], is_git=True
        )
        world.step(
            client.agent,
            lambda: world.run_git(number, "commit", "-qm", "w"),
            windows=[client.agent],
            is_git=True,
        )
    world.step(client.agent, lambda: world.run_git(number, *arguments), windows=[client.agent], is_git=True)
    client.end_bash(*begun)


OPERATION_WEIGHTS: Final = (
    (read, 2),
    (edit, 6),
    (write_whole, 4),
    (patch, 2),
    (by_hand, 4),
    (command, 4),
    (overlapping_commands, 2),
    (git_by_hand, 2),
    (git_by_command, 1),
)
