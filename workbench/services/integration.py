"""Merging what a worktree holds (spec 3): asked for, gated, approved by a person, queued, merged.

Uncommitted work in the person's checkout is never touched. The approval names the commit that is merged; a branch
that moved since voids it, and a target that moved is merged, and gated, anew.
"""

from __future__ import annotations

import json
from asyncio import to_thread
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from workbench.errors import BadInput, Conflict, Refused, WorkbenchError
from workbench.git import Repository, changed, lock
from workbench.model import Level, Wire
from workbench.ops import Ctx, op
from workbench.rules import integration as rules
from workbench.rules.integration import Action, GateState, Next, WorktreeState
from workbench.services import approvals, gates, workers, worktrees
from workbench.services.approvals import Approval
from workbench.services.gates import Gate
from workbench.services.repositories import COMMITTER, Place, checkout_of, is_there, place_of
from workbench.services.worktrees import KIND, Branch, WorktreeName
from workbench.store.base import Reader, Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)

SHOWN_COMMITS = 50
SHOWN_FILES = 500
_LATER = frozenset({"GIT_BUSY", "TARGET_MOVED"})
"""What goes by while nobody does anything: the queue tries again."""
_VOID = frozenset({"APPROVAL_VOID", "MERGE_CONFLICT", "UNRELATED_HISTORIES", "NOTHING_TO_INTEGRATE"})
"""What makes another question of it; everything else a person can mend and approve again."""
_OURS = ("personas", "agents")
"""What of the state directory may be in a repository."""


class IntegrationAsked(Wire):
    """Where an integration stands."""

    state: Literal["awaiting_approval", "queued", "integrated"]
    approval_id: int
    worktree: str
    target_branch: str
    commit: str | None


FastForward = Annotated[
    bool | None, Field(description="Let the target move on without a merge commit where it can. Default: the setting.")
]


@op(allow=Level.PLANNER)
async def integrate_worktree(
    ctx: Ctx,
    worktree_name: WorktreeName,
    target_branch: Annotated[Branch | None, Field(description="Default: the branch it was forked from.")] = None,
    require_human_approval: bool = True,
    fast_forward: FastForward = None,
) -> IntegrationAsked:
    """Ask a person to merge a worktree's commits into the target branch; asking again returns the same question."""
    if not require_human_approval and ctx.settings.integration_requires_approval:
        raise Refused(
            "APPROVAL_REQUIRED",
            "A person approves what is merged here. Leave require_human_approval out, or have the "
            "setting integration_requires_approval changed.",
        )
    asked = await _ask(ctx, worktree_name, target_branch, fast_forward)
    if require_human_approval:
        return asked
    outcome = (await approvals.approve(ctx, asked.approval_id)).outcome
    return asked.model_copy(update={"state": outcome["state"], "commit": outcome["commit"]})


@op(allow=Level.PLANNER)
async def request_integration(
    ctx: Ctx, worktree_name: WorktreeName, target_branch: Branch | None = None, fast_forward: FastForward = None
) -> IntegrationAsked:
    """Another name of integrate_worktree."""
    return await _ask(ctx, worktree_name, target_branch, fast_forward)


@approvals.effect(KIND)
async def decide_integration(ctx: Ctx, approval: Approval, yes: bool, choices: Mapping[str, Any]) -> dict[str, Any]:
    """Merge what was approved, at once or in its turn; or leave the worktree as it is."""
    if not yes:
        return await ctx.repositories.whole(_refuse(ctx, approval, str(choices.get("reason", ""))))
    approvals.check_choices(choices, {"despite_gates"})
    despite = choices.get("despite_gates", False)
    if not isinstance(despite, bool):
        raise BadInput("INVALID_ARGUMENTS", "despite_gates is true or false.", problems=[])
    outcome = await ctx.repositories.whole(_approve(ctx, approval.id, despite))
    if outcome["state"] == "queued" and ctx.server is None:
        await advance(ctx)
        return await _outcome(ctx, approval.id)
    return outcome


# -- asking


async def _ask(ctx: Ctx, name: str, target: str | None, fast_forward: bool | None) -> IntegrationAsked:
    approval = await ctx.repositories.whole(_put(ctx, name, target, fast_forward))
    if ctx.server is None:
        await check(ctx, approval.id)
    return IntegrationAsked(
        state="awaiting_approval",
        approval_id=approval.id,
        worktree=name,
        target_branch=approval.payload["target"],
        commit=None,
    )


