"""Asking a provider: what is sent where, and what its answers mean. The provider is a real server on loopback."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.definition_files.provider import Provider, running
from workbench.definition_files.provider_check import can_be_asked, refusal
from workbench.rules.definitions.providers import PROVIDERS

pytestmark = pytest.mark.anyio
SECRET = "hunter2"
CONFIGS = {
    "anthropic": {"ANTHROPIC_API_KEY": SECRET},
    "openai": {"OPENAI_API_KEY": SECRET},
    "gemini": {"GOOGLE_API_KEY": SECRET},
    "ollama": {},
}


@pytest.fixture
async def provider() -> AsyncIterator[Provider]:
    """See `Provider`."""
    async with running() as made:
        yield made


@pytest.mark.parametrize(
    ("name", "heads"),
    [
        ("anthropic", ["GET /models HTTP/1.1", f"x-api-key: {SECRET}"]),
        ("openai", [f"authorization: bearer {SECRET}"]),
        ("gemini", [f"x-goog-api-key: {SECRET}"]),
        ("ollama", ["GET /api/tags HTTP/1.1"]),
    ],
)
async def test_a_check_of_a_key_sends_the_headers_that_the_provider_expects(
    name: str, heads: list[str], provider: Provider
) -> None:
    for address in (provider.address, f"{provider.address}/"):
        assert await refusal(name, CONFIGS[name], 10, {name: address}) is None
    assert len(provider.requests) == 2
    for request in provider.requests:
        assert [head for head in heads if head.lower() not in request.lower()] == []
        assert SECRET not in request.splitlines()[0]


@pytest.mark.parametrize(("name", "key"), [("openai", "OPENAI_BASE_URL"), ("ollama", "OLLAMA_HOST")])
async def test_a_configured_address_is_used(name: str, key: str, provider: Provider) -> None:
    assert await refusal(name, CONFIGS[name] | {key: provider.address}, 10) is None


@pytest.mark.parametrize(
    ("status", "meaning"),
    [
        (401, "Anthropic refused the key or the request (401)."),
        (404, "Anthropic answered with the status 404."),
        (529, "Anthropic answered with the status 529."),
        (302, "Anthropic redirects to another address (302), which is not followed."),
    ],
)
async def test_each_status_of_a_provider_has_a_meaning(status: int, meaning: str, provider: Provider) -> None:
    provider.reply = f"HTTP/1.1 {status} x\r\nLocation: {provider.address}/other\r\nContent-Length: 0\r\n\r\n".encode()
    assert await refusal("anthropic", CONFIGS["anthropic"], 10, {"anthropic": provider.address}) == meaning
    assert len(provider.requests) == 1


@pytest.mark.parametrize("body", [b"<html>Welcome</html>", b'{"error": "Unexpected endpoint"}', b""])
async def test_an_address_that_lists_no_models_is_not_accepted(body: bytes, provider: Provider) -> None:
    provider.reply = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    error = await refusal("openai", CONFIGS["openai"], 10, {"openai": provider.address})
    assert error == "OpenAI's address answers, but not with a list of models. Check it; it may lack /v1."


@pytest.mark.parametrize("reply", [b"", b"HTTP/1.1 200 OK\r\n"])
async def test_a_provider_that_does_not_answer_is_not_waited_for(reply: bytes, provider: Provider) -> None:
    provider.reply, provider.is_silent = reply, True
    error = await refusal("openai", CONFIGS["openai"], 0.2, {"openai": provider.address})
    assert error == "OpenAI did not answer within 0.2 s."


async def test_an_address_that_answers_no_http_is_named_as_unreachable(provider: Provider) -> None:
    for provider.reply in (b"", b"no HTTP\r\n\r\n"):
        error = await refusal("openai", CONFIGS["openai"], 10, {"openai": provider.address})
        assert error == "OpenAI cannot be reached (RemoteProtocolError). Check its address and the network."


@pytest.mark.parametrize("secret", [f"{SECRET}\nX-Other: 1", f"{SECRET}é", f"{SECRET}\0"])
async def test_a_secret_that_no_header_can_have_is_not_quoted(secret: str, provider: Provider) -> None:
    error = await refusal("openai", {"OPENAI_API_KEY": secret}, 10, {"openai": provider.address})
    assert error == "The secret has characters that no key has, such as a line break."
    assert provider.requests == []


async def test_every_provider_but_bedrock_and_test_can_be_asked() -> None:
    assert {name for name in PROVIDERS if not can_be_asked(name)} == {"bedrock", "test"}
