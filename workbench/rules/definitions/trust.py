"""What a definition needs the operator's trust for: programs, servers, providers, tools that run unasked, a role, and
a workplace that opens something.

Each need has a fingerprint. A need that changes has another one, so it must be trusted again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from workbench.model import Role
from workbench.present.inert import inert_line
from workbench.rules.definitions.mcp_servers import HttpServer, StdioServer
from workbench.rules.definitions.model import DEFAULT_PROMPT, Definition
from workbench.rules.definitions.secrets.written_out import masked
from workbench.rules.secrets.forms import masked_by_form
from workbench.rules.workplace import opening

FINGERPRINT_LENGTH = 32
Files = Mapping[str, Mapping[str, str]]
"""By the name of a server: the SHA-256 of each file that its command names and a definition could change, by path."""


class TrustKind(StrEnum):
    """What is trusted: a program that is started, a server that is called, where secrets of a provider are and go, or
    a tool that runs without a question, that its agents may do more than workers, what their commands find in a
    worktree, or a prompt, rule, reference or tool that an agent wrote."""

    PROGRAM = "program"
    SERVER = "server"
    PROVIDER = "provider"
    PERMISSION = "permission"
    ROLE = "role"
    PROMPT = "prompt"
    WORKPLACE = "workplace"


@dataclass(frozen=True, slots=True)
class Need:
    """One thing that a definition needs trust for.

    Args:
        name: where the definition says it, such as ``mcpServers.github``.
        details: what is trusted, to be shown: JSON-ready, secrets masked, and without characters that act on a
            terminal.
        fingerprint: identifies what is trusted, with the secrets that `details` masks: never shown.
    """

    kind: TrustKind
    name: str
    details: Mapping[str, Any]
    fingerprint: str

    @property
    def summary(self) -> str:
        """What is trusted, in one line."""
        return f"{self.name}: {_SUMMARIES[self.kind](self.details)}"


ROLE = "metadata.persona"
"""The name of the need of a role."""


def needs(definition: Definition, files: Files = {}, role: Role | None = None) -> list[Need]:
    """Everything that a definition needs trust for, in the order of its file.

    Args:
        role: that of its persona, if it names one.
    """
    hidden = masked(definition)
    return [
        *_of_persona(definition, role),
        *_of_settings(definition),
        *_of_providers(definition, hidden),
        *_of_servers(definition, hidden, files),
        *_of_workplace(definition),
    ]


PROMPT = "prompt"
"""The name of the need of the system prompt; `TrustKind.PROMPT` has all texts."""


def of_texts(definition: Definition) -> list[Need]:
    """The needs of what a definition says to models, if an agent wrote it: prompt, rules, references, tools."""
    entries = {"rules": definition.rules, "references": definition.references}
    texts = {
        PROMPT: "" if definition.prompt == DEFAULT_PROMPT else definition.prompt,
        **{f"{section}.{one.name}": one.text for section, found in entries.items() for one in found},
        **{f"tools.{tool.name}": tool.prompt for tool in definition.tools},
    }
    return [
        _need(TrustKind.PROMPT, name, {"prompt": masked_by_form(text)}, text) for name, text in texts.items() if text
    ]


def added(before: Sequence[Need], after: Sequence[Need]) -> list[Need]:
    """The needs that a change brings about."""
    known = {need.fingerprint for need in before}
    return [need for need in after if need.fingerprint not in known]


def _of_persona(definition: Definition, role: Role | None) -> Iterator[Need]:
    if role not in (None, Role.WORKER):
        yield _need(TrustKind.ROLE, ROLE, {"persona": definition.metadata.persona, "role": role})


def _of_settings(definition: Definition) -> Iterator[Need]:
    if definition.settings.tool_permission == "never":
        yield _need(TrustKind.PERMISSION, "settings.toolPermission", {"tools": "all"})


def _of_providers(definition: Definition, hidden: Definition) -> Iterator[Need]:
    for name, config in definition.providers.items():
        if config:
            shown = {"provider": name, "configuration": hidden.providers[name]}
            yield _need(TrustKind.PROVIDER, f"providers.{name}", shown, config)


def _of_servers(definition: Definition, hidden: Definition, files: Files) -> Iterator[Need]:
    for name, server in definition.mcp_servers.items():
        place = f"mcpServers.{name}"
        content = server.model_dump(mode="json", include=_CONTENT)
        content |= server.model_dump(mode="json", include=set(_OPENED), exclude_defaults=True)
        if isinstance(shown := hidden.mcp_servers[name], StdioServer):
            named = dict(files.get(name, {}))
            yield _need(TrustKind.PROGRAM, place, _program(shown, named), {**content, "files": named})
        else:
            yield _need(TrustKind.SERVER, place, _server(shown), content)
        yield from _unasked(name, server)


WORKPLACE = "workplace"
"""The name of the need of a workplace."""


def _of_workplace(definition: Definition) -> Iterator[Need]:
    if opened := opening(definition.workplace):
        shown = {key: masked_by_form(json.dumps(value)) for key, value in opened.items()}
        yield _need(TrustKind.WORKPLACE, WORKPLACE, shown, opened)


_CONTENT = {"type", "command", "args", "env", "cwd", "url", "headers"}
"""What of a server is trusted: all but how its tools are offered."""
_OPENED = {"read": "may read", "write": "may change", "connect": "may connect to the ports"}
"""What its box is opened for."""


def _program(server: StdioServer, files: Mapping[str, str]) -> dict[str, Any]:
    shown = {"command": server.command, "arguments": server.args, "environment": server.env}
    opened = {name: [str(place) for place in getattr(server, name)] for name in _OPENED if getattr(server, name)}
    return shown | ({"directory": server.cwd} if server.cwd else {}) | ({"files": files} if files else {}) | opened


def _server(server: HttpServer) -> dict[str, Any]:
    return {"type": server.type, "url": server.url, "headers": server.headers}


def _unasked(name: str, server: StdioServer | HttpServer) -> Iterator[Need]:
    """The tools of a server that run without asking a person."""
    if server.server_tool_defaults.permission_required is False:
        shown = {"server": name, "tools": "all but those for which permission is required"}
        yield _need(TrustKind.PERMISSION, f"mcpServers.{name}.serverToolDefaults", shown)
    for tool, rule in server.tools.items():
        if rule.permission_required is False:
            yield _need(TrustKind.PERMISSION, f"mcpServers.{name}.tools.{tool}", {"server": name, "tools": tool})


def _need(kind: TrustKind, name: str, shown: Mapping[str, Any], content: Any = None) -> Need:
    identity = [kind, name, shown, content]
    text = json.dumps(identity, sort_keys=True, separators=(",", ":"))
    return Need(kind, inert_line(name), _inert(shown), hashlib.sha256(text.encode()).hexdigest()[:FINGERPRINT_LENGTH])


def _inert(value: Any) -> Any:
    if isinstance(value, str):
        return inert_line(value)
    if isinstance(value, Mapping):
        return {inert_line(str(key)): _inert(one) for key, one in value.items()}
    return [_inert(one) for one in value]


def _program_text(details: Mapping[str, Any]) -> str:
    words = " ".join(json.dumps(word, ensure_ascii=False) for word in (details["command"], *details["arguments"]))
    where = f" in {details['directory']}" if "directory" in details else ""
    opened = "".join(f", {text} {', '.join(details[name])}" for name, text in _OPENED.items() if name in details)
    return f"starts {words}{where}{_with(details['environment'])}{opened}"


def _server_text(details: Mapping[str, Any]) -> str:
    return f"connects to {details['url']}{_with(details['headers'])}"


def _provider_text(details: Mapping[str, Any]) -> str:
    return f"uses {details['provider']}{_with(details['configuration'])}"


def _permission_text(details: Mapping[str, Any]) -> str:
    of = f" of {details['server']}" if "server" in details else ""
    return f"tools that run without asking you{of}: {details['tools']}"


def _role_text(details: Mapping[str, Any]) -> str:
    return f"its agents get the role {details['role']}, of the persona {details['persona']}"


def _workplace_text(details: Mapping[str, Any]) -> str:
    return "opens to its commands " + ", ".join(f"{key} = {value}" for key, value in details.items())


def _prompt_text(details: Mapping[str, Any]) -> str:
    text = details["prompt"]
    more = f" and {len(text) - _SHOWN:,} more characters: agent_get_trust has all" if len(text) > _SHOWN else ""
    return f"an agent wrote {json.dumps(text[:_SHOWN], ensure_ascii=False)}{more}"


_SHOWN = 200
"""Characters of a prompt in one line; `details` has all."""


def _with(values: Mapping[str, str]) -> str:
    return f" with {', '.join(f'{key}={value}' for key, value in values.items())}" if values else ""


_SUMMARIES = {
    TrustKind.PROGRAM: _program_text,
    TrustKind.SERVER: _server_text,
    TrustKind.PROVIDER: _provider_text,
    TrustKind.PERMISSION: _permission_text,
    TrustKind.ROLE: _role_text,
    TrustKind.PROMPT: _prompt_text,
    TrustKind.WORKPLACE: _workplace_text,
}
