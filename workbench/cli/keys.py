"""The person's keys of model providers, and what was said to models: `keys`, `transcript`.

A key is in this process and where it is kept; no operation takes or returns it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from typing import Any, Protocol

import click

from workbench.cli.client import OperatorClient
from workbench.cli.global_options import root
from workbench.cli.output import Note, PartialFailure, Shown, Text, confirmed, pass_client
from workbench.errors import BadInput
from workbench.present.inert import inert
from workbench.rules.models.upstream import PROVIDERS

TRIAL_SECONDS = 15.0
Provider = click.Choice(sorted(PROVIDERS))


@root.group()
def keys() -> None:
    """Keep the keys of model providers. They stay in the server: agents ask it for models, and get no key."""


@keys.command()
@click.argument("provider", type=Provider)
@click.option("--from", "reference", metavar="REFERENCE", help="Where it is: env://, file://, op://, keyring://.")
@click.option("--base-url", default="", metavar="URL", help="The provider's address, if it is not the usual one.")
@click.option("--untried", is_flag=True, help="Keep it without a request to the provider.")
@click.option("--yes", is_flag=True, help="Do not ask whether it may be sent without encryption.")
@pass_client
def add(client: OperatorClient, provider: str, reference: str | None, base_url: str, untried: bool, yes: bool) -> Shown:
    """Keep the key of a provider, after one request with it.

    It is asked for without showing it, or read from a pipe, and kept in the system's keyring, or else in a file that
    only you can read.
    """
    from workbench.definition_files import model_keys
    from workbench.definition_files.secret_sources import resolve
    from workbench.rules.definitions.secrets.references import SecretSource, parse
    from workbench.rules.hosts import is_exposed
    from workbench.rules.models.upstream import ProviderKey, base_in, is_key
    from workbench.system.loop_thread import run_alone

    about = PROVIDERS[provider]
    base = base_url or base_in(about, os.environ) or about.default_base
    if not base.startswith(("http://", "https://")):
        raise BadInput("BAD_URL", f"The address {base} does not begin with http:// or https://. Nothing was kept.")
    if is_exposed(base):
        confirmed(f"{base} is not encrypted: the key, and all that agents send, can be read on the way there.", yes)
    place = parse(reference) if reference else None
    if reference and place is None:
        raise BadInput("BAD_REFERENCE", "Give env://NAME, file://PATH, op://… or keyring://….")
    if place is not None:
        value = resolve(place, client.settings.project).strip()
        file = model_keys.file_of(str(place), client.settings.project)
        reference = f"file://{file}" if file else reference  # other projects use it, too
    elif sys.stdin.isatty():
        value = click.prompt(f"Key of {about.name}", hide_input=True, err=True).strip()
    else:
        value = sys.stdin.readline().strip()
    if not is_key(value):
        raise BadInput("BAD_KEY", "A key is one word of letters, digits and signs. Nothing was kept.")
    said = "It was not tried."
    if not untried:
        trial = run_alone(
            model_keys.try_key(ProviderKey(provider, base, about.keys[0].header, "you", value), TRIAL_SECONDS)
        )
        if trial.state == "refused":
            raise BadInput("KEY_REFUSED", f"{trial.detail} Nothing was kept.")
        said = trial.detail
    kept = (
        model_keys.keep_reference(about, reference, base_url) if reference else model_keys.keep(about, value, base_url)
    )
    if place is not None and place.source is SecretSource.ENV:
        said = f"{said} The server takes it from its own environment: start it where {place.place} is set."
    said = " ".join(filter(None, (said, model_keys.exposed(kept.reference, client.settings.project))))
    shown = {"provider": provider, "reference": kept.reference, "detail": said}
    if not untried and trial.state != "accepted":
        return PartialFailure(["provider", "kept in", "problem"], [[provider, kept.reference, said]], data=shown)
    return Note(f"The key of {about.name} is kept in {kept.reference}. {said}", shown)


@keys.command()
@click.argument("provider", type=Provider)
@pass_client
def remove(client: OperatorClient, provider: str) -> Shown:
    """Keep the key of a provider no longer. Agents that run lose it within a minute."""
    from workbench.definition_files import model_keys

    forgotten = model_keys.forget(PROVIDERS[provider])
    note = f"The key of {PROVIDERS[provider].name} in {forgotten.reference} is used no more."
    return Note(note, {"provider": provider, "reference": forgotten.reference})


@root.command()
@click.argument("task_id", type=int, metavar="TASK")
@click.option("--attempt", type=int, help="The attempt; by default the last one that asked a model.")
@click.option("--containing", default="", metavar="TEXT", help="Only messages that contain this text.")
@pass_client
def transcript(client: OperatorClient, task_id: int, attempt: int | None, containing: str) -> Shown:
    """Show what an agent and its model said to each other while it did a task, each message once."""
    which = {"task_id": task_id, "containing": containing} | ({} if attempt is None else {"attempt": attempt})
    page = read_transcript(client, which)
    if not page["messages"]:
        client.call("get_task", task_id=task_id)  # is there such a task?
    lines = [f"[{message['role']}] {said(part)}" for message in page["messages"] for part in message["parts"]]
    return Text(inert("\n".join(lines)) or "Nothing was said by way of this server.", page)


class Caller(Protocol):
    """Calls operations."""

    def call(self, name: str, /, **arguments: Any) -> Mapping[str, Any]:
        """Call one."""
        ...


def read_transcript(client: Caller, which: Mapping[str, Any]) -> Mapping[str, Any]:
    """All messages that arguments of `get_transcript` choose, as one page.

    Raises:
        WorkbenchError: see the operation ``get_transcript``.
    """
    page = client.call("get_transcript", **which)
    while page["next_after"] is not None:
        more = client.call("get_transcript", **{**which, "attempt": page["attempt"]}, after=page["next_after"])
        page = {**more, "messages": [*page["messages"], *more["messages"]]}
    return page


def said(part: Mapping[str, Any]) -> str:
    """A part of a message as text."""
    if "tool_call" in part:
        return f"{part['tool_call']}({json.dumps(part['arguments'], ensure_ascii=False)})"
    if "tool_result" in part:
        return "result: " + " ".join(map(said, part["content"]))
    return str(part.get("text") or part.get("thinking") or f"<{part.get('other', '')}>")
