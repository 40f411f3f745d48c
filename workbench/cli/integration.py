"""Integrating worktrees and kept work: `integrate`, `request-changes`, `adopt`; what to know before it is approved."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import click

from workbench.cli.client import OperatorClient
from workbench.cli.completion import offers
from workbench.cli.global_options import root
from workbench.cli.output import Note, Shown, drop_none, pass_client
from workbench.present.tables import CellLines, Table

_PLACE = re.compile(r"(?P<path>.+):(?P<first>[1-9][0-9]*)(?:-(?P<last>[1-9][0-9]*))?")


@root.command()
@click.argument("name", shell_complete=offers.worktrees)
@click.option(
    "--target", "target_branch", default=None, help="Where to merge it; by default the branch it was forked from."
)
@click.option("--fast-forward/--merge-commit", default=None, help="How to merge it; by default as in the settings.")
@pass_client
def integrate(client: OperatorClient, name: str, target_branch: str | None, fast_forward: bool | None) -> Shown:
    """Request the merge of a worktree; `approve` then merges it."""
    how = drop_none(target_branch=target_branch, fast_forward=fast_forward)
    asked = client.call("integrate_worktree", worktree_name=name, **how)
    first = f"To merge {name} into {asked['target_branch']}, run `workbench approve {asked['approval_id']}`."
    return Note("\n".join([" ".join([first, *_sentences(asked)]), *asked["decides"]]), asked)


@root.command("request-changes")
@click.argument("name", shell_complete=offers.worktrees)
@click.option("--note", "-m", default="", help="What to change, about all of it.")
@click.option(
    "--comment",
    "-c",
    "comments",
    type=(str, str),
    multiple=True,
    metavar="PATH:LINE[-LINE] TEXT",
    help="A comment on lines of a file; may be given several times.",
)
@click.option(
    "--task", "persona_id", metavar="PERSONA", default=None, help="Also create a task in the worktree for this persona."
)
@pass_client
def request_changes(
    client: OperatorClient, name: str, note: str, comments: tuple[tuple[str, str], ...], persona_id: str | None
) -> Shown:
    """Request changes in a worktree before it is merged: `request-changes lab -c model.py:3-5 "Sort first."`"""
    try:
        marked = [comment_at(place, text) for place, text in comments]
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
    asked = {"worktree_name": name, "comments": marked, "note": note, **drop_none(persona_id=persona_id)}
    return changes_requested(client.call("request_changes", **asked))


def changes_requested(made: Mapping[str, Any]) -> Note:
    """What a request for changes did."""
    task = f" Task {made['task_id']} has them." if made["task_id"] else ""
    open_still = f" Approval {made['approval_id']} stays open." if made["approval_id"] else ""
    return Note(f"Requested changes in {made['worktree']} at {made['commit'][:7]}.{task}{open_still}", made)


@click.command("changes")
@click.argument("name", shell_complete=offers.worktrees)
@pass_client
def requested_changes(client: OperatorClient, name: str) -> Shown:
    """List the changes that were requested in a worktree, the newest request first."""
    found = client.call("get_requested_changes", worktree_name=name)["requests"]
    rows = [row for request in found for row in _rows(request)]
    heads = ["request", "by", "at", "where", "comment", "state"]
    return Table(heads, rows, f"No changes were requested in {name}.", found)


def comment_at(place: str, text: str) -> dict[str, Any]:
    """The comment at a place such as `model.py:3-5`.

    Raises:
        ValueError: it is no place.
    """
    found = _PLACE.fullmatch(place)
    if found is None:
        raise ValueError(f"{place!r} is not PATH:LINE or PATH:FIRST-LAST, such as model.py:3-5.")
    last = {"end_line": int(found["last"])} if found["last"] else {}
    return {"path": found["path"], "line": int(found["first"]), **last, "text": text}


def _rows(request: Mapping[str, Any]) -> Iterator[list[Any]]:
    """The note and the comments of a request."""
    about = [request["id"], request["person"] or request["requested_by"], request["requested_at"]]
    if request["note"]:
        yield [*about, "", request["note"], ""]
    for one in request["comments"]:
        where = f"{one['path']}:{one['current_line'] or one['line']}"
        yield [*about, where, one["text"], "outdated" if one["outdated"] else "open"]


def _sentences(asked: Mapping[str, Any]) -> Iterator[str]:
    name, target = asked["worktree"], asked["target_branch"]
    if asked["conflicts"]:
        yield f"It conflicts with {target}; `workbench worktrees resolve {name}` shows the steps."
    if asked["open_tasks"]:
        yield f"The merge closes {name}, which ends the work on its open tasks."


def merge_lines(payload: Mapping[str, Any], size: str) -> CellLines:
    """What a merge would bring, and below it what decides it: tasks, gates, checks."""
    about = f"{payload['branch']} into {payload['target']}: {size}"
    return CellLines("\n".join([about, *payload.get("decides", ())]))
