"""Worktrees: what they would bring, merging them, giving them up; `worktrees`."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from typing import Any

import click

from workbench.cli.client import Door
from workbench.cli.output import Note, Noun, Shown, Text, given, pass_door
from workbench.tables import Page, Table

COLUMNS = {
    "name": "worktree",
    "branch_name": "branch",
    "status": "status",
    "ahead": "ahead",
    "behind": "behind",
    "n_files": "files",
    "n_dirty": "uncommitted",
    "n_conflicts": "conflicts",
    "n_overlaps": "overlaps",
    "open_tasks": "open tasks",
}
ITEMS = {"kind": "kind", "name": "name", "size": "size", "safe": "safe", "reason": "why"}


@click.group(cls=Noun)
def worktrees() -> None:
    """Directories of their own for branches of work: list, status, diff, create, integrate, …"""


@worktrees.command("list")
@pass_door
def list_worktrees(door: Door) -> Shown:
    """List the active worktrees with what they would bring."""
    found = door.call("get_worktree_status")["worktrees"]
    return Table.of([_counted(one) for one in found], COLUMNS, "There is no active worktree.", found)


def _counted(found: Mapping[str, Any]) -> dict[str, Any]:
    return {**found, **{f"n_{name}": len(found[name]) for name in ("files", "dirty", "conflicts", "overlaps")}}


@worktrees.command("status")
@click.argument("name")
@pass_door
def show_status(door: Door, name: str) -> Shown:
    """Show one worktree: its commits, files, coming conflicts, agents and tasks."""
    (found,) = door.call("get_worktree_status", worktree_name=name)["worktrees"]
    plain = {key: _plain(value) for key, value in found.items() if key != "files"}
    rows = [[key.replace("_", " "), value] for key, value in plain.items() if value not in (None, "", [])]
    files = Table.of(found["files"], {"path": "file", "added": "+", "removed": "−"}, "It has changed nothing yet.")
    return Page([(found["name"], Table(["", ""], rows)), ("Changed files", files)], found)


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return ", ".join(_overlap(one) if isinstance(one, dict) else one for one in value)
    return value


def _overlap(one: Mapping[str, Any]) -> str:
    return f"{one['worktree']} ({', '.join(one['files'])})"


@worktrees.command("diff")
@click.argument("name")
@click.argument("path", required=False)
@click.option("--uncommitted", is_flag=True, help="What is not committed yet, instead of what is.")
@pass_door
def show_diff(door: Door, name: str, path: str | None, uncommitted: bool) -> Shown:
    """Print what a worktree changed since it left its target."""
    found = door.call("get_worktree_diff", worktree_name=name, uncommitted=uncommitted, **given(path=path))
    texts = [file["patch"] or _without_patch(file) for file in found["files"]]
    return Text("".join(texts).rstrip("\n"), found)


def _without_patch(file: Mapping[str, Any]) -> str:
    why = "too long to show" if file["truncated"] else "binary" if file["binary"] else "nothing to show"
    return f"{file['status']} {file['path']} ({why})\n"


@worktrees.command("create")
@click.argument("name")
@click.option("--branch", "branch_name", default=None, help="Default: wb/NAME/main.")
@click.option("--from", "source_branch", default=None, help="Default: the current branch; also the default target.")
@pass_door
def create(door: Door, name: str, branch_name: str | None, source_branch: str | None) -> Shown:
    """Make a worktree with a branch of its own."""
    made = door.call("create_worktree", name=name, **given(branch_name=branch_name, source_branch=source_branch))
    return Note(f"{name} is on branch {made['branch_name']}, in {made['path']}.", made)


@click.command()
@click.argument("name")
@click.option("--target", "target_branch", default=None, help="Default: the branch it was forked from.")
@click.option("--fast-forward/--merge-commit", default=None, help="Default: the setting.")
@pass_door
def integrate(door: Door, name: str, target_branch: str | None, fast_forward: bool | None) -> Shown:
    """Ask for a worktree to be merged; `approve` then merges it."""
    how = given(target_branch=target_branch, fast_forward=fast_forward)
    asked = door.call("integrate_worktree", worktree_name=name, **how)
    return Note(f"Approval {asked['approval_id']} merges {name} into {asked['target_branch']}.", asked)


@worktrees.command("update")
@click.argument("name")
@pass_door
def update(door: Door, name: str) -> Shown:
    """Bring what is new on the target into a worktree."""
    made = door.call("update_worktree", worktree_name=name)
    if made["conflicts"]:
        return Note(f"Nothing was changed; in conflict: {', '.join(made['conflicts'])}.", made)
    return Note(f"{name} is at {made['commit'][:12]}." if made["merged"] else f"{name} has everything already.", made)


@click.command()
@click.argument("name")
@click.option("--reason", default="", help="Kept in the history.")
@click.option("--delete-branch", is_flag=True, help="Delete its branch too.")
@click.option("--force", is_flag=True, help="Also what is nowhere else; it is saved as a bundle.")
@pass_door
def discard(door: Door, name: str, reason: str, delete_branch: bool, force: bool) -> Shown:
    """Give a worktree up; its branch is kept."""
    made = door.call("discard_worktree", worktree_name=name, reason=reason, delete_branch=delete_branch, force=force)
    kept = f"the branch {made['branch_name']} is {'kept' if made['branch_kept'] else 'deleted'}"
    saved = f" What was nowhere else is in {made['bundle']}." if made["bundle"] else ""
    return Note(f"{name} is discarded; {kept}.{saved}", made)


@worktrees.command("conflicts")
@pass_door
def conflicts(door: Door) -> Shown:
    """List the conflicts that are coming, between worktrees and with their targets."""
    found = door.call("list_conflicts")
    rows = [[pair["one"], pair["other"], ", ".join(pair["files"])] for pair in found["pairs"]]
    return Table(["worktree", "with", "files"], rows, "No conflict is coming.", found)


@worktrees.command("prune")
@click.option("--yes", is_flag=True, help="Remove what is safe.")
@pass_door
def prune(door: Door, yes: bool) -> Shown:
    """Show what worktrees take of the disk, and clear what is safe."""
    found = door.call("prune_worktrees", apply=yes)
    rows = [{**item, "size": _size(item["bytes"]), "safe": "yes" if item["safe"] else ""} for item in found["items"]]
    done = f"{_size(found['freed'])} freed" if yes else "--yes removes what is safe"
    return Table.of(rows, ITEMS, "There is nothing.", found, f"{_size(found['bytes'])} in all; {done}")


def _size(count: float) -> str:
    for unit in ("B", "kB", "MB"):
        if count < 1_000:
            return f"{count:.0f} {unit}"
        count /= 1_000
    return f"{count:.1f} GB"


@worktrees.command("run", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("name")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@click.pass_context
def run(ctx: click.Context, name: str, command: tuple[str, ...]) -> None:
    """Run a command in a worktree, confined as its workers are: `worktrees run NAME -- git log`."""
    from workbench.git import Repository
    from workbench.services.worktrees.places import Place, box_of, gone, is_there

    door: Door = ctx.obj
    (found,) = door.call("get_worktree_status", worktree_name=name)["worktrees"]
    place = Place.of(door.settings, found["name"])
    if not is_there(place):
        raise gone(place)
    box = box_of(door.settings, Repository.open(door.settings.project), place)
    words = command[1:] if command[0] == "--" else command
    code = subprocess.run(box.argv(words), cwd=place.path, env=box.environment(os.environ), check=False).returncode
    ctx.exit(code if code >= 0 else 128 - code)


worktrees.add_command(integrate)
worktrees.add_command(discard)
