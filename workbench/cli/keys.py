"""The person's keys of model providers: `keys`.

A key is in this process and where it is kept; no operation takes or returns it.
"""

from __future__ import annotations

import os

import click

from workbench.cli.client import OperatorClient
from workbench.cli.global_options import root
from workbench.cli.output import Note, PartialFailure, Shown, pass_client
from workbench.errors import BadInput
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
@pass_client
def add(client: OperatorClient, provider: str, reference: str | None, base_url: str, untried: bool) -> Shown:
    """Keep the key of a provider, after one request with it.

    It is asked for without showing it, and kept in the system's keyring, or else in a file that only you can read.
    """
    from workbench.definition_files import model_keys
    from workbench.definition_files.secret_sources import resolve
    from workbench.rules.definitions.secrets.references import parse
    from workbench.rules.models.upstream import ProviderKey, base_in
    from workbench.system.loop_thread import run_alone

    if base_url and not base_url.startswith(("http://", "https://")):
        raise BadInput("BAD_URL", "The address begins with http:// or https://.")
    about = PROVIDERS[provider]
    place = parse(reference) if reference else None
    if reference and place is None:
        raise BadInput("BAD_REFERENCE", "Give env://NAME, file://PATH, op://… or keyring://….")
    if place is not None:
        value = resolve(place, client.settings.project)
    else:
        value = click.prompt(f"Key of {about.name}", hide_input=True, err=True).strip()
    if not value or not value.isascii() or not value.isprintable():
        raise BadInput("BAD_KEY", "A key is one line of letters, digits and signs. Nothing was kept.")
    base = base_url or base_in(about, os.environ) or about.default_base
    said = "It was not tried."
    if not untried:
        trial = run_alone(
            model_keys.tried(ProviderKey(provider, base, about.keys[0].header, "you", value), TRIAL_SECONDS)
        )
        if trial.state == "refused":
            raise BadInput("KEY_REFUSED", f"{trial.detail} Nothing was kept.")
        said = trial.detail
    kept = (
        model_keys.keep_reference(about, reference, base_url) if reference else model_keys.keep(about, value, base_url)
    )
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
