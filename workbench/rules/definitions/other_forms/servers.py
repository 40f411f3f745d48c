"""MCP servers in the configurations of other programs: what each calls the same thing, and where it has variables."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import TypeAdapter, ValidationError

from workbench.rules.definitions.mcp_servers import HttpServer, McpServer, StdioServer
from workbench.rules.definitions.names import fitting
from workbench.rules.definitions.other_forms.report import ImportReport
from workbench.rules.definitions.program_tools import separated
from workbench.rules.definitions.secrets.references import variable
from workbench.rules.reasons import reason

OWN = "workbench"
"""The name of Workbench's own server, which every agent has."""
_ADAPTER: TypeAdapter[StdioServer | HttpServer] = TypeAdapter(McpServer)
_VARIABLE = re.compile(r"\$\{(?:env:)?(?P<name>[A-Za-z_]\w*)(?::-(?P<default>[^}]*))?\}|\$\{input:(?P<input>[\w.-]+)\}")
_PLAIN = re.compile(r"\$(?P<name>[A-Za-z_]\w*)")
_FOLDER = re.compile(r"\$\{(?:workspaceFolder|CLAUDE_PROJECT_DIR(?::-[^}]*)?)\}")
_BEFORE = re.compile(r"((?:-{0,2}[A-Za-z][\w.-]*)(?:=|:[ \t]*))?((?:Bearer|Basic|Token|token) )?")
"""What may stand before a reference in an argument or a header."""
_IN_URL = re.compile(r"[^?#]*/|[^#]*[?&][^=&#]+=")
_ADDRESSES = {"httpUrl": "streamable-http", "serverUrl": "streamable-http", "url": ""}
_SAME = {"http_headers": "headers", "transport": "type", "transportType": "type"}
_OFFERED, _WITHHELD = ("includeTools", "enabled_tools"), ("excludeTools", "disabled_tools", "disabledTools")
_UNASKED = ("alwaysAllow", "autoApprove")
_NEVER, _ALWAYS = {"include": "manual"}, {"include": "always"}


def servers(
    entries: Any, report: ImportReport, place: str = "mcpServers", *, dialect: str = ""
) -> dict[str, dict[str, Any]]:
    """The servers of another program's configuration, in our form. One that cannot be used is noted, with the reason.

    Args:
        dialect: ``gemini``: ``$NAME`` is a variable, and `url` an address of SSE; ``codex``: nothing is a variable.
    """
    if not isinstance(entries, Mapping):
        report.leave_out(place, "it is not a mapping")
        return {}
    found: dict[str, dict[str, Any]] = {}
    for name, entry in entries.items():
        where = f"{place}.{name}"
        if why := _unused(name, entry):
            report.leave_out(where, why)
            continue
        part = ImportReport()
        server = _server(entry, part, where, dialect)
        try:
            _ADAPTER.validate_python(server)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            report.leave_out(where, f"{'.'.join(map(str, first['loc'][1:])) or 'type'}: {reason(first)}")
            continue
        new = fitting(name, found)
        if new != name:
            part.changed.append(f"{place}: {name!r} is named {new!r} now.")
        found[new] = server
        report.changed += part.changed
        report.left_out += part.left_out
    return found


def limited(
    found: Mapping[str, dict[str, Any]], allowed: list[str] | None, refused: list[str], report: ImportReport
) -> None:
    """Apply lists of tools, in which `mcp__SERVER__TOOL` is a tool of a server, to the servers of the same file.

    Args:
        allowed: the only tools; None: all.
    """
    for name, server in found.items():
        names = {f"mcp__{name}", f"mcp__{name}__*"}
        if allowed is not None and not names & set(allowed):
            server["serverToolDefaults"] = {**server.get("serverToolDefaults", {}), **_NEVER}
            _rule(server, _tools(allowed, name), _ALWAYS)
        if names & set(refused):
            server["serverToolDefaults"] = {**server.get("serverToolDefaults", {}), **_NEVER}
            server["tools"] = {tool: {**one, **_NEVER} for tool, one in server.get("tools", {}).items()}
        _rule(server, _tools(refused, name), _NEVER)
    for entry in (*(allowed or ()), *refused):
        if (server_name := entry.removeprefix("mcp__").partition("__")[0]) not in found and server_name != OWN:
            report.leave_out(entry, "its server is not in this file")


