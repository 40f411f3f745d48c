"""Makes an answer: reads what is asked, asks the model, stores what comes, and records how it ended."""

from __future__ import annotations

import asyncio
import json
import logging
from contextlib import aclosing
from dataclasses import dataclass
from decimal import Decimal

from workbench.definition_files import Snapshot
from workbench.errors import Conflict, Unavailable, WorkbenchError
from workbench.ops import Ctx
from workbench.providers.answers import answer, load
from workbench.providers.frames import (
    AnswerUsage,
    Compacted,
    Completed,
    Frame,
    Requested,
    Retrying,
    Thought,
    Token,
    ToolCompleted,
    ToolStarted,
    Used,
)
from workbench.providers.question import STEPS, AnswerLimits, ModelQuestion
from workbench.providers.running import AnswerEnding, RunningAnswer
from workbench.rules.chat.limits import money_left, tokens_left
from workbench.rules.chat.transcript import FrameKind
from workbench.rules.definitions import composition
from workbench.services.conversations import ending, question, turns
from workbench.services.conversations.conversation import ConversationInfo, require_conversation, spent
from workbench.services.conversations.deadline import Deadline
from workbench.services.conversations.ending import AnswerOutcome
from workbench.services.conversations.recorder import FrameRecorder
from workbench.services.conversations.requests import SentRequests
from workbench.services.conversations.toolbox import ConversationTools
from workbench.services.definitions import changes, models
from workbench.services.definitions.models import ReadyModel

SECONDS = 600.0
"""How long an answer may take, unless its conversation has another limit."""
LONGEST = 30 * 86_400.0
"""The engine's own limit, which also counts the time in which an answer waits for the operator."""

log = logging.getLogger(__name__)


def start(ctx: Ctx, conversation_id: str, turn_id: str) -> None:
    """Make an answer in a task of its own. Its row says that it is running."""
    running = RunningAnswer(conversation_id, turn_id)
    ctx.local.answers.start(running, _make(ctx, running))


async def _make(ctx: Ctx, running: RunningAnswer) -> None:
    running.is_begun = True
    recorder = FrameRecorder(ctx, running)
    sent = SentRequests(ctx.store.now)
    outcome = await _outcome(ctx, running, recorder, sent)
    if running.ending is not AnswerEnding.DISCARDED:
        await ctx.local.repositories.shielded(ending.record(ctx, running, recorder, outcome, sent.ended()))


async def _outcome(ctx: Ctx, running: RunningAnswer, recorder: FrameRecorder, sent: SentRequests) -> AnswerOutcome:
    """Make the answer; how it ended."""
    answering = _Answer(ctx, running, recorder, sent)
    try:
        if running.ending is None:
            async with recorder.storing():
                return await answering.make_answer()
    except asyncio.CancelledError:
        if task := asyncio.current_task():
            task.uncancel()
        if recorder.error is not None:
            return AnswerOutcome("failed", answering.usage, error=recorder.error)
    except WorkbenchError as error:
        return AnswerOutcome("failed", answering.usage, error=error)
    except Exception:
        log.exception("the answer %s failed", running.turn_id)
        failure = Unavailable("CHAT_FAILED", "The answer failed; the server's log says why. Try again.")
        return AnswerOutcome("failed", answering.usage, error=failure)
    return ending.from_outside(running, answering.usage)


