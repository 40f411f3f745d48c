"""RIDs of the resources that this node accepts: personalities, nodes and edges."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, PlainSerializer, PlainValidator, StringConstraints, WithJsonSchema
from rid_lib import RID
from rid_lib.core import DefaultType
from rid_lib.types import KoiNetEdge, KoiNetNode

from workbench.rules.personalities.rid import LONGEST, AgentPersonality, require_writable

PERSONALITY, NODE, EDGE = (str(kind) for kind in (AgentPersonality, KoiNetNode, KoiNetEdge))
"""The names of the types: ``orn:agent.personality``, ``orn:koi-net.node``, ``orn:koi-net.edge``."""


class ForeignRid(DefaultType):
    """Text in place of a RID that this node accepts: malformed, too long, or of another type.

    It is kept unchanged, so that it does not invalidate the whole message, whose signature still fits. rid-lib would
    create a class for every unknown type, and keep it.
    """

    scheme = "foreign"

    def __init__(self, text: str) -> None:
        self.text = text

    def __str__(self) -> str:
        return self.text


def parse(text: str) -> RID:
    """A RID of one of these types.

    Raises:
        ValueError: it is none, or too long, or has control characters.
    """
    require_writable(text)
    if not text.startswith((f"{PERSONALITY}:", f"{NODE}:", f"{EDGE}:")):
        raise ValueError("it is not the RID of a personality, a node or an edge")
    return RID.from_string(text)


def parse_node(text: str) -> KoiNetNode:
    """The RID of a node.

    Raises:
        ValueError: it is none, or too long.
    """
    rid = parse(text)
    if not isinstance(rid, KoiNetNode):
        raise ValueError("the RID of a node is orn:koi-net.node:<name>+<hash of its public key>")
    return rid


def _read(value: Any) -> RID:
    if isinstance(value, RID):
        return value
    if not isinstance(value, str):
        raise ValueError("a RID is text")
    try:
        return parse(value)
    except ValueError:
        return ForeignRid(value)


AnyRid = Annotated[
    RID, PlainValidator(_read), PlainSerializer(str, return_type=str), WithJsonSchema({"type": "string"})
]
"""A RID in a message. One that this node does not accept is a `ForeignRid`."""


def _read_node(value: Any) -> KoiNetNode:
    rid = value if isinstance(value, RID) else parse(str(value))
    if not isinstance(rid, KoiNetNode):
        raise ValueError("it is not the RID of a node")
    return rid


NodeRid = Annotated[
    KoiNetNode, PlainValidator(_read_node), PlainSerializer(str, return_type=str), WithJsonSchema({"type": "string"})
]
"""The RID of a node in a message."""

TypeName = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST)]
"""The type of RIDs in a message, as it is written; also one that this node does not know."""

TypeNames = Annotated[list[TypeName], Field(max_length=100)]
