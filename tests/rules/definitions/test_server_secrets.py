"""Secrets in the configurations of MCP servers: in variables, headers, flags and addresses, whatever their names."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import TypeAdapter

from tests.given import refused
from workbench.rules.definitions import trust
from workbench.rules.definitions.comparison import differences
from workbench.rules.definitions.composition import content_hash
from workbench.rules.definitions.mcp_servers import HttpServer, McpServer, StdioServer
from workbench.rules.definitions.model import Definition
from workbench.rules.definitions.portable import export_text, import_text
from workbench.rules.definitions.secrets.masked_updates import mcp_server
from workbench.rules.definitions.secrets.of_servers import written_out
from workbench.rules.definitions.secrets.written_out import masked, masked_server
from workbench.rules.secrets.forms import MASK

SERVER: TypeAdapter[StdioServer | HttpServer] = TypeAdapter(McpServer)
KEY = "Zq7-SEKRET-4fTn0vLx2"
WORD = "sekret"
GITHUB, SLACK = "ghp_SEKRET0123456789abcdefghij", "xoxb-SEKRET-123456-abcdef"
PEM = "-----BEGIN PRIVATE KEY-----\nMIISEKRETkqhkiG9w0BAQEFAASC\n-----END PRIVATE KEY-----"


def arguments(*words: str) -> dict[str, Any]:
    return {"command": "x", "args": list(words)}


def variable(name: str, value: str) -> dict[str, Any]:
    return {"command": "x", "env": {name: value}}


def header(name: str, value: str) -> dict[str, Any]:
    return {"url": "https://x.example/mcp", "headers": {name: value}}


GIVEN: dict[str, tuple[dict[str, Any], list[str]]] = {
    "a flag and its value": (arguments("--token", WORD), ["args.token"]),
    "a flag with its value": (arguments("--access-token=" + WORD, "-v"), ["args.access-token"]),
    "a header as an argument": (arguments("--header", f"Authorization: Bearer {WORD}"), ["args.Authorization"]),
    "a header in a flag": (arguments(f"--header=X-Api-Key: {WORD}"), ["args.X-Api-Key"]),
    "a header without a blank": (arguments("--header", f"Authorization:Bearer {WORD}"), ["args.Authorization"]),
    "a variable as an argument": (arguments("run", "-e", f"GITHUB_TOKEN={WORD}", "image"), ["args.GITHUB_TOKEN"]),
    "a key alone": (arguments(GITHUB), ["args.0"]),
    "a key in a script": (arguments("-c", f"curl -H 'Authorization: Bearer {GITHUB}' x"), ["args.1"]),
    "the query of an address as an argument": (arguments(f"https://x.example/mcp?key={WORD}"), ["args.key"]),
    "the password of an address as an argument": (arguments(f"postgresql://me:{WORD}@db/lab"), ["args.password"]),
    "a token as the user of an address": (arguments(f"https://{KEY}@x.example/r.git"), ["args.user"]),
    "the query of the address": ({"url": f"https://x.example/mcp?a=1&tavilyApiKey={WORD}"}, ["url.tavilyApiKey"]),
    "a key in the query": ({"url": f"https://x.example/mcp?q={SLACK}"}, ["url.q"]),
    "the path of the address": ({"url": f"https://x.example/s/{KEY}/mcp"}, ["url"]),
    "a webhook": ({"url": "https://hooks.slack.com/services/T0AB/B0AB/8SEKRETaB3dE5fG7hI9jK1m"}, ["url"]),
    "a variable by its form": (variable("SLACK_BOT", SLACK), ["SLACK_BOT"]),
    "a private key": (variable("PRIVATE", PEM), ["PRIVATE"]),
    "a connection string": (variable("CONNECTION_STRING", f"redis://:{WORD}@host"), ["CONNECTION_STRING"]),
    "headers in a variable": (
        variable("OPENAPI_MCP_HEADERS", json.dumps({"Authorization": f"Bearer {KEY}"})),
        ["OPENAPI_MCP_HEADERS"],
    ),
    "a variable of any name": (variable("OTHER", KEY), ["OTHER"]),
    "a header by its scheme": (header("X-Custom", f"Bearer {WORD}"), ["X-Custom"]),
    "a header by its form": (header("X-Custom", GITHUB), ["X-Custom"]),
}
PLAIN: tuple[dict[str, Any], ...] = (
    arguments("-y", "@modelcontextprotocol/server-filesystem", "/home/me/data", "--max-tokens", "4096"),
    arguments("mcp-server-git", "--repository", ".", "--auth", "oauth", "--token-file", "token.txt"),
    arguments("run", "-i", "--rm", "-e", "GITHUB_TOKEN", "ghcr.io/github/github-mcp-server"),
    arguments("mcp-remote", "https://x.example/mcp?page=2&sort=name", "--transport", "http-only"),
    arguments(
        "-c", "import os; print(os.environ['KEYBOARD'])", "http://localhost:8080/a", "--header", "Accept: text/plain"
    ),
    arguments("postgresql://localhost/lab", "--key=env://KEY", "--header", "Authorization: Bearer env://TOKEN"),
    variable("KEYBOARD", "de"),
    variable("MAX_TOKENS", "4096"),
    variable("ALLOWED_DIRECTORIES", "/home/me/data"),
    {"url": "https://mcp.example.org/v1/sse?profile=research&lang=en", "headers": {"Accept": "text/plain"}},
    {"url": "https://x.example/mcp?key=env://KEY", "headers": {"Authorization": "Bearer env://TOKEN"}},
)


def definition(server: dict[str, Any]) -> Definition:
    return Definition.model_validate({"metadata": {"id": "a", "name": "A"}, "mcpServers": {"s": server}})


@pytest.mark.parametrize(("server", "names"), GIVEN.values(), ids=GIVEN)
def test_a_secret_is_named_shown_nowhere_and_kept_if_its_mask_comes_back(
    server: dict[str, Any], names: list[str]
) -> None:
    stored, made = SERVER.validate_python(server), definition(server)
    assert written_out(stored) == names
    content, replaced = export_text(made)
    ways_out = (
        masked(made).model_dump_json(),
        content,
        repr(differences(definition(arguments()), made)),
        repr([need.summary + repr(need.details) for need in trust.needs(made)]),
    )
    assert [text for text in ways_out if "sekret" in text.lower()] == []
    assert list(replaced) == [f"mcpServers.s.{names[0]}"]
    again = import_text(content).mcp_servers["s"]
    assert written_out(again) == []
    assert next(iter(replaced.values())) in repr(again)
    sent_back = SERVER.validate_python(masked_server(stored).model_dump(mode="json"))
    assert mcp_server(sent_back, stored) == stored
    error = refused("INVALID_CONFIGURATION", mcp_server, sent_back)
    assert error.details["key"] == names[0]


@pytest.mark.parametrize("server", PLAIN, ids=str)
def test_a_server_without_secrets_is_shown_unchanged(server: dict[str, Any]) -> None:
    stored = SERVER.validate_python(server)
    assert written_out(stored) == []
    assert masked_server(stored) == stored


STORED: dict[str, dict[str, Any]] = {
    "program": {
        "command": "x",
        "args": ["--token", WORD, "--to", "https://x.example"],
        "env": {"OTHER": KEY, "L": "C"},
    },
    "address": {"url": f"https://x.example/s/{KEY}/mcp?key={WORD}", "headers": {"Authorization": f"Bearer {WORD}"}},
}
ELSEWHERE: dict[str, tuple[str, dict[str, Any]]] = {
    "another argument": ("program", {"args": ["--token", MASK, "--to", "https://evil.example"]}),
    "another flag": ("program", {"args": ["--print", MASK, "--to", "https://x.example"]}),
    "other arguments": ("program", {"args": ["--to", "https://evil.example", "--token", MASK]}),
    "a variable that may steer": ("program", {"env": {"OTHER": "--require=/tmp/evil-4fTn0vLx2.js", "L": "C"}}),
    "another host": ("address", {"url": f"https://evil.example/s/{MASK}/mcp?key={MASK}"}),
    "another path": ("address", {"url": f"https://x.example/s/Other-4fTn0vLx2-Zq7/mcp?key={MASK}"}),
    "another key of the query": ("address", {"url": f"https://x.example/s/{MASK}/mcp?to={MASK}"}),
}


@pytest.mark.parametrize(("name", "change"), ELSEWHERE.values(), ids=ELSEWHERE)
def test_a_mask_does_not_stand_for_a_secret_that_would_go_elsewhere(name: str, change: dict[str, Any]) -> None:
    stored = SERVER.validate_python(STORED[name])
    shown = masked_server(stored).model_dump(mode="json", exclude_defaults=True)
    assert mcp_server(SERVER.validate_python(shown), stored) == stored
    refused("INVALID_CONFIGURATION", mcp_server, SERVER.validate_python(shown | change), stored)


@pytest.mark.parametrize("value", ["new", "env://TOKEN"])
def test_one_secret_may_be_replaced_while_the_mask_of_another_stays(value: str) -> None:
    stored = SERVER.validate_python(STORED["program"])
    shown = masked_server(stored).model_dump(mode="json", exclude_defaults=True)
    made = mcp_server(
        SERVER.validate_python(shown | {"args": ["--token", value, *STORED["program"]["args"][2:]]}), stored
    )
    assert isinstance(made, StdioServer)
    assert (made.args[1], made.env["OTHER"]) == (value, KEY)


def test_the_hash_of_a_definition_does_not_depend_on_its_secrets() -> None:
    one, other = (definition(arguments("--token", value)) for value in ("sekret-1", "sekret-2"))
    assert content_hash(one) == content_hash(other)
    assert [need.fingerprint for need in trust.needs(one)] != [need.fingerprint for need in trust.needs(other)]
