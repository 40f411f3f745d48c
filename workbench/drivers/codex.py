"""Codex: its instructions, its provider and its MCP servers are in `config.toml`."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import tomli_w

from workbench.drivers.setup import AgentSetup, Configuration, ModelAccess, ServerSetup, TelemetryAccess
from workbench.drivers.stream import (
    ANSWER_LIMIT,
    Happening,
    Note,
    ProgramStream,
    ProgramUsage,
    ToolEnd,
    ToolStart,
    count,
    first_match,
    text_of,
    time_of,
)
from workbench.rules.definitions.mcp_servers import StdioServer
from workbench.rules.definitions.program_tools import READING, WRITING, ToolLimits
from workbench.rules.failures import FailureKind

CONFIG = ".codex/config.toml"
KEY = "CODEX_API_KEY"
_PROVIDER = "workbench"
"""The name of the provider that is at another address than OpenAI's."""


def configure(setup: AgentSetup, scratch: str, files: Mapping[str, str]) -> Configuration:
    """How Codex is started for a setup.

    Args:
        scratch: the directory that `files` are written to.
        files: those of the profile; `.codex/config.toml` is extended.
    """
    config = tomllib.loads(files.get(CONFIG, ""))
    config["developer_instructions"] = setup.system_prompt
    if setup.model:
        config["model"] = setup.model
    if address := setup.provider_config.get("OPENAI_BASE_URL"):
        _set_provider(config, _provider(address))
    if setup.limits:
        _limit(config, setup.limits)
    servers = {name: _server(one) for name, one in setup.servers.items()}
    config["mcp_servers"] = servers | config.get("mcp_servers", {})
    key = setup.provider_config.get("OPENAI_API_KEY")
    return Configuration(files={CONFIG: tomli_w.dumps(config)}, environment={KEY: key} if key else {})


def route(models: ModelAccess, files: Mapping[str, str]) -> Mapping[str, str]:
    """The configuration with which Codex asks the server: it follows no variable with an address.

    Args:
        files: those of the profile, as a definition has changed them.
    """
    if (address := models.environment.get("OPENAI_BASE_URL")) is None:
        return {}
    config = tomllib.loads(files.get(CONFIG, ""))
    _set_provider(config, _provider(address) | {"env_key": "OPENAI_API_KEY"})
    return {CONFIG: tomli_w.dumps(config)}


def telling(access: TelemetryAccess, files: Mapping[str, str]) -> Configuration:
    """The configuration with which Codex tells the server of its requests."""
    config = tomllib.loads(files.get(CONFIG, ""))
    headers = {"Authorization": access.authorization}
    place = {"endpoint": f"{access.url}/v1/logs", "protocol": "json", "headers": headers}
    others = {"trace_exporter": "none", "metrics_exporter": "none"}  # it has more than a hundred spans a run
    config["otel"] = {"log_user_prompt": True, "exporter": {"otlp-http": place}, **others}
    return Configuration(files={CONFIG: tomli_w.dumps(config)})


def _set_provider(config: dict[str, Any], provider: Mapping[str, Any]) -> None:
    config["model_provider"] = _PROVIDER
    config["model_providers"] = {**config.get("model_providers", {}), _PROVIDER: provider}


def limit(command: Sequence[str], limits: ToolLimits) -> list[str]:
    """The command of a profile, in Codex's own read-only sandbox if not all may be written; for where workers are not
    confined: within a box, that sandbox does not start."""
    if not is_read_only(limits):
        return list(command)
    limited: list[str] = []
    option = ""
    for word in command:
        name = word.partition("=")[0]
        if option or name in _SANDBOX:
            option = word if word in _SANDBOX else ""
        elif word not in _UNCONFINED:
            limited.append(word)
    at = limited.index("exec") + 1 if "exec" in limited else 1
    return [*limited[:at], "--sandbox=read-only", *limited[at:]]


_SANDBOX = ("-s", "--sandbox")
_UNCONFINED = ("--dangerously-bypass-approvals-and-sandbox", "--yolo", "--full-auto")


def withheld(limits: ToolLimits) -> Iterator[str]:
    """What is not allowed as Codex has no tool of its own for each use of its shell."""
    if is_read_only(limits) and limits.allows_any(WRITING):
        yield "its agents can write nothing: Codex has one shell for all"
    if not limits.allows("Bash") and limits.allows_any(READING):
        yield "its agents read by a shell that can write nothing: Codex has no other tool to read"


def is_read_only(limits: ToolLimits) -> bool:
    """Whether something that writes is not allowed: Codex has one shell for all."""
    return not all(map(limits.allows, ("Bash", "Edit", "Write")))


def _limit(config: dict[str, Any], limits: ToolLimits) -> None:
    if not limits.allows_any(READING):
        config["features"] = {**config.get("features", {}), "shell_tool": False, "unified_exec": False}
    if not limits.allows("WebSearch"):
        config["web_search"] = "disabled"


def _provider(address: str) -> dict[str, Any]:
    plain = {"wire_api": "responses", "supports_websockets": False}  # it would try a WebSocket first, for seconds
    retries = {"request_max_retries": 1, "stream_max_retries": 1}  # attempts are retried, all of a key together
    return {"name": _PROVIDER, "base_url": address, "env_key": KEY} | plain | retries


def _server(setup: ServerSetup) -> dict[str, Any]:
    server = setup.server
    if isinstance(server, StdioServer):
        place = {} if server.cwd is None else {"cwd": server.cwd}
        found: dict[str, Any] = {"command": server.command, "args": server.args, "env": server.env} | place
    else:
        found = {"url": server.url, "http_headers": server.headers}
    if setup.allowed is not None:
        found["enabled_tools"] = list(setup.allowed)
    if setup.refused:
        found["disabled_tools"] = list(setup.refused)
    return found | {"default_tools_approval_mode": "approve"}


