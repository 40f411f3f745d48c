"""The profiles of this project's own agents: publish them, change their traits, withdraw them.

The operator decides which agents have one. An agent may change the traits of its own, if its grant says so.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from workbench.errors import BadInput, Conflict, Hint, NotFound, Refused, WorkbenchError
from workbench.koi.rids import PERSONALITY
from workbench.model import Capability, Json, Level, Wire
from workbench.ops import SAID, Command, Ctx, Ok, op
from workbench.rules.personalities.addresses import node_label
from workbench.rules.personalities.composition import compose
from workbench.rules.personalities.profile import PersonalityTrait
from workbench.rules.personalities.rid import AgentPersonality
from workbench.rules.personalities.traits import changed, parse, require_no_functions, require_room
from workbench.services.agents.rows import require_agent
from workbench.services.definitions import changes as definitions
from workbench.services.personalities import publishing
from workbench.services.personalities.publishing import DEFAULT_VERSION, Own
from workbench.services.personalities.registry import no_personality
from workbench.services.personalities.self_node import hash_of, own_hash
from workbench.store.base import Reader, Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)

OwnName = Annotated[
    str,
    Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$",
        description="The agent's name on the network: letters, digits, dots, - and _.",
    ),
]
Traits = Annotated[
    dict[str, Json],
    SAID,
    Field(
        max_length=1_000,
        description="Values by name, or objects with value, description and is_callable. null removes one.",
    ),
]


class OwnPersonality(Wire):
    """The profile of an agent of this project.

    `traits`: all of them; `set_by_hand` and `functions` name those that were set, and those that are functions of
    processes. All others are from the definition and the persona. `is_published`: the network can have it; it is
    published while the servers run and the project takes part in a network.
    """

    rid: str
    name: str
    version: str
    agent_id: str | None
    definition_id: str | None
    traits: list[PersonalityTrait]
    set_by_hand: list[str]
    functions: list[str]
    is_published: bool


@dataclass(frozen=True, slots=True)
class SavedProfile:
    """A profile that was changed. `before`: what was decided about it before; None: nothing."""

    name: str
    before: Row | None


@op(
    allow=Level.OPERATOR,
    tool=False,
    command=Command(
        "personalities publish NAME [TRAIT=VALUE]...",
        "{name} is published.",
        names={"TRAIT=VALUE": "traits"},
        help="Publish a personality: of an agent, of a definition, or of traits alone.",
    ),
)
async def publish_personality(
    ctx: Ctx,
    name: OwnName,
    agent_id: Annotated[
        str | None, Field(description="The agent whose persona and definition it shows. Omit it: as it was, or none.")
    ] = None,
    definition: Annotated[
        str | None,
        Field(description="Path, id or name of the definition it shows. Omit it: as it was, or the agent's."),
    ] = None,
    version: Annotated[
        str | None,
        Field(
            pattern=r"^[A-Za-z0-9][A-Za-z0-9_.+-]{0,127}$",
            description="A new version replaces the former one. Omit it: as it was, the definition's, or 1.0.",
        ),
    ] = None,
    traits: Annotated[
        dict[str, Json] | None, Field(max_length=1_000, description="Traits to set, instead of those set before.")
    ] = None,
) -> OwnPersonality:
    """Publish the profile of an agent on the KOI network. It follows its definition, its persona and its functions."""
    metadata = (await definitions.read(ctx, definition)).definition.metadata if definition else None
    by_hand = parse(traits) if traits is not None else None
    me = await own_hash(ctx)

    def change(tx: Tx) -> SavedProfile:
        _require_own_name(tx, name, me)
        before = tx.one(SQL.get, name=name) or {}
        values = {
            "version": version or before.get("version") or (metadata.version if metadata else DEFAULT_VERSION),
            "agent_id": require_agent(tx, agent_id)["id"] if agent_id else before.get("agent_id"),
            "definition_id": metadata.id if metadata else before.get("definition_id"),
        }
        saved = _save(tx, name, values, _by_hand(before) if by_hand is None else by_hand)
        tx.emit("profile.published", f"profile:{name}", version=values["version"])
        return saved

    return await _publish(ctx, change)


@op(
    allow=Level.WORKER,
    requires=Capability.OWN_PERSONALITY,
    command=Command(
        "personalities set NAME TRAIT=VALUE...",
        "The traits of {name} are changed.",
        names={"TRAIT=VALUE": "traits"},
        offers={"name": "personalities"},
        help="Change or add traits of one of this project's personalities.",
    ),
)
async def update_traits(
    ctx: Ctx,
    traits: Traits,
    name: Annotated[str | None, Field(max_length=128, description="Of the agent. Omit it: your own.")] = None,
) -> OwnPersonality:
    """Change traits of an agent's profile, which the KOI network sees. All others stay."""
    functions = publishing.bound(ctx)
    me = await own_hash(ctx)

    def change(tx: Tx) -> SavedProfile:
        target = _target(tx, ctx, name)
        own = publishing.find(tx, functions, target)
        if own is None:
            raise no_personality(tx, target, None)
        _require_own_name(tx, target, me)
        require_no_functions(traits, (trait.name for trait in own.sources.functions))
        values = tx.one(SQL.get, name=target) or {"version": own.version, "agent_id": None, "definition_id": None}
        saved = _save(tx, target, values, changed(own.sources.by_hand, traits))
        tx.emit("profile.changed", f"profile:{target}", traits=sorted(traits))
        return saved

    return await _publish(ctx, change)