async def _put(ctx: Ctx, name: str, target: str | None, fast_forward: bool | None) -> Approval:
    async with ctx.repositories.ground(ctx) as repository:
        row = await ctx.read(lambda tx: worktrees.require_own(tx, ctx.caller, name, Action.APPROVE))
        forward = ctx.settings.integration_fast_forward if fast_forward is None else fast_forward
        return await _put_question(ctx, repository, row, target or row["integration_target"], forward)


async def _put_question(
    ctx: Ctx,
    repository: Repository,
    row: Row,
    target: str,
    fast_forward: bool,
    refused: Mapping[str, Any] | None = None,
    requester: str | None = None,
) -> Approval:
    """Put the question into the inbox, or have the one that is there told anew. The ground is held."""
    branches = await ctx.read(lambda tx: tx.all(SQL.branches))
    await _require_all_committed(ctx, repository, row)
    source = await worktrees.take_over(ctx, repository, row)
    payload = await to_thread(_proposal, ctx, repository, row, source, target)
    payload |= {
        "fast_forward": fast_forward,
        "changed": await to_thread(_changed, repository, row, branches),
        "refused": dict(refused) if refused else None,
        "merged_commit": None,
        "gates": [] if payload["conflicts"] else _waiting_gates(ctx),
    }

    def change(tx: Tx) -> Approval:
        with tx.acting(requester or tx.actor):
            return _question(tx, row, payload)

    approval = await ctx.write(change)
    return await _with_candidate(ctx, repository, approval)


def _question(tx: Tx, row: Row, payload: dict[str, Any]) -> Approval:
    """The question about a worktree: the one that is open if it is the same, else a new one."""
    subject = f"worktree:{row['name']}"
    before = approvals.open_question(tx, KIND, subject)
    if before and all(before.payload.get(key) == payload[key] for key in ("source_commit", "target", "fast_forward")):
        if _still_holds(before.payload, payload):
            return before
        approvals.amend(tx, before, payload)
        approval_id = before.id
    else:
        if before:
            approvals.decide(tx, before, "failed", "the branch has new commits or another target; asked anew")
        approval_id = approvals.ask(tx, KIND, subject, payload)
    tx.run(SQL.put, id=approval_id, name=row["name"], checked=int(not payload["gates"]))
    if payload["changed"]:
        tx.emit("worktree.audited", subject, changed=payload["changed"])
    found = approvals.find(tx, approval_id)
    assert found is not None
    return found


def _still_holds(before: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Whether what was shown is what would be shown now; gates that failed are run again."""
    same = all(before.get(key) == now[key] for key in ("target_commit", "conflicts"))
    commands = [[gate["command"] for gate in payload.get("gates", ())] for payload in (before, now)]
    return same and commands[0] == commands[1] and rules.verdict(_states(before)) is not rules.Verdict.FAILED


async def _require_all_committed(ctx: Ctx, repository: Repository, row: Row) -> None:
    place = place_of(ctx, row)
    if not await to_thread(is_there, place):
        return
    checkout = await to_thread(checkout_of, ctx.settings, repository, place)
    if left := await to_thread(checkout.uncommitted):
        raise Conflict(
            "WORKTREE_DIRTY",
            f"The worktree {row['name']} has uncommitted changes. Commit or remove them first.",
            files=left,
        )


def _proposal(ctx: Ctx, repository: Repository, row: Row, source: str, target: str) -> dict[str, Any]:
    """What a person is shown, and what is recorded as approved. Blocks on git.

    Raises:
        NotFound: ``BRANCH_NOT_FOUND``. Conflict: ``NOTHING_TO_INTEGRATE``, ``STATE_IN_BRANCH``.
    """
    repository.check_branch_name(target)
    target_commit = worktrees.commit_of(repository, target)
    ahead, behind = repository.ahead_behind(source, target_commit)
    if not ahead:
        raise Conflict("NOTHING_TO_INTEGRATE", f"{row['branch_name']} has no commit that {target} does not have.")
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
            {"id": c.id, "author": c.author, "subject": c.subject}
            for c in repository.commits(target_commit, source, SHOWN_COMMITS)
        ],
        "files": [{"path": f.path, "added": f.added, "removed": f.removed} for f in files[:SHOWN_FILES]],
        "conflicts": list(repository.preview_merge(target_commit, source).conflicts),
    }


def _require_no_state(ctx: Ctx, repository: Repository, files: Sequence[str]) -> None:
    """Refuse a branch that would bring files of the state directory: settings among them."""
    state = ctx.settings.home.resolve().relative_to(repository.root.resolve()).as_posix()
    allowed = tuple(f"{state}/{name}/" for name in _OURS)
    if found := [file for file in files if file.startswith(f"{state}/") and not file.startswith(allowed)]:
        raise Conflict(
            "STATE_IN_BRANCH",
            f"The branch changes {found[0]}, which belongs to Workbench itself. Take it out of the branch; what is to "
            "change there, change by hand.",
            files=found,
        )


def _changed(repository: Repository, row: Row, branches: Sequence[Row]) -> list[str]:
    """What changed in the protected parts of the repository since the creation, by whomever.

    Left out is what Workbench changes itself: branches and records of worktrees, targets it merged into.
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
        and not name.startswith((*records, "worktrees/files"))
    ]


