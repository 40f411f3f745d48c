"""The requests to models that answers are made of: when each was sent, what it used, and how it ended."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Annotated, ClassVar

from pydantic import Field

from workbench.model import Level, Micros, Wire
from workbench.ops import Columns, Command, Ctx, RestRoute, op
from workbench.providers.frames import Requested
from workbench.rules.models.prices import Prices
from workbench.rules.models.usage import ModelUsage
from workbench.services.conversations.conversation import ConversationId, require_conversation
from workbench.services.spending import ledger
from workbench.services.spending.ledger import ModelSpending
from workbench.store.base import Reader, Tx
from workbench.store.queries import beside

SQL = beside(__file__)


class ModelRequest(Wire):
    """A request to a model. What the provider did not report is null.

    `number` counts those of the answer `turn_id`. `purpose`: `answer`, or `summary` of a conversation that is too long.
    `seconds` until what came of it had ended, `first_token_seconds` until it began. `cached_tokens` (read from the
    provider's cache) and `cache_write_tokens` are part of `input_tokens`, `thinking_tokens` of `output_tokens`.
    `end_reason` is the provider's: stop, length, tool_call, content_filter; null: it did not end by itself.
    `error_code`: why it failed; ANSWER_STOPPED: the answer was ended from outside.
    """

    turn_id: str
    number: int
    purpose: str
    model: str | None
    started_at: Micros
    seconds: float | None
    first_token_seconds: float | None
    input_tokens: int | None
    cached_tokens: int | None
    cache_write_tokens: int | None
    output_tokens: int | None
    thinking_tokens: int | None
    cost_usd: float | None
    end_reason: str | None
    error_code: str | None


class ModelRequests(Wire):
    """Requests, oldest first."""

    SHOWN: ClassVar = Columns(
        "requests",
        "started_at=sent purpose model first_token_seconds=first_token seconds input_tokens=in cached_tokens=cached "
        "output_tokens=out thinking_tokens=thinking cost_usd=cost end_reason=end error_code=error",
        "No model was asked.",
    )

    requests: list[ModelRequest]


@dataclass(frozen=True, slots=True)
class SentRequest:
    """A request, and when it was sent, in microseconds."""

    started_at: int
    request: Requested


class SentRequests:
    """The requests of an answer that is being made.

    Args:
        now: the time, in microseconds.
    """

    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now
        self._sent: dict[int, SentRequest] = {}

    def take(self, request: Requested) -> None:
        """Take what is known of a request."""
        known = self._sent.get(request.number)
        self._sent[request.number] = SentRequest(known.started_at if known else self._now(), request)

    def ended(self) -> list[SentRequest]:
        """All of them, now that the answer has ended, in their order; what came of the last one may not be known."""
        return [self._closed(self._sent[number]) for number in sorted(self._sent)]

    def _closed(self, sent: SentRequest) -> SentRequest:
        if sent.request.seconds is not None:
            return sent
        seconds = (self._now() - sent.started_at) / 1e6
        return replace(sent, request=replace(sent.request, seconds=seconds, error_code="ANSWER_STOPPED"))


@op(
    allow=Level.OPERATOR,
    reads=True,
    tool=False,
    command=Command("conversations requests CONVERSATION"),
    rest=RestRoute("GET", "/conversations/{conversation_id}/requests", rows="requests"),
)
async def list_model_requests(
    ctx: Ctx,
    conversation_id: ConversationId,
    limit: Annotated[int, Field(ge=1, le=10_000, description="At most this many, the newest.")] = 1_000,
) -> ModelRequests:
    """List the requests to models of a conversation: time to the first token, cached and thinking tokens, the end."""

    def question(tx: Reader) -> ModelRequests:
        require_conversation(tx, conversation_id)
        rows = tx.all(SQL.of_conversation, conversation=conversation_id, limit=limit)
        return ModelRequests(requests=[ModelRequest(**row) for row in reversed(rows)])

    return await ctx.read(question)


def add(tx: Tx, conversation_id: str, turn_id: str, sent: Sequence[SentRequest]) -> None:
    """Record the requests of an answer."""
    about = {"turn": turn_id, "conversation": conversation_id}
    tx.many(SQL.add, [about | {"started_at": one.started_at} | _columns(one.request) for one in sent])
    turn = tx.one(SQL.model_of, turn=turn_id)
    provider, _, model = ((turn["model"] if turn else None) or "").partition(":")
    for one in sent:
        ledger.add(tx, _spent(one, conversation_id, provider, model), Prices())


def _spent(sent: SentRequest, conversation_id: str, provider: str, model: str) -> ModelSpending:
    """A request as the ledger has it: no class of tokens contains another. Its cost is what the engine knows."""
    request, cost = sent.request, sent.request.cost_usd
    whole, cached, written = request.input_tokens, request.cached_tokens, request.cache_write_tokens
    anew = None if whole is None else max(0, whole - (cached or 0) - (written or 0))
    return ModelSpending(
        at=sent.started_at,
        source="chat",
        provider=provider or None,
        model=model or None,
        usage=ModelUsage(anew, cached, written, None, request.output_tokens, request.thinking_tokens),
        conversation=conversation_id,
        error_code=request.error_code,
        seconds=request.seconds,
        first_byte_seconds=request.first_token_seconds,
        cost_usd=None if cost is None else float(cost),
    )


def _columns(request: Requested) -> dict[str, object]:
    cost = request.cost_usd
    return asdict(request) | {"cost_usd": None if cost is None else float(cost)}
