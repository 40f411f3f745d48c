"""The models of the providers. Each provider's package is imported when a model of it is first used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from workbench.errors import BadInput, Unavailable
from workbench.rules.definitions.providers import provider_id

if TYPE_CHECKING:
    from pydantic_ai.models import Model

EXTRA = "workbench-agents[chat]"
OLLAMA = "http://127.0.0.1:11434"
KNOWN = {"anthropic": "anthropic", "openai": "openai", "google": "gemini", "bedrock": "bedrock"}
"""Providers, by their names in the library."""
BEDROCK_SILENCE = 120
"""Seconds for which Bedrock may send nothing."""


def model(name: str, config: Mapping[str, str], settings: Mapping[str, Any]) -> Model:
    """The model of a provider. Blocks: it imports the provider's package.

    Args:
        name: ``provider:model``.
        config: the provider's configuration, with its secrets.
        settings: those of the definition that are the provider's own, such as `script` of the provider `test`.

    Raises:
        BadInput: ``MODEL_REQUIRED``, ``PROVIDER_UNKNOWN``, ``INVALID_CONFIGURATION``.
        Unavailable: ``CHAT_NOT_INSTALLED``.
    """
    provider, _, model_id = name.partition(":")
    if not model_id:
        raise BadInput("MODEL_REQUIRED", "No model is set. Set one, as provider:model.")
    try:
        return _made(provider_id(provider), model_id, config, settings)
    except ImportError as error:
        raise not_installed(error) from None


def known_models() -> list[str]:
    """Models that the library knows by name, as ``provider:model``. A provider may have others, and may have withdrawn
    some. Blocks: it imports the library.

    Raises:
        ImportError: chat is not installed.
    """
    from pydantic_ai.models import known_model_names

    named = (name.partition(":") for name in known_model_names())
    return sorted({f"{KNOWN[provider]}:{model}" for provider, _, model in named if provider in KNOWN})


def not_installed(error: ImportError) -> Unavailable:
    """The error of a package that conversations need."""
    return Unavailable("CHAT_NOT_INSTALLED", f"{error.name or error} is not installed. Run `pip install '{EXTRA}'`.")


def _made(provider: str, model_id: str, config: Mapping[str, str], settings: Mapping[str, Any]) -> Model:
    match provider:
        case "anthropic":
            from pydantic_ai.models.anthropic import AnthropicModel
            from pydantic_ai.providers.anthropic import AnthropicProvider

            return AnthropicModel(model_id, provider=AnthropicProvider(api_key=config["ANTHROPIC_API_KEY"]))
        case "openai":
            return _openai(model_id, config, settings)
        case "ollama":
            return _ollama(model_id, config.get("OLLAMA_HOST", OLLAMA))
        case "gemini":
            from pydantic_ai.models.google import GoogleModel
            from pydantic_ai.providers.google import GoogleProvider

            return GoogleModel(model_id, provider=GoogleProvider(api_key=config["GOOGLE_API_KEY"]))
        case "bedrock":
            return _bedrock(model_id, config)
    from workbench.providers.scripted import scripted

    return scripted(settings.get("script"))


def _openai(model_id: str, config: Mapping[str, str], settings: Mapping[str, Any]) -> Model:
    """A model of OpenAI, or of a server that speaks one of its two protocols."""
    from pydantic_ai.models.openai import OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    from workbench.providers.compatible import CompatibleModel

    address = config.get("OPENAI_BASE_URL")
    api = settings.get("openaiApi", "chat" if address else "responses")
    if api not in ("chat", "responses"):
        raise BadInput("INVALID_CONFIGURATION", f"openaiApi must be chat or responses, not {api!r}.", key="openaiApi")
    provider = OpenAIProvider(base_url=address, api_key=config["OPENAI_API_KEY"])
    made = CompatibleModel if api == "chat" else OpenAIResponsesModel
    return made(model_id, provider=provider)


def _ollama(model_id: str, host: str) -> Model:
    from pydantic_ai.providers.openai import OpenAIProvider

    from workbench.providers.compatible import CompatibleModel

    return CompatibleModel(model_id, provider=OpenAIProvider(base_url=f"{host.rstrip('/')}/v1", api_key="ollama"))


def _bedrock(model_id: str, config: Mapping[str, str]) -> Model:
    """A model of Bedrock. Its client is made here: repetitions and silence can be configured in no other place."""
    import boto3
    from botocore.config import Config
    from pydantic_ai.models.bedrock import BedrockConverseModel
    from pydantic_ai.providers.bedrock import BedrockProvider

    client = boto3.Session(
        aws_access_key_id=config["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=config["AWS_SECRET_ACCESS_KEY"],
        region_name=config["AWS_REGION"],
    ).client(
        "bedrock-runtime",
        config=Config(read_timeout=BEDROCK_SILENCE, connect_timeout=10, retries={"total_max_attempts": 1}),
    )
    return BedrockConverseModel(model_id, provider=BedrockProvider(bedrock_client=client))