async def _with_candidate(ctx: Ctx, repository: Repository, approval: Approval) -> Approval:
    """Make the commit that approving would merge, and show it; with conflicts there is none."""
    what = approval.payload
    if what["merged_commit"] or what["conflicts"]:
        return approval
    merged = await to_thread(_merge_commit, repository, approval)

    def change(tx: Tx) -> Approval:
        approvals.amend(tx, approval, {**what, "merged_commit": merged})
        return approvals.find(tx, approval.id) or approval

    return await ctx.write(change)


def _merge_commit(repository: Repository, approval: Approval) -> str:
    what = approval.payload
    forward = what.get("fast_forward", False)
    return repository.merge_commit(
        what["source_commit"], what["target"], _message(approval), COMMITTER, fast_forward=forward
    )


def _message(approval: Approval) -> str:
    return f"Integrate {approval.payload['worktree']}\n\nAsked for by {approval.requester} (approval {approval.id})."


# -- deciding


async def _refuse(ctx: Ctx, approval: Approval, reason: str) -> dict[str, Any]:
    """Say no, but not in the middle of a merge that was approved at the same time."""
    async with ctx.repositories.ground(ctx):
        return await ctx.write(lambda tx: _reject(tx, approval, reason))


def _reject(tx: Tx, approval: Approval, reason: str) -> dict[str, Any]:
    name = approval.payload["worktree"]
    outcome = approvals.decide(tx, approval, "rejected", reason, {"worktree": name, "state": "rejected"})
    tx.run(worktrees.SQL.forget_question, name=name)
    return outcome


async def _approve(ctx: Ctx, approval_id: int, despite: bool) -> dict[str, Any]:
    async with ctx.repositories.ground(ctx) as repository:
        approval, row = await ctx.read(lambda tx: _pending(tx, approval_id))
        try:
            step, approval = await _next(ctx, repository, row, approval, despite)
        except WorkbenchError as error:
            refusal = error
            await ctx.write(lambda tx: _not_merged(tx, approval, refusal))
            raise
        if step is Next.ASK:
            failed = [gate["command"] for gate in approval.payload["gates"] if gate["state"] != GateState.PASSED]
            raise Conflict(
                "GATES_FAILED",
                f"{', '.join(failed)} did not pass. Have it mended, or approve with despite_gates.",
                gates=failed,
            )
        if step is Next.MERGE and not await ctx.read(lambda tx: tx.all(SQL.queue)):
            return await _merge(ctx, repository, row, approval)
        return await ctx.write(lambda tx: _enqueue(tx, approval, despite))


def _pending(tx: Reader, approval_id: int) -> tuple[Approval, Row]:
    approval = approvals.find(tx, approval_id)
    if approval is None or approval.status != "pending":
        raise approvals.decided_before(approval_id)
    return approval, worktrees.require_to(tx, approval.payload["worktree"], Action.APPROVE)


async def _next(ctx: Ctx, repository: Repository, row: Row, approval: Approval, despite: bool) -> tuple[Next, Approval]:
    """What is to be done with an approved integration, and the approval as it is then. The ground is held.

    A target that moved is merged anew, which is shown.

    Raises:
        Conflict: ``APPROVAL_VOID``, ``MERGE_CONFLICT``, ``UNRELATED_HISTORIES``, ``NOTHING_TO_INTEGRATE``.
        NotFound: ``BRANCH_NOT_FOUND``.
    """
    what = approval.payload
    source = await _source(ctx, repository, row)
    target = await to_thread(worktrees.commit_of, repository, what["target"])
    moved = target != what["target_commit"]
    step = rules.next_step(
        source_moved=source != what["source_commit"],
        target_moved=moved,
        gates=_states(what) if what.get("merged_commit") else _states({"gates": _waiting_gates(ctx)}),
        despite_gates=despite,
    )
    if step is Next.VOID:
        raise Conflict(
            "APPROVAL_VOID",
            f"{what['branch']} has other commits than were approved. Ask for its integration again.",
        )
    if moved or not what.get("merged_commit"):
        approval = await _anew(ctx, repository, approval, target)
    return step, approval


