"""The contents of bundles of nodes and of edges."""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field
from rid_lib import RID
from rid_lib.ext.utils import sha256_hash
from rid_lib.types import KoiNetEdge, KoiNetNode

from workbench.koi.rids import AnyRid, NodeRid, TypeNames


class NodeType(StrEnum):
    """FULL: it serves the endpoints of the protocol. PARTIAL: it only sends requests."""

    FULL = "FULL"
    PARTIAL = "PARTIAL"


class NodeProvides(BaseModel):
    """The types of which a node sends events, and of which it can be asked for the state."""

    event: TypeNames = []
    state: TypeNames = []


class NodeProfile(BaseModel):
    """A node. `public_key`: base64 of its DER form."""

    model_config = ConfigDict(serialize_by_alias=True, validate_by_name=True)

    context: AnyRid = Field(alias="@context", default=RID.from_string("orn:koi-net.context:koi-net.node"))
    base_url: str | None = Field(None, max_length=2_000)
    node_type: NodeType
    provides: NodeProvides = NodeProvides()
    public_key: str | None = Field(None, max_length=1_000)


class EdgeStatus(StrEnum):
    """An edge is proposed by either side, and approved by the other one."""

    PROPOSED = "PROPOSED"
    APPROVED = "APPROVED"


class EdgeType(StrEnum):
    """How events get to the target: the source sends them, or the target fetches them."""

    WEBHOOK = "WEBHOOK"
    POLL = "POLL"


class EdgeProfile(BaseModel):
    """`source` sends the events of `rid_types` to `target`."""

    model_config = ConfigDict(serialize_by_alias=True, validate_by_name=True)

    context: AnyRid = Field(alias="@context", default=RID.from_string("orn:koi-net.context:koi-net.edge"))
    source: NodeRid
    target: NodeRid
    edge_type: EdgeType
    status: EdgeStatus
    rid_types: TypeNames


def edge_rid(source: KoiNetNode, target: KoiNetNode) -> KoiNetEdge:
    """The RID of the one edge from a node to another."""
    return KoiNetEdge(sha256_hash(f"{source}{target}"))