@dataclass
class _Answer:
    """One answer.

    Args:
        sent: the requests that it is made of.
        usage: what it has used so far; None: nothing is known.
    """

    ctx: Ctx
    running: RunningAnswer
    recorder: FrameRecorder
    sent: SentRequests
    usage: AnswerUsage | None = None

    async def make_answer(self) -> AnswerOutcome:
        """Make the answer; how it ended by itself.

        Raises:
            WorkbenchError: it failed.
        """
        ctx = self.ctx
        conversation = await ctx.read(lambda tx: require_conversation(tx, self.running.conversation_id))
        snapshot = await _definition(ctx, conversation)
        ready = await models.ready(ctx, snapshot, conversation.model)
        instructions = _instructions(conversation, snapshot)
        values = {
            "id": self.running.turn_id,
            "model": ready.choice.name,
            "hash": snapshot.hash if snapshot else None,
            "prompt_hash": composition.text_hash(instructions) if snapshot else None,
            "include": json.dumps(sorted(conversation.include)) if snapshot else None,
        }
        await ctx.write(lambda tx: tx.run(turns.SQL.note_model, values))
        await load(ready.choice)
        deadline = Deadline(conversation.limits.seconds or SECONDS)
        tools = ConversationTools(ctx, conversation, snapshot, self.recorder, deadline)
        try:
            async with deadline.enforced():
                completed = await self._complete(conversation, snapshot, ready, tools)
            models.require_whole(completed)
        except WorkbenchError as error:
            error.mask(ready.redacted)
            raise
        return AnswerOutcome(
            "completed", completed.usage, end=completed.end, cut_at=completed.cut_at, history=completed.history
        )

    async def _complete(
        self, conversation: ConversationInfo, snapshot: Snapshot | None, ready: ReadyModel, tools: ConversationTools
    ) -> Completed:
        """Ask the model, with the history that the engine kept if it still can read it."""
        limits = _limits(conversation, snapshot)
        try:
            return await self._ask_engine(ready, await self._question(conversation, snapshot), limits, tools)
        except Conflict as error:
            if error.code != "HISTORY_UNREADABLE":
                raise
        return await self._ask_engine(ready, await self._question(conversation, snapshot, anew=True), limits, tools)

    async def _question(
        self, conversation: ConversationInfo, snapshot: Snapshot | None, *, anew: bool = False
    ) -> ModelQuestion:
        """The question for the engine.

        Args:
            anew: without the history that the engine kept.
        """
        conversation_id, turn_id = self.running.conversation_id, self.running.turn_id
        context = await self.ctx.read(lambda tx: question.past(tx, conversation_id, turn_id, anew=anew))
        definition = snapshot.definition if snapshot else None
        return ModelQuestion(
            instructions=_instructions(conversation, snapshot),
            prompt=context.prompt,
            history=await question.history_of(context),
            **(models.sampling(definition) if definition else {}),
        )

    async def _ask_engine(
        self, ready: ReadyModel, model_question: ModelQuestion, limits: AnswerLimits, tools: ConversationTools
    ) -> Completed:
        completed: Completed | None = None
        async with aclosing(answer(ready.choice, model_question, tools, limits)) as stream:
            async for frame in stream:
                await self._record(frame, tools)
                if isinstance(frame, Completed):
                    completed = frame
        assert completed is not None
        return completed

    async def _record(self, frame: Frame, tools: ConversationTools) -> None:
        add = self.recorder.add
        match frame:
            case Token(text):
                add(FrameKind.TOKEN, content=text)
            case Thought(text):
                add(FrameKind.THINKING, content=text)
            case Retrying():
                waits = {"attempt": frame.attempt, "attempts": frame.attempts, "seconds": frame.seconds}
                add(FrameKind.RETRY, code=frame.code, message=frame.message, **waits)
            case Compacted(message):
                add(FrameKind.COMPACTED, message=message)
            case Requested():
                self.sent.take(frame)
            case Used(usage) | Completed(usage=usage):
                self.usage = usage
            case ToolStarted():
                tools.started(frame)
            case ToolCompleted():
                await tools.completed(frame)


async def _definition(ctx: Ctx, conversation: ConversationInfo) -> Snapshot | None:
    """The definition of a conversation, as it is now.

    Raises:
        WorkbenchError: see `changes.current`.
    """
    if conversation.definition_id is None:
        return None
    return await changes.current(ctx, conversation.definition_id, conversation.definition_path)


def _instructions(conversation: ConversationInfo, snapshot: Snapshot | None) -> str:
    """The system prompt that the model is sent."""
    return composition.system_prompt(snapshot.definition, conversation.include, offers=True) if snapshot else ""


def _limits(conversation: ConversationInfo, snapshot: Snapshot | None) -> AnswerLimits:
    """What the engine may use for this answer."""
    used, limits = spent(conversation.usage), conversation.limits
    money = money_left(limits, used)
    steps = limits.steps or (snapshot.definition.settings.max_chat_turns if snapshot else None) or STEPS
    return AnswerLimits(
        steps=steps,
        tokens=tokens_left(limits, used),
        cost_usd=None if money is None else Decimal(str(money)),
        seconds=LONGEST,
    )
