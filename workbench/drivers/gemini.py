"""Gemini CLI: its system prompt is a file that a variable names; its MCP servers are in `settings.json`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from workbench.drivers.setup import AgentSetup, Configuration, ServerSetup, TelemetryAccess
from workbench.drivers.stream import (
    ChunkedStream,
    Happening,
    Note,
    ProgramFailure,
    ProgramUsage,
    ToolEnd,
    ToolStart,
    count,
    kind_of_status,
    text_of,
)
from workbench.rules.definitions.mcp_servers import StdioServer
from workbench.rules.definitions.program_tools import ToolLimits, to_gemini, tool_of
from workbench.rules.failures import FailureKind

CONFIG = ".gemini/settings.json"
PROMPT = "system_prompt.md"


def configure(setup: AgentSetup, scratch: str, files: Mapping[str, str]) -> Configuration:
    """How Gemini CLI is started for a setup. The definition's system prompt replaces its own.

    Args:
        scratch: the directory that `files` are written to.
        files: those of the profile; `.gemini/settings.json` is extended.
    """
    config: dict[str, Any] = json.loads(files.get(CONFIG, "{}"))
    servers = {name: _server(one) for name, one in setup.servers.items()}
    config["mcpServers"] = servers | config.get("mcpServers", {})
    if setup.max_chat_turns:
        config["model"] = {**config.get("model", {}), "maxSessionTurns": setup.max_chat_turns}
    if setup.limits:
        config["tools"] = _tools(setup.limits, config.get("tools", {}), config["mcpServers"])
    key = setup.provider_config.get("GOOGLE_API_KEY")
    return Configuration(
        arguments=(f"--model={setup.model}",) if setup.model else (),
        files={CONFIG: json.dumps(config), PROMPT: setup.system_prompt},
        environment={"GEMINI_SYSTEM_MD": f"{scratch}/{PROMPT}"} | ({"GEMINI_API_KEY": key} if key else {}),
    )


def telling(access: TelemetryAccess, files: Mapping[str, str]) -> Configuration:
    """The settings with which Gemini CLI tells the server of its requests; the header is a variable."""
    config: dict[str, Any] = json.loads(files.get(CONFIG, "{}"))
    place = {"enabled": True, "target": "local", "otlpEndpoint": access.url, "otlpProtocol": "http"}
    config["telemetry"] = {**place, "logPrompts": True}
    header = {"OTEL_EXPORTER_OTLP_HEADERS": f"Authorization={access.authorization}"}
    return Configuration(files={CONFIG: json.dumps(config)}, environment=header)


def limit(command: Sequence[str], limits: ToolLimits) -> list[str]:
    """The command as it is: what Gemini CLI may not use is in its settings."""
    return list(command)


def withheld(limits: ToolLimits) -> Iterator[str]:
    """The tools of which only some uses are allowed, or refused: Gemini CLI gives all uses, or none."""
    if tools := sorted({tool_of(entry) for entry in limits.partial}):
        yield f"its agents have no {' and no '.join(tools)}: only some uses of it are allowed"


def _tools(limits: ToolLimits, stated: Mapping[str, Any], servers: Iterable[str]) -> dict[str, Any]:
    """The section about its own tools, with no more of them; a list of allowed ones has to name those of servers."""
    tools = dict(stated)
    if (allowed := limits.fully_allowed) is not None:
        names = to_gemini(allowed)
        own = [one for one in names if one in tools["core"]] if "core" in tools else names
        tools["core"] = [*own, *(f"mcp_{name}_*" for name in servers)]
    if refused := to_gemini(limits.refused_tools):
        tools["exclude"] = sorted({*tools.get("exclude", ()), *refused})
    return tools


def _server(setup: ServerSetup) -> dict[str, Any]:
    server = setup.server
    if isinstance(server, StdioServer):
        place = {} if server.cwd is None else {"cwd": server.cwd}
        found: dict[str, Any] = {"command": server.command, "args": server.args, "env": server.env} | place
    else:
        address = "httpUrl" if server.type == "streamable-http" else "url"
        found = {address: server.url, "headers": server.headers}
    if setup.allowed is not None:
        found["includeTools"] = list(setup.allowed)
    if setup.refused:
        found["excludeTools"] = list(setup.refused)
    return found | {"trust": True}


# Its output.

_FORMATS = ("--output-format", "-o")
_STATUSES = {
    41: FailureKind.AUTH,
    53: FailureKind.TURNS,
    145: FailureKind.AUTH,
    146: FailureKind.REFUSED,
    147: FailureKind.AUTH,
    148: FailureKind.REFUSED,
    173: FailureKind.LIMIT,
    244: FailureKind.OVERLOADED,
    247: FailureKind.OVERLOADED,
}
"""Its exit statuses: those of HTTP, of which the last eight bits are left, and its own."""
_CONTEXT = re.compile(
    r"token count|context window|exceeds? the maximum number of tokens|input is too long", re.IGNORECASE
)
_RETRY = re.compile(r"Attempt \d+ failed(?: with status (\d+))?")
_NO_CONNECTION = re.compile(r"fetch failed|ECONNREFUSED|ENOTFOUND|EAI_AGAIN|ECONNRESET")
_RETRY_AFTER = re.compile(r"retry after (\d+(?:\.\d+)?) ?s", re.IGNORECASE)
_DAY = re.compile(r"PerDay|daily quota", re.IGNORECASE)
DAY_SECONDS = 3_600.0
"""A daily quota is asked about again after an hour: nobody says when the day of the provider ends."""


def streaming(command: Sequence[str]) -> list[str]:
    """The command of a profile, so that it writes what it does as it does it, as JSON."""
    kept, skips = [], False
    for word in command:
        if not skips and word.partition("=")[0] not in _FORMATS:
            kept.append(word)
        skips = word in _FORMATS
    return [*kept, "--output-format=stream-json"]


def session_files(session: str) -> str:
    """A pattern of the file, below its home, that has a conversation."""
    return f".gemini/tmp/*/chats/session-*-{session[:8]}.jsonl"


def resumed(command: Sequence[str], session: str, file: str) -> list[str]:
    """The command that continues a conversation, whatever directory that was in; it gets a new id."""
    return [*command, f"--session-file={file}"]


class GeminiStream(ChunkedStream):
    """The output of Gemini CLI with `--output-format=stream-json`."""

    def read(self, message: Mapping[str, Any]) -> Iterator[Happening]:
        """The events of one message."""
        match message.get("type"):
            case "init":
                self.session = text_of(message.get("session_id")) or self.session
            case "message" if message.get("role") == "assistant":
                yield from self._say_more(text_of(message.get("content")))
            case "tool_use":
                yield from self._tell()
                self._begin_message()
                tool, server = self._server_of(text_of(message.get("tool_name")))
                yield ToolStart(message["tool_id"], tool, message.get("parameters"), server)
            case "tool_result":
                error = message.get("error") or {}
                failed = message.get("status") != "success"
                result = message.get("output") or text_of(error.get("message"))
                yield ToolEnd(message["tool_id"], result, failed)
            case "error":
                yield Note(f"[{text_of(message.get('message'))}]")
            case "result":
                yield from self._tell()
                self._result(message)

    def hear_error(self, line: str) -> Iterator[Happening]:
        """The events of a line of its standard error, where it tells of retries, and of much else."""
        retry = _RETRY.search(line)
        if retry or _NO_CONNECTION.search(line):
            kind = kind_of_status(int(retry[1])) if retry and retry[1] else FailureKind.REFUSED
            self.note_trouble(kind, line, self._until(line))
            yield from super().hear_error(f"[{line.strip()}]")
        elif until := self._until(line):
            self.note_trouble(FailureKind.LIMIT, line, until)

    def end(self, status: int) -> ProgramFailure | None:
        """How the run ended: its exit status says more than its output."""
        known = _STATUSES.get(status)
        said = self.trouble.message if self.trouble else ""
        if status == 144 or (self.trouble and _CONTEXT.search(said)):
            known = FailureKind.CONTEXT if _CONTEXT.search(said) else FailureKind.REFUSED
        if known is not None:
            self.note_trouble(known, said, self.trouble.until if self.trouble else None)
        return super().end(status)

    def _result(self, message: Mapping[str, Any]) -> None:
        self.has_ended = True
        stats = message.get("stats") or {}
        tokens = [count(stats.get(name)) for name in ("input_tokens", "cached", "output_tokens")]
        self.usage = ProgramUsage(tokens[0], tokens[1], tokens[2])
        if message.get("status") == "success":
            self.trouble = None
            return
        said = text_of((message.get("error") or {}).get("message"))
        known = self.trouble.kind if self.trouble else FailureKind.FAILED
        self.note_trouble(FailureKind.CONTEXT if _CONTEXT.search(said) else known, said, self._until(said))

    def _until(self, said: str) -> float | None:
        if found := _RETRY_AFTER.search(said):
            return self.clock() + float(found[1])
        return self.clock() + DAY_SECONDS if _DAY.search(said) else None

    def _server_of(self, name: str) -> tuple[str, str | None]:
        """The name of a tool, and of its MCP server: both may contain what stands between them."""
        for server in sorted(self.servers, key=len, reverse=True):
            if name.startswith(f"mcp_{server}_"):
                return name.removeprefix(f"mcp_{server}_"), server
        return name, None
