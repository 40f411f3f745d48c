"""The providers that the model gateway stands in for: their addresses, keys, paths and forms of errors.

A box sends its requests to ``/models/PROVIDER/…`` of the server with a token of its attempt. The gateway sends them on
to the provider with the person's key. What is neither in `paths` nor in the lists of headers goes no further.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

KeyHeader = Literal["x-api-key", "authorization", "x-goog-api-key"]


@dataclass(frozen=True, slots=True)
class KeyVariable:
    """A variable that a key of a provider may be in, and the header that the provider takes it in."""

    name: str
    header: KeyHeader


@dataclass(frozen=True, slots=True)
class UpstreamProvider:
    """A provider behind the gateway.

    Args:
        default_base: its address; `base_variables` may name another.
        keys: the variables that its key may be in, the first that is set counts.
        prefix: what a box's paths begin with and the provider's address already contains.
        paths: those that are sent on.
        listing: a path that answers any valid key at no cost.
        withheld: further variables that a box does not get while the gateway answers for the provider.
    """

    id: str
    name: str
    default_base: str
    base_variables: tuple[str, ...]
    keys: tuple[KeyVariable, ...]
    paths: re.Pattern[str]
    listing: str
    prefix: str = ""
    withheld: tuple[str, ...] = ()

    @property
    def variables(self) -> frozenset[str]:
        """The variables of a person that say something about this provider."""
        return frozenset((*self.base_variables, *(key.name for key in self.keys), *self.withheld))

    def box_environment(self, address: str, token: str) -> dict[str, str]:
        """The variables by which clients of this provider reach the gateway instead.

        Args:
            address: that of the gateway for this provider.
        """
        return {self.base_variables[0]: f"{address}/{self.prefix}".rstrip("/"), self.keys[0].name: token}

    def address(self, base: str, path: str) -> str:
        """The provider's own address for a path that a box has sent."""
        return f"{base.rstrip('/')}/{path.removeprefix(self.prefix)}"


PROVIDERS: Mapping[str, UpstreamProvider] = MappingProxyType(
    {
        one.id: one
        for one in (
            UpstreamProvider(
                "anthropic",
                "Anthropic",
                "https://api.anthropic.com",
                ("ANTHROPIC_BASE_URL",),
                (KeyVariable("ANTHROPIC_API_KEY", "x-api-key"), KeyVariable("ANTHROPIC_AUTH_TOKEN", "authorization")),
                re.compile(r"v1/(messages(/count_tokens)?|models)"),
                "v1/models",
                withheld=("CLAUDE_CODE_OAUTH_TOKEN",),
            ),
            UpstreamProvider(
                "openai",
                "OpenAI",
                "https://api.openai.com/v1",
                ("OPENAI_BASE_URL",),
                (KeyVariable("OPENAI_API_KEY", "authorization"), KeyVariable("CODEX_API_KEY", "authorization")),
                re.compile(r"v1/(responses|chat/completions|embeddings|models)"),
                "v1/models",
                prefix="v1/",
            ),
            UpstreamProvider(
                "gemini",
                "Google Gemini",
                "https://generativelanguage.googleapis.com",
                ("GOOGLE_GEMINI_BASE_URL",),
                (KeyVariable("GEMINI_API_KEY", "x-goog-api-key"), KeyVariable("GOOGLE_API_KEY", "x-goog-api-key")),
                re.compile(
                    r"v1(beta)?/models(/[\w.-]+:"
                    r"(generateContent|streamGenerateContent|countTokens|embedContent|batchEmbedContents))?"
                ),
                "v1beta/models",
            ),
        )
    }
)
"""The providers, by the ids that definitions use too."""


@dataclass(frozen=True, slots=True)
class ProviderKey:
    """A person's key, and where it is sent. Its representation does not show it.

    Args:
        source: where the key is kept, in words.
    """

    provider: str
    base: str
    header: KeyHeader
    source: str
    value: str = field(repr=False)

    def headers(self) -> dict[str, str]:
        """The headers that prove the person to the provider."""
        return {self.header: f"Bearer {self.value}" if self.header == "authorization" else self.value}


def is_key(text: str) -> bool:
    """Whether a text can be a key: one word of printable ASCII characters."""
    return bool(text) and text.isascii() and text.isprintable() and " " not in text


def key_in(provider: UpstreamProvider, values: Mapping[str, str], source: str, base: str = "") -> ProviderKey | None:
    """The key of a provider among variables; None if there is none.

    Args:
        base: the provider's address; empty: the one that the variables name, or the usual one.
    """
    found = next((key for key in provider.keys if values.get(key.name, "").strip()), None)
    if found is None:
        return None
    address = base or base_in(provider, values) or provider.default_base
    return ProviderKey(provider.id, address, found.header, source.format(found.name), values[found.name].strip())


