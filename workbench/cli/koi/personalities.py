"""Personalities: what agents tell a KOI network about themselves: `personalities`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import click

from workbench.cli.client import OperatorClient
from workbench.cli.global_options import root
from workbench.cli.operations.declared import view
from workbench.cli.output import NounGroup, Shown, confirmed, drop_none, page_table, pass_client
from workbench.present.inert import inert_line
from workbench.present.tables import Table, plain

VALUE = 80
"""Characters of a value in a table."""
SEEN = {"published": "published_at", "first seen": "first_seen", "last seen": "last_seen"}
"""The times that are shown of a personality: their words, and their fields in its provenance."""


@root.group(cls=NounGroup)
def personalities() -> None:
    """What agents tell a KOI network about themselves: list, show, history, publish, set, withdraw, release."""


@view("PersonalityPage")
def _page(page: dict[str, Any]) -> Shown:
    rows = [personality | _origin(personality) for personality in page["personalities"]]
    columns = {"name": "name", "version": "version", "tool_names": "tools", "node": "node", "freshness": "state"}
    empty = "No personalities are known. `workbench koi` shows the network."
    lead = f"Not published yet: {', '.join(page['unpublished'])}." if page["unpublished"] else ""
    return replace(page_table({**page, "personalities": rows}, "personalities", columns, empty), lead=lead)


@view("Personality")
def _personality(personality: dict[str, Any]) -> Shown:
    rows = [
        [trait["name"], "tool" if trait["is_callable"] else trait["type"], _describe(trait)]
        for trait in personality["profile"]["traits"]
    ]
    origin = personality["provenance"]
    lead = f"{personality['name']}/{personality['version']} of {origin['owner_name']}, {origin['freshness']}"
    note = "\n".join(
        [
            f"owner: {origin['owner']}",
            f"sent by: {origin['origin']}",
            ", ".join(f"{word} {plain(origin[at])}" for word, at in SEEN.items()),
            f"versions: {', '.join(personality['versions'])}",
        ]
    )
    return Table(
        ["trait", "type", "value or description"], rows, "It has no traits.", personality, note=note, lead=lead
    )


@view("PersonalityChanges")
def _history(history: dict[str, Any]) -> Shown:
    rows = [
        [change["at"], change["event_type"], change["version"], change["origin_name"], _changes(change["difference"])]
        for change in history["changes"]
    ]
    return Table(["at", "event", "version", "sent by", "changes"], rows, "Nothing is known of it.", history)


@personalities.command("release")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("--to", metavar="NODE", default=None, help="The node that gets it; default: the next that publishes it.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@pass_client
def release_personality(client: OperatorClient, names: Sequence[str], to: str | None, yes: bool) -> Shown:
    """Take names from the node that owns them, such as one that has lost its key."""
    question = "What their owners have published under these names will be dropped, and not accepted again."
    confirmed(question, yes)
    released = [client.call("release_personality_name", name=name, **drop_none(to=to)) for name in names]
    rows = [[row["name"], row["former_owner"], row["owner"] or "the next that publishes it"] for row in released]
    return Table(["name", "was of", "is of"], rows, "", {"released": released})


def _origin(personality: Mapping[str, Any]) -> dict[str, str]:
    origin = personality["provenance"]
    return {
        "node": origin["owner_name"],
        "freshness": origin["freshness"],
        "tool_names": ", ".join(personality["tools"]),
    }


def _describe(trait: Mapping[str, Any]) -> str:
    value = trait["description"] if trait["is_callable"] else trait["value"]
    return _short(value)


def _changes(difference: Mapping[str, Any] | None) -> str:
    """What a change did, in one line."""
    if difference is None:
        return ""
    parts = [f"{word} {', '.join(_names(names))}" for word, names in difference.items() if names]
    return _short("; ".join(parts))


def _names(items: Any) -> list[str]:
    return [item["name"] if isinstance(item, Mapping) else str(item) for item in items]


def _short(value: Any) -> str:
    text = inert_line(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
    return text if len(text) <= VALUE else f"{text[: VALUE - 1]}…"
