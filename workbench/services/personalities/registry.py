"""The registry: the personalities that this node knows, where they come from, and how they have changed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from workbench.errors import Hint, NotFound
from workbench.model import LARGEST_INT, Level, Micros, Wire
from workbench.ops import Command, Ctx, op
from workbench.rules.naming import like_pattern, similar
from workbench.rules.personalities.addresses import node_label
from workbench.rules.personalities.differences import ProfileDifference, difference
from workbench.rules.personalities.highlights import Highlight, highlights
from workbench.rules.personalities.mcp_adapter import described
from workbench.rules.personalities.profile import PersonalityProfile
from workbench.rules.personalities.rid import LONGEST_PART, AgentPersonality
from workbench.rules.wire import paging
from workbench.rules.wire.paging import Cursor, Limit
from workbench.services.personalities import publishing
from workbench.services.personalities.self_node import hash_of, own_hash
from workbench.store.base import Reader, Row
from workbench.store.queries import beside

SQL = beside(__file__)

PersonalityName = Annotated[
    str, Field(min_length=1, max_length=LONGEST_PART, description="The agent's name on the network.")
]
PersonalityVersion = Annotated[str, Field(min_length=1, max_length=LONGEST_PART, description="The version.")]
Freshness = Literal["own", "live", "stale"]


class Provenance(Wire):
    """Where a personality comes from.

    `owner`: the node that may change it. `origin`: the node that sent it, which is another one if it was passed on;
    both are RIDs, and the names beside them have a mark of the key, as in field·830c0d. `published_at`: when the owner
    made it. `changed_at`: when its contents last changed here. `answered_at`: when its origin last answered; null if
    that is not known. `freshness`: own (of this project), live (its origin answered then) or stale (its origin does not
    answer, or is blocked, or this node takes no part in a network).
    """

    owner: str
    owner_name: str
    origin: str
    origin_name: str
    sha256: str
    published_at: Micros
    first_seen: Micros
    last_seen: Micros
    changed_at: Micros
    answered_at: Micros | None
    freshness: Freshness


class PersonalitySummary(Wire):
    """The latest version of a personality. `versions`: all of them, the latest first. `traits`: how many it has.

    `highlights`: its first traits and tools, a line of text each.
    """

    rid: str
    name: str
    version: str
    versions: list[str]
    description: str
    traits: int
    tools: list[str]
    highlights: list[Highlight]
    mcp_url: str | None
    provenance: Provenance


class PersonalityPage(Wire):
    """Personalities by name. `unpublished`: names of this project's own that are not on a network yet. `next_cursor` is
    null on the last page."""

    personalities: list[PersonalitySummary]
    total: int
    unpublished: list[str]
    next_cursor: str | None


class Personality(Wire):
    """A version of a personality, with its whole profile. `versions`: all of them, the latest first."""

    rid: str
    name: str
    version: str
    versions: list[str]
    profile: PersonalityProfile
    provenance: Provenance


class PersonalityChange(Wire):
    """A change. `since`: the version that `difference` compares with, null for the first one; `difference` is null
    for FORGET."""

    id: int
    rid: str
    version: str
    event_type: Literal["NEW", "UPDATE", "FORGET"]
    at: Micros
    origin: str
    origin_name: str
    sha256: str | None
    published_at: Micros | None
    since: str | None
    difference: ProfileDifference | None


class PersonalityChanges(Wire):
    """Changes, newest first. `next_before` is null on the last page."""

    changes: list[PersonalityChange]
    next_before: int | None


@op(
    allow=Level.READ,
    reads=True,
    tool=False,
    command=Command(
        "personalities list [SEARCH]",
        names={"own/others": "own"},
        help="List the personalities that this project knows, or those whose name or traits contain SEARCH.",
    ),
    refreshed_by="personality profile peer clock",
)
async def list_personalities(
    ctx: Ctx,
    search: Annotated[str | None, Field(max_length=200, description="Part of a name or of a trait.")] = None,
    own: Annotated[bool | None, Field(description="Only this project's own, or else only others.")] = None,
    names: Annotated[list[str] | None, Field(max_length=500, description="Only those with these names.")] = None,
    limit: Limit = 200,
    cursor: Cursor = None,
) -> PersonalityPage:
    """List the personalities of agents on the network, in their latest versions, by name."""
    me = await own_hash(ctx)
    waiting = set(publishing.bound(ctx)) if ctx.node.presence is None else set()
    after = paging.decode(cursor, str)[0] if cursor else ""
    values = {
        "search": like_pattern(search),
        "own": None if own is None else int(own),
        "own_node": f"%+{me}" if me else "",
        "chosen": int(names is not None),
        "names": json.dumps(names or []),
    }

    def question(tx: Reader) -> PersonalityPage:
        rows, following = paging.cut(tx.all(SQL.list, values, after=after, limit=limit + 1), limit, "name")
        total = tx.one(SQL.count, values)
        assert total is not None
        versions = _versions(tx, [row["name"] for row in rows])
        return PersonalityPage(
            personalities=[_summary(row, versions[row["name"]], me) for row in rows],
            total=total["n"],
            unpublished=sorted({row["name"] for row in tx.all(SQL.unpublished)} | waiting),
            next_cursor=following,
        )

    return await ctx.read(question)


@op(
    allow=Level.READ,
    reads=True,
    tool=False,
    command=Command("personalities show NAME", offers={"name": "personalities"}),
)
async def get_personality(
    ctx: Ctx,
    name: PersonalityName,
    version: Annotated[
        str | None, Field(max_length=LONGEST_PART, description="This version; by default the latest.")
    ] = None,
) -> Personality:
    """Get the profile of an agent on the network: its traits, its tools and where it comes from."""
    me = await own_hash(ctx)

    def question(tx: Reader) -> Personality:
        row = tx.one(SQL.one, name=name, version=version)
        if row is None:
            raise no_personality(tx, name, version)
        return Personality(
            rid=row["rid"],
            name=row["name"],
            version=row["version"],
            versions=_versions(tx, [name])[name],
            profile=_profile(row["contents"]),
            provenance=_provenance(row, me),
        )

    return await ctx.read(question)


@op(
    allow=Level.READ,
    reads=True,
    tool=False,
    command=Command("personalities history NAME", offers={"name": "personalities"}),
)
async def list_personality_changes(
    ctx: Ctx,
    name: PersonalityName,
    version: Annotated[str | None, Field(max_length=LONGEST_PART, description="Only this version's changes.")] = None,
    limit: Annotated[int, Field(ge=1, le=200, description="At most this many.")] = 50,
    before: Annotated[int, Field(ge=0, le=LARGEST_INT, description="Only changes with a smaller id.")] = LARGEST_INT,
) -> PersonalityChanges:
    """List how a personality has changed, newest first, with what each change added, removed and changed.

    A change is compared with the state before it of the same version; the first of a version, with the version before.
    """
    rid = str(AgentPersonality(name, version)) if version else None
    rows = await ctx.read(lambda tx: tx.all(SQL.changes, name=name, rid=rid, before_id=before, limit=limit + 1))
    following = rows[limit - 1]["id"] if len(rows) > limit else None
    return PersonalityChanges(changes=[_change(row) for row in rows[:limit]], next_before=following)


def _summary(row: Row, versions: list[str], me: str | None) -> PersonalitySummary:
    profile = _profile(row["contents"])
    return PersonalitySummary(
        rid=row["rid"],
        name=row["name"],
        version=row["version"],
        versions=versions,
        description=described(profile),
        traits=len(profile.traits),
        tools=[trait.name for trait in profile.tools],
        highlights=highlights(profile.traits),
        mcp_url=profile.mcp_url,
        provenance=_provenance(row, me),
    )


def _provenance(row: Row, me: str | None) -> Provenance:
    is_own = me is not None and hash_of(row["owner"]) == me
    return Provenance(
        owner=row["owner"],
        owner_name=node_label(row["owner"]),
        origin=row["origin"],
        origin_name=node_label(row["origin"]),
        sha256=row["sha256"],
        published_at=row["manifest_at"],
        first_seen=row["first_seen"],
        last_seen=row["last_seen"],
        changed_at=row["changed_at"],
        answered_at=row["answered_at"],
        freshness="own" if is_own else "live" if row["is_live"] else "stale",
    )


def _change(row: Row) -> PersonalityChange:
    after = _profile(row["contents"]) if row["contents"] is not None else None
    before = _profile(row["contents_before"]) if row["contents_before"] is not None else None
    return PersonalityChange(
        id=row["id"],
        rid=row["rid"],
        version=row["rid"].rpartition("/")[2],
        event_type=row["event_type"],
        at=row["at"],
        origin=row["origin"],
        origin_name=node_label(row["origin"]),
        sha256=row["sha256"],
        published_at=row["manifest_at"],
        since=before.rid.version if before and after else None,
        difference=difference(before, after) if after else None,
    )


def _versions(tx: Reader, names: Sequence[str]) -> dict[str, list[str]]:
    """The versions of each name, the latest first."""
    versions: dict[str, list[str]] = {name: [] for name in names}
    for row in tx.all(SQL.versions, names=json.dumps(list(names))):
        versions[row["name"]].append(row["version"])
    return versions


def _profile(contents: str) -> PersonalityProfile:
    return PersonalityProfile.model_validate_json(contents)


def no_personality(tx: Reader, name: str, version: str | None) -> NotFound:
    if versions := _versions(tx, [name])[name]:
        has_none = f"{name} has no version {version}. Its versions: {', '.join(versions)}."
        of_another = f"{name} is an agent of another node, which alone can change or withdraw it."
        return NotFound("PERSONALITY_NOT_FOUND", of_another if version is None else has_none)
    if meant := similar(name, [row["name"] for row in tx.all(SQL.similar)]):
        return NotFound("PERSONALITY_NOT_FOUND", f"There is no personality {name!r}. Did you mean {meant}?")
    return NotFound("PERSONALITY_NOT_FOUND", f"There is no personality {name!r}.", Hint("list_personalities"))