def base_in(provider: UpstreamProvider, values: Mapping[str, str]) -> str:
    """The address of a provider among variables; empty if there is none."""
    return next((values[name].strip() for name in provider.base_variables if values.get(name, "").strip()), "")


_REQUEST_HEADERS = re.compile(
    r"accept|content-type|user-agent|anthropic-(version|beta|dangerous-direct-browser-access)|openai-beta|originator"
    r"|version|x-app|x-stainless-[a-z-]+|x-goog-api-client|x-claude-code-[a-z-]+|session[-_]id|thread[-_]id"
    r"|conversation[-_]id|x-codex-[a-z-]+|x-openai-subagent|x-client-request-id|idempotency-key"
)
_RESPONSE_HEADERS = re.compile(
    r"content-type|retry-after(-ms)?|x-should-retry|request-id|x-request-id|cache-control"
    r"|(anthropic|x)-ratelimit-[a-z0-9-]+"
)
_QUERY = frozenset({"beta", "alt", "client_version", "limit", "after_id", "before_id", "pageSize", "pageToken"})


def sent_headers(headers: Iterable[tuple[str, str]], key: ProviderKey) -> dict[str, str]:
    """The headers of a request to a provider: those of a box that are passed on, and the person's key."""
    sent = {name: value for name, value in headers if _REQUEST_HEADERS.fullmatch(name)}
    if betas := sent.get("anthropic-beta"):  # a key is refused with the mark of a login
        kept = [beta for beta in map(str.strip, betas.split(",")) if beta and not beta.startswith("oauth-")]
        sent["anthropic-beta"] = ",".join(kept)
    return sent | {"accept-encoding": "identity"} | key.headers()


def returned_headers(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The headers of an answer that a box gets: nothing about the person's account is among them."""
    return {name: value for name, value in headers if _RESPONSE_HEADERS.fullmatch(name.lower())}


def sent_query(query: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """The parts of a query that are passed on."""
    return [(name, value) for name, value in query if name in _QUERY]


def is_streamed(provider: str, url: str, body: bytes) -> bool:
    """Whether a request asks for its answer in events."""
    if provider == "gemini":
        return ":streamGenerateContent?" in url and "alt=sse" in url
    try:
        asked = json.loads(body)
    except (ValueError, RecursionError):
        return False
    return isinstance(asked, dict) and asked.get("stream") is True


def token_in(headers: Mapping[str, str]) -> str | None:
    """The token that a box has sent, in the header of any of the providers."""
    scheme, _, bearer = headers.get("authorization", "").partition(" ")
    offered = (bearer.strip() if scheme.lower() == "bearer" else "", headers.get("x-api-key"))
    return next(filter(None, (*offered, headers.get("x-goog-api-key"))), None)


LIMITED = frozenset({429, 503, 529})
"""The statuses of answers that tell a limit, or that the provider is overloaded."""
_DELAY = re.compile(rb'"retryDelay"\s*:\s*"(\d{1,9}(?:\.\d+)?)s"')


def reset_seconds(status: int, headers: Mapping[str, str], body: bytes) -> float | None:
    """How long a limit lasts that an answer tells; None: it tells none, or not how long."""
    if status not in LIMITED:
        return None
    try:
        for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
            if name in headers:
                seconds = float(headers[name]) * unit
                return max(0.0, seconds) if math.isfinite(seconds) else None
    except ValueError:  # such as a date
        return None
    found = _DELAY.search(body)
    return float(found[1]) if found else None


_ANTHROPIC_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}
_GOOGLE_STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
}


def error_body(provider: str, status: int, code: str, message: str) -> dict[str, Any]:
    """An error as the provider's clients read it.

    Args:
        code: Workbench's own code; it precedes the message, as no client shows a field that it does not know.
    """
    text = f"{code}: {message}"
    match provider:
        case "anthropic":
            return {"type": "error", "error": {"type": _ANTHROPIC_TYPES.get(status, "api_error"), "message": text}}
        case "gemini":
            return {"error": {"code": status, "message": text, "status": _GOOGLE_STATUSES.get(status, "INTERNAL")}}
    return {"error": {"message": text, "type": code.lower(), "code": code, "param": None}}


def withheld_variables(providers: Iterable[str]) -> Iterator[str]:
    """The variables of a person that a box does not get while the gateway answers for these providers."""
    for provider in providers:
        yield from PROVIDERS[provider].variables