@op(
    allow=Level.OPERATOR,
    tool=False,
    command=Command(
        "personalities withdraw NAME",
        "{name} is withdrawn.",
        asks="{name} and its tools will no longer be on the network.",
        offers={"name": "personalities"},
    ),
)
async def withdraw_personality(ctx: Ctx, name: OwnName) -> Ok:
    """Withdraw the profile of an agent: the network forgets it. No other node can take its name."""
    functions = publishing.bound(ctx).get(name, ())

    def change(tx: Tx) -> None:
        if functions:
            raise _has_functions(name, [trait.name for trait in functions])
        if not tx.run(SQL.delete, name=name):
            raise no_personality(tx, name, None)
        tx.emit("profile.withdrawn", f"profile:{name}")

    await ctx.write(change)
    await publishing.publish(ctx)
    return Ok()


@op(allow=Level.OPERATOR, reads=True, tool=False)
async def get_own_personality(ctx: Ctx, name: OwnName) -> OwnPersonality:
    """Get the profile of an agent of this project, and which of its traits were set by hand."""
    functions = publishing.bound(ctx)
    me = await own_hash(ctx)

    def question(tx: Reader) -> OwnPersonality:
        own = publishing.find(tx, functions, name)
        if own is None:
            raise no_personality(tx, name, None)
        rid = str(AgentPersonality(own.name, own.version))
        is_published = me is not None and tx.one(SQL.published, rid=rid, own_node=f"%+{me}") is not None
        return _describe(own, rid, is_published)

    return await ctx.read(question)


async def _publish(ctx: Ctx, change: Callable[[Tx], SavedProfile]) -> OwnPersonality:
    """Change a profile and publish it; if it is refused, everything is as it was before. One change at a time."""
    async with ctx.node.publishing:
        saved = await ctx.write(change)
        refused = await publishing.publish_held(ctx)
        refusals = [refusal for refusal in refused if refusal.rid.startswith(f"{PERSONALITY}:{saved.name}/")]
        if refusals:
            await ctx.write(lambda tx: _restore(tx, saved))
    if refusals:
        reason = f"{saved.name} was not published: {refusals[0].reason}."
        raise Conflict("PERSONALITY_REFUSED", reason, refusal=refusals[0].code)
    return await get_own_personality(ctx, saved.name)


def _restore(tx: Tx, saved: SavedProfile) -> None:
    if saved.before is None:
        tx.run(SQL.delete, name=saved.name)
    else:
        tx.run(SQL.save, {**saved.before}, now=tx.now)


def _save(tx: Tx, name: str, values: Mapping[str, Any], by_hand: list[PersonalityTrait]) -> SavedProfile:
    """Store what was decided about a profile."""
    require_room(by_hand)
    before = tx.one(SQL.get, name=name)
    traits = json.dumps([trait.model_dump(mode="json") for trait in by_hand], ensure_ascii=False)
    columns = {column: values[column] for column in ("version", "agent_id", "definition_id")}
    tx.run(SQL.save, columns, name=name, traits=traits, now=tx.now)
    return SavedProfile(name, before)


def _by_hand(row: Mapping[str, Any]) -> list[PersonalityTrait]:
    return [PersonalityTrait.model_validate(trait) for trait in json.loads(row.get("traits") or "[]")]


def _target(tx: Tx, ctx: Ctx, name: str | None) -> str:
    """The name of the profile to change.

    Raises:
        BadInput: ``PERSONALITY_NAME_REQUIRED``. NotFound: ``NO_PERSONALITY``. Refused: ``NOT_YOUR_PERSONALITY``.
    """
    if ctx.caller.level is Level.OPERATOR:
        if name is None:
            raise BadInput(
                "PERSONALITY_NAME_REQUIRED",
                "Say whose traits: give name.",
                Hint("list_personalities", "{} lists names."),
            )
        return name
    row = tx.one(SQL.of_agent, agent=ctx.caller.agent)
    if row is None:
        raise NotFound("NO_PERSONALITY", "You have no profile on the network. Ask the operator to publish one for you.")
    if name not in (None, row["name"]):
        raise Refused("NOT_YOUR_PERSONALITY", f"You may change your own profile only: {row['name']}.")
    return str(row["name"])


def _require_own_name(tx: Tx, name: str, me: str | None) -> None:
    """Refuse a name that another node owns.

    Raises:
        Conflict: ``PERSONALITY_NAME_TAKEN``.
    """
    row = tx.one(SQL.owner, name=name)
    if row is not None and hash_of(row["owner"]) != me:
        raise Conflict(
            "PERSONALITY_NAME_TAKEN",
            f"{name} is an agent of the node {node_label(row['owner'])}.",
            Hint("release_personality_name", "Choose another name, or take it from that node: {}."),
        )


def _has_functions(name: str, functions: list[str]) -> WorkbenchError:
    return Conflict(
        "PERSONALITY_HAS_FUNCTIONS",
        f"Running processes offer functions as traits of {name}: {', '.join(functions)}. Define them without trait, or "
        "end these processes first.",
        functions=functions,
    )


def _describe(own: Own, rid: str, is_published: bool) -> OwnPersonality:
    return OwnPersonality(
        rid=rid,
        name=own.name,
        version=own.version,
        agent_id=own.agent_id,
        definition_id=own.definition_id,
        traits=compose(own.sources),
        set_by_hand=[trait.name for trait in own.sources.by_hand],
        functions=[trait.name for trait in own.sources.functions],
        is_published=is_published,
    )
