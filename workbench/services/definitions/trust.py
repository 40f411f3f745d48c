"""Trust in definitions: what the operator wrote is trusted at once, everything else is asked for.

A question in the inbox (an approval of the kind ``trust``) shows what is asked for, and its answer is about exactly
that: a definition that has changed since is asked for again.
"""

from __future__ import annotations

from asyncio import to_thread
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.definition_files import Snapshot
from workbench.definition_files.named_files import named_files
from workbench.errors import Refused
from workbench.model import Level, Role
from workbench.ops import SYSTEM, Caller, Ctx
from workbench.rules.definitions.model import Definition
from workbench.rules.definitions.trust import PROMPT, Need, added, needs, of_texts
from workbench.services import approvals
from workbench.services.access.personas import find_persona
from workbench.services.approvals import ApprovalInfo
from workbench.store.base import Reader, Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)
KIND = "trust"
NAMED = 3
"""How many needs an error names; `details.needs` has all."""


@dataclass(frozen=True, slots=True)
class DefinitionOrigin:
    """Where the content of a new definition comes from: its author wrote it, unless one of these says otherwise.

    Args:
        copied: the id of the definition that it is a copy of: what was trusted there is trusted here.
        is_foreign: it was not written here, such as an imported file: all that needs trust is asked for.
        is_ours: its texts come with Workbench, or from a persona, which only the operator writes.
    """

    copied: str | None = None
    is_foreign: bool = False
    is_ours: bool = False


WRITTEN = DefinitionOrigin()
OURS = DefinitionOrigin(is_ours=True)
FOREIGN = DefinitionOrigin(is_foreign=True)


@dataclass(frozen=True, slots=True)
class Writing:
    """A definition that was written: what it needed before and needs now, where its content comes from, and its texts
    that are new."""

    definition_id: str
    before: Sequence[Need]
    after: Sequence[Need]
    origin: DefinitionOrigin
    texts: Sequence[Need]


@dataclass(frozen=True, slots=True)
class TrustState:
    """The needs of a definition, and those that are not trusted.

    Args:
        approval_id: the pending question about it.
        refusals: why the operator refused something of it, by its fingerprint.
    """

    needs: Sequence[Need]
    missing: Sequence[Need]
    approval_id: int | None
    refusals: Mapping[str, str]

    @property
    def askable(self) -> Sequence[Need]:
        """The needs that are neither trusted nor refused."""
        return [need for need in self.missing if need.fingerprint not in self.refusals]


# Writing.


async def writing(ctx: Ctx, before: Definition | None, after: Snapshot, origin: DefinitionOrigin = WRITTEN) -> Writing:
    """The needs and texts before and after a change; `record_written` records them with the change."""
    was = [] if before is None else await needs_of(ctx, before, after)
    texts = added(of_texts(before) if before else [], of_texts(after.definition))
    return Writing(after.definition.metadata.id, was, await needs_of(ctx, after.definition, after), origin, texts)


def record_written(tx: Tx, caller: Caller, revision: Writing) -> None:
    """Trust what the caller may trust by writing it.

    The operator's own words are trusted. An agent passes on what its own definition is trusted with, no more. Where
    something untrusted was changed in part, the rest of it was not written by the caller, so it stays untrusted.
    """
    fresh = added(revision.before, revision.after)
    for need in _trustworthy(tx, caller, revision, fresh) if fresh else ():
        tx.run(SQL.trust, _columns(revision.definition_id, need), by=tx.actor, now=tx.now)
    fingerprints = {need.fingerprint for need in revision.after}
    for text in _unseen(tx, caller, revision):
        fingerprints.add(text.fingerprint)
        tx.run(SQL.note_text, _columns(revision.definition_id, text))
    close_question(tx, revision.definition_id, fingerprints)


def _unseen(tx: Tx, caller: Caller, revision: Writing) -> list[Need]:
    """The new texts that an agent wrote and the operator has not seen. The operator lets an agent change its own rules
    and references, so these are left out."""
    if revision.origin.copied is not None:
        rows = {row["fingerprint"]: row for row in tx.all(SQL.of_definition, definition=revision.origin.copied)}
        return [
            text for text in revision.texts if text.fingerprint in rows and not _is(rows[text.fingerprint], "trusted")
        ]
    if caller.level is Level.OPERATOR or revision.origin.is_ours:
        return []
    is_own = caller.definition == revision.definition_id
    return [text for text in revision.texts if text.name == PROMPT or not is_own]


def record_deleted(tx: Tx, definition_id: str) -> None:
    """Trust nothing of a definition that was deleted: another one may get its id."""
    close_question(tx, definition_id)
    tx.run(SQL.forget, definition=definition_id)


