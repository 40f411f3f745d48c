"""Messages and calls of other nodes that are refused: why, and how many."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from workbench.errors import WorkbenchError
from workbench.ops import Ctx
from workbench.store.base import Reader, Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)
UNKNOWN = ""
"""Under what the messages of senders that are not known are counted: they may call themselves anything."""
LONGEST_REASON = 300
"""Characters."""


class RefusalReason(StrEnum):
    """Why a message, one event of it, or a call of a trait is refused. The codes never change their meaning."""

    meaning: str

    def __new__(cls, code: str, meaning: str) -> Self:
        """A code with its meaning."""
        made = str.__new__(cls, code)
        made._value_ = code
        made.meaning = meaning
        return made

    MALFORMED = "KOI_MALFORMED", "It is no envelope with a request for this endpoint."
    UNKNOWN_NODE = "KOI_UNKNOWN_NODE", "The sender is not known, and does not introduce itself."
    INVALID_KEY = "KOI_INVALID_KEY", "The public key is not the one that the RID of the node names."
    INVALID_SIGNATURE = "KOI_INVALID_SIGNATURE", "The signature of the envelope is not the sender's."
    INVALID_TARGET = "KOI_INVALID_TARGET", "The envelope is for another node."
    BLOCKED = "KOI_BLOCKED", "The sender, or the owner of what it sends, is blocked."
    REPLAYED = "KOI_REPLAYED", "The same signed message was received before."
    RID_INVALID = "KOI_RID_INVALID", "The RID is malformed, too long, or of a type that is not accepted."
    OWN_RID = "KOI_OWN_RID", "Only this node changes its own profile, its personalities and its edges to others."
    NO_MANIFEST = "KOI_NO_MANIFEST", "There is no manifest, and the sender does not provide one."
    NO_CONTENTS = "KOI_NO_CONTENTS", "There are no contents, and the sender does not provide them."
    WRONG_RID = "KOI_WRONG_RID", "Manifest or contents are of another RID than the event."
    HASH_MISMATCH = "KOI_HASH_MISMATCH", "The contents do not have the hash that the manifest states."
    TOO_LARGE = "KOI_TOO_LARGE", "The contents are larger than `max_koi_profile_bytes`."
    CONTENTS_INVALID = "KOI_CONTENTS_INVALID", "The contents are not those of a personality, a node or an edge."
    FROM_THE_FUTURE = "KOI_FROM_THE_FUTURE", "The manifest is dated later than now, by more than `koi_skew_seconds`."
    OUTDATED = "KOI_OUTDATED", "What is known is newer."
    FORGOTTEN = "KOI_FORGOTTEN", "It was forgotten, and is not newer than what was forgotten."
    NOT_THE_OWNER = "KOI_NOT_THE_OWNER", "The sender is neither the owner nor a trusted relay."
    NAME_TAKEN = "KOI_NAME_TAKEN", "The name of the personality belongs to another node."
    NAME_RELEASED = "KOI_NAME_RELEASED", "The operator has taken the name of the personality from this node."
    TOO_MANY = "KOI_TOO_MANY", "There are as many personalities, nodes or edges as this node keeps."
    QUOTA_EXCEEDED = "KOI_QUOTA_EXCEEDED", "All that is kept of the node would be larger than `max_koi_bytes_per_node`."
    FAILED = "KOI_FAILED", "An error in this node; its log has the details."
    NOT_SIGNED = "CALL_NOT_SIGNED", "A call of a trait is in no signed envelope."
    CALL_TOO_OLD = "CALL_TOO_OLD", "A call was sent more than a minute ago, by the clock of this node."
    CALL_REPLAYED = "CALL_REPLAYED", "The same call was received before."
    UNKNOWN_TOOL = "UNKNOWN_TOOL", "A call is of something that is no callable trait of this node."
    NOT_PERMITTED = "TOOL_FORBIDDEN", "The sender may never call this trait."
    DENIED = "TOOL_DENIED", "The operator refused this call."
    RATE_LIMITED = "RATE_LIMITED", "The sender calls more often than it may."
    TOO_MANY_CALLS = "TOO_MANY_CALLS", "As many calls of the sender wait or run as may, at once."


@dataclass(frozen=True, slots=True)
class RefusedEvent:
    """An event or a call that was refused. `rid`: of what it is about, or the name of the trait; it may be empty."""

    rid: str
    code: RefusalReason
    reason: str


USUAL = frozenset({RefusalReason.OUTDATED, RefusalReason.FORGOTTEN})
"""What happens among honest nodes: news that cross, or come by two ways. It is listed, and counts for nothing."""
USUAL_CODES = json.dumps(sorted(USUAL))
CODES: Mapping[str, RefusalReason] = {str(refusal): refusal for refusal in RefusalReason}


async def note_error(ctx: Ctx, node: str, subject: str, error: WorkbenchError) -> None:
    """Count an error if it is a refusal; others, such as wrong arguments, are results of a call.

    Args:
        subject: what was refused, such as the name of a trait.
    """
    if (code := CODES.get(error.code)) is not None:
        await note(ctx, node, RefusedEvent(subject, code, error.message))


async def note(ctx: Ctx, node: str, refused: RefusedEvent) -> None:
    """Count one refusal, as `count` does."""
    await ctx.store.write(lambda tx: count(tx, node, [refused]))


def count(tx: Tx, node: str, refused: Iterable[RefusedEvent]) -> None:
    """Count what was refused of a node (its RID; `UNKNOWN` for one that is not known)."""
    for event in refused:
        tx.run(SQL.count, node=node, code=str(event.code), now=tx.now, reason=_short(event))


def _short(event: RefusedEvent) -> str:
    return f"{event.rid}: {event.reason}".removeprefix(": ")[:LONGEST_REASON]


def of_node(tx: Reader, node: str) -> list[Row]:
    """What was refused of a node: `code`, `count`, `last_at`, `last_reason`, the latest first."""
    return tx.all(SQL.of_node, node=node)
