"""Integrating worktrees and kept work: `integrate`, `adopt`; what to know before an integration is approved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from workbench.cli.client import OperatorClient
from workbench.cli.global_options import root
from workbench.cli.output import Note, Shown, drop_none, pass_client

SHOWN = 5


@root.command()
@click.argument("name")
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
    return Note(" ".join([first, *_sentences(asked)]), asked)


@root.command()
@click.argument("task_id", type=int)
@click.argument("attempt", type=int)
@click.option(
    "--worktree", "worktree_name", default=None, help="Where to merge it first; by default the attempt's worktree."
)
@pass_client
def adopt(client: OperatorClient, task_id: int, attempt: int, worktree_name: str | None) -> Shown:
    """Use what an attempt made although it did not complete its task; `approve` then merges it."""
    made = client.call("adopt_attempt", task_id=task_id, attempt=attempt, **drop_none(worktree_name=worktree_name))
    text = f"{made['worktree']} has the work of attempt {attempt} at task {task_id}."
    return Note(
        f"{text} To merge it into {made['target_branch']}, run `workbench approve {made['approval_id']}`.", made
    )


def _sentences(asked: Mapping[str, Any]) -> Iterator[str]:
    name, target = asked["worktree"], asked["target_branch"]
    if asked["conflicts"]:
        files = shortened(asked["conflicts"])
        yield f"It conflicts with {target} in {files}; `workbench worktrees resolve {name}` shows the steps."
    if asked["makes_conflict"]:
        yield f"Approving it will make {_others(asked['makes_conflict'])} conflict."
    if asked["open_tasks"]:
        yield f"{name} has {_tasks(asked)}; the merge closes it, which ends the work on its open tasks."


def cautions(payload: Mapping[str, Any]) -> Iterator[str]:
    """What to know before approving an integration, in a few words each."""
    if payload["conflicts"]:
        yield f"conflicts with {payload['target']} in {shortened(payload['conflicts'])}"
    if payload.get("makes_conflict"):
        yield f"approving it will make {_others(payload['makes_conflict'])} conflict"
    if payload.get("open_tasks"):
        yield _tasks(payload)


def shortened(items: Sequence[Any]) -> str:
    """The first few, and how many more there are."""
    more = f" and {len(items) - SHOWN} more" if len(items) > SHOWN else ""
    return ", ".join(map(str, items[:SHOWN])) + more


def _others(made: Sequence[Mapping[str, Any]]) -> str:
    return shortened([one["worktree"] for one in made])


def _tasks(what: Mapping[str, Any]) -> str:
    count = what["open_tasks"]
    return f"{count} open task{'' if count == 1 else 's'} ({shortened(what['open_task_ids'])})"
