"""Worktrees: `worktrees` (list, status, diff, create, update, resolve, changes, conflicts, prune, run), `discard`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from workbench.cli.approvals import decider, requester
from workbench.cli.box import boxed_directory, unused_settings
from workbench.cli.client import OperatorClient
from workbench.cli.completion import offers
from workbench.cli.global_options import root
from workbench.cli.integration import requested_changes
from workbench.cli.operations.declared import view
from workbench.cli.output import Note, NounGroup, Shown, Text, drop_none, pass_client, raw_option, size
from workbench.present.tables import Table, TablePage
from workbench.rules.integration import OPEN, WorktreeState
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
"""The fields about the files of a worktree, which a closed one has no more."""
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
    rows = client.call("get_worktree_status")["worktrees"]
    active = worktree_table(rows, NO_WORKTREES)
    if not everything:
        return active
    closed = client.call("list_closed_worktrees")["worktrees"]
    return TablePage([("Active", active), ("Closed", _closed_table(closed))], {"worktrees": rows, "closed": closed})


def worktree_table(rows: Sequence[Mapping[str, Any]], empty: str) -> Table:
    """Active worktrees, and what each would merge."""
    notes = [(row["name"], text) for row in rows for text in (row["problem"], _lacks(row["empty_submodules"]))]
    note = "\n".join(f"{name}: {text}" for name, text in notes if text)
    several = len({row["machine"] for row in rows}) > 1
    columns = {"name": COLUMNS["name"], "machine": "machine", **COLUMNS} if several else COLUMNS
    return Table.of([_count_files(row) for row in rows], columns, empty, rows, note=note)


def _lacks(submodules: Sequence[str]) -> str:
    """The note about submodules whose files are not there."""
    return f"Without the files of submodules: {', '.join(submodules)}." if submodules else ""


def _closed_table(closed: Sequence[Mapping[str, Any]]) -> Table:
    """Closed worktrees, the last closed first."""
    shown = [{**row, **_decision(row), "commit": (row["integrated_commit"] or "")[:12]} for row in closed]
    return Table.of(shown, CLOSED, "No worktree has been integrated or discarded yet.", closed)


def _decision(worktree: Mapping[str, Any]) -> dict[str, Any]:
    """Who requested and approved the integration of a closed worktree, or who discarded it, and why."""
    approval = worktree["approval"]
    if worktree["status"] == "integrated" and approval:
        return {"requester": requester(approval), "by": decider(approval), "reason": approval["decision_reason"]}
    return {"requester": None, "by": worktree["closed_by"], "reason": worktree["reason"]}


def _count_files(worktree: Mapping[str, Any]) -> dict[str, Any]:
    return {**worktree, **{f"n_{name}": len(worktree[name]) for name in ("files", "dirty", "conflicts", "overlaps")}}


@worktrees.command("status")
@click.argument("name", shell_complete=offers.worktrees)
@pass_client
def show_status(client: OperatorClient, name: str) -> Shown:
    """Show one worktree. Its commits, files, predicted conflicts, agents and tasks."""
    (worktree,) = client.call("get_worktree_status", worktree_name=name)["worktrees"]
    facts = {**worktree, "approval": _approval(worktree["approval"])}
    is_closed = worktree["status"] not in OPEN
    hidden = {"files", "approval_id", *(OF_FILES if is_closed else ())}
    values = {key: _text_of(value) for key, value in facts.items() if key not in hidden}
    rows = [[key.replace("_", " "), value] for key, value in values.items() if value not in (None, "", [])]
    files = Table.of(worktree["files"], {"path": "file", "added": "+", "removed": "−"}, "No file has changed yet.")
    is_merged = worktree["status"] == WorktreeState.INTEGRATED
    note = f"`workbench worktrees diff {name}` prints what it changed." if is_merged else ""
    sections = [(worktree["name"], Table(["", ""], rows, note=note))]
    if not is_closed:
        sections.append(("Changed files", files))
    if closed := client.call("list_closed_worktrees", worktree_name=name)["worktrees"]:
        sections.append(("History", _closed_table(closed)))
    return TablePage(sections, {**worktree, "history": closed})


def _approval(approval: Mapping[str, Any] | None) -> str | None:
    """The newest request to integrate a worktree, in words: `5, approved by ada`."""
    if approval is None:
        return None
    by = f" by {decider(approval)}" if approval["decided_by"] else ""
    reason = f": {approval['reason']}" if approval["reason"] else ""
    return f"{approval['id']}, {approval['status']}{by}{reason}"


def _text_of(value: Any) -> Any:
    if isinstance(value, list):
        return ", ".join(_overlap_text(item) if isinstance(item, dict) else item for item in value)
    return value


def _overlap_text(overlap: Mapping[str, Any]) -> str:
    return f"{overlap['worktree']} ({', '.join(overlap['files'])})"


@worktrees.command("diff")
@click.argument("name", shell_complete=offers.worktrees)
@click.argument("path", required=False)
@click.option("--uncommitted", is_flag=True, help="Show uncommitted changes instead of commits.")
@raw_option
@pass_client
def show_diff(client: OperatorClient, name: str, path: str | None, uncommitted: bool, raw: bool) -> Shown:
    """Print what a worktree has changed since it was forked."""
    diff = client.call("get_worktree_diff", worktree_name=name, uncommitted=uncommitted, **drop_none(path=path))
    return Text(patch_text(diff["files"]), diff, raw, is_diff=True)


@view("CreatedWorktree")
def show_created(worktree: dict[str, Any]) -> Shown:
    """Where a new worktree is, and what its files lack."""
    text = f"Created {worktree['name']} on branch {worktree['branch_name']} in {worktree['path']}."
    pointers = worktree["lfs_pointers"]
    large = f"Without the contents of files of Git LFS: {', '.join(pointers)}." if pointers else ""
    return Note(" ".join(filter(None, (text, _lacks(worktree["empty_submodules"]), large))), worktree)


@view("Updated")
def show_update(update: dict[str, Any]) -> Shown:
    """Whether a worktree has the commits of its target now."""
    name = update["worktree"]
    if update["conflicts"]:
        text = f"Nothing was changed; these files conflict: {', '.join(update['conflicts'])}."
        return Note(f"{text} `workbench worktrees resolve {name}` shows how to resolve them.", update)
    merged = f"{name} now has all commits of its target."
    return Note(merged if update["merged"] else f"{name} is up to date.", update)


@worktrees.command("resolve")
@click.argument("name", shell_complete=offers.worktrees)
@click.option("--finish", "step", flag_value="finish", help="Commit the merge, once no file is in conflict.")
@click.option("--abort", "step", flag_value="abort", help="Return to the state before the merge.")
@pass_client
def resolve(client: OperatorClient, name: str, step: str | None) -> Shown:
    """Merge the target into a worktree and resolve the conflicts there; shows the steps that are left."""
    merge = client.call("resolve_worktree", worktree_name=name, step=step or "start")
    steps = [f"{number}. {text}" for number, text in enumerate(merge["steps"], 1)]
    return Text("\n".join([_state_text(merge), *steps]), merge)


def _state_text(merge: Mapping[str, Any]) -> str:
    name, target, files = merge["worktree"], merge["target"], merge["conflicts"]
    return {
        "up_to_date": f"{name} has all commits of {target}; there is nothing to resolve.",
        "merged": f"{target} is merged into {name}.",
        "aborted": f"The merge is undone; {name} is as it was.",
        "unresolved": f"{target} is being merged into {name}. "
        + (f"In conflict: {', '.join(files)}." if files else "No file is in conflict any more."),
    }[merge["state"]]


@view("Discarded")
def show_discarded(worktree: dict[str, Any]) -> Shown:
    """What is left of a discarded worktree."""
    kept = f"the branch {worktree['branch_name']} is {'kept' if worktree['branch_kept'] else 'deleted'}"
    saved = f" What existed nowhere else is saved in {worktree['bundle']}." if worktree["bundle"] else ""
    return Note(f"Discarded {worktree['name']}; {kept}.{saved}", worktree)


@view("ConflictsPredicted")
def conflict_table(predicted: dict[str, Any]) -> Shown:
    """The pairs of worktrees that would conflict, and in which files."""
    rows = [[pair["one"], pair["other"], ", ".join(pair["files"])] for pair in predicted["pairs"]]
    return Table(["worktree", "with", "files"], rows, "No conflicts are predicted.", predicted)


@worktrees.command("prune")
@click.option("--yes", is_flag=True, help="Remove what is safe to remove.")
@pass_client
def prune(client: OperatorClient, yes: bool) -> Shown:
    """Show the disk space of worktrees, and free what is safe to remove."""
    pruned = client.call("prune_worktrees", apply=yes)
    rows = [{**item, "size": size(item["bytes"]), "safe": "yes" if item["safe"] else ""} for item in pruned["items"]]
    done = f"{size(pruned['freed'])} freed" if yes else "--yes removes what is safe"
    return Table.of(rows, ITEMS, "There is nothing to remove.", pruned, f"{size(pruned['bytes'])} in all; {done}")


@view("DiskUsage")
def show_disk_usage(usage: dict[str, Any]) -> Shown:
    """What takes how much on the disk, and what is cleared first."""
    rows = [{**part, "bytes": size(part["bytes"])} for part in usage["parts"]]
    limit = f", of {size(usage['limit'])} at most" if usage["limit"] else "; no limit is set (max_disk_bytes)"
    columns = {"part": "part", "bytes": "size", "items": "items", "cleared": "cleared"}
    return Table.of(rows, columns, "The project has no files yet.", usage, f"{size(usage['bytes'])} in all{limit}")


@worktrees.command("run", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("name", shell_complete=offers.worktrees)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@click.pass_context
def run(ctx: click.Context, name: str, command: tuple[str, ...]) -> None:
    """Run a command in a worktree, confined like its workers: `worktrees run NAME -- git log`.

    Its target branch has the same name and commit there as in your repository. Nothing that it starts outlives it.
    """
    from workbench.cli import told_output

    words = command[1:] if command[0] == "--" else command
    with boxed_directory(ctx.obj, name) as boxed, boxed.way_out() as gate:
        argv = boxed.box.argv(words, guarded=True, way_out=gate.way_out)
        environment = {**boxed.environment, **gate.environment}
        code = told_output.run(argv, boxed.box.translation, boxed.path, environment, gate.pass_fds)
    for told in (*gate.refused, *filter(None, [unused_settings(boxed.box) if code else ""])):
        click.echo(f"workbench: {told}", err=True)
    ctx.exit(code if code >= 0 else 128 - code)


worktrees.add_command(requested_changes)
