"""A tool, as the catalogue has it: what it is called, what it takes, and how it is run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any

from workbench.definition_files import Snapshot
from workbench.model import Level
from workbench.ops import Caller, Ctx
from workbench.present.inert import inert_line
from workbench.providers.frames import AnswerUsage
from workbench.rules.personalities.addresses import node_label
from workbench.rules.tools import content
from workbench.rules.tools.masking import marked
from workbench.rules.tools.results import as_json
from workbench.rules.tools.returned import RESULT
from workbench.rules.tools.servers import NETWORK, NOTEBOOK, RESERVED
from workbench.rules.tools.surroundings import Surroundings
from workbench.trust.known_secrets import KnownSecrets

FINGERPRINT_LENGTH = 32


class ToolPlace(StrEnum):
    """Where a tool runs: here, or on an MCP server (spec 4)."""

    LOCAL = "local"
    MCP = "mcp"


class ToolKind(StrEnum):
    """What a tool is: an operation of Workbench, a function of a notebook, a tool that a definition exports, one of an
    MCP server, a callable trait on the KOI network, or one of an agent's own program.
    `UNKNOWN`: a call named what is none of them."""

    OPERATION = "operation"
    FUNCTION = "function"
    DEFINITION = "definition"
    MCP = "mcp"
    TRAIT = "trait"
    PROGRAM = "program"
    UNKNOWN = "unknown"


class OffererKind(StrEnum):
    """Who offers a tool: Workbench itself, a process of the person such as a notebook, the project with its MCP
    servers, a definition, another node of the KOI network, or the program of an agent. `NOBODY`: there is no such
    tool."""

    WORKBENCH = "workbench"
    NOTEBOOK = "notebook"
    PROJECT = "project"
    DEFINITION = "definition"
    NODE = "node"
    PROGRAM = "program"
    NOBODY = ""


@dataclass(frozen=True, slots=True)
class Offerer:
    """Who offers a tool. Two that offer the same name are told apart by it.

    Args:
        id: of the definition, or the RID of the node.
        name: for people: of the process, the definition or the node.
        configuration: identifies how its MCP server is configured; None if it is none.
    """

    kind: OffererKind
    id: str = ""
    name: str = ""
    configuration: str | None = None

    @property
    def key(self) -> str:
        """Identifies it in permissions; it does not change when the offerer is restarted or renamed."""
        return f"{self.kind}:{self.id}" if self.id else str(self.kind)


class Permission(StrEnum):
    """Whether a tool may be called."""

    ALWAYS = "always"
    ASK = "ask"
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class Hints:
    """The hints of a tool about itself; those of an MCP server may be wrong."""

    read_only: bool = False
    destructive: bool = True
    idempotent: bool = False
    open_world: bool = True


@dataclass(frozen=True, slots=True)
class PeerOrigin:
    """The origin of a call that another node of the network has sent.

    Args:
        node: the RID of that node.
        call_id: the call's id there.
        caller: the name of the agent there, for people.
        permission: what the operator allows that node now; called before the call runs.
    """

    node: str
    call_id: str
    caller: str
    permission: Callable[[Ctx], Awaitable[Permission]] = field(repr=False)


@dataclass(frozen=True, slots=True)
class ToolScope:
    """For whom the catalogue is: the caller, and the definition, conversation or other node for which it calls.

    A call with an `origin` reaches this node's own traits only.
    """

    caller: Caller
    definition: Snapshot | None = None
    conversation_id: str | None = None
    origin: PeerOrigin | None = None

    @property
    def is_person(self) -> bool:
        """Whether the operator calls, and no model of a conversation."""
        return self.caller.level is Level.OPERATOR and self.conversation_id is None


@dataclass(frozen=True, slots=True)
class ToolInvocation:
    """One call of a tool."""

    id: str
    scope: ToolScope
    arguments: Mapping[str, Any]
    surroundings: Surroundings


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """What a tool returned.

    Args:
        content: MCP content blocks, JSON-ready.
        structured: the result as a JSON value; None if the tool returned only content.
        is_error: the tool says that it failed.
        version: of what ran, if that is known better than before the call.
        usage: what a model behind the tool has used; None: there is none.
        is_wrapped: `structured` is an object only because MCP has no other: its property `RESULT` is the result.
    """

    content: list[dict[str, Any]]
    structured: Any = None
    is_error: bool = False
    version: str | None = None
    usage: AnswerUsage | None = None
    is_wrapped: bool = False

    @property
    def result(self) -> Any:
        """The result as a JSON value, as the function or the trait has it."""
        return self.structured[RESULT] if self.is_wrapped else self.value

    @property
    def value(self) -> Any:
        """The result as a JSON value: structured, or a text, or, also if there are pictures, the content blocks."""
        texts = [block["text"] for block in self.content if block.get("type") == "text"]
        if self.structured is None:
            return "\n".join(texts) if len(texts) == len(self.content) else self.content
        if not content.has_pictures(self.content):
            return self.structured
        return self.content if texts else [{"type": "text", "text": as_json(self.structured)}, *self.content]

    @property
    def text(self) -> str:
        """Its text, with what Workbench notes about it; pictures and other data are named."""
        if self.structured is None:
            return content.as_text(self.content)
        said = [block for block in self.content if content.picture(block) or content.is_note(block)]
        named = [content.block_text(block) for block in said]
        return "\n".join([as_json(self.structured), *named])

    def shown_value(self, secrets: KnownSecrets, schema: Mapping[str, Any] | bool) -> Any:
        """The value as it is recorded and shown: without secrets, also those that the schema of the result marks."""
        if not content.has_pictures(self.content):
            return secrets.masked(self.value, schema)
        more = secrets.also(marked(self.structured, schema)) if self.structured is not None else secrets
        return content.masked(self.value, more.masked)


@dataclass(frozen=True)
class ToolInfo:
    """A tool.

    Args:
        name: unique in the catalogue.
        parameters: JSON Schema of the arguments, an object.
        result: JSON Schema of the structured result; None if it is not known.
        server: the name of its MCP server.
        own_name: its name on that server.
        version: changes with what the tool does, where that is known: that of Workbench, of a function's source, of a
            definition's files, of an MCP server as it calls itself, or of a trait.
        problem: why it cannot be called now; None if it can.
        is_tried: the problem may have passed, so that a call is tried all the same.
        run: runs it. It may raise anything.
        offered_by: who offers it.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    source: ToolPlace
    kind: ToolKind
    run: Callable[[Ctx, ToolInvocation], Awaitable[ToolOutcome]] = field(repr=False)
    offered_by: Offerer
    title: str = ""
    result: Mapping[str, Any] | None = None
    server: str | None = None
    own_name: str | None = None
    hints: Hints = Hints()
    version: str | None = None
    problem: str | None = None
    is_tried: bool = False

    @property
    def can_be_called(self) -> bool:
        """Whether a call of it is run, which may still fail."""
        return self.problem is None or self.is_tried

    @property
    def origin(self) -> str:
        """Its offerer, for people; names that others gave themselves are quoted."""
        by, own = self.offered_by, self.own_name or self.name
        if by.kind is OffererKind.WORKBENCH:
            return "An operation of Workbench"
        if by.kind is OffererKind.NODE:
            return f"The trait {quoted(own)} of the agent {quoted(self.server or '')} on the node {node_label(by.id)}"
        if self.kind is ToolKind.FUNCTION:
            return f"Your function {own} ({by.name})"
        if self.kind is ToolKind.TRAIT:
            return f"Your trait {own} of {self.server}{f' ({by.name})' if by.name else ''}"
        place = f"of the definition {quoted(by.name)}" if by.kind is OffererKind.DEFINITION else "of this project"
        return f"A tool of the MCP server {self.server} {place}" if self.kind is ToolKind.MCP else f"A tool {place}"

    @cached_property
    def offer(self) -> str:
        """The subject of a permission as JSON: its description and schemas, and the version of an MCP server."""
        said = {"description": self.description, "parameters": self.parameters, "result": self.result}
        if self.offered_by.configuration is not None:
            said |= {"configuration": self.offered_by.configuration, "version": self.version}
        return json.dumps(said, sort_keys=True, ensure_ascii=False, default=dict)

    @cached_property
    def schema(self) -> str:
        """`parameters` as JSON text."""
        return json.dumps(self.parameters, default=dict)

    @property
    def fingerprint(self) -> str:
        """Identifies `offer`."""
        return hashlib.sha256(self.offer.encode()).hexdigest()[:FINGERPRINT_LENGTH]

    @property
    def ran_as(self) -> str | None:
        """The version that the record of a call has: of a tool that has none, it identifies what the tool says."""
        return self.version or (None if self.kind in (ToolKind.UNKNOWN, ToolKind.PROGRAM) else self.fingerprint)

    def is_granted_to(self, caller: Caller) -> bool:
        """Whether a caller may use it, if its permission allows it."""
        is_free = caller.level is Level.OPERATOR or self.kind is ToolKind.OPERATION
        return is_free or not self.words.isdisjoint(caller.tools)

    @property
    def words(self) -> frozenset[str]:
        """The words of a grant or a choice that mean it.

        A name means what this project or a definition offers; another node is within `network` only.
        """
        names = {self.name, self.server or self.name}
        if self.offered_by.kind is OffererKind.NODE:
            return frozenset({"*", NETWORK, *(f"{NETWORK}:{name}" for name in names)})
        return frozenset({"*", *names.difference(RESERVED), *([NOTEBOOK] if self.kind is ToolKind.FUNCTION else [])})


def quoted(said: str) -> str:
    """Quote a text of somebody else; quotation marks within it cannot end the quotation."""
    inner = inert_line(said).translate({ord(mark): '"' for mark in "“”"})
    return f"“{inner}”"
