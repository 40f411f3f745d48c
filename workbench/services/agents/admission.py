"""Admission rules, which admit matching agents without asking the operator (spec 1)."""

from __future__ import annotations

import fnmatch
import json
import os
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from workbench.errors import Conflict, Hint, NotFound, WorkbenchError
from workbench.model import Level, Micros, Wire
from workbench.ops import Caller, Command, Ctx, Ok, op
from workbench.process import connected_user
from workbench.process.connected_user import TELLS
from workbench.rules import access
from workbench.services.agents import grants
from workbench.services.agents.grants import Grant, check, require_tools
from workbench.store.base import Reader, Tx
from workbench.store.queries import beside

SQL = beside(__file__)

RuleName = Annotated[
    str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9][A-Za-z0-9._ -]*$", description="A new name for it.")
]


class AdmissionRule(Wire):
    """A rule that admits agents whose name matches a pattern, with a grant. `problem`: why it can admit none now."""

    id: int
    name: str
    pattern: str
    loopback_only: bool
    grants: dict[str, Any]
    created_at: Micros
    problem: str | None = None


class AdmissionRules(Wire):
    """Admission rules, in the order in which they are tried."""

    rules: list[AdmissionRule]


@op(allow=Level.OPERATOR, command="rules add")
async def add_admission_rule(
    ctx: Ctx,
    name: RuleName,
    pattern: Annotated[
        str, Field(min_length=1, max_length=200, description="Pattern of names, with * and ? as in a shell.")
    ],
    loopback_only: Annotated[
        bool, Field(description="Only agents on this machine that run as you; only Linux tells which do.")
    ] = True,
    grants: Annotated[dict[str, Any], Field(description=f"Their grant: {grants.CHOICES}")] = {},
) -> AdmissionRule:
    """Add a rule that admits agents with a matching name without asking. Each approval records the rule."""
    grant = _parse(grants)
    await require_tools(ctx, grant)

    def change(tx: Tx) -> AdmissionRule:
        check(tx, grant)
        if tx.one(SQL.by_name, name=name):
            raise Conflict("NAME_TAKEN", f"There is already a rule {name!r}. Remove it, or choose another name.")
        values = {"name": name, "pattern": pattern, "loopback": int(loopback_only), "grants": json.dumps(grants)}
        tx.one(SQL.add, values, now=tx.now)
        tx.emit("rule.added", f"rule:{name}", pattern=pattern, loopback_only=loopback_only, grants=grants)
        return next(rule for rule in _all(tx) if rule.name == name)

    return await ctx.write(change)


@op(allow=Level.OPERATOR, reads=True, command=Command("rules list"), refreshed_by="rule")
async def list_admission_rules(ctx: Ctx) -> AdmissionRules:
    """List the rules that admit agents without asking, in the order in which they are tried."""
    return AdmissionRules(
        rules=await ctx.read(lambda tx: [rule.model_copy(update={"problem": _problem(tx, rule)}) for rule in _all(tx)])
    )


@op(allow=Level.OPERATOR, destructive=True, command=Command("rules remove NAME", "Removed rule {name}."))
async def remove_admission_rule(
    ctx: Ctx, name: Annotated[str, Field(description="The rule's name; see list_admission_rules.")]
) -> Ok:
    """Remove an admission rule. The agents it admitted stay admitted."""

    def change(tx: Tx) -> Ok:
        if not tx.run(SQL.remove, name=name):
            raise NotFound("RULE_NOT_FOUND", f"There is no rule {name!r}.", Hint("list_admission_rules"))
        tx.emit("rule.removed", f"rule:{name}")
        return Ok()

    return await ctx.write(change)


def matching(tx: Reader, name: str, caller: Caller, user: int | None) -> AdmissionRule | None:
    """The first rule that admits an agent of this name and origin.

    Args:
        user: see `user_of`.
    """
    matches = (rule for rule in _all(tx) if fnmatch.fnmatchcase(name, rule.pattern))
    return next((rule for rule in matches if not rule.loopback_only or _is_own(caller, user)), None)


def user_of(caller: Caller) -> int | None:
    """The id of the user whose program calls, if that is on this machine and can be told. Blocks."""
    return connected_user(*caller.connection) if caller.connection else None


def _is_own(caller: Caller, user: int | None) -> bool:
    """Whether a program on this machine calls that runs as who runs this server, as far as the system tells."""
    if caller.address is None or caller.connection is None:  # the call came from this process
        return caller.address is None or caller.address in access.LOOPBACK
    return caller.address in access.LOOPBACK and (not TELLS or user == os.geteuid())


def _all(tx: Reader) -> list[AdmissionRule]:
    return [
        AdmissionRule(**{**dict(row), "grants": json.loads(row["grants"]), "loopback_only": bool(row["loopback_only"])})
        for row in tx.all(SQL.list)
    ]


def _problem(tx: Reader, rule: AdmissionRule) -> str | None:
    """Why the grant of a rule is no longer valid; None if it is."""
    try:
        check(tx, _parse(rule.grants))
    except WorkbenchError as error:
        return error.message
    return None


def _parse(choices: Mapping[str, Any]) -> Grant:
    grant = grants.parse(choices)
    if grant.agent_id:
        raise grants.choice_refused("agent_id", "a rule admits many agents, and each gets its own id; omit it")
    return grant
