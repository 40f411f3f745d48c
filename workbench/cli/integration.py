"""Integrating worktrees: `request-changes`, what `integrate` shows, and what to know before a merge is approved."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import click

from workbench.cli.client import OperatorClient
from workbench.cli.completion import offers
from workbench.cli.global_options import root
from workbench.cli.operations.declared import view
from workbench.cli.output import Note, Shown, drop_none, pass_client
from workbench.present.tables import CellLines, Table

_PLACE = re.compile(r"(?P<path>.+):(?P<first>[1-9][0-9]*)(?:-(?P<last>[1-9][0-9]*))?")


@view("IntegrationAsked")
def show_request(asked: dict[str, Any]) -> Shown:
    """How to approve an integration, and what to know before."""
    name, target = asked["worktree"], asked["target_branch"]
    sentences = [f"To merge {name} into {target}, run `workbench approve {asked['approval_id']}`."]
    if asked["conflicts"]:
        sentences.append(f"It conflicts with {target}; `workbench worktrees resolve {name}` shows the steps.")
    if asked["open_tasks"]:
        sentences.append(f"The merge closes {name}, which ends the work on its open tasks.")
    return Note("\n".join([" ".join(sentences), *asked["decides"]]), asked)


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
    arguments = {"worktree_name": name, "comments": marked, "note": note, **drop_none(persona_id=persona_id)}
    return changes_requested(client.call("request_changes", **arguments))


def changes_requested(request: Mapping[str, Any]) -> Note:
    """What a request for changes did."""
    task = f" Task {request['task_id']} has them." if request["task_id"] else ""
    still_open = f" Approval {request['approval_id']} stays open." if request["approval_id"] else ""
    return Note(f"Requested changes in {request['worktree']} at {request['commit'][:7]}.{task}{still_open}", request)


@click.command("changes")
@click.argument("name", shell_complete=offers.worktrees)
@pass_client
def requested_changes(client: OperatorClient, name: str) -> Shown:
    """List the changes that were requested in a worktree, the newest request first."""
    requests = client.call("get_requested_changes", worktree_name=name)["requests"]
    rows = [row for request in requests for row in _rows(request)]
    heads = ["request", "by", "at", "where", "comment", "state"]
    return Table(heads, rows, f"No changes were requested in {name}.", requests)


def comment_at(place: str, text: str) -> dict[str, Any]:
    """The comment at a place such as `model.py:3-5`.

    Raises:
        ValueError: it is no place.
    """
    match = _PLACE.fullmatch(place)
    if match is None:
        raise ValueError(f"{place!r} is not PATH:LINE or PATH:FIRST-LAST, such as model.py:3-5.")
    last = {"end_line": int(match["last"])} if match["last"] else {}
    return {"path": match["path"], "line": int(match["first"]), **last, "text": text}


def _rows(request: Mapping[str, Any]) -> Iterator[list[Any]]:
    """The note and the comments of a request."""
    about = [request["id"], request["person"] or request["requested_by"], request["requested_at"]]
    if request["note"]:
        yield [*about, "", request["note"], ""]
    for comment in request["comments"]:
        where = f"{comment['path']}:{comment['current_line'] or comment['line']}"
        yield [*about, where, comment["text"], "outdated" if comment["outdated"] else "open"]


def merge_lines(payload: Mapping[str, Any], size: str) -> CellLines:
    """What a merge would bring, and below it what decides it: tasks, gates, checks."""
    about = f"{payload['branch']} into {payload['target']}: {size}"
    return CellLines("\n".join([about, *payload.get("decides", ())]))