def _tools(entries: list[str], server: str) -> list[str]:
    start = f"mcp__{server}__"
    return [entry.removeprefix(start) for entry in entries if entry.startswith(start) and not entry.endswith("__*")]


def _rule(server: dict[str, Any], tools: list[str], how: Mapping[str, str]) -> None:
    rules = server.setdefault("tools", {})
    for tool in tools:
        rules[tool] = {**rules.get(tool, {}), **how}
    if not rules:
        del server["tools"]


def _unused(name: str, entry: Any) -> str:
    """Why an entry is no server here; empty if it may be one."""
    if not isinstance(entry, Mapping):
        return "it is not a mapping"
    if entry.get("disabled") is True or entry.get("enabled") is False:
        return "it is switched off there"
    return "every agent has Workbench's own server" if name.lower() == OWN else ""


def _server(entry: Mapping[str, Any], report: ImportReport, place: str, dialect: str) -> dict[str, Any]:
    given = {_SAME.get(key, key): value for key, value in entry.items()}
    server: dict[str, Any] = {
        key: given[key] for key in ("type", "command", "args", "env", "cwd", "headers") if key in given
    }
    for key, kind in _ADDRESSES.items():
        if key in given and "command" not in given:
            stated = {"type": "sse"} if key == "url" and dialect == "gemini" else {"type": kind} if kind else {}
            server = stated | server | {"url": given[key]}
    command, args = server.get("command"), server.get("args", [])
    if isinstance(command, list) and command and isinstance(args, list):
        server |= {"command": command[0], "args": [*command[1:], *args]}
    _codex(server, given, report, place)
    for field in ("env", "headers"):
        if isinstance(server.get(field), Mapping):
            server[field] = {key: _text(value) for key, value in server[field].items() if value is not None}
    _rules(server, given)
    known = {*server, *_ADDRESSES, *_CODEX, *_OFFERED, *_WITHHELD, *_UNASKED, "trust", "disabled", "enabled"}
    report.unknown(given, known, place)
    return server if dialect == "codex" else _with_references(server, report, place, plain=dialect == "gemini")


def mapping(value: Any) -> Mapping[str, Any]:
    """A mapping; empty for anything else."""
    return value if isinstance(value, Mapping) else {}


