"""Signed envelopes.

The signed text is the compact JSON of payload, source and target, in the order of the fields and without absent values.
An envelope is this text with the signature as its last field.
"""

from __future__ import annotations

from pydantic import BaseModel, Field
from rid_lib.types import KoiNetNode

from workbench.koi.identity import NodeIdentity
from workbench.koi.payloads import Payload
from workbench.koi.rids import NodeRid

LONGEST_SIGNATURE = 200


class Unsigned(BaseModel):
    """What is signed."""

    payload: Payload
    source_node: NodeRid
    target_node: NodeRid

    def text(self) -> bytes:
        """The bytes that are signed."""
        return self.model_dump_json(exclude_none=True).encode()


class Envelope(Unsigned):
    """A payload with its sender, its receiver and a signature by the sender."""

    signature: str = Field(max_length=LONGEST_SIGNATURE)

    def unsigned_text(self) -> bytes:
        """The bytes whose signature koi-net checks: the envelope as it parsed and serialized it again."""
        return Unsigned(payload=self.payload, source_node=self.source_node, target_node=self.target_node).text()


def signed(identity: NodeIdentity, payload: Payload, target: KoiNetNode) -> bytes:
    """The bytes of an envelope from a node, signed by it."""
    text = Unsigned(payload=payload, source_node=identity.rid, target_node=target).text()
    return text[:-1] + f',"signature":"{identity.sign(text)}"}}'.encode()
