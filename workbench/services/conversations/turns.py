"""The turns of conversations: what the person wrote, and the answers with their text and calls of tools."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from workbench.model import LARGEST_INT, Level, Micros, Wire, uuid7
from workbench.ops import Ctx, RestRoute, op
from workbench.rules.chat import transcript
from workbench.rules.chat.transcript import Part, TextPart, ToolPart, Transcript
from workbench.services.conversations import frames
from workbench.services.conversations.conversation import ConversationId, require_conversation
from workbench.store.base import Reader, Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)
PARTS: TypeAdapter[list[TextPart | ToolPart]] = TypeAdapter(list[Part])

Role = Literal["user", "assistant"]
TurnState = Literal["sent", "running", "completed", "stopped", "interrupted", "failed"]


class TurnInfo(Wire):
    """A turn: one contribution to a conversation.

    What you wrote has the role `user` and the state `sent`. An answer has the role `assistant`: it is `running`, until
    it is `completed`, `stopped` by you, `interrupted` by the end of the server, or `failed` with `error_code` and
    `error`. `content` is its text, `parts` the text and the calls of tools in order. `end` of one that is completed:
    `stop`, or `length` if its limit of tokens cut it, at `cut_at` tokens; `remark` is a sentence about an answer that
    is cut or empty. Usage is what the provider reported, null if it reported nothing; `unmeasured` counts the requests
    whose tokens are unknown. `cached_tokens` and `thinking_tokens` are parts of the input and the output, and
    `first_token_seconds` is how long its first piece took; list_model_requests has each request. `definition_hash` is
    the version of the definition, `prompt_hash` that of the system prompt that was sent, with the rules and references
    in `include`. `replaced_at`: another answer took its place.
    """

    id: str
    conversation_id: str
    number: int
    role: Role
    state: TurnState
    content: str
    parts: list[Part]
    model: str | None
    definition_hash: str | None
    prompt_hash: str | None
    include: list[str] | None
    end: str | None
    cut_at: int | None
    remark: str | None
    error_code: str | None
    error: str | None
    input_tokens: int | None
    output_tokens: int | None
    cached_tokens: int | None
    thinking_tokens: int | None
    first_token_seconds: float | None
    requests: int | None
    unmeasured: int | None
    cost_usd: float | None
    created_at: Micros
    ended_at: Micros | None
    replaced_at: Micros | None


class Turns(Wire):
    """Turns, oldest first. For those before them pass `next_before` as `before`, until it is null.

    `last_frame`: the turns contain the frames up to this number; pass it to read_frames as `after`.
    """

    turns: list[TurnInfo]
    next_before: int | None
    last_frame: int


@op(
    allow=Level.OPERATOR,
    reads=True,
    tool=False,
    command="conversations show",
    rest=RestRoute("GET", "/conversations/{conversation_id}/turns"),
)
async def list_turns(
    ctx: Ctx,
    conversation_id: ConversationId,
    before: Annotated[
        int | None, Field(ge=0, le=LARGEST_INT, description="Only turns with a smaller number; null: the newest.")
    ] = None,
    limit: Annotated[int, Field(ge=1, le=500, description="At most this many.")] = 100,
    replaced: Annotated[bool, Field(description="Also answers that another one replaced.")] = False,
) -> Turns:
    """List the newest turns of a conversation, the newest last. An answer that is being made is as far as it is."""
    newest = LARGEST_INT if before is None else before
    where = {"conversation": conversation_id, "before": newest, "replaced": int(replaced), "limit": limit + 1}

    def question(tx: Reader) -> Turns:
        conversation = require_conversation(tx, conversation_id)
        rows = tx.all(SQL.page_before, where)
        turns = [_turn(tx, row) for row in rows[limit - 1 :: -1]]
        following = turns[0].number if len(rows) > limit else None
        return Turns(turns=turns, next_before=following, last_frame=conversation.last_frame)

    return await ctx.read(question)


def require_turn(tx: Reader, turn_id: str) -> TurnInfo:
    """A turn that exists."""
    row = tx.one(SQL.get, id=turn_id)
    assert row is not None
    return _turn(tx, row)


def last_turn(tx: Reader, conversation_id: str) -> TurnInfo | None:
    """The newest turn of a conversation that is not replaced."""
    row = tx.one(SQL.last, conversation=conversation_id)
    return _turn(tx, row) if row else None


def all_turns(tx: Reader, conversation_id: str) -> list[TurnInfo]:
    """The turns of a conversation that are not replaced, oldest first."""
    where = {"conversation": conversation_id, "before": LARGEST_INT, "replaced": 0, "limit": LARGEST_INT}
    return [_turn(tx, row) for row in reversed(tx.all(SQL.page_before, where))]


def add(tx: Tx, conversation_id: str, role: Role, content: str, server: str | None = None) -> str:
    """Add a turn, an answer as running; its id."""
    turn_id, state = str(uuid7(tx.now)), "running" if role == "assistant" else "sent"
    values = {"id": turn_id, "conversation": conversation_id, "role": role, "state": state, "content": content}
    tx.run(SQL.add, values, server=server, now=tx.now)
    return turn_id


def transcript_of(tx: Reader, turn_id: str) -> Transcript:
    """An answer as far as it has come."""
    so_far = Transcript()
    for kind, data in frames.of_turn(tx, turn_id):
        so_far.add(kind, data)
    return so_far


def _turn(tx: Reader, row: Row) -> TurnInfo:
    values: dict[str, Any] = {name: row[name] for name in TurnInfo.model_fields.keys() & row.keys()}
    remark = transcript.remark(row["end"], row["cut_at"], row["content"]) if row["state"] == "completed" else None
    include = None if row["include"] is None else json.loads(row["include"])
    return TurnInfo(**values | _content(tx, row) | {"remark": remark, "include": include})


def _content(tx: Reader, row: Row) -> dict[str, Any]:
    """The text and the parts of a turn; those of an answer that is being made are in its frames."""
    if row["state"] == "running":
        so_far = transcript_of(tx, row["id"])
        return {"content": so_far.text, "parts": so_far.parts(ended=False)}
    if row["parts"] is None:
        return {"parts": [TextPart(text=row["content"])]}
    return {"parts": json.loads(row["parts"])}
