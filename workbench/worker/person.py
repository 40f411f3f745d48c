"""The person's variables and files that a command gets, and the secrets in them."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from workbench.drivers import PROGRAMS, ModelAccess
from workbench.rules.failures import account_name
from workbench.rules.models.upstream import withheld_variables
from workbench.rules.profile import Profile
from workbench.rules.secrets.forms import secrets_in, secrets_in_file
from workbench.state.home import home

COPY_LIMIT = 1_000_000
"""The size of the largest file of the user's home that is copied."""


def passed(profile: Profile, models: ModelAccess | None = None) -> dict[str, str]:
    """The person's variables that a command gets: none about a provider that the server answers for."""
    withheld = set(withheld_variables(models.providers)) if models else set()
    return {name: os.environ[name] for name in profile.passes if name in os.environ and name not in withheld}


def copied(profile: Profile, models: ModelAccess | None = None) -> list[Path]:
    """Files of the person's home that a command gets, such as a login; not those that are too large. Blocks.

    A program whose models the server provides needs no login of hers.
    """
    names = () if models and profile.program else profile.copies
    files = (home() / name for name in names)
    return [file for file in files if file.is_file() and file.stat().st_size <= COPY_LIMIT]


def secrets(
    profile: Profile, environment: Mapping[str, str], outright: Collection[str], models: ModelAccess | None = None
) -> Iterator[str]:
    """The secrets in the variables and the person's files that an agent's commands get. Blocks.

    Args:
        environment: the variables that the agent was spawned with.
        outright: the names of variables that are secret, whatever their name and form.
    """
    yield from (environment[name] for name in outright if name in environment)
    for name, value in {**passed(profile, models), **environment}.items():
        yield from secrets_in(value, name)
    for file in copied(profile, models):
        yield from secrets_in_file(file.read_text("utf-8", "replace"))


def account(profile: Profile, provider: Mapping[str, str], environment: Mapping[str, str]) -> str | None:
    """A name of the key or the login with which the program of a profile works; it does not tell the secret. Blocks.

    Args:
        provider: the variables of the provider that the agent's definition has.
        environment: the variables that the agent was spawned with.
    """
    if profile.program is None:
        return None
    variables = {**passed(profile), **provider, **environment}
    values = (variables.get(name) for name in PROGRAMS[profile.program].credentials)
    owner = PROGRAMS[profile.program].providers[0]
    if value := next(filter(None, values), None):
        return account_name(owner, value)
    return f"{owner}-login" if copied(profile) else None
