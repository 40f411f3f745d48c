"""The providers of models, and how each is configured."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from workbench.errors import BadInput
from workbench.rules.definitions.component import Component

VALUE_LIMIT = 10_000
_REGION = re.compile(r"[a-z]{2}(-[a-z]+)+-\d")


class ConfigValue(Component):
    """One key of a provider's configuration.

    Args:
        caption: its label in a form.
        secret: it is never shown once it is written.
        required: the provider cannot be used without it.
        default: used when it is missing.
    """

    key: str
    caption: str
    hint: str = ""
    secret: bool = False
    required: bool = True
    default: str | None = None


class ProviderInfo(Component):
    """A provider."""

    name: str
    description: str
    website: str = ""
    config_values: tuple[ConfigValue, ...] = ()


def _secret(key: str, caption: str, hint: str = "", *, required: bool = True) -> ConfigValue:
    return ConfigValue(key=key, caption=caption, hint=hint, secret=True, required=required)


PROVIDERS: Mapping[str, ProviderInfo] = {
    "anthropic": ProviderInfo(
        name="Anthropic",
        description="Claude models",
        website="https://www.anthropic.com",
        config_values=(_secret("ANTHROPIC_API_KEY", "API key"),),
    ),
    "openai": ProviderInfo(
        name="OpenAI",
        description="GPT models, and servers that speak the same protocol",
        website="https://openai.com",
        config_values=(
            _secret("OPENAI_API_KEY", "API key"),
            ConfigValue(
                key="OPENAI_BASE_URL", caption="Address", hint="of a server with the same protocol", required=False
            ),
        ),
    ),
    "gemini": ProviderInfo(
        name="Google Gemini",
        description="Gemini models",
        website="https://ai.google.dev",
        config_values=(_secret("GOOGLE_API_KEY", "API key"),),
    ),
    "ollama": ProviderInfo(
        name="Ollama",
        description="Models that run on this machine",
        website="https://ollama.com",
        config_values=(
            ConfigValue(key="OLLAMA_HOST", caption="Address", required=False, default="http://127.0.0.1:11434"),
        ),
    ),
    "bedrock": ProviderInfo(
        name="Amazon Bedrock",
        description="Models on AWS",
        website="https://aws.amazon.com/bedrock",
        config_values=(
            _secret("AWS_ACCESS_KEY_ID", "Access key id"),
            _secret("AWS_SECRET_ACCESS_KEY", "Secret access key"),
            ConfigValue(key="AWS_REGION", caption="Region", hint="such as eu-central-1"),
        ),
    ),
    "test": ProviderInfo(name="Test", description="Answers from a script, without a network; for tests"),
}
ALIASES: Mapping[str, str] = {"claude": "anthropic", "google": "gemini"}
ADDRESSES = frozenset({"OPENAI_BASE_URL", "OLLAMA_HOST"})
"""Keys that say to which server the others are sent."""


def provider_id(name: str) -> str:
    """The id of a provider, by its id or an alias.

    Raises:
        BadInput: ``PROVIDER_UNKNOWN``; `details.available` are the ids.
    """
    found = ALIASES.get(name.lower(), name.lower())
    if found not in PROVIDERS:
        available = sorted(PROVIDERS)
        raise BadInput(
            "PROVIDER_UNKNOWN", f"No provider {name!r}. Choose one of {', '.join(available)}.", available=available
        )
    return found


def check(provider: str, config: Mapping[str, Any]) -> None:
    """Check the configuration of a provider as far as that is possible without its network.

    Args:
        provider: its id.

    Raises:
        BadInput: ``INVALID_CONFIGURATION``; `details.key` is the key that is wrong.
    """
    info = PROVIDERS[provider]
    known = {value.key: value for value in info.config_values}
    for key, value in config.items():
        if key not in known:
            keys = ", ".join(known) or "none"
            raise _invalid(key, f"{info.name} has no setting {key!r}; its settings: {keys}")
        if not isinstance(value, str) or not value.strip() or len(value) > VALUE_LIMIT or not value.isprintable():
            raise _invalid(key, f"{key} must be a text of one line, with up to {VALUE_LIMIT:,} characters")
        _check_form(key, value)
    if missing := [key for key, value in known.items() if value.required and key not in config]:
        raise _invalid(missing[0], f"{info.name} needs {', '.join(missing)}")


_REFERENCES = ("env://", "file://", "op://", "keyring://")
"""What a reference to a secret begins with."""


def _check_form(key: str, value: str) -> None:
    if value in _REFERENCES:
        raise _invalid(key, f"{key} is no whole reference: a name or a place follows {value}")
    if "://" in value and key not in ADDRESSES:
        return  # a reference to a secret; what it refers to is not looked up here
    if key in ADDRESSES and not value.startswith(("http://", "https://", *_REFERENCES)):
        raise _invalid(key, f"{key} must be an http or https address, or a reference such as env://{key}")
    if key == "AWS_REGION" and not _REGION.fullmatch(value):
        raise _invalid(key, f"{key} must be a region such as eu-central-1")


def _invalid(key: str, reason: str) -> BadInput:
    return BadInput("INVALID_CONFIGURATION", f"{reason}.", key=key)