async def _source(ctx: Ctx, repository: Repository, row: Row) -> str | None:
    """Where the branch of a worktree is; if its files are gone, where it was last."""
    if await to_thread(is_there, place_of(ctx, row)):
        return await worktrees.take_over(ctx, repository, row)
    return await to_thread(repository.resolve, row["branch_name"])


async def _anew(ctx: Ctx, repository: Repository, approval: Approval, target_commit: str) -> Approval:
    """Merge with the target as it is now, among objects; the gates have to run again."""
    merged = await to_thread(_merge_commit, repository, approval)
    waiting = _waiting_gates(ctx)
    fresh = {"target_commit": target_commit, "merged_commit": merged, "conflicts": [], "gates": waiting}

    def change(tx: Tx) -> Approval:
        approvals.amend(tx, approval, {**approval.payload, **fresh})
        tx.run(SQL.set_checked, id=approval.id, checked=int(not waiting))
        return approvals.find(tx, approval.id) or approval

    return await ctx.write(change)


def _waiting_gates(ctx: Ctx) -> list[dict[str, Any]]:
    return [Gate(command).as_json() for command in ctx.settings.integration_gates]


def _states(payload: Mapping[str, Any]) -> list[str]:
    return [gate["state"] for gate in payload.get("gates", ())]


def _enqueue(tx: Tx, approval: Approval, despite: bool) -> dict[str, Any]:
    name = approval.payload["worktree"]
    worktrees.set_status(tx, name, Action.APPROVE)
    tx.run(SQL.put, id=approval.id, name=name, checked=int(_is_checked(approval)))
    tx.run(SQL.enqueue, id=approval.id, despite=int(despite), now=tx.now)
    tx.emit("worktree.integrating", f"worktree:{name}", approval=approval.id)
    outcome = {"worktree": name, "state": "queued", "commit": None}
    return approvals.decide(tx, approval, "approved", outcome=outcome)


def _is_checked(approval: Approval) -> bool:
    return rules.verdict(_states(approval.payload)) is not rules.Verdict.OPEN


async def _outcome(ctx: Ctx, approval_id: int) -> dict[str, Any]:
    """What came of an integration that was queued.

    Raises:
        Conflict: why it was sent back.
    """
    approval = await ctx.read(lambda tx: approvals.find(tx, approval_id))
    outcome = dict(approval.outcome or {}) if approval else {}
    if approval and approval.status == "failed":
        raise Conflict(outcome.get("code", "INTEGRATION_REFUSED"), approval.reason or "", **outcome.get("details", {}))
    return outcome


# -- merging


async def _merge(ctx: Ctx, repository: Repository, row: Row, approval: Approval) -> dict[str, Any]:
    """Merge the commit that was shown; the outcome. The ground is held.

    Raises:
        Conflict: ``TARGET_DIRTY``, ``MERGE_CONFLICT``, ``TARGET_MOVED``, ``TARGET_CHECKED_OUT``; the target is as it
            was.
    """
    what = approval.payload
    await ctx.write(lambda tx: _set_merging(tx, approval))
    try:
        done = await to_thread(
            repository.integrate,
            what["source_commit"],
            what["target"],
            _message(approval),
            COMMITTER,
            fast_forward=what.get("fast_forward", False),
            merged=what["merged_commit"],
        )
    except WorkbenchError as error:
        refusal = error
        await ctx.write(lambda tx: _not_merged(tx, approval, refusal))
        raise
    return await _finish(ctx, repository, row, approval, done.commit)


def _set_merging(tx: Tx, approval: Approval) -> None:
    name = approval.payload["worktree"]
    if approval.status == "pending":
        worktrees.set_status(tx, name, Action.APPROVE)
        tx.run(SQL.put, id=approval.id, name=name, checked=int(_is_checked(approval)))
    tx.run(SQL.set_state, id=approval.id, state="merging")


