"""Who is let in without a question each time: admission rules, and the allowlist (spec 1)."""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from workbench.errors import Conflict, NotFound
from workbench.model import Level, Micros, Wire
from workbench.ops import Ctx, Ok, op
from workbench.rules import access
from workbench.services.agents import grants
from workbench.services.agents.grants import Grant, check
from workbench.store.base import Reader, Tx
from workbench.store.queries import beside

SQL = beside(__file__)

RuleName = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9][A-Za-z0-9._ -]*$")]


class Rule(Wire):
    """Admits agents whose name matches a pattern, with a grant."""

    id: int
    name: str
    pattern: str
    loopback_only: bool
    grants: dict[str, Any]
    created_at: Micros


class Rules(Wire):
    """Admission rules, in the order in which they are tried."""

    rules: list[Rule]


class AllowlistIds(Wire):
    """The allowlist. Nobody on it means that everyone may act; `fixed` ids come from the settings."""

    ids: list[str]
    fixed: list[str]
    path: str


@op(allow=Level.OPERATOR)
async def add_admission_rule(
    ctx: Ctx,
    name: RuleName,
    pattern: Annotated[
        str, Field(min_length=1, max_length=200, description="The agent's name, with * and ? as in a shell.")
    ],
    loopback_only: Annotated[bool, Field(description="Only agents on this machine.")] = True,
    grants: Annotated[dict[str, Any], Field(description=f"What they get: {grants.CHOICES}")] = {},
) -> Rule:
    """Admit agents whose name matches from now on without asking; the rule's name stays in their history."""
    grant = _parsed(grants)

    def change(tx: Tx) -> Rule:
        check(tx, grant)
        if tx.one(SQL.by_name, name=name):
            raise Conflict("NAME_TAKEN", f"There is a rule {name!r} already. Remove it, or choose another name.")
        values = {"name": name, "pattern": pattern, "loopback": int(loopback_only), "grants": json.dumps(grants)}
        tx.one(SQL.add, values, now=tx.now)
        tx.emit("rule.added", f"rule:{name}", pattern=pattern, loopback_only=loopback_only, grants=grants)
        return next(rule for rule in _all(tx) if rule.name == name)

    return await ctx.write(change)


@op(allow=Level.OPERATOR, reads=True)
async def list_admission_rules(ctx: Ctx) -> Rules:
    """The rules that admit agents without asking, in the order in which they are tried."""
    return Rules(rules=await ctx.read(_all))


@op(allow=Level.OPERATOR, destructive=True)
async def remove_admission_rule(ctx: Ctx, name: str) -> Ok:
    """Ask again about agents that a rule admitted by itself; those it has admitted stay."""

    def change(tx: Tx) -> Ok:
        if not tx.run(SQL.remove, name=name):
            raise NotFound("RULE_NOT_FOUND", f"There is no rule {name!r}. list_admission_rules names them.")
        tx.emit("rule.removed", f"rule:{name}")
        return Ok()

    return await ctx.write(change)


@op(allow=Level.OPERATOR, reads=True)
async def list_allowlist(ctx: Ctx) -> AllowlistIds:
    """The ids that may act at all; an empty list means everyone."""
    return _shown(ctx)


@op(allow=Level.OPERATOR)
async def allow_agent(ctx: Ctx, agent_id: str) -> AllowlistIds:
    """Put an id on the allowlist. The first one shuts everybody else out."""
    ctx.allowlist.add(access.check_agent_id(agent_id))
    await ctx.write(lambda tx: tx.emit("allowlist.changed", f"allowlist:{agent_id}", allowed=True))
    return _shown(ctx)


@op(allow=Level.OPERATOR, destructive=True)
async def disallow_agent(ctx: Ctx, agent_id: str) -> AllowlistIds:
    """Take an id off the allowlist. With the last one it is empty, and everyone may act again."""
    if agent_id not in ctx.allowlist.ids():
        raise NotFound("AGENT_NOT_FOUND", f"{agent_id!r} is not on the allowlist.")
    if agent_id in ctx.allowlist.fixed:
        raise Conflict("FIXED_BY_SETTING", f"{agent_id!r} is named by the setting allowed_agents. Change it there.")
    ctx.allowlist.remove(agent_id)
    await ctx.write(lambda tx: tx.emit("allowlist.changed", f"allowlist:{agent_id}", allowed=False))
    return _shown(ctx)


def matching(tx: Reader, name: str, address: str | None) -> Rule | None:
    """The first rule that admits an agent of this name and origin."""
    fitting = (rule for rule in _all(tx) if fnmatch.fnmatchcase(name, rule.pattern))
    return next((rule for rule in fitting if not rule.loopback_only or _is_here(address)), None)


def _is_here(address: str | None) -> bool:
    """Whether an agent is on this machine; None: it is started from here."""
    return address is None or address in access.LOOPBACK


def _all(tx: Reader) -> list[Rule]:
    return [
        Rule(**{**dict(row), "grants": json.loads(row["grants"]), "loopback_only": bool(row["loopback_only"])})
        for row in tx.all(SQL.list)
    ]


def _parsed(chosen: Mapping[str, Any]) -> Grant:
    parsed = grants.parse(chosen)
    if parsed.agent_id:
        raise grants.not_here("agent_id", "A rule admits many agents; each gets an id of its own.")
    return parsed


def _shown(ctx: Ctx) -> AllowlistIds:
    return AllowlistIds(
        ids=sorted(ctx.allowlist.ids()), fixed=sorted(ctx.allowlist.fixed), path=str(ctx.allowlist.path)
    )
