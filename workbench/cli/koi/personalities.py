"""Personalities: what agents tell a KOI network about themselves: `personalities`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import click

from workbench.cli.client import OperatorClient
from workbench.cli.completion import offers
from workbench.cli.global_options import root
from workbench.cli.operations.call import parse_arguments
from workbench.cli.operations.declared import view
from workbench.cli.output import Note, NounGroup, Shown, confirmed, drop_none, page_table, pass_client
from workbench.present.inert import inert_line
from workbench.present.tables import Table, plain

VALUE = 80
"""Characters of a value in a table."""
SEEN = {"published": "published_at", "first seen": "first_seen", "last seen": "last_seen"}
"""The times that are shown of a personality: their words, and their fields in its provenance."""


@root.group(cls=NounGroup)
def personalities() -> None:
    """What agents tell a KOI network about themselves: list, show, history, publish, set, withdraw, release."""


@personalities.command("list")
@click.argument("search", required=False)
@click.option("--own/--others", "own", default=None, help="Only this project's own; only others.")
@click.option("--limit", type=click.IntRange(1, 500), default=None, help="At most this many (default: 200).")
@pass_client
def list_personalities(client: OperatorClient, **only: Any) -> Shown:
    """List the personalities that this project knows, or those whose name or traits contain SEARCH."""
    found = client.call("list_personalities", **drop_none(**only))
    rows = {"personalities": [{**one, **_origin(one)} for one in found["personalities"]], "total": found["total"]}
    columns = {"name": "name", "version": "version", "tool_names": "tools", "node": "node", "freshness": "state"}
    table = page_table(rows, "personalities", columns, "No personalities are known. `workbench koi` shows the network.")
    waiting = found["unpublished"]
    return replace(table, lead=f"Not published yet: {', '.join(waiting)}." if waiting else "")


@view("Personality")
def _personality(found: dict[str, Any]) -> Shown:
    rows = [
        [one["name"], "tool" if one["is_callable"] else one["type"], _described(one)]
        for one in found["profile"]["traits"]
    ]
    origin = found["provenance"]
    lead = f"{found['name']}/{found['version']} of {origin['owner_name']}, {origin['freshness']}"
    note = "\n".join(
        [
            f"owner: {origin['owner']}",
            f"sent by: {origin['origin']}",
            ", ".join(f"{what} {plain(origin[at])}" for what, at in SEEN.items()),
            f"versions: {', '.join(found['versions'])}",
        ]
    )
    return Table(["trait", "type", "value or description"], rows, "It has no traits.", found, note=note, lead=lead)


@view("PersonalityChanges")
def _history(found: dict[str, Any]) -> Shown:
    rows = [
        [one["at"], one["event_type"], one["version"], one["origin_name"], _changes(one["difference"])]
        for one in found["changes"]
    ]
    return Table(["at", "event", "version", "sent by", "changes"], rows, "Nothing is known of it.", found)


@personalities.command("publish")
@click.argument("name")
@click.argument("traits", nargs=-1, metavar="[TRAIT=VALUE …]")
@click.option(
    "--agent", "agent_id", metavar="ID", default=None, help="The agent that it describes.", shell_complete=offers.agents
)
@click.option(
    "--definition",
    metavar="NAME",
    default=None,
    help="The definition that it describes.",
    shell_complete=offers.definitions,
)
@click.option("--version", default=None, help="Its version.")
@pass_client
def publish_personality(client: OperatorClient, name: str, traits: Sequence[str], **of: str | None) -> Shown:
    """Publish a personality: of an agent, of a definition, or of traits alone."""
    given = {"traits": parse_arguments(traits)} if traits else {}
    made = client.call("publish_personality", name=name, **given, **drop_none(**of))
    return Note(f"{name} is published.", made)


@personalities.command("set")
@click.argument("name", shell_complete=offers.personalities)
@click.argument("traits", nargs=-1, required=True, metavar="TRAIT=VALUE …")
@pass_client
def set_traits(client: OperatorClient, name: str, traits: Sequence[str]) -> Shown:
    """Change or add traits of one of this project's personalities."""
    made = client.call("update_traits", name=name, traits=parse_arguments(traits))
    return Note(f"The traits of {name} are changed.", made)


@personalities.command("release")
@click.argument("names", nargs=-1, required=True, metavar="NAME …")
@click.option("--to", metavar="NODE", default=None, help="The node that gets it; default: the next that publishes it.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@pass_client
def release_personality(client: OperatorClient, names: Sequence[str], to: str | None, yes: bool) -> Shown:
    """Take names from the node that owns them, such as one that has lost its key."""
    question = "What their owners have published under these names will be dropped, and not accepted again."
    confirmed(question, yes)
    made = [client.call("release_personality_name", name=name, **drop_none(to=to)) for name in names]
    rows = [[one["name"], one["former_owner"], one["owner"] or "the next that publishes it"] for one in made]
    return Table(["name", "was of", "is of"], rows, "", {"released": made})


def _origin(one: Mapping[str, Any]) -> dict[str, str]:
    origin = one["provenance"]
    return {
        "node": origin["owner_name"],
        "freshness": origin["freshness"],
        "tool_names": ", ".join(one["tools"]),
    }


def _described(trait: Mapping[str, Any]) -> str:
    value = trait["description"] if trait["is_callable"] else trait["value"]
    return _short(value)


def _changes(difference: Mapping[str, Any] | None) -> str:
    """What a change did, in one line."""
    if difference is None:
        return ""
    parts = [f"{word} {', '.join(_named(names))}" for word, names in difference.items() if names]
    return _short("; ".join(parts))


def _named(items: Any) -> list[str]:
    return [one["name"] if isinstance(one, Mapping) else str(one) for one in items]


def _short(value: Any) -> str:
    text = inert_line(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
    return text if len(text) <= VALUE else f"{text[: VALUE - 1]}…"