def _not_merged(tx: Tx, approval: Approval, error: WorkbenchError) -> None:
    """What was approved at once stays on the desk if a person can mend it; what waits in the queue stays there."""
    name = approval.payload["worktree"]
    if approval.status == "approved":
        tx.run(SQL.set_state, id=approval.id, state="queued")
        return
    if worktrees.require(tx, name)["status"] == WorktreeState.INTEGRATING:
        worktrees.set_status(tx, name, Action.SEND_BACK)
        tx.run(SQL.set_state, id=approval.id, state="asked")
    if error.code in _VOID:
        approvals.decide(tx, approval, "failed", error.message)
        tx.run(worktrees.SQL.forget_question, name=name)
    tx.emit("worktree.refused", f"worktree:{name}", code=error.code, **error.details)


async def _finish(ctx: Ctx, repository: Repository, row: Row, approval: Approval, commit: str) -> dict[str, Any]:
    name, target = row["name"], approval.payload["target"]

    def change(tx: Tx) -> dict[str, Any]:
        worktrees.close(tx, row, Action.FINISH, commit)
        worktrees.begin(tx, "rescue", place_of(ctx, row), row["branch_name"], None)
        tx.emit("worktree.integrated", f"worktree:{name}", commit=commit, target=target)
        outcome = {"worktree": name, "state": "integrated", "commit": commit}
        if approval.status == "pending":
            return approvals.decide(tx, approval, "approved", outcome=outcome)
        return approvals.conclude(tx, approval, "approved", "", outcome)

    outcome = await ctx.write(change)
    await workers.end_all(ctx, "the worktree was integrated", name)
    await worktrees.finish_removal(ctx, repository, name)
    return outcome


# -- the queue


async def advance(ctx: Ctx) -> None:
    """Take the queue on from its front as far as it goes: merge what is ready, gate what has to be gated.

    Raises:
        Unavailable: ``GIT_BUSY`` and what the store says; nothing is lost, call it again.
    """
    while (waiting := await ctx.read(lambda tx: tx.all(SQL.queue))) != []:
        first = int(waiting[0]["approval_id"])
        step = await ctx.repositories.whole(_advance(ctx, first))
        if step is Next.CHECK and not await check(ctx, first):
            return


async def _advance(ctx: Ctx, approval_id: int) -> Next | None:
    """Do what is next with the front of the queue, unless it is to be gated."""
    async with ctx.repositories.ground(ctx) as repository:
        waiting = await ctx.read(lambda tx: _waiting(tx, approval_id))
        if waiting is None:
            return None
        question, approval, row = waiting
        try:
            step, approval = await _next(ctx, repository, row, approval, bool(question["despite_gates"]))
            if step is Next.MERGE:
                await _merge(ctx, repository, row, approval)
            elif step is Next.ASK:
                raise Conflict("GATES_FAILED", "The gates did not pass on the merge with the newest target.")
        except WorkbenchError as error:
            if error.code in _LATER or error.code.startswith("STORE_"):
                raise
            await _send_back(ctx, repository, row, approval, error)
            return None
        return step


def _waiting(tx: Reader, approval_id: int) -> tuple[Row, Approval, Row] | None:
    question, approval = tx.one(SQL.get, id=approval_id), approvals.find(tx, approval_id)
    if question is None or approval is None or question["state"] != "queued":
        return None
    return question, approval, worktrees.require(tx, question["worktree"])


async def _send_back(ctx: Ctx, repository: Repository, row: Row, approval: Approval, error: WorkbenchError) -> None:
    """Take a worktree out of the queue, and ask again, saying why, unless its branch has moved on."""
    name = row["name"]
    why = {"code": error.code, "message": error.message, "details": error.details}

    def change(tx: Tx) -> None:
        worktrees.set_status(tx, name, Action.SEND_BACK)
        tx.run(worktrees.SQL.forget_question, name=name)
        outcome = {"worktree": name, "state": "refused", "commit": None, **why}
        approvals.conclude(tx, approval, "failed", error.message, outcome)
        tx.emit("worktree.refused", f"worktree:{name}", code=error.code, **error.details)

    await ctx.write(change)
    if error.code == "APPROVAL_VOID":
        return
    what = approval.payload
    row = await ctx.read(lambda tx: worktrees.require(tx, name))
    try:
        await _put_question(
            ctx, repository, row, what["target"], what.get("fast_forward", False), why, approval.requester
        )
    except WorkbenchError as left:
        code = left.code
        await ctx.write(lambda tx: tx.emit("worktree.refused", f"worktree:{name}", code=code))


# -- gates


