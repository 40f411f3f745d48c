"""The proposal to integrate a worktree: an approval with everything that the operator is shown.

It names the commit that approving it would merge. The commit is made beforehand; no branch moves.
"""

from __future__ import annotations

import json
import shlex
from asyncio import to_thread
from collections.abc import Mapping, Sequence
from typing import Any

from workbench.errors import Conflict
from workbench.git import FileContent, Repository, changed
from workbench.ops import Ctx
from workbench.rules import integration as rules
from workbench.services import approvals
from workbench.services.approvals import ApprovalInfo
from workbench.services.integration.conflicts import outlook
from workbench.services.processes.workplaces import of_settings
from workbench.services.worktrees.imports import commit_of, import_branch
from workbench.services.worktrees.kept_work import require_put_away
from workbench.services.worktrees.places import COMMITTER, checkout_of, is_there, place_of
from workbench.services.worktrees.resolve import merge_conflict
from workbench.services.worktrees.rows import KIND
from workbench.services.worktrees.trials import TrialResult
from workbench.store.base import Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)

SHOWN_COMMITS = 50
SHOWN_FILES = 500
SHOWN_UNUSUAL = 20
_VERSIONED = ("personas", "agents")
"""Directories of the state directory that may be in a repository."""


async def put_question(
    ctx: Ctx,
    repository: Repository,
    row: Row,
    target: str,
    fast_forward: bool,
    refused: Mapping[str, Any] | None = None,
    former: ApprovalInfo | None = None,
) -> ApprovalInfo:
    """Open an approval for an integration, or update the open one. Call with exclusive access.

    Args:
        former: the approval that is asked again, for the same requester.
    """
    branches = await ctx.read(lambda tx: tx.all(SQL.branches))
    await require_put_away(ctx, repository, row["name"])
    await _require_all_committed(ctx, repository, row)
    source = await import_branch(ctx, repository, row)
    payload = await to_thread(_proposal, ctx, repository, row, source, target)
    payload = await outlook(ctx, repository, payload) | payload
    payload |= {
        "fast_forward": fast_forward,
        "changed": await to_thread(_find_changed, repository, row, branches),
        "refused": dict(refused) if refused else None,
        "merged_commit": None,
        "gates": [] if payload["conflicts"] else waiting_gates(ctx),
    }
    payload = rules.with_lines(payload)
    requester = (former.requester, former.asker) if former else (None, approvals.person_of(ctx))

    def change(tx: Tx) -> ApprovalInfo:
        return _open_or_update(tx, row, payload, *requester)

    approval = await ctx.write(change)
    return await _with_candidate(ctx, repository, approval)


def _open_or_update(
    tx: Tx, row: Row, payload: dict[str, Any], requester: str | None, asker: str | None
) -> ApprovalInfo:
    """The open approval of a worktree if it is for the same merge, updated if necessary; else a new one."""
    subject = f"worktree:{row['name']}"
    before = approvals.open_question(tx, KIND, subject)
    if before and all(before.payload.get(key) == payload[key] for key in ("source_commit", "target", "fast_forward")):
        if _still_holds(before.payload, payload):
            return before
        approvals.amend(tx, before, payload)
        approval_id = before.id
    else:
        if before:
            approvals.decide(tx, before, "failed", "replaced: the branch, the target or fast_forward changed")
        approval_id = approvals.ask(tx, KIND, subject, payload, requester, asker)
    tx.run(SQL.put, id=approval_id, name=row["name"], checked=int(not payload["gates"]))
    if payload["changed"]:
        tx.emit("worktree.protected_changed", subject, changed=payload["changed"])
    approval = approvals.find(tx, approval_id)
    assert approval is not None
    return approval


def reopen(tx: Tx, approval: ApprovalInfo, undoes: int) -> None:
    """Ask again for an integration that was rejected; its gates that have not ended run again."""
    approvals.reopen(tx, approval, undoes)
    tx.run(SQL.put, id=approval.id, name=approval.payload["worktree"], checked=int(is_checked(approval)))


