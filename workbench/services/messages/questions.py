"""Questions of agents to the person, in the inbox. An agent goes on meanwhile, or waits; its lease does not end.

The answer is a message to the agent that asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from typing import Annotated, Any

from pydantic import Field

from workbench.errors import BadInput, Conflict
from workbench.model import SECOND, Level
from workbench.ops import SYSTEM, Ctx, op
from workbench.ops.duties import duty
from workbench.present.inert import inert, inert_line
from workbench.services import approvals
from workbench.services.agents.rows import session_of
from workbench.services.approvals import ApprovalInfo
from workbench.services.messages import inbox
from workbench.services.messages.inbox import Message
from workbench.store.base import Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)

KIND = "agent_question"
ANSWER = "answer"
"""The one field of the answer's form."""
LONGEST_ANSWER = 20_000
LONGEST_OPTION = 1_000


@op(allow=Level.WORKER)
async def ask_person(
    ctx: Ctx,
    question: Annotated[str, Field(min_length=1, description="The question.")],
    options: Annotated[list[str], Field(max_length=20, description="Possible answers.")] = [],
) -> Message:
    """Ask a person. The answer is a message to you."""
    if ctx.caller.agent is None:
        raise BadInput("AGENT_ONLY", "Only an agent can ask the person. Call this with an agent's token.")
    me, most = ctx.caller.agent, ctx.settings.max_agent_questions
    text = inert(inbox.masked(ctx, question, ctx.settings.max_message_bytes))
    choices = list(dict.fromkeys(inert_line(inbox.masked(ctx, option, LONGEST_OPTION)) for option in options))

    def change(tx: Tx) -> Message:
        count = tx.one(SQL.count_open, agent=me)
        if count and count["n"] >= most:
            answers = "read_messages waits for the answers."
            raise Conflict("TOO_MANY_QUESTIONS", f"{most} of your questions are not answered yet. {answers}")
        task_id, attempt = ctx.caller.attempt or _held(tx, me)
        payload = _payload(ctx.caller.name, task_id, attempt, text, choices)
        subject = f"task:{task_id}" if task_id else f"agent:{me}"
        approval_id = approvals.ask(tx, KIND, subject, payload)
        return inbox.send(tx, ctx, "question", text, None, task_id, attempt, approval_id)

    asked, elicit = await ctx.write(change), ctx.surroundings.elicit
    if elicit is None or ctx.caller.supervised:  # nobody sits at a program that Workbench started
        return asked
    form = _form(choices)
    return await _ask_at_client(ctx, asked, elicit(f"The agent {ctx.caller.name} asks: {text}", form))


async def _ask_at_client(ctx: Ctx, asked: Message, answering: Awaitable[dict[str, Any]]) -> Message:
    """Show a question at the agent's own program, too, until it is answered there or in the inbox; the answer, or the
    question, which then stays in the inbox.

    Who sits there is not known: it is no decision of the inbox, whose question is withdrawn.
    """
    shown = asyncio.ensure_future(answering)
    closed = asyncio.ensure_future(
        ctx.feed.until(
            lambda tx: inbox.get(tx, asked.id),
            lambda question: question.acted_at is not None,
            "message.acted",
            subject=f"message:{asked.id}",
            seconds=ctx.settings.agent_question_seconds,
        )
    )
    try:
        await asyncio.wait({shown, closed}, return_when=asyncio.FIRST_COMPLETED)
        reply = shown.result() if shown.done() else {}
    finally:
        shown.cancel()
        closed.cancel()
    words = reply.get("content", {}).get(ANSWER) if reply.get("action") == "accept" else None

    def change(tx: Tx) -> Message:
        approval = approvals.find(tx, asked.approval_id or 0)
        assert approval is not None, "a question has its approval"
        if approval.status == "pending" and _fits(words, approval.payload["options"]):
            approvals.withdraw(tx, approval, "It was answered at the agent's own program.")
            _answer(tx, ctx, approval.id, inbox.masked(ctx, str(words), LONGEST_ANSWER))
        answer = tx.one(SQL.answer_to, approval_id=approval.id)
        if answer is None:
            return asked
        inbox.mark_seen(tx, ctx.caller.agent or "", [inbox.get(tx, answer["id"])])
        return inbox.get(tx, answer["id"])

    return await ctx.write(change)