def _text(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else str(value) if isinstance(value, int | float) else value


_CODEX = ("bearer_token_env_var", "env_http_headers", "env_vars")


def _codex(server: dict[str, Any], given: Mapping[str, Any], report: ImportReport, place: str) -> None:
    """What Codex takes from variables."""
    if isinstance(token := given.get("bearer_token_env_var"), str):
        server["headers"] = {**mapping(server.get("headers")), "Authorization": f"Bearer env://{token}"}
        report.changed.append(f"{place}.bearer_token_env_var is the header Authorization: Bearer env://{token} now.")
    if isinstance(headers := given.get("env_http_headers"), Mapping):
        server["headers"] = {
            **mapping(server.get("headers")),
            **{key: f"env://{name}" for key, name in headers.items()},
        }
        report.changed.append(f"{place}.env_http_headers are headers with references now.")
    if isinstance(names := given.get("env_vars"), list):
        passed = {name: f"env://{name}" for name in names if isinstance(name, str)}
        server["env"] = {**passed, **mapping(server.get("env"))}
        report.changed.append(f"{place}.env_vars are variables with references now.")


def _rules(server: dict[str, Any], given: Mapping[str, Any]) -> None:
    """Which tools are offered, and which run without a question."""
    tools: dict[str, dict[str, Any]] = {}
    defaults: dict[str, Any] = {}

    def add(keys: tuple[str, ...], how: Mapping[str, Any]) -> bool:
        lists = [separated(given[key]) for key in keys if given.get(key) is not None]
        for tool in (str(one) for words_of in lists if isinstance(words_of, list) for one in words_of):
            tools[tool] = {**tools.get(tool, {}), **how}
        return bool(lists)

    if add(_OFFERED, _ALWAYS):
        defaults |= _NEVER
    add(_WITHHELD, _NEVER)
    add(_UNASKED, {"permissionRequired": False})
    if given.get("trust") is True:
        defaults["permissionRequired"] = False
    if isinstance(stated := given.get("tools"), Mapping):  # our own form
        tools = {**stated, **tools}
    if isinstance(stated := given.get("serverToolDefaults"), Mapping):
        defaults = {**stated, **defaults}
    server |= {key: value for key, value in (("tools", tools), ("serverToolDefaults", defaults)) if value}


def _with_references(server: dict[str, Any], report: ImportReport, place: str, *, plain: bool) -> dict[str, Any]:
    """The server with references in place of the variables that the other program replaces by their values."""
    known = set(server["env"]) if isinstance(server.get("env"), Mapping) else set()

    def refer(field: str, value: Any) -> Any:
        return _refer(field, value, report, f"{place}.{field}", known, plain=plain) if isinstance(value, str) else value

    made = dict(server)
    for field in ("env", "headers"):
        if isinstance(server.get(field), Mapping):
            made[field] = {key: refer(f"{field}.{key}", value) for key, value in server[field].items()}
    if isinstance(server.get("args"), list):
        made["args"] = [refer("args", value) for value in server["args"]]
    return made | {key: refer(key, server[key]) for key in ("command", "cwd", "url") if key in server}


def _refer(field: str, text: str, report: ImportReport, place: str, own: set[str], *, plain: bool) -> str:
    """A text with a reference in place of each variable, where one may stand.

    Args:
        own: the variables of the server itself, which it replaces in its arguments.
    """
    if inside := _FOLDER.search(text):
        text = _FOLDER.sub(".", text)
        report.changed.append(f"{place}: {inside[0]} is the directory in which it is started now.")
    pieces, end = list[str](), 0
    for found in sorted(_variables(text, plain=plain), key=re.Match.start):
        parts = found.groupdict()
        reference = variable(parts["input"]) if parts.get("input") else f"env://{parts['name']}"
        pieces.append(text[end : found.start()])
        end = found.end()
        if field == "args" and parts.get("name") in own:
            pieces.append(found[0])
        elif _may_refer(field, text, found):
            pieces.append(reference)
            report.changed.append(f"{place} refers to {found[0]} as {reference} now.")
            if parts.get("default"):
                report.leave_out(place, f"the default value of {parts['name']}")
        elif parts.get("default") is not None:
            pieces.append(parts["default"])
            report.changed.append(f"{place}: {found[0]} is its default value now.")
        else:
            pieces.append(found[0])
            report.leave_out(place, f"{found[0]} is not replaced by the variable's value")
    return "".join((*pieces, text[end:]))


def _variables(text: str, *, plain: bool) -> Iterator[re.Match[str]]:
    yield from _VARIABLE.finditer(text)
    if plain:
        yield from _PLAIN.finditer(text)


def _may_refer(field: str, text: str, found: re.Match[str]) -> bool:
    before, after = text[: found.start()], text[found.end() :]
    if field in ("command", "cwd"):
        return False
    if field == "url" or "://" in before:
        return _IN_URL.fullmatch(before.partition("://")[2]) is not None and after[:1] in ("", "/", "?", "&", "#")
    return not after and _BEFORE.fullmatch(before) is not None and (field == "args" or not re.search("[:=]", before))
