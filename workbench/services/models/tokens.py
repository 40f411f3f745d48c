"""The tokens by which the commands of attempts ask the gateway for models: worth nothing elsewhere, and over with the
attempt. Only their hashes are stored."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from workbench.errors import Refused, Unauthenticated
from workbench.ops import Ctx
from workbench.rules import access
from workbench.store.base import Tx
from workbench.store.queries import beside

SQL = beside(__file__)
PREFIX = "wbm"


@dataclass(frozen=True, slots=True)
class ModelGrant:
    """Who asks for a model: an attempt, for providers.

    Args:
        agent: the internal id.
    """

    task_id: int
    attempt: int
    agent: str
    agent_name: str
    providers: frozenset[str]


def issue(tx: Tx, task_id: int, attempt: int, providers: Collection[str]) -> str:
    """A new token for the command of a supervised attempt; an earlier one is no longer valid."""
    token = access.new_token(PREFIX)
    values = {"task_id": task_id, "attempt": attempt, "token_hash": access.token_hash(token)}
    tx.run(SQL.set_token, values, providers=" ".join(sorted(providers)))
    return token


async def identify(ctx: Ctx, token: str | None, provider: str) -> ModelGrant:
    """The attempt that a token belongs to.

    Raises:
        Unauthenticated: ``INVALID_TOKEN``: no attempt has it, or its attempt has ended.
        Refused: ``PROVIDER_NOT_GRANTED``.
    """
    if not token:
        raise Unauthenticated("INVALID_TOKEN", "The request has no token. Use the key variable that the box was given.")
    hashed = access.token_hash(token)
    row = await ctx.store.read_inline(lambda tx: tx.one(SQL.by_token, token_hash=hashed))
    if row is None:
        raise Unauthenticated("INVALID_TOKEN", "The token for models is unknown. It is valid in its own attempt only.")
    if row["ended_at"] is not None:
        text = f"Attempt {row['attempt']} of task {row['task_id']} has ended, and its token for models with it."
        raise Unauthenticated("INVALID_TOKEN", text)
    providers = frozenset(row["model_providers"].split())
    if provider not in providers:
        granted = ", ".join(sorted(providers)) or "none"
        raise Refused("PROVIDER_NOT_GRANTED", f"This attempt may ask: {granted}. It has no key of {provider}.")
    return ModelGrant(row["task_id"], row["attempt"], row["agent_id"], row["agent_name"], providers)
