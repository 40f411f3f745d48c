"""The tools of an answer: those of the catalogue that its conversation chose, and how their calls become frames."""

from __future__ import annotations

import math
from asyncio import to_thread
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from workbench.definition_files import Snapshot
from workbench.errors import BadInput, NotFound, Unavailable
from workbench.functions.progress import CallReports, Report
from workbench.model import Access, Capability, Level, iso
from workbench.ops import Caller, Ctx
from workbench.present.inert import inert_line
from workbench.providers.frames import ToolCompleted, ToolStarted
from workbench.providers.tools import ToolAnswer, ToolOffer
from workbench.rules.chat.transcript import FrameKind
from workbench.rules.definitions.model import Include
from workbench.rules.definitions.tool_rules import is_on_request
from workbench.rules.tools.content import Picture, as_text, has_pictures, pictures
from workbench.rules.tools.masking import marked
from workbench.rules.tools.results import as_json, shortened
from workbench.rules.tools.surroundings import Surroundings
from workbench.rules.wire import json_safety
from workbench.services.conversations.conversation import ConversationInfo
from workbench.services.conversations.deadline import Deadline
from workbench.services.conversations.recorder import FrameRecorder
from workbench.services.tools import calls, catalogue, refused_calls
from workbench.services.tools.calls import Finished
from workbench.services.tools.tool import OffererKind, ToolInfo, ToolKind, ToolPlace, ToolScope
from workbench.trust.known_secrets import KnownSecrets

WORKBENCH = "workbench"
PROGRESS_SECONDS = 1.0
"""The least time between two frames that say how far a call is."""
LONGEST_MESSAGE = 500
READING = frozenset({"get_rule", "get_reference"})
"""Operations with which a model reads those entries of its definition that it is to ask for."""


@dataclass
class _FollowedCall:
    """A call of the model that runs. `record_id`: its id among all calls; `secrets`: what of it is not shown."""

    secrets: KnownSecrets
    record_id: str | None = None
    began_at: int | None = None
    finished: Finished | None = None
    pictures: Sequence[Picture] = ()


