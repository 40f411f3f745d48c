"""Agents that speak the Agent Client Protocol: JSON-RPC over their standard input and output, an object a line.

Workbench is the client: https://agentclientprotocol.com, version 1. It offers neither files nor terminals, as the agent
has those of its box, and allows what the agent asks permission for: the box is what limits it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from workbench.drivers.stream import (
    CONTINUED,
    MESSAGE_LIMIT,
    OPEN_LIMIT,
    ChunkedStream,
    Happening,
    Note,
    ProgramFailure,
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
)
from workbench.rules.failures import FailureKind

VERSION = 1
AUTHENTICATION_REQUIRED, METHOD_NOT_FOUND = -32000, -32601
_STOPS = {
    "max_tokens": (FailureKind.CONTEXT, "The agent reached its limit of tokens."),
    "max_turn_requests": (FailureKind.TURNS, "The agent reached its limit of requests for a turn."),
    "refusal": (FailureKind.FAILED, "The agent refused to go on."),
    "cancelled": (FailureKind.CRASHED, "The agent cancelled its turn."),
}
_TEXTS = tuple(
    (re.compile(pattern, re.IGNORECASE), kind)
    for pattern, kind in (
        (r"context (window|length|limit)|prompt is too long|ran out of room|token count|context_length", "context"),
        (r"\b40[13]\b|unauthori[sz]ed|api[ _-]?key|not logged in|authenticat|credential", "auth"),
        (r"\b429\b|rate.?limit|usage limit|hit your .*limit|quota|resource.?exhausted", "limit"),
        (r"\b(5\d\d|408)\b|overloaded|at capacity|high demand|unavailable", "overloaded"),
        (
            r"fetch failed|ECONN|ENOTFOUND|EAI_AGAIN|unable to connect|cannot connect|connection (refused|error)",
            "refused",
        ),
        (r"\b4\d\d\b|invalid_request|model.*not (found|supported|exist)", "refused"),
    )
    for kind in (FailureKind(kind),)
)
_RETRY_AFTER = re.compile(r"(?:retry|try again)\D{0,20}?(\d+(?:\.\d+)?) ?s", re.IGNORECASE)


@dataclass
class AcpStream(ChunkedStream):
    """A conversation with an agent: its prompt, and another one for the messages that came meanwhile."""

    talks: bool = True
    _start: Start | None = None
    _asked: list[str] = field(default_factory=list)
    """The methods that were called, at the indices that are the ids of the calls."""
    _answered: set[int] = field(default_factory=set)
    _announced: dict[str, dict[str, Any]] = field(default_factory=dict)
    """What is known of calls of tools that have not begun."""
    _is_prompted: bool = False
    _has_worked: bool = False
    _cost_before: float = 0.0
    _where: dict[str, Any] = field(default_factory=dict)
    """The directory and the servers of the conversation."""

    def begin(self, start: Start) -> None:
        """Have the agent told about its work."""
        self._start = start
        nothing = {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}
        client = {"name": "workbench", "title": "Workbench", "version": "1"}
        self._call("initialize", protocolVersion=VERSION, clientCapabilities=nothing, clientInfo=client)

    def tell(self, message: Told) -> None:
        """Have the agent get a message with its next prompt, which comes at once if the one under way is cancelled."""
        super().tell(message)
        if message.interrupts and self._is_prompted and not self.has_ended:
            self._notify("session/cancel", sessionId=self.session)

    def say(self, *, is_ending: bool = False) -> str | None:
        """What the agent is told next; see `ProgramStream.say`."""
        if is_ending and self._is_prompted and not self.has_ended:
            self._notify("session/cancel", sessionId=self.session)
        if self.has_ended and not self._unsent:  # what it was told too late is for another run
            self.is_closed = True
            return None
        return super().say(is_ending=is_ending)

    def read(self, message: Mapping[str, Any]) -> Iterator[Happening]:
        """The events of one message: an answer, a request or a notification."""
        method, call = message.get("method"), message.get("id")
        if method == "session/update":
            update = message["params"]["update"]
            if update.get("sessionUpdate") == "usage_update":
                self._cost(update.get("cost") or {})
            elif self._is_prompted:  # before, a conversation that is continued is told again
                yield from self._update(update)
        elif method == "session/request_permission":
            yield from self._permit(call, message["params"])
        elif isinstance(method, str):
            if call is not None:
                refusal = {"code": METHOD_NOT_FOUND, "message": f"This client does not offer {method[:100]}."}
                self._send(id=call, error=refusal)
        elif isinstance(call, int) and 0 <= call < len(self._asked) and call not in self._answered:
            self._answered.add(call)
            yield from self._hear_answer(self._asked[call], message)

    def end(self, status: int) -> ProgramFailure | None:
        """How the run ended: as the agent said; an agent whose input is closed may exit with any status."""
        return self.trouble if self.has_ended else super().end(status)

    def _send(self, **fields: Any) -> None:
        self._unsent.append(json.dumps({"jsonrpc": "2.0", **fields}) + "\n")

    def _notify(self, method: str, **params: Any) -> None:
        self._send(method=method, params=params)

    def _call(self, method: str, **params: Any) -> None:
        self._send(id=len(self._asked), method=method, params=params)
        self._asked.append(method)

    def _hear_answer(self, method: str, message: Mapping[str, Any]) -> Iterator[Happening]:
        try:
            if error := message.get("error"):
                yield from self._refused(method, error)
            else:
                yield from self._answer(method, message.get("result") or {})
        except (AttributeError, KeyError, TypeError, ValueError):  # nothing more would come
            self._fail(FailureKind.FAILED, f"The agent answered {method} with what is no answer to it.")

    def _answer(self, method: str, result: Mapping[str, Any]) -> Iterator[Happening]:
        assert self._start is not None, "nothing is answered before something is asked"
        match method:
            case "initialize":
                yield from self._open(self._start, result)
            case "session/new":
                self.session = result["sessionId"]
                self._prompt(self._start.prompt)
            case "session/resume" | "session/load":
                self.session = self._start.session
                self._prompt(self._start.prompt, CONTINUED)
            case "session/prompt":
                yield from self._tell()
                self._use(result)
                self._end_turn(text_of(result.get("stopReason")))

    def _open(self, start: Start, agent: Mapping[str, Any]) -> Iterator[Happening]:
        """Begin a conversation, or continue one, once the agent has told what it can."""
        if agent.get("protocolVersion") != VERSION:
            version = agent.get("protocolVersion")
            self._fail(FailureKind.FAILED, f"The agent speaks version {version} of ACP; Workbench speaks {VERSION}.")
            return
        can = agent.get("agentCapabilities") or {}
        transports = can.get("mcpCapabilities") or {}
        usable = [one for one in start.servers if one.get("type", "stdio") == "stdio" or transports.get(one["type"])]
        if missing := ", ".join(one["name"] for one in start.servers if one not in usable):
            yield Note(f"[the agent cannot use the MCP servers {missing}: it has not their transport]")
        where = self._where = {"cwd": start.directory, "mcpServers": usable}
        if start.session and (can.get("sessionCapabilities") or {}).get("resume") is not None:
            self._call("session/resume", sessionId=start.session, **where)
        elif start.session and can.get("loadSession") is True:
            self._call("session/load", sessionId=start.session, **where)
        else:
            self._call("session/new", **where)

    def _refused(self, method: str, error: Mapping[str, Any]) -> Iterator[Happening]:
        details = error.get("data")
        said = ": ".join(filter(None, (text_of(error.get("message")), json.dumps(details) if details else "")))
        if method in ("session/resume", "session/load"):
            yield Note(f"[the conversation of the last attempt cannot be continued: {said}]")
            self._call("session/new", **self._where)
            return
        yield from self._tell()
        yield Note(f"[{method}: {said}]")
        code = error.get("code")
        kind = first_match(said, _TEXTS) or FailureKind.FAILED
        if code == AUTHENTICATION_REQUIRED:
            kind = FailureKind.AUTH
        elif isinstance(code, int) and 400 <= code < 600 and kind is not FailureKind.CONTEXT:
            kind = kind_of_status(code)
        self._fail(kind, said or f"{method} failed.")

    def _prompt(self, *texts: str) -> None:
        """Prompt the agent with texts, and with what it was told and has not got."""
        self._is_prompted, self.is_interrupted = True, False
        told = [*texts, *(message.text for message in self.untaken.values())]
        for message in tuple(self.untaken):
            self._take(message)
        self._call("session/prompt", sessionId=self.session, prompt=[{"type": "text", "text": text} for text in told])

    def _fail(self, kind: FailureKind, message: str) -> None:
        self.has_ended = True
        after = _RETRY_AFTER.search(message[:MESSAGE_LIMIT])
        is_limit = kind is FailureKind.LIMIT
        self.note_trouble(kind, message, self.clock() + float(after[1]) if after and is_limit else None)

    def _end_turn(self, reason: str) -> None:
        """Prompt the agent again with what it was told meanwhile, unless its turn failed."""
        is_well = self.is_interrupted or (reason not in _STOPS and self._has_worked)
        if not (self.untaken and is_well):
            self._stop(reason)
            return
        self._prompt()

    def _stop(self, reason: str) -> None:
        if reason in _STOPS:
            self._fail(*_STOPS[reason])
        elif not self._has_worked:
            self._fail(FailureKind.FAILED, "The agent ended its turn without a word.")
        self.has_ended = True

    def _use(self, result: Mapping[str, Any]) -> None:
        """Take what the agent says that the prompt used, in the protocol's words or in those of Gemini CLI."""
        usage = result.get("usage") or {}
        plain, cached = count(usage.get("inputTokens")), count(usage.get("cachedReadTokens"))
        written, output = count(usage.get("cachedWriteTokens")) or 0, count(usage.get("outputTokens"))
        inputs = None if plain is None else plain + (cached or 0) + written
        if plain is None:
            tokens = ((result.get("_meta") or {}).get("quota") or {}).get("token_count") or {}
            inputs, output = count(tokens.get("input_tokens")), count(tokens.get("output_tokens"))
        self.usage = self.usage.plus(ProgramUsage(inputs, cached, output))

    def _cost(self, cost: Mapping[str, Any]) -> None:
        """Take what the conversation has cost, without what it had before this run."""
        total = amount(cost.get("amount"))
        if total is not None and cost.get("currency") == "USD":
            if not self._is_prompted:
                self._cost_before = total
            self.usage = replace(self.usage, cost_usd=max(total - self._cost_before, 0.0))

    def _update(self, update: Mapping[str, Any]) -> Iterator[Happening]:
        match update.get("sessionUpdate"):
            case "agent_message_chunk" if text := text_of((update.get("content") or {}).get("text")):
                self._has_worked = True
                yield from self._say_more(text)
            case "tool_call" | "tool_call_update":
                self._has_worked = True
                yield from self._tell()
                self._begin_message()
                yield from self._tool(update)
            case "plan":
                entries = [one for one in update.get("entries") or () if one.get("status") == "in_progress"]
                yield from (Note(f"[plan: {text_of(one.get('content'))}]") for one in entries)

    def _tool(self, update: Mapping[str, Any]) -> Iterator[Happening]:
        call, status = update["toolCallId"], update.get("status")
        if call not in self.open:
            if call not in self._announced and (len(self._announced) >= OPEN_LIMIT or "title" not in update):
                return
            known = self._announced.setdefault(call, {})
            known.update({key: value for key, value in update.items() if value not in (None, {}, "")})
            if status in ("in_progress", "completed", "failed"):
                yield self._begun(call)
        if status in ("completed", "failed"):
            yield ToolEnd(call, _result(update), status == "failed")

    def _begun(self, call: str) -> ToolStart:
        known = self._announced.pop(call)
        title = text_of(known.get("title"))
        tool, server = self._named(text_of(known.get("name")) or title)
        if server is None:
            tool = text_of(known.get("name")) or text_of(known.get("kind")) or title
        return ToolStart(call, tool, known.get("rawInput") or {"title": title}, server)

    def _named(self, name: str) -> tuple[str, str | None]:
        """A tool and its MCP server, where the name is one of those that agents give to tools of servers."""
        for server in sorted(self.servers, key=len, reverse=True):
            of = re.escape(server)
            if found := re.match(rf"(?:mcp_+)?{of}[_.:/ ]+(\w+)|(\w+) \({of} MCP Server\)", name):
                return found[1] or found[2], server
        return name, None

    def _permit(self, call: Any, params: Mapping[str, Any]) -> Iterator[Happening]:
        options = {one["kind"]: one["optionId"] for one in reversed(params["options"])}
        allowed = options.get("allow_once", options.get("allow_always"))
        outcome = {"outcome": "cancelled"} if allowed is None else {"outcome": "selected", "optionId": allowed}
        self._send(id=call, result={"outcome": outcome})
        if allowed is None:
            yield Note("[the agent asked for a permission that it offers nobody to give]")
        yield from self._tool({**params["toolCall"], "title": text_of(params["toolCall"].get("title")) or "a tool"})


def session_files(session: str) -> str:
    """A pattern of the file, below its home, that has a conversation: agents name it by the conversation's id."""
    return f".*/**/*{session[:8]}*"


def servers(config: Mapping[str, Any]) -> Sequence[dict[str, Any]]:
    """MCP servers, as a conversation is given them, from a configuration as many clients read it."""
    return [
        {"type": one["type"], "name": name, "url": one["url"], "headers": _pairs(one["headers"])}
        for name, one in config.get("mcpServers", {}).items()
    ]


def _pairs(values: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in values.items()]


def _result(update: Mapping[str, Any]) -> Any:
    """What a tool gave: as the agent says, or the texts that it shows."""
    if (raw := update.get("rawOutput")) is not None:
        return raw
    shown = [part.get("content") or part for part in update.get("content") or ()]
    texts = [
        text_of(part.get("text")) or f"[{text_of(part.get('type'))} {text_of(part.get('path'))}]" for part in shown
    ]
    return "\n".join(texts)