def _fits(words: Any, options: list[str]) -> bool:
    return isinstance(words, str) and bool(words.strip()) and (not options or words in options)


def _held(tx: Tx, agent: str) -> tuple[int | None, int | None]:
    row = tx.one(SQL.held, agent=agent)
    return (row["task_id"], row["attempt"]) if row else (None, None)


def _payload(agent: str, task_id: int | None, attempt: int | None, text: str, options: list[str]) -> dict[str, Any]:
    about = {"agent": agent, "task_id": task_id, "attempt": attempt}
    return about | {"message": text, "options": options, "form": _form(options)}


def _form(options: list[str]) -> dict[str, Any]:
    field: dict[str, Any] = {"type": "string", "title": "Answer"}
    field |= {"enum": options} if options else {"minLength": 1, "maxLength": LONGEST_ANSWER}
    return {"type": "object", "properties": {ANSWER: field}, "required": [ANSWER]}


@approvals.decision_handler(KIND)
async def decide_question(ctx: Ctx, approval: ApprovalInfo, yes: bool, choices: Mapping[str, Any]) -> dict[str, Any]:
    """Tell an agent the person's answer: `content`, with the field `answer`. Rejected, it is told to decide itself.

    Raises:
        BadInput: ``INVALID_ARGUMENTS``. Conflict: ``ALREADY_DECIDED``: its attempt has ended.
    """
    approvals.check_choices(choices, {"content"} if yes else {"reason"})
    options, reason = approval.payload["options"], str(choices.get("reason", ""))
    words = choices.get("content", {}).get(ANSWER) if yes else reason or "No answer: decide this yourself."
    if not _fits(words, options if yes else []):
        known = f" It is one of: {', '.join(options)}." if options else ""
        raise BadInput("INVALID_ARGUMENTS", f"The content has the text of the answer in the field answer.{known}")
    text = inbox.masked(ctx, str(words), LONGEST_ANSWER)
    outcome = {"asked_by": approval.payload["agent"], "answer": text if yes else None}
    person = approvals.person_of(ctx)

    def change(tx: Tx) -> dict[str, Any]:
        if tx.one(SQL.over, approval_id=approval.id):  # and is about to be withdrawn
            raise Conflict("ALREADY_DECIDED", "What this was about has ended: nobody waits for the answer.")
        decided = approvals.decide(tx, approval, "approved" if yes else "rejected", reason, outcome, person)
        _answer(tx, ctx, approval.id, text)
        return decided

    return await ctx.write(change)


def _answer(tx: Tx, ctx: Ctx, approval_id: int, text: str) -> None:
    question = _close(tx, approval_id)
    asked = f"You asked: {question['body'][:500]}\nThe answer: {text}"
    about = (question["task_id"], question["attempt"], approval_id)
    inbox.send(tx, ctx, "answer", asked, question["sender_id"], *about)


def _close(tx: Tx, approval_id: int) -> Row:
    question = tx.one(SQL.close, approval_id=approval_id, now=tx.now)
    assert question is not None, "a question has its message"
    session = session_of(tx, question["sender_id"])
    tx.emit("message.acted", f"message:{question['id']}", session=session, messages=[question["id"]])
    return question


@duty("closing questions of agents", 1.0, serving=False)
async def close_due(ctx: Ctx) -> None:
    """Withdraw the questions that nobody answered in time, and those whose attempt or agent has ended."""
    since = int(ctx.settings.agent_question_seconds * SECOND)
    if not await ctx.store.read_inline(lambda tx: tx.all(SQL.due, before=tx.now - since)):
        return

    def change(tx: Tx) -> None:
        for row in tx.all(SQL.due, before=tx.now - since):
            _withdraw(tx, ctx.of(SYSTEM), row)

    await ctx.of(SYSTEM).write(change)


def _withdraw(tx: Tx, ctx: Ctx, row: Row) -> None:
    approval = approvals.find(tx, row["approval_id"])
    assert approval is not None, "a question has its approval"
    reason = "What it was about has ended." if row["is_over"] else "Nobody answered in time."
    approvals.withdraw(tx, approval, reason)
    if row["is_over"]:
        _close(tx, row["approval_id"])
    else:
        _answer(tx, ctx, row["approval_id"], "Nobody answered in time: decide this yourself.")
