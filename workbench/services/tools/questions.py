"""Questions of MCP servers to the person (elicitation), in the inbox while the call that asks waits.

What the person answers goes to the server, and is stored nowhere.
"""

from __future__ import annotations

import asyncio
import json
from asyncio import to_thread
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from workbench.errors import BadInput, Conflict
from workbench.ops import Ctx, first_problems
from workbench.present.inert import inert, inert_line
from workbench.rules.secrets.mask import Mask
from workbench.rules.tools import questions
from workbench.rules.tools.arguments import problems
from workbench.rules.tools.surroundings import Elicit
from workbench.services import approvals
from workbench.services.approvals import ApprovalInfo
from workbench.services.tools import call_log
from workbench.services.tools.tool import ToolInvocation
from workbench.store.base import Tx
from workbench.store.queries import beside
from workbench.upstream.call import ElicitationReply, ServerQuestion, not_asked

SQL = beside(__file__)
KIND = "question"
LONGEST_URL = 2_000


async def of_client(ctx: Ctx, call: ToolInvocation) -> Elicit | None:
    """Asks the person at the client that calls; None if nobody sits there: it shows no forms, or is the program of an
    agent that was spawned, which would decline by itself."""
    elicit, agent = call.surroundings.elicit, call.scope.caller.agent
    if elicit is None or agent is None:
        return elicit
    return None if await ctx.read(lambda tx: tx.one(SQL.process_of, agent=agent)) else elicit


async def ask(ctx: Ctx, call: ToolInvocation, tool: str, server: str, question: ServerQuestion) -> ElicitationReply:
    """Ask the person in the inbox, for as long as the setting `question_seconds` says. Cancelling this leaves the
    question to the end of the call, which withdraws it."""
    if reason := await to_thread(questions.problem, question.schema):
        return not_asked(reason)
    if len(question.url) > LONGEST_URL:
        return not_asked(f"its address has more than {LONGEST_URL:,} characters")
    payload, answer = _payload(call, tool, server, question), asyncio.get_running_loop().create_future()

    def add(tx: Tx) -> int:
        approval_id = approvals.ask(tx, KIND, f"{call_log.SUBJECT}{call.id}", payload)
        ctx.local.running_calls.questions[approval_id] = answer
        return approval_id

    seconds, follow = ctx.settings.question_seconds, call.surroundings.follow
    approval_id = await ctx.write(add)
    if follow is not None:
        follow(call.id, approval_id)
    try:
        async with asyncio.timeout(seconds):
            reply: ElicitationReply = await answer
            return reply
    except TimeoutError:
        reason = f"nobody answered within {seconds:g} s"
        await ctx.write(lambda tx: _withdraw(tx, approval_id, f"It was cancelled: {reason}."))
        return not_asked(reason)
    finally:
        ctx.local.running_calls.questions.pop(approval_id, None)
        if follow is not None:
            follow(call.id, None)


def _payload(call: ToolInvocation, tool: str, server: str, question: ServerQuestion) -> dict[str, Any]:
    form = questions.shown_form(question.schema)
    origin = call.scope.origin
    return {
        "tool": tool,
        "server": server,
        "call_id": call.id,
        "caller": call.scope.caller.name,
        "conversation_id": call.scope.conversation_id,
        "node": origin.node if origin is not None else None,
        "message": inert(question.message),
        "form": _inert(form),
        "url": inert_line(question.url) or None,
        "is_link": questions.is_link(question.url),
        "sensitive": questions.secret_fields(question.schema),
    }


def _inert(value: Any) -> Any:
    """What a server says in a form, as text that can do nothing; names of fields stay."""
    if isinstance(value, str):
        return inert_line(value)
    if isinstance(value, list):
        return [_inert(each) for each in value]
    return {name: _inert(each) for name, each in value.items()} if isinstance(value, dict) else value


def masked(question: ServerQuestion, mask: Mask) -> ServerQuestion:
    """A question without the secrets that its server was given."""
    message, schema = mask.text(question.message), mask.data(dict(question.schema))
    return replace(question, message=message, schema=schema, url=mask.text(question.url))


def _withdraw(tx: Tx, approval_id: int, reason: str) -> None:
    if (approval := approvals.find(tx, approval_id)) is not None:
        approvals.withdraw(tx, approval, reason)


@approvals.decision_handler(KIND)
async def decide_question(ctx: Ctx, approval: ApprovalInfo, yes: bool, choices: Mapping[str, Any]) -> dict[str, Any]:
    """Give a server the person's answer: `content`, by field. Rejected, it is told that she declines; with the `action`
    cancel, that she has not chosen.

    Raises:
        BadInput: ``INVALID_ARGUMENTS``. Conflict: ``CALL_ENDED``.
    """
    approvals.check_choices(choices, {"content", "action"} if yes else {"reason"})
    action: Any = choices.get("action", "accept") if yes else "decline"
    if action not in ("accept", "decline", "cancel"):
        raise BadInput("INVALID_ARGUMENTS", "action is accept, decline or cancel.", problems=[])
    content = choices.get("content", {}) if action == "accept" else None
    if content is not None:
        await _check(approval, content)
    await call_log.interrupt_lost(ctx)  # a call whose program has ended asks no more
    answer = ctx.local.running_calls.questions.get(approval.id)
    if answer is None or answer.done():
        raise Conflict("CALL_ENDED", "The call that asked this has ended, or runs in another program.")
    outcome = {"tool": approval.payload["tool"], "server": approval.payload["server"], "action": action}
    status: approvals.Verdict = "rejected" if content is None else "approved"
    reason, person = str(choices.get("reason", "")), approvals.person_of(ctx)
    decided = await ctx.write(lambda tx: approvals.decide(tx, approval, status, reason, outcome, person))
    if not answer.done():
        answer.set_result(ElicitationReply(action, content))
    return decided


async def _check(approval: ApprovalInfo, content: Any) -> None:
    """Check an answer by the form of its question.

    Raises:
        BadInput: ``INVALID_ARGUMENTS``.
    """
    if found := await to_thread(problems, json.dumps(approval.payload["form"]), content):
        raise BadInput("INVALID_ARGUMENTS", f"The answer does not fit: {first_problems(found)}.", problems=found)
