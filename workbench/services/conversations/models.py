"""The models to choose from: those that were used here, and those that are known by name."""

from __future__ import annotations

from typing import ClassVar

from workbench.model import Level, Micros, Wire
from workbench.ops import Columns, Command, Ctx, RestRoute, op
from workbench.providers import answers
from workbench.rules.wire.paging import Search
from workbench.store.queries import beside

SQL = beside(__file__)


class ModelInfo(Wire):
    """A model, as `provider:model`. `used_at`: when it was last chosen or answered here; null: it is known by name."""

    name: str
    used_at: Micros | None


class Models(Wire):
    """Models: those that were used, the last one first, then the others by name."""

    SHOWN: ClassVar = Columns("models", "name used_at=used", "No model is known. Name one as provider:model.")

    models: list[ModelInfo]


@op(
    allow=Level.OPERATOR,
    reads=True,
    tool=False,
    command=Command("define models"),
    rest=RestRoute("GET", "/models", rows="models"),
)
async def list_models(ctx: Ctx, search: Search = None) -> Models:
    """List models that a definition or a conversation may name. A provider may have others, which can be named, too."""
    used = await ctx.read(lambda tx: tx.all(SQL.used))
    known = await answers.known_models()
    named = [ModelInfo(name=row["name"], used_at=row["used_at"]) for row in used]
    seen = {model.name for model in named}
    named += [ModelInfo(name=name, used_at=None) for name in known if name not in seen]
    wanted = (search or "").lower()
    return Models(models=[model for model in named if wanted in model.name.lower()])