def _still_holds(before: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Whether the open approval is still correct. One whose gates failed is not: they run again."""
    same = all(before.get(key) == now[key] for key in ("target_commit", "conflicts"))
    commands = [[gate["command"] for gate in payload.get("gates", ())] for payload in (before, now)]
    return same and commands[0] == commands[1] and rules.verdict(states(before)) is not rules.Verdict.FAILED


async def _require_all_committed(ctx: Ctx, repository: Repository, row: Row) -> None:
    place = place_of(ctx, row)
    if not await to_thread(is_there, place):
        return
    checkout = await to_thread(checkout_of, ctx.settings, repository, place)
    if files := await to_thread(checkout.uncommitted):
        raise Conflict(
            "WORKTREE_DIRTY",
            f"The worktree {row['name']} has uncommitted changes. Commit or remove them first.",
            files=files,
        )


def _proposal(ctx: Ctx, repository: Repository, row: Row, source: str, target: str) -> dict[str, Any]:
    """What the operator is shown. Blocks on git.

    Raises:
        NotFound: ``BRANCH_NOT_FOUND``. Conflict: ``NESTED_REPOSITORY``, ``NOTHING_TO_INTEGRATE``,
            ``STATE_IN_BRANCH``.
    """
    repository.check_branch_name(target)
    target_commit = commit_of(repository, target)
    ahead, behind = repository.ahead_behind(source, target_commit)
    if not ahead:
        raise Conflict("NOTHING_TO_INTEGRATE", f"{row['branch_name']} has no commit that {target} does not have.")
    if links := repository.bare_links(target_commit, source):
        raise _nested(row["name"], links)
    files = repository.diff_stat(target_commit, source)
    _require_no_state(ctx, repository, [file.path for file in files])
    return {
        "worktree": row["name"],
        "branch": row["branch_name"],
        "target": target,
        "source_commit": source,
        "target_commit": target_commit,
        "ahead": ahead,
        "behind": behind,
        "commits": [
            {"id": c.id, "author": c.author, "at_us": c.at_us, "subject": c.subject}
            for c in repository.commits(target_commit, source, SHOWN_COMMITS)
        ],
        "files": [{"path": f.path, "added": f.added, "removed": f.removed} for f in files[:SHOWN_FILES]],
        **_unusual_files(repository.contents(target_commit, source), ctx.settings.integration_large_bytes),
        "conflicts": list(repository.preview_merge(target_commit, source).conflicts),
    }


def _unusual_files(files: Sequence[FileContent], large: int) -> dict[str, Any]:
    """The files of more than `large` bytes, largest first, and other binary ones: how many, and some of them."""
    over = sorted((file for file in files if file.bytes > large), key=lambda file: -file.bytes)
    binary = [file.path for file in files if file.binary and file.bytes <= large]
    return {
        "large_files": [{"path": file.path, "bytes": file.bytes} for file in over[:SHOWN_UNUSUAL]],
        "large": len(over),
        "binary_files": binary[:SHOWN_UNUSUAL],
        "binary": len(binary),
    }


def _nested(name: str, links: Sequence[str]) -> Conflict:
    path = shlex.quote(links[0])
    steps = f"rm -rf {path}/.git; git rm -q --cached {path}; git add {path}; git commit -m 'Files of a repository'"
    text = (
        f"In the branch of {name}, {links[0]} is a link to a commit of a repository that was made inside the worktree: "
        f"merged, its files would be nowhere. Commit them as files: `workbench worktrees run {name} -- sh -c "
        f"{shlex.quote(steps)}`."
    )
    return Conflict("NESTED_REPOSITORY", text, files=list(links))


def _require_no_state(ctx: Ctx, repository: Repository, files: Sequence[str]) -> None:
    """Refuse a branch that would change files of the state directory, such as settings."""
    state = ctx.settings.home.resolve().relative_to(repository.root.resolve()).as_posix()
    allowed = tuple(f"{state}/{name}/" for name in _VERSIONED)
    if found := [file for file in files if file.startswith(f"{state}/") and not file.startswith(allowed)]:
        raise Conflict(
            "STATE_IN_BRANCH",
            f"The branch changes {found[0]}, which belongs to Workbench itself. Remove it from the branch, and make "
            "such changes by hand.",
            files=found,
        )


def _find_changed(repository: Repository, row: Row, branches: Sequence[Row]) -> list[str]:
    """What anyone has changed in the protected parts of the repository since the worktree was created.

    Workbench's own changes are left out: branches and records of worktrees, targets it merged into, kept work.
    """
    before, after = json.loads(row["protected"]), repository.protected()
    if not before:
        return []
    own = {f"refs/heads/{other['branch_name']}" for other in branches}
    merged = {other["integrated_commit"] for other in branches}
    records = tuple(f"worktrees/{other['name']}" for other in branches)
    return [
        name
        for name in changed(before, after)
        if name not in own
        and not (name.startswith("refs/heads/") and after.get(name) in merged)
        and not name.startswith((*records, "worktrees/files", "refs/workbench/"))
    ]


async def _with_candidate(ctx: Ctx, repository: Repository, approval: ApprovalInfo) -> ApprovalInfo:
    """Make the commit that approving would merge, and show it; with conflicts, make none."""
    payload = approval.payload
    if payload["merged_commit"] or payload["conflicts"]:
        return approval
    merged = await to_thread(merge_commit, repository, approval)

    def change(tx: Tx) -> ApprovalInfo:
        approvals.amend(tx, approval, {**payload, "merged_commit": merged})
        return approvals.find(tx, approval.id) or approval

    return await ctx.write(change)


def merge_commit(repository: Repository, approval: ApprovalInfo) -> str:
    """Make the commit that merging would give, without moving a branch; return its id. Blocks on git.

    Raises:
        Conflict: ``MERGE_CONFLICT``, ``UNRELATED_HISTORIES``. NotFound: ``BRANCH_NOT_FOUND``.
    """
    payload = approval.payload
    forward = payload.get("fast_forward", False)
    try:
        return repository.merge_commit(
            payload["source_commit"], payload["target"], message(approval), COMMITTER, fast_forward=forward
        )
    except Conflict as error:
        raise _unmergeable(payload["worktree"], payload["target"], error) from error


def _unmergeable(name: str, target: str, error: Conflict) -> Conflict:
    """The error of a merge, about the worktree instead of a commit, and with what to do next."""
    if error.code == "MERGE_CONFLICT":
        return merge_conflict(name, target, error.details["files"])
    if error.code == "UNRELATED_HISTORIES":
        text = f"The worktree {name} and {target} have no common ancestor. Start another worktree from {target}."
        return Conflict(error.code, text)
    return error


def message(approval: ApprovalInfo) -> str:
    """The message of the merge commit."""
    requester = approval.asker or approval.requester
    return f"Integrate {approval.payload['worktree']}\n\nRequested by {requester} (approval {approval.id})."


def waiting_gates(ctx: Ctx) -> list[dict[str, Any]]:
    """The configured gates, not run yet, as the approval shows them; before them the set-up of the workplace."""
    commands, setup = ctx.settings.integration_gates, of_settings(ctx.settings).setup
    return [TrialResult(command).as_json() for command in ((setup, *commands) if setup and commands else commands)]


def states(payload: Mapping[str, Any]) -> list[str]:
    """The state of each gate."""
    return [gate["state"] for gate in payload.get("gates", ())]


def is_checked(approval: ApprovalInfo) -> bool:
    """Whether all gates have ended."""
    return rules.verdict(states(approval.payload)) is not rules.Verdict.OPEN
