"""Worktrees: `worktrees` (list, status, diff, create, update, resolve, changes, conflicts, prune, run), `discard`."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import click

from workbench.cli import integration
from workbench.cli.approvals import decider
from workbench.cli.client import OperatorClient
from workbench.cli.completion import offers
from workbench.cli.global_options import root
from workbench.cli.operations.declared import view
from workbench.cli.output import Note, NounGroup, Shown, Text, drop_none, pass_client, raw_option, size
from workbench.present.tables import Table, TablePage
from workbench.rules.integration import OPEN, WorktreeState, not_now
from workbench.rules.wire.patch import patch_text

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
CLOSED = {
    "name": "worktree",
    "branch_name": "branch",
    "integration_target": "target",
    "status": "status",
    "commit": "merged as",
    "requester": "requested by",
    "by": "decided by",
    "closed_at": "at",
    "reason": "reason",
}
OF_FILES = ("path", "ahead", "behind", "added", "removed", "dirty", "conflicts", "overlaps", "merging")
"""What is known of the files of a worktree, as long as it has any."""
NO_WORKTREES = "There are no active worktrees."
ITEMS = {"kind": "kind", "name": "name", "size": "size", "safe": "safe", "reason": "why"}


@root.group(cls=NounGroup)
def worktrees() -> None:
    """Worktrees of agents: list, status, diff, create, integrate, …"""


@worktrees.command("list")
@click.option("--all", "everything", is_flag=True, help="Show integrated and discarded ones too.")
@pass_client
def list_worktrees(client: OperatorClient, everything: bool) -> Shown:
    """List the active worktrees and what each would merge."""
    found = client.call("get_worktree_status")["worktrees"]
    active = worktree_table(found, NO_WORKTREES)
    if not everything:
        return active
    closed = client.call("list_closed_worktrees")["worktrees"]
    return TablePage([("Active", active), ("Closed", _closed_table(closed))], {"worktrees": found, "closed": closed})


def worktree_table(found: Sequence[Mapping[str, Any]], empty: str) -> Table:
    """Active worktrees, and what each would merge."""
    said = [(one["name"], text) for one in found for text in (one["problem"], _without(one["empty_submodules"]))]
    note = "\n".join(f"{name}: {text}" for name, text in said if text)
    return Table.of([_counted(one) for one in found], COLUMNS, empty, found, note=note)


def _without(submodules: Sequence[str]) -> str:
    """What is said of submodules without files."""
    return f"Without the files of submodules: {', '.join(submodules)}." if submodules else ""


def _closed_table(closed: Sequence[Mapping[str, Any]]) -> Table:
    """Closed worktrees, the last closed first."""
    rows = [{**one, **_decision(one), "commit": (one["integrated_commit"] or "")[:12]} for one in closed]
    return Table.of(rows, CLOSED, "No worktree has been integrated or discarded yet.", closed)


def _decision(one: Mapping[str, Any]) -> dict[str, Any]:
    """Who requested and approved the integration of a closed worktree, or who discarded it, and why."""
    asked = one["approval"]
    if one["status"] == "integrated" and asked:
        return {"requester": asked["requester"], "by": decider(asked), "reason": asked["decision_reason"]}
    return {"requester": None, "by": one["closed_by"], "reason": one["reason"]}


def _counted(found: Mapping[str, Any]) -> dict[str, Any]:
    return {**found, **{f"n_{name}": len(found[name]) for name in ("files", "dirty", "conflicts", "overlaps")}}


@worktrees.command("status")
@click.argument("name", shell_complete=offers.worktrees)
@pass_client
def show_status(client: OperatorClient, name: str) -> Shown:
    """Show one worktree. Its commits, files, predicted conflicts, agents and tasks."""
    (found,) = client.call("get_worktree_status", worktree_name=name)["worktrees"]
    told = {**found, "approval": _approval(found["approval"])}
    is_closed = found["status"] not in OPEN
    hidden = {"files", "approval_id", *(OF_FILES if is_closed else ())}
    plain = {key: _plain(value) for key, value in told.items() if key not in hidden}
    rows = [[key.replace("_", " "), value] for key, value in plain.items() if value not in (None, "", [])]
    files = Table.of(found["files"], {"path": "file", "added": "+", "removed": "−"}, "No file has changed yet.")
    is_merged = found["status"] == WorktreeState.INTEGRATED
    note = f"`workbench worktrees diff {name}` prints what it changed." if is_merged else ""
    sections = [(found["name"], Table(["", ""], rows, note=note)), *([] if is_closed else [("Changed files", files)])]
    if closed := client.call("list_closed_worktrees", worktree_name=name)["worktrees"]:
        sections.append(("History", _closed_table(closed)))
    return TablePage(sections, {**found, "history": closed})


def _approval(approval: Mapping[str, Any] | None) -> str | None:
    """The newest request to integrate a worktree, in words: `5, approved by ada`."""
    if approval is None:
        return None
    by = f" by {decider(approval)}" if approval["decided_by"] else ""
    reason = f": {approval['reason']}" if approval["reason"] else ""
    return f"{approval['id']}, {approval['status']}{by}{reason}"


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return ", ".join(_overlap(one) if isinstance(one, dict) else one for one in value)
    return value


def _overlap(one: Mapping[str, Any]) -> str:
    return f"{one['worktree']} ({', '.join(one['files'])})"


@worktrees.command("diff")
@click.argument("name", shell_complete=offers.worktrees)
@click.argument("path", required=False)
@click.option("--uncommitted", is_flag=True, help="Show uncommitted changes instead of commits.")
@raw_option
@pass_client
def show_diff(client: OperatorClient, name: str, path: str | None, uncommitted: bool, raw: bool) -> Shown:
    """Print what a worktree has changed since it was forked."""
    found = client.call("get_worktree_diff", worktree_name=name, uncommitted=uncommitted, **drop_none(path=path))
    return Text(patch_text(found["files"]), found, raw)


@worktrees.command("create")
@click.argument("name")
@click.option(
    "--branch", "branch_name", default=None, help="Its branch, new or to be continued; by default a new wb/NAME/main."
)
@click.option(
    "--from",
    "source_branch",
    default=None,
    help="Where to fork it, and its default target; by default the current branch.",
)
@pass_client
def create(client: OperatorClient, name: str, branch_name: str | None, source_branch: str | None) -> Shown:
    """Create a worktree with its own branch, or with --branch, one that continues an existing branch."""
    made = client.call("create_worktree", name=name, **drop_none(branch_name=branch_name, source_branch=source_branch))
    text = f"Created {name} on branch {made['branch_name']} in {made['path']}."
    return Note(f"{text} {_without(made['empty_submodules'])}".rstrip(), made)


@view("Updated")
def _updated(made: dict[str, Any]) -> Shown:
    name = made["worktree"]
    if made["conflicts"]:
        text = f"Nothing was changed; these files conflict: {', '.join(made['conflicts'])}."
        return Note(f"{text} `workbench worktrees resolve {name}` shows how to resolve them.", made)
    merged = f"{name} now has all commits of its target."
    return Note(merged if made["merged"] else f"{name} is up to date.", made)


@worktrees.command("resolve")
@click.argument("name", shell_complete=offers.worktrees)
@click.option("--finish", "step", flag_value="finish", help="Commit the merge, once no file is in conflict.")
@click.option("--abort", "step", flag_value="abort", help="Return to the state before the merge.")
@pass_client
def resolve(client: OperatorClient, name: str, step: str | None) -> Shown:
    """Merge the target into a worktree and resolve the conflicts there; shows the steps that are left."""
    made = client.call("resolve_worktree", worktree_name=name, step=step or "start")
    steps = [f"{number}. {text}" for number, text in enumerate(made["steps"], 1)]
    return Text("\n".join([_resolving(made), *steps]), made)


def _resolving(made: Mapping[str, Any]) -> str:
    name, target, files = made["worktree"], made["target"], made["conflicts"]
    return {
        "up_to_date": f"{name} has all commits of {target}; there is nothing to resolve.",
        "merged": f"{target} is merged into {name}.",
        "aborted": f"The merge is undone; {name} is as it was.",
        "unresolved": f"{target} is being merged into {name}. "
        + (f"In conflict: {', '.join(files)}." if files else "No file is in conflict any more."),
    }[made["state"]]


@view("Discarded")
def _discarded(made: dict[str, Any]) -> Shown:
    kept = f"the branch {made['branch_name']} is {'kept' if made['branch_kept'] else 'deleted'}"
    saved = f" What existed nowhere else is saved in {made['bundle']}." if made["bundle"] else ""
    return Note(f"Discarded {made['name']}; {kept}.{saved}", made)


@view("ConflictsPredicted")
def _conflicts(found: dict[str, Any]) -> Shown:
    rows = [[pair["one"], pair["other"], ", ".join(pair["files"])] for pair in found["pairs"]]
    return Table(["worktree", "with", "files"], rows, "No conflicts are predicted.", found)


@worktrees.command("prune")
@click.option("--yes", is_flag=True, help="Remove what is safe to remove.")
@pass_client
def prune(client: OperatorClient, yes: bool) -> Shown:
    """Show the disk space of worktrees, and free what is safe to remove."""
    found = client.call("prune_worktrees", apply=yes)
    rows = [{**item, "size": size(item["bytes"]), "safe": "yes" if item["safe"] else ""} for item in found["items"]]
    done = f"{size(found['freed'])} freed" if yes else "--yes removes what is safe"
    return Table.of(rows, ITEMS, "There is nothing to remove.", found, f"{size(found['bytes'])} in all; {done}")


@worktrees.command("run", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("name", shell_complete=offers.worktrees)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@click.pass_context
def run(ctx: click.Context, name: str, command: tuple[str, ...]) -> None:
    """Run a command in a worktree, confined like its workers: `worktrees run NAME -- git log`.

    Its target branch has the same name and commit there as in your repository. Nothing that it starts outlives it.
    """
    from workbench.confinement.editable import require_own_files
    from workbench.git import Repository
    from workbench.services.worktrees.places import WorktreeLocation, box_of, checkout_of, is_there, worktree_gone
    from workbench.services.worktrees.update import learn_target

    client: OperatorClient = ctx.obj
    (found,) = client.call("get_worktree_status", worktree_name=name)["worktrees"]
    if found["status"] not in OPEN:
        raise not_now(found["name"], found["status"])
    place = WorktreeLocation.of(client.settings, found["name"])
    if not is_there(place):
        raise worktree_gone(place)
    repository = Repository.open(client.settings.project)
    box = box_of(client.settings, repository, place)
    if commit := repository.resolve(found["integration_target"]):
        learn_target(checkout_of(client.settings, repository, place), found, commit)
    require_own_files(box, client.settings.project, box.environment(os.environ)["PATH"])
    words = command[1:] if command[0] == "--" else command
    with subprocess.Popen(box.guarded(words), cwd=place.path, env=box.environment(os.environ)) as process:
        code = _wait(process)
    ctx.exit(code if code >= 0 else 128 - code)


def _wait(process: subprocess.Popen[bytes]) -> int:
    """Wait for a command, whose own affair it is what an interrupt from the terminal does to it."""
    while True:
        with suppress(KeyboardInterrupt):
            return process.wait()


worktrees.add_command(integration.integrate)
worktrees.add_command(integration.requested_changes)
