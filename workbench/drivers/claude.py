"""Claude Code: its system prompt and its MCP servers are files that arguments name."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

from workbench.drivers.setup import AgentSetup, Configuration, ServerSetup, TelemetryAccess
from workbench.drivers.stream import (
    ANSWER_LIMIT,
    Happening,
    Note,
    ProgramFailure,
    ProgramStream,
    ProgramUsage,
    Start,
    Told,
    ToolEnd,
    ToolStart,
    amount,
    count,
    first_match,
    kind_of_status,
    text_of,
    time_of,
)
from workbench.rules.definitions.mcp_servers import StdioServer
from workbench.rules.definitions.program_tools import WRITING, ToolLimits, separated, tool_of, uses_of
from workbench.rules.failures import FailureKind

MCP = "mcp.json"
PROMPT = "system_prompt.md"
_IN_DIRECTORY = 'cd "$1" && shift && exec "$@"'
"""A script for `sh -c`: Claude Code starts servers in its own directory."""


def configure(setup: AgentSetup, scratch: str, files: Mapping[str, str]) -> Configuration:
    """How Claude Code is started for a setup.

    Args:
        scratch: the directory that `files` are written to.
        files: those of the profile; `mcp.json` is extended.
    """
    servers = {name: _server(one) for name, one in setup.servers.items()}
    config: dict[str, Any] = json.loads(files.get(MCP, "{}"))
    config["mcpServers"] = servers | config.get("mcpServers", {})
    return Configuration(
        arguments=tuple(_arguments(setup, scratch)),
        files={MCP: json.dumps(config), PROMPT: setup.system_prompt},
        environment=dict(_environment(setup)),
    )


def telling(access: TelemetryAccess, files: Mapping[str, str]) -> Configuration:
    """The variables with which Claude Code tells the server of its requests. It takes the header as it stands."""
    return Configuration(
        environment={
            "CLAUDE_CODE_ENABLE_TELEMETRY": "1",
            "OTEL_LOGS_EXPORTER": "otlp",
            "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json",
            "OTEL_EXPORTER_OTLP_ENDPOINT": access.url,
            "OTEL_EXPORTER_OTLP_HEADERS": f"Authorization={access.authorization}",
            "OTEL_LOG_USER_PROMPTS": "1",
            "OTEL_LOG_TOOL_DETAILS": "1",
        }
    )


def limit(command: Sequence[str], limits: ToolLimits) -> list[str]:
    """The command of a profile, with no more of Claude Code's own tools than are allowed.

    `--tools` says which exist, `--disallowedTools` which are refused, and of those that the profile allows without a
    question only the allowed uses stay: no one is there to answer one.
    """
    limited: list[str] = []
    option = ""
    for word in command:
        name, has_value, value = word.partition("=")
        if name in _ALLOWING and has_value:
            limited += [f"{name}={entry}" for entry in _allowed(value, limits)]
        elif word in _ALLOWING or word == _MODE:
            option = word
        elif option == _MODE or name == _MODE:
            option = ""
            limited.append(f"{_MODE}={_mode(value or word)}")
        elif option and not word.startswith("-"):
            limited += [f"{option}={entry}" for entry in _allowed(word, limits)]
        elif word not in _UNASKED:
            option = ""
            limited.append(word)
    if not any(word.startswith(f"{_MODE}=") for word in limited):
        limited.append(f"{_MODE}={_mode('')}")
    if limits.allowed is not None:
        limited.append(f"--tools={','.join(dict.fromkeys(map(tool_of, limits.allowed)))}")
    planned = sorted((WRITING - {"Bash"}) | {"ExitPlanMode"}) if limits.is_plan else ()
    return [*limited, *(f"--disallowedTools={entry}" for entry in (*limits.refused, *planned))]


_ALLOWING = ("--allowedTools", "--allowed-tools")
_MODE = "--permission-mode"
_UNASKED = ("--dangerously-skip-permissions", "--allow-dangerously-skip-permissions")


def withheld(limits: ToolLimits) -> Iterator[str]:
    """Claude Code keeps all limits."""
    yield from ()


def _allowed(entries: str, limits: ToolLimits) -> Iterator[str]:
    """The uses of tools that a profile and a definition both allow; tools of servers are not limited."""
    for entry in separated(entries):
        tool = tool_of(entry)
        if tool.startswith("mcp__") or (not (limits.is_plan and tool in WRITING) and _is_within(entry, limits)):
            yield entry
        elif limits.allowed is not None and entry == tool and not (limits.is_plan and tool in WRITING - {"Bash"}):
            yield from (use for use in limits.allowed if uses_of(use) and tool_of(use) == tool)


def _is_within(entry: str, limits: ToolLimits) -> bool:
    return limits.allowed is None or entry in limits.allowed or tool_of(entry) in limits.allowed


def _mode(profiles: str) -> str:
    """The permission mode, in which only what is allowed runs. In others, commands that change files need no permission
    (`acceptEdits`), or a model is asked about each command (`plan`)."""
    return "plan" if profiles == "plan" else "dontAsk"


def _arguments(setup: AgentSetup, scratch: str) -> Iterator[str]:
    yield f"--append-system-prompt-file={scratch}/{PROMPT}"
    if setup.model:
        yield f"--model={setup.model}"
    if setup.max_chat_turns:
        yield f"--max-turns={setup.max_chat_turns}"
    for name, one in setup.servers.items():
        allowed = [f"mcp__{name}"] if one.allowed is None else [f"mcp__{name}__{tool}" for tool in one.allowed]
        yield f"--allowedTools={','.join(allowed)}"
        if one.refused:
            yield f"--disallowedTools={','.join(f'mcp__{name}__{tool}' for tool in one.refused)}"


def _environment(setup: AgentSetup) -> Iterator[tuple[str, str]]:
    yield from setup.provider_config.items()
    if setup.provider == "bedrock":
        yield "CLAUDE_CODE_USE_BEDROCK", "1"
    if setup.max_output_tokens:
        yield "CLAUDE_CODE_MAX_OUTPUT_TOKENS", str(setup.max_output_tokens)


def _server(setup: ServerSetup) -> dict[str, Any]:
    server = setup.server
    if not isinstance(server, StdioServer):
        kind = "http" if server.type == "streamable-http" else "sse"
        return {"type": kind, "url": server.url, "headers": server.headers}
    command, args = server.command, server.args
    if server.cwd is not None:
        command, args = "/bin/sh", ["-c", _IN_DIRECTORY, "sh", server.cwd, command, *args]
    return {"type": "stdio", "command": command, "args": args, "env": server.env}


# Its output.

_FORMAT = "--output-format"
_INPUT = "--input-format"
_TALKING = (f"{_INPUT}=stream-json", "--replay-user-messages")
_SERVER_TOOL = re.compile(r"mcp__(.+?)__(.+)", re.DOTALL)
_ERRORS = {
    "authentication_failed": FailureKind.AUTH,
    "oauth_org_not_allowed": FailureKind.AUTH,
    "billing_error": FailureKind.REFUSED,
    "invalid_request": FailureKind.REFUSED,
    "model_not_found": FailureKind.REFUSED,
    "rate_limit": FailureKind.LIMIT,
    "overloaded": FailureKind.OVERLOADED,
    "server_error": FailureKind.OVERLOADED,
}
"""Its words for errors of the provider, in `api_retry` and in answers that it makes itself."""
_TEXTS = tuple(
    (re.compile(pattern, re.IGNORECASE), kind)
    for pattern, kind in (
        (r"prompt is too long|context (window|limit)|conversation too long", FailureKind.CONTEXT),
        (r"not logged in|invalid api key|please run /login|failed to authenticate|oauth token", FailureKind.AUTH),
        (r"hit your .*limit|usage limit|rate limit|request rejected \(429\)", FailureKind.LIMIT),
        (r"\b(529|5\d\d)\b.*(overloaded|error)|api error: 5\d\d|overloaded", FailureKind.OVERLOADED),
        (r"unable to connect|connection (refused|error)|ECONNREFUSED|ENOTFOUND|credit balance", FailureKind.REFUSED),
        (r"api error: 40[0-4]|issue with the selected model", FailureKind.REFUSED),
    )
)
_SUBTYPES = {"error_max_turns": FailureKind.TURNS, "error_max_budget_usd": FailureKind.TURNS}
_ABORTED = ("aborted_tools", "aborted_streaming")
_REASONS = {
    "prompt_too_long": FailureKind.CONTEXT,
    "max_turns": FailureKind.TURNS,
} | dict.fromkeys(_ABORTED, FailureKind.CRASHED)


def streaming(command: Sequence[str]) -> list[str]:
    """The command of a profile, so that it writes what it does as it does it, as JSON."""
    return [*_without(command, _FORMAT, "--verbose"), f"{_FORMAT}=stream-json", "--verbose"]


def talking(command: Sequence[str]) -> list[str]:
    """The command so that it reads what it is told while it works, as JSON, and says when its model has got it."""
    return [*_without(command, _INPUT, *_TALKING[1:]), *_TALKING]


def _without(command: Sequence[str], option: str, *flags: str) -> Iterator[str]:
    """The words of a command but for an option with its value, and for flags."""
    skips = False
    for word in command:
        if not skips and word.partition("=")[0] not in (option, *flags):
            yield word
        skips = word == option


def session_files(session: str) -> str:
    """A pattern of the file, below its home, that has a conversation."""
    return f".claude/projects/*/{session}.jsonl"


def resumed(command: Sequence[str], session: str, file: str) -> list[str]:
    """The command that continues a conversation, whatever directory that was in."""
    return [*command, f"--resume={file}"]


class ClaudeStream(ProgramStream):
    """The output of Claude Code with `--output-format=stream-json --verbose`, and its input if it is talked to.

    It takes a message when a tool has ended, in the same turn, and otherwise when its turn has: then there is another.
    """

    _has_key = False
    """Whether it works with a key, which more tries do not renew, as they may a login."""

    def begin(self, start: Start) -> None:
        """Have it told its prompt."""
        if self.talks:
            self._prompt(start.prompt)

    def tell(self, message: Told) -> None:
        """Have it told a message, and its turn ended before, if the message asks for that."""
        super().tell(message)
        if self.talks and not self.is_closed:
            if message.interrupts:
                request = {"subtype": "interrupt"}
                self._send(type="control_request", request_id=_uuid(message.id), request=request)
            self._prompt(message.text, uuid=_uuid(message.id))

    def end(self, status: int) -> ProgramFailure | None:
        """How the run ended: as it said; once its input is closed, its status says nothing more."""
        return self.trouble if self.talks and self.has_ended else super().end(status)

    def _prompt(self, text: str, **more: str) -> None:
        self._send(type="user", message={"role": "user", "content": [{"type": "text", "text": text}]}, **more)

    def _send(self, **fields: Any) -> None:
        self._unsent.append(json.dumps(fields) + "\n")

    def read(self, message: Mapping[str, Any]) -> Iterator[Happening]:
        """The events of one message."""
        self.session = text_of(message.get("session_id")) or self.session
        match message.get("type"):
            case "assistant":
                yield from self._assistant(message)
            case "user" if message.get("isReplay") is True:
                self._got(message.get("uuid"))
            case "command_lifecycle" if message.get("state") == "started":
                self._got(message.get("command_uuid"))
            case "user":
                yield from self._results(message["message"]["content"])
            case "system" if message.get("subtype") == "init":
                self.has_ended = False  # there is another turn
                self._has_key = text_of(message.get("apiKeySource")).endswith("_API_KEY")
                failed = [one for one in message.get("mcp_servers") or () if one.get("status") == "failed"]
                yield from (Note(f"[it works without the MCP server {one['name']}, which failed]") for one in failed)
            case "system" if message.get("subtype") == "api_retry":
                yield from self._retry(message)
            case "rate_limit_event":
                self._limit(message["rate_limit_info"])
            case "result":
                self._result(message)

    def _got(self, uuid: Any) -> None:
        for message in [message for message in self.untaken if _uuid(message) == uuid]:
            self._take(message)

    def _assistant(self, message: Mapping[str, Any]) -> Iterator[Happening]:
        blocks = message["message"]["content"]
        said = "\n".join(text_of(block.get("text")) for block in blocks if block.get("type") == "text")
        if error := message.get("error"):
            self.note_trouble(self._kind(error, message.get("api_error_status"), said), said or str(error))
        elif self.trouble is not None and self.trouble.kind is not FailureKind.CONTEXT:
            self.trouble = None
        if said:
            yield Note(said)
        for block in blocks:
            if block.get("type") == "tool_use":
                yield _call(block)

    def _results(self, blocks: Any) -> Iterator[Happening]:
        for block in blocks if isinstance(blocks, list) else ():
            if block.get("type") == "tool_result":
                result = _plain(block.get("content"))
                yield ToolEnd(block["tool_use_id"], result, block.get("is_error") is True)

    def _retry(self, message: Mapping[str, Any]) -> Iterator[Happening]:
        status, error = message.get("error_status"), text_of(message.get("error"))
        kind = self._kind(error, status, "")
        how = f"status {status}" if status else "no answer"
        self.note_trouble(kind, f"The model's provider: {how}{f' ({error})' if error else ''}.")
        self.is_hopeless = kind is FailureKind.AUTH and self._has_key
        yield Note(f"[the provider: {how}; try {count(message.get('attempt')) or 1} failed]")

    def _limit(self, info: Mapping[str, Any]) -> None:
        if info.get("status") == "rejected":
            self.note_trouble(FailureKind.LIMIT, "The usage limit is reached.", time_of(info.get("resetsAt")))

    def _result(self, message: Mapping[str, Any]) -> None:
        self.has_ended = True
        self.usage = self.usage.plus(_usage(message))
        said = text_of(message.get("result"))
        subtype, reason = text_of(message.get("subtype")), text_of(message.get("terminal_reason"))
        kind = _SUBTYPES.get(subtype) or _REASONS.get(reason)
        if self.is_interrupted and reason in _ABORTED:
            self.is_interrupted = False
        elif kind is None and message.get("is_error") is not True and subtype == "success" and reason in _COMPLETED:
            self.answer, self.trouble = said[:ANSWER_LIMIT], None
        elif kind is not None:
            self.note_trouble(kind, said or reason or subtype)
        else:
            status = message.get("api_error_status")
            known = self.trouble.kind if self.trouble else None
            self.note_trouble(known or self._kind("", status, said), said or reason or subtype)

    def _kind(self, error: Any, status: Any, said: str) -> FailureKind:
        if kind := first_match(said, _TEXTS):
            return kind
        if isinstance(status, int):
            return kind_of_status(status)
        if kind := _ERRORS.get(text_of(error)):
            return kind
        return FailureKind.FAILED if said else FailureKind.REFUSED  # no status: no connection


_COMPLETED = ("completed", "")


def _uuid(message: int) -> str:
    """The id by which a message is told, and said to be taken."""
    return str(UUID(int=message, version=4))


def _call(block: Mapping[str, Any]) -> ToolStart:
    name = text_of(block.get("name"))
    server = _SERVER_TOOL.fullmatch(name)
    return ToolStart(block["id"], server[2] if server else name, block.get("input"), server[1] if server else None)


def _plain(content: Any) -> Any:
    """The content of a tool's result: a text where it is only that."""
    if isinstance(content, list) and all(block.get("type") == "text" for block in content):
        return "\n".join(text_of(block.get("text")) for block in content)
    return content


def _usage(message: Mapping[str, Any]) -> ProgramUsage:
    usage = message.get("usage") or {}
    cached = count(usage.get("cache_read_input_tokens")) or 0
    plain, written = count(usage.get("input_tokens")), count(usage.get("cache_creation_input_tokens")) or 0
    since = message.get("model_usage_since_last_result")
    costs = [amount(one.get("costUSD")) for one in since.values()] if isinstance(since, dict) else []
    cost = sum(cost for cost in costs if cost is not None) if costs else amount(message.get("total_cost_usd"))
    inputs = None if plain is None else plain + cached + written
    return ProgramUsage(inputs, cached, count(usage.get("output_tokens")), cost)