def close_question(tx: Tx, definition_id: str, needed: Collection[str] = ()) -> None:
    """Close the question about a definition, if it asks for something that is not needed any more.

    Args:
        needed: the fingerprints of what the definition needs.
    """
    question = approvals.open_question(tx, KIND, _subject(definition_id))
    if question and not _fingerprints_of(tx, question) <= set(needed):
        tx.run(SQL.release_texts, approval=question.id)
        tx.run(SQL.withdraw, approval=question.id)
        approvals.withdraw(tx, question, "What it asked about has changed.")


async def withdraw_outdated(ctx: Ctx, definition_id: str, needed: Collection[str]) -> None:
    """Close the question about what its file no longer needs; a file may change without an operation.

    Args:
        needed: the fingerprints of what it needs.
    """

    def is_outdated(tx: Reader) -> bool:
        question = approvals.open_question(tx, KIND, _subject(definition_id))
        return question is not None and not _fingerprints_of(tx, question) <= set(needed)

    if await ctx.store.read_inline(is_outdated):
        await ctx.write(lambda tx: close_question(tx, definition_id, needed))


def _trustworthy(tx: Tx, caller: Caller, revision: Writing, fresh: Sequence[Need]) -> list[Need]:
    """The new needs that are trusted because of who wrote them."""
    is_operator = caller.level is Level.OPERATOR
    source = revision.origin.copied if is_operator else caller.definition
    if revision.origin.is_foreign or not (is_operator or source):
        return []
    if source is not None:
        trusted = _trusted_fingerprints(tx, source)
        return [need for need in fresh if need.fingerprint in trusted]
    trusted = _trusted_fingerprints(tx, revision.definition_id)
    doubtful = {need.name for need in revision.before if need.fingerprint not in trusted}
    return [need for need in fresh if need.name not in doubtful]


# Asking.


async def require(ctx: Ctx, snapshot: Snapshot, name: str | None = None) -> None:
    """Refuse a definition of which something is not trusted, and ask the operator for it.

    Args:
        name: only this is used, such as ``mcpServers.github``, or this kind; None: all of the definition.

    Raises:
        Refused: ``DEFINITION_NOT_TRUSTED``; `details.approval_id` is the question, null if the operator has refused;
            `details.needs` says what it is about.
    """
    trust = await state(ctx, snapshot)
    used = [need for need in trust.missing if name in (None, need.name, need.kind)]
    if not used:
        return
    trust, summaries = await ask(ctx, snapshot), [need.summary for need in used]
    refused = [trust.refusals[need.fingerprint] for need in used if need.fingerprint in trust.refusals]
    more = f" and {len(summaries) - NAMED} more" if len(summaries) > NAMED else ""
    what = f"{'; '.join(summaries[:NAMED])}{more}"
    approval_id = None if len(refused) == len(used) else trust.approval_id
    if approval_id is None:
        way = f"The operator refused it: {next(filter(None, refused), 'no reason was given')}"
    else:
        way = f"The operator decides about it: approval {approval_id}"
    raise Refused(
        "DEFINITION_NOT_TRUSTED",
        f"The definition {snapshot.definition.metadata.name} needs what is not trusted: {what}. {way}.",
        approval_id=approval_id,
        needs=summaries,
    )


async def ask(ctx: Ctx, snapshot: Snapshot) -> TrustState:
    """Ask the operator for what a definition needs and is not trusted with, unless that question is already open.

    What the operator refused is asked for again only by the operator, and not by Workbench itself.
    """
    trust = await state(ctx, snapshot)
    asks_again = ctx.caller.level is Level.OPERATOR and ctx.caller.name != SYSTEM.name
    if not (trust.missing if asks_again else trust.askable):
        return trust
    path = ctx.definitions.display_path(snapshot.path)
    asker = approvals.person_of(ctx)
    return await ctx.write(lambda tx: _ask(tx, snapshot.definition, path, trust.needs, asker, asks_again=asks_again))


async def state(ctx: Ctx, snapshot: Snapshot) -> TrustState:
    """The needs of a definition, and which of them are trusted."""
    needs, definition_id = await needs_of(ctx, snapshot.definition, snapshot), snapshot.definition.metadata.id
    return await ctx.read(lambda tx: _state(tx, definition_id, needs))


async def needs_of(ctx: Ctx, definition: Definition, place: Snapshot) -> list[Need]:
    """The needs of a definition in the directory of a snapshot."""
    settings, role = ctx.settings, await _role(ctx, definition.metadata.persona)
    rows = await ctx.read(lambda tx: tx.all(SQL.texts, definition=definition.metadata.id))
    by_agents = {row["fingerprint"] for row in rows}
    texts = [text for text in of_texts(definition) if text.fingerprint in by_agents] if by_agents else []
    if not definition.mcp_servers:
        return [*needs(definition, role=role), *texts]
    files = await to_thread(named_files, definition, place.path, settings.project, ctx.definitions.roots)
    return [*needs(definition, files, role), *texts]


