"""Asks a provider whether it accepts a configuration, by listing its models. It sends the secrets that it is given."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from workbench.rules.definitions.providers import PROVIDERS

if TYPE_CHECKING:
    import httpx2

LARGEST = 16 << 20
"""Bytes of a list of models that are read."""

ADDRESSES: Mapping[str, str] = {
    "anthropic": "https://api.anthropic.com/v1",
    "openai": "https://api.openai.com/v1",
    "gemini": "https://generativelanguage.googleapis.com/v1beta",
    "ollama": "http://127.0.0.1:11434",
}
"""Where a provider is, unless its configuration says otherwise."""

Config = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Listing:
    """How to list the models of a provider.

    Args:
        path: below its address.
        address: the key of the configuration that names another address; None: there is none.
        headers: those of the request, of the configuration with its secrets.
    """

    path: str
    headers: Callable[[Config], Mapping[str, str]]
    address: str | None = None


_LISTINGS: Mapping[str, _Listing] = {
    "anthropic": _Listing(
        "/models", lambda config: {"x-api-key": config["ANTHROPIC_API_KEY"], "anthropic-version": "2023-06-01"}
    ),
    "openai": _Listing(
        "/models", lambda config: {"Authorization": f"Bearer {config['OPENAI_API_KEY']}"}, "OPENAI_BASE_URL"
    ),
    "gemini": _Listing("/models", lambda config: {"x-goog-api-key": config["GOOGLE_API_KEY"]}),
    "ollama": _Listing("/api/tags", lambda config: {}, "OLLAMA_HOST"),
}


def can_be_asked(provider: str) -> bool:
    """Whether a provider is one that can be asked."""
    return provider in _LISTINGS


async def refusal(
    provider: str, config: Config, seconds: float, addresses: Mapping[str, str] = ADDRESSES
) -> str | None:
    """Ask a provider; why it does not accept the configuration, or None if it does.

    Redirects are not followed: they could take the secrets elsewhere. Nothing of the reply but its status is shown.

    Args:
        provider: one that can be asked.
        config: complete, with its secrets.
    """
    import httpx2  # takes too long to be imported with everything else

    listing, name = _LISTINGS[provider], PROVIDERS[provider].name
    base = config.get(listing.address or "", addresses[provider])
    headers = listing.headers(config)
    if not all(value.isascii() and value.isprintable() for value in headers.values()):
        return "The secret has characters that no key has, such as a line break."
    try:
        async with (
            asyncio.timeout(seconds),
            httpx2.AsyncClient(timeout=seconds, follow_redirects=False) as client,
            client.stream("GET", f"{base.rstrip('/')}{listing.path}", headers=headers) as response,
        ):
            meaning = _meaning(name, response.status_code)
            if meaning is None and not _lists_models(await _start_of(response)):
                return f"{name}'s address answers, but not with a list of models. Check it; it may lack /v1."
            return meaning
    except (TimeoutError, httpx2.TimeoutException):
        return f"{name} did not answer within {seconds:g} s."
    except (httpx2.HTTPError, httpx2.InvalidURL, UnicodeError) as error:
        return f"{name} cannot be reached ({type(error).__name__}). Check its address and the network."


async def _start_of(response: httpx2.Response) -> bytes:
    body = b""
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > LARGEST:
            break
    return body


def _lists_models(body: bytes) -> bool:
    """Whether a reply lists models, as each provider and those that speak its protocol do."""
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        return False
    listed = (answer.get("data"), answer.get("models")) if isinstance(answer, dict) else (answer,)
    return any(isinstance(models, list) for models in listed)


def _meaning(name: str, status: int) -> str | None:
    if status < 300:
        return None
    if status in (400, 401, 403):
        return f"{name} refused the key or the request ({status})."
    if status < 400:
        return f"{name} redirects to another address ({status}), which is not followed."
    return f"{name} answered with the status {status}."