# Its output.

_TEXTS = tuple(
    (re.compile(pattern, re.IGNORECASE), kind)
    for pattern, kind in (
        (r"ran out of room|context window|context_length_exceeded", FailureKind.CONTEXT),
        (r"status:? 40[13]|unauthorized|missing environment variable|not logged in|refresh token", FailureKind.AUTH),
        (r"usage limit|quota exceeded|insufficient_quota|rate limit|status:? 429", FailureKind.LIMIT),
        (r"network|connection refused|error sending request|dns error|failed to lookup", FailureKind.REFUSED),
        (r"at capacity|high demand|overloaded|server_error|status:? (5\d\d|408)|disconnected", FailureKind.OVERLOADED),
        (r"status:? 4\d\d|invalid_request|does not exist|not supported", FailureKind.REFUSED),
    )
)
_TOOLS = frozenset({"command_execution", "mcp_tool_call", "file_change", "web_search", "collab_tool_call"})
_WINDOWS = ("primary", "secondary")


def streaming(command: Sequence[str]) -> list[str]:
    """The command of a profile, so that it writes what it does as it does it, as JSON."""
    if "--json" in command or "exec" not in command:
        return list(command)
    at = list(command).index("exec") + 1
    return [*command[:at], "--json", *command[at:]]


def session_files(session: str) -> str:
    """A pattern of the file, below its home, that has a conversation."""
    return f".codex/sessions/*/*/*/rollout-*-{session}.jsonl"


def resumed(command: Sequence[str], session: str, file: str) -> list[str]:
    """The command that continues a conversation, whose file is where Codex looks for it."""
    at = len(command) - 1 if command[-1:] == ["-"] else len(command)
    return [*command[:at], "resume", session, *command[at:]]


def limit_of_session(text: str) -> float | None:
    """When the usage limit ends that the file of a conversation tells of, in seconds since 1970."""
    for line in reversed(text.splitlines()):
        if '"rate_limits"' in line:
            with suppress(ValueError, KeyError, TypeError, AttributeError):
                limits = json.loads(line)["payload"]["rate_limits"]
                windows = [window for name in _WINDOWS if (window := limits.get(name))]
                used = max(windows, key=lambda window: window["used_percent"])
                return time_of(used["resets_at"])
    return None


class CodexStream(ProgramStream):
    """The output of `codex exec --json`."""

    def read(self, message: Mapping[str, Any]) -> Iterator[Happening]:
        """The events of one message."""
        match message.get("type"):
            case "thread.started":
                self.session = text_of(message.get("thread_id")) or self.session
            case "item.started":
                yield from self._start(message["item"])
            case "item.completed":
                yield from self._item(message["item"])
            case "error":
                yield from self._error(text_of(message.get("message")))
            case "turn.completed":
                self.has_ended, self.trouble = True, None
                self.usage = _usage(message.get("usage") or {})
            case "turn.failed":
                self.has_ended = True
                self._trouble(text_of((message.get("error") or {}).get("message")))

    def _start(self, item: Mapping[str, Any]) -> Iterator[Happening]:
        if item.get("type") in _TOOLS:
            yield _call(item)

    def _item(self, item: Mapping[str, Any]) -> Iterator[Happening]:
        kind = item.get("type")
        if kind == "agent_message":
            self.answer = text_of(item.get("text"))[:ANSWER_LIMIT]
            yield Note(self.answer)
        elif kind == "error":
            yield Note(f"[{text_of(item.get('message'))}]")
        elif kind in _TOOLS:
            if item["id"] not in self.open:
                yield _call(item)
            failed = item.get("status") == "failed" or bool(item.get("exit_code"))
            yield ToolEnd(item["id"], _result(item), failed)
        if kind != "error":
            self.trouble = None

    def _error(self, said: str) -> Iterator[Happening]:
        self._trouble(said)
        self.is_hopeless = self.trouble is not None and self.trouble.kind is FailureKind.AUTH
        yield Note(f"[{said}]")

    def _trouble(self, said: str) -> None:
        self.note_trouble(first_match(said, _TEXTS) or FailureKind.FAILED, said)


def _call(item: Mapping[str, Any]) -> ToolStart:
    match item["type"]:
        case "command_execution":
            return ToolStart(item["id"], "shell", {"command": item.get("command")})
        case "mcp_tool_call":
            return ToolStart(item["id"], text_of(item.get("tool")), item.get("arguments"), text_of(item.get("server")))
        case "file_change":
            return ToolStart(item["id"], "apply_patch", {"changes": item.get("changes")})
    rest = {key: value for key, value in item.items() if key not in ("id", "type", "status")}
    return ToolStart(item["id"], text_of(item["type"]), rest)


def _result(item: Mapping[str, Any]) -> Any:
    match item["type"]:
        case "command_execution":
            status = item.get("exit_code")
            output = text_of(item.get("aggregated_output"))
            return f"Exit code {status}\n{output}" if status else output
        case "mcp_tool_call":
            return item.get("error") or item.get("result")
    return item.get("status")


def _usage(usage: Mapping[str, Any]) -> ProgramUsage:
    tokens = [count(usage.get(name)) for name in ("input_tokens", "cached_input_tokens", "output_tokens")]
    return ProgramUsage(tokens[0], tokens[1], tokens[2], is_of_session=True)