class ConversationTools:
    """The toolbox of one answer, as the engine asks for it.

    Args:
        deadline: stands still while a call waits for the operator.
    """

    def __init__(
        self,
        ctx: Ctx,
        conversation: ConversationInfo,
        snapshot: Snapshot | None,
        recorder: FrameRecorder,
        deadline: Deadline,
    ) -> None:
        self._ctx = ctx
        self._chosen = frozenset(conversation.tools)
        self._reads = READING if _has_entries_on_request(snapshot) else frozenset()
        self._scope = ToolScope(_caller(snapshot), snapshot, conversation.id)
        self._recorder = recorder
        self._deadline = deadline
        self._tools: dict[str, ToolInfo] = {}
        self._calls: dict[str, _FollowedCall] = {}
        self._started: dict[str, str] = {}
        """The arguments of the calls that have started, as the model wrote them."""

    async def offers(self) -> list[ToolOffer]:
        """See `Toolbox`."""
        tools = await catalogue.offered(self._ctx, self._scope) if self._chosen or self._reads else []
        self._tools = {tool.name: tool for tool in tools if tool.can_be_called and self._is_chosen(tool)}
        return [ToolOffer(tool.name, tool.description, tool.parameters) for tool in self._tools.values()]

    async def call(self, name: str, arguments: dict[str, Any], call_id: str) -> ToolAnswer:
        """See `Toolbox`."""
        if name not in self._tools:
            raise NotFound("UNKNOWN_TOOL", f"There is no tool {name!r} in this conversation.")
        self.started(ToolStarted(call_id, name, as_json(arguments)))
        secrets = self._ctx.secrets.also(marked(arguments, self._tools[name].parameters))
        call = self._calls[call_id] = _FollowedCall(secrets)
        with self._following(call_id, call) as surroundings:
            call.finished = await calls.call(self._ctx, self._scope, name, arguments, surroundings)
        outcome = call.finished.outcome
        if outcome.is_error:
            raise Unavailable("TOOL_ERROR", outcome.text)
        call.pictures = await to_thread(pictures, outcome.content)
        return ToolAnswer(outcome.text, call.pictures)

    def started(self, frame: ToolStarted) -> None:
        """Record that the model calls a tool, once: the call and the engine's frame report it, in either order.

        A call that is refused, such as of an unknown tool, has only the frame.
        """
        if frame.call_id in self._started:
            return
        self._started[frame.call_id] = frame.arguments
        tool = self._tools.get(frame.name)
        self._add(FrameKind.TOOL_START, frame.call_id, frame.name, tool_input=self._shown_input(tool, frame.arguments))

    async def completed(self, frame: ToolCompleted) -> None:
        """Record the result of a call, with its secrets masked, as far as it is shown. One that came to no call, such
        as of a tool that the conversation does not offer, is recorded among all calls, too."""
        call = self._calls.pop(frame.call_id, None)
        arguments = self._started.pop(frame.call_id, "{}")
        if call is None:
            call = _FollowedCall(self._ctx.secrets)
            await self._record_refusal(frame, arguments)
        took = None if call.began_at is None else (self._ctx.store.now() - call.began_at) / 1_000
        self._add(
            FrameKind.TOOL_COMPLETE,
            frame.call_id,
            frame.name,
            tool_result=shortened(self._shown_result(call, frame), self._ctx.settings.tool_shown_chars),
            is_error=frame.is_error,
            duration_ms=took,
            record_id=call.record_id,
            pictures=[{"media_type": picture.media_type, "bytes": len(picture.data)} for picture in call.pictures],
        )

    async def _record_refusal(self, frame: ToolCompleted, arguments: str) -> None:
        """Record a call that the engine has refused: of an unknown tool, or with what is no JSON object."""
        is_known = frame.name in self._tools
        error = BadInput("INVALID_ARGUMENTS" if is_known else "UNKNOWN_TOOL", frame.result)
        try:
            decoded = json_safety.decode(arguments)
        except ValueError:
            decoded = arguments
        sent = decoded if isinstance(decoded, dict) else arguments
        await refused_calls.record(self._ctx.of(self._scope.caller), self._scope, frame.name, sent, error)

    @contextmanager
    def _following(self, call_id: str, call: _FollowedCall) -> Iterator[Surroundings]:
        """Follow a call: it waits for the operator, then it runs, and says how far it is."""
        reports = CallReports(partial(self._report, call_id, call), PROGRESS_SECONDS)

        async def note(progress: float, total: float | None, message: str | None) -> None:
            reports.write((progress, total, message))

        with closing(reports), ExitStack() as waiting:

            def follow(record_id: str, approval_id: int | None) -> None:
                call.record_id = record_id
                if approval_id is None:
                    waiting.close()
                    call.began_at = call.began_at or self._ctx.store.now()  # not again after a question of its server
                    return
                waiting.enter_context(self._deadline.paused())
                self._recorder.add(
                    FrameKind.TOOL_WAITING, call_id=call_id, approval_id=approval_id, record_id=record_id
                )

            yield Surroundings(progress=note, follow=follow)

    async def _report(self, call_id: str, call: _FollowedCall, report: Report) -> None:
        """Record how far a call is. What is no number is left out: JSON has none for it."""
        progress, total, message = report
        if math.isfinite(progress) and (total is None or math.isfinite(total)):
            about = {"call_id": call_id, "record_id": call.record_id}
            text = None if message is None else inert_line(str(call.secrets.masked(message)))[:LONGEST_MESSAGE]
            self._recorder.add(FrameKind.TOOL_PROGRESS, **about, progress=progress, total=total, message=text)

    def _add(self, kind: FrameKind, call_id: str, name: str, **data: Any) -> None:
        tool = self._tools.get(name)
        source, server = (tool.source, tool.server) if tool else (ToolPlace.LOCAL, None)
        about = {"call_id": call_id, "tool_name": name, "source": source.value, "server": server}
        self._recorder.add(kind, **about, **data, timestamp=iso(self._ctx.store.now()))

    def _shown_input(self, tool: ToolInfo | None, arguments: str) -> str:
        """The arguments that a model wrote, as they are shown: JSON text with secrets masked."""
        try:
            decoded = json_safety.decode(arguments)
        except ValueError:
            return as_json(self._ctx.secrets.masked(arguments))
        return as_json(self._ctx.secrets.masked(decoded, tool.parameters if tool else {}))

    def _shown_result(self, call: _FollowedCall, frame: ToolCompleted) -> str:
        """The result of a call, as it is shown: text, or JSON text, with secrets masked."""
        if call.finished is None:
            return str(call.secrets.masked(frame.result))
        schema = call.finished.tool.result
        outcome = call.finished.outcome
        value = outcome.shown_value(call.secrets, schema if schema is not None else True)
        if isinstance(value, str):
            return value
        return as_text(value) if has_pictures(outcome.content) else as_json(value)

    def _is_chosen(self, tool: ToolInfo) -> bool:
        """Whether the conversation offers a tool to its model."""
        if tool.kind is ToolKind.OPERATION:
            return tool.name in self._reads or not self._chosen.isdisjoint({WORKBENCH, tool.name})
        if self._is_on_request(tool) and tool.name not in self._chosen:
            return False
        return not self._chosen.isdisjoint(tool.words)

    def _is_on_request(self, tool: ToolInfo) -> bool:
        """Whether the definition has the tool offered only where the conversation names it."""
        snapshot, own_name = self._scope.definition, tool.own_name or tool.name
        is_own = tool.offered_by.kind is OffererKind.DEFINITION
        return snapshot is not None and is_on_request(snapshot.definition, tool.server if is_own else None, own_name)


def _caller(snapshot: Snapshot | None) -> Caller:
    """The caller for a model's tool calls: it sees what the operator sees, and may not write definitions."""
    if snapshot is None:
        return Caller(Level.OPERATOR, "chat", access=Access.SESSION_LEVEL)
    metadata, reads = snapshot.definition.metadata, _has_entries_on_request(snapshot)
    return Caller(
        Level.OPERATOR,
        f"chat:{metadata.name}",
        access=Access.SESSION_LEVEL,
        capabilities=frozenset({Capability.OWN_DEFINITION}) if reads else frozenset(),
        definition=metadata.id,
    )


def _has_entries_on_request(snapshot: Snapshot | None) -> bool:
    if snapshot is None:
        return False
    entries = (*snapshot.definition.rules, *snapshot.definition.references)
    return any(entry.include is Include.AGENT for entry in entries)