async def check_all(ctx: Ctx) -> None:
    """Run the gates of every question that has not been gated yet, oldest first."""
    for row in await ctx.read(lambda tx: tx.all(SQL.unchecked)):
        await check(ctx, int(row["approval_id"]))


async def check(ctx: Ctx, approval_id: int) -> bool:
    """Run the gates of one integration, telling how they stand; False if somebody else is at it."""
    file = gates.lock_of(ctx.settings, approval_id)
    with lock.tried(file) as mine:
        if not mine:
            return False
        while (approval := await ctx.read(lambda tx: _to_check(tx, approval_id))) is not None:
            await _check(ctx, approval)
        file.unlink(missing_ok=True)
    return True


def _to_check(tx: Reader, approval_id: int) -> Approval | None:
    question = tx.one(SQL.get, id=approval_id)
    approval = approvals.find(tx, approval_id)
    if question is None or question["checked"] or approval is None or not approval.payload["merged_commit"]:
        return None
    return approval


async def _check(ctx: Ctx, approval: Approval) -> None:
    commit = approval.payload["merged_commit"]
    commands = [gate["command"] for gate in approval.payload["gates"]]

    async def tell(now: Sequence[Gate]) -> bool:
        shown = [gate.as_json() for gate in now]
        return await ctx.write(lambda tx: _tell(tx, approval.id, commit, shown))

    try:
        await gates.run(ctx, approval.id, commit, commands, tell)
    except WorkbenchError as error:
        said = f"{error.code}: {error.message}"
        await tell([Gate(command, GateState.FAILED, output=said) for command in commands])


def _tell(tx: Tx, approval_id: int, commit: str, shown: list[dict[str, Any]]) -> bool:
    """Show how the gates stand; whether that is still of interest."""
    approval = _to_check(tx, approval_id)
    if approval is None or approval.payload["merged_commit"] != commit:
        return False
    approvals.amend(tx, approval, {**approval.payload, "gates": shown})
    if rules.verdict(gate["state"] for gate in shown) is not rules.Verdict.OPEN:
        tx.run(SQL.set_checked, id=approval_id, checked=1)
    return True


# -- what a crash left


async def settle_merges(ctx: Ctx, repository: Repository) -> None:
    """Settle merges that a crash cut off: one that is in the target counts, else it is as if it had not begun."""
    for row in await ctx.read(lambda tx: tx.all(SQL.cut_off)):
        await _settle(ctx, repository, row["name"], row["approval_id"])


async def _settle(ctx: Ctx, repository: Repository, name: str, approval_id: int | None) -> None:
    def question(tx: Reader) -> tuple[Row, Approval | None]:
        subject = f"worktree:{name}"
        found = approvals.find(tx, approval_id) if approval_id else approvals.open_question(tx, KIND, subject)
        return worktrees.require(tx, name), found

    row, approval = await ctx.read(question)
    if approval is not None:
        what = approval.payload
        if await to_thread(repository.is_ancestor, what["source_commit"], what["target"]):
            made = what.get("merged_commit")
            there = made and await to_thread(repository.is_ancestor, made, what["target"])
            commit = made if there else await to_thread(repository.resolve, what["target"])
            await _finish(ctx, repository, row, approval, str(commit))
            return

    def change(tx: Tx) -> None:
        if approval is not None and approval.status == "approved":
            tx.run(SQL.set_state, id=approval.id, state="queued")
            return
        worktrees.set_status(tx, name, Action.SEND_BACK)
        if approval is not None:
            tx.run(SQL.set_state, id=approval.id, state="asked")
        tx.emit("worktree.refused", f"worktree:{name}", code="INTERRUPTED")

    await ctx.write(change)


async def recover(ctx: Ctx) -> None:
    """Settle everything that a crash left half done, where there ever was a worktree."""
    if await ctx.read(lambda tx: tx.all(worktrees.SQL.steps) or tx.all(SQL.branches)):
        async with ctx.repositories.ground(ctx):
            pass
    await clear_gates(ctx)


def someone_queued(tx: Reader) -> bool:
    """Whether the queue has something in it."""
    return bool(tx.all(SQL.queue))


async def clear_gates(ctx: Ctx) -> None:
    """Remove what is left of gates that nobody runs any more."""
    for home in sorted(ctx.settings.gates.glob("*/")) if ctx.settings.gates.is_dir() else ():
        if home.name.isdecimal():
            with lock.tried(gates.lock_of(ctx.settings, home.name)) as mine:
                if mine:
                    await ctx.repositories.whole(gates.remove(ctx, Place.of_gates(ctx.settings, int(home.name))))