async def _role(ctx: Ctx, persona: str | None) -> Role | None:
    """The role of a persona, if there is one."""
    info = await ctx.read(lambda tx: find_persona(tx, persona)) if persona else None
    return info.role if info else None


def _state(tx: Reader, definition_id: str, needs: Sequence[Need]) -> TrustState:
    rows = {row["fingerprint"]: row for row in tx.all(SQL.of_definition, definition=definition_id)}
    missing = [need for need in needs if not _is(rows.get(need.fingerprint), "trusted")]
    missing_rows = {need.fingerprint: row for need in missing if (row := rows.get(need.fingerprint))}
    refusals = {fingerprint: row["reason"] or "" for fingerprint, row in missing_rows.items() if _is(row, "refused")}
    question = approvals.open_question(tx, KIND, _subject(definition_id))
    return TrustState(needs, missing, question.id if question and missing else None, refusals)


def _ask(
    tx: Tx, definition: Definition, path: str, needs: Sequence[Need], asker: str | None, *, asks_again: bool
) -> TrustState:
    """Open the question about what is missing; one about something else is closed.

    Args:
        asker: the person who asks.
        asks_again: ask also for what was refused.
    """
    metadata = definition.metadata
    trust, question = _state(tx, metadata.id, needs), approvals.open_question(tx, KIND, _subject(metadata.id))
    open_needs = trust.missing if asks_again else trust.askable
    fingerprints = {need.fingerprint for need in open_needs}
    if not fingerprints or (question and fingerprints == _fingerprints_of(tx, question)):
        return trust
    close_question(tx, metadata.id)
    payload = {
        "definition": metadata.name,
        "definition_id": metadata.id,
        "path": path,
        "needs": [_as_data(need) for need in open_needs],
    }
    approval_id = approvals.ask(tx, KIND, _subject(metadata.id), payload, asker=asker)
    for need in open_needs:
        tx.run(SQL.ask, _columns(metadata.id, need), approval=approval_id)
    refusals = {} if asks_again else trust.refusals
    return TrustState(needs, trust.missing, approval_id, refusals)


def _as_data(need: Need) -> dict[str, Any]:
    return {"kind": need.kind, "name": need.name, "summary": need.summary, "details": dict(need.details)}


# Deciding.


@approvals.decision_handler(KIND)
async def decide_trust(ctx: Ctx, approval: ApprovalInfo, yes: bool, choices: Mapping[str, Any]) -> dict[str, Any]:
    """Trust what the question showed, or refuse it."""
    approvals.check_choices(choices, set() if yes else {"reason"})
    reason, person = str(choices.get("reason", "")), approvals.person_of(ctx)
    return await ctx.write(lambda tx: _decide(tx, approval, yes, reason, person))


def _decide(tx: Tx, approval: ApprovalInfo, yes: bool, reason: str, person: str | None) -> dict[str, Any]:
    names = [row["name"] for row in tx.all(SQL.names_asked_by, approval=approval.id)]
    status = "trusted" if yes else "refused"
    outcome = {"definition": approval.payload["definition"], "state": status, "needs": names}
    decision = approvals.decide(tx, approval, "approved" if yes else "rejected", reason, outcome, person)
    tx.run(SQL.decide, approval=approval.id, status=status, by=tx.actor, now=tx.now)
    if yes:
        tx.emit("definition.trusted", approval.subject, names=names)
    return decision


def forget(tx: Tx, definition_id: str) -> None:
    """Trust nothing of a definition any more; an open question about it stays open."""
    tx.run(SQL.forget_texts, definition=definition_id)
    tx.run(SQL.forget, definition=definition_id)
    tx.emit("definition.untrusted", _subject(definition_id))


def _fingerprints_of(tx: Reader, question: ApprovalInfo) -> set[str]:
    return {row["fingerprint"] for row in tx.all(SQL.asked_by, approval=question.id)}


def _trusted_fingerprints(tx: Reader, definition_id: str) -> set[str]:
    rows = tx.all(SQL.of_definition, definition=definition_id)
    return {row["fingerprint"] for row in rows if _is(row, "trusted")}


def _is(row: Row | None, status: str) -> bool:
    return row is not None and row["status"] == status


def _columns(definition_id: str, need: Need) -> dict[str, Any]:
    return {"definition": definition_id, "fingerprint": need.fingerprint, "name": need.name}


def _subject(definition_id: str) -> str:
    return f"definition:{definition_id}"
