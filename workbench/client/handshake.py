"""The steps from a fresh connection to one that can be used: register, wait, select a tool, authenticate."""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import Enum
from typing import Any

from workbench.client.actions import GiveUp, Instructions, KeepToken, Ready, Reconnect, Send
from workbench.client.messages import ServerMessage
from workbench.client.retry import is_temporary
from workbench.errors import WorkbenchError, from_dict

STEP = 0
"""The request_id of the handshake's requests: there is one at a time."""


class Phase(Enum):
    """The agent's phase on the present connection."""

    DISCONNECTED = "disconnected"
    REGISTERING = "registering"
    WAITING = "waiting for a person to decide"
    SELECTING = "selecting a tool"
    AUTHENTICATING = "authenticating"
    READY = "ready"


class Handshake:
    """See the module. The token outlives the connection: an agent registers once.

    Args:
        client_id: names the agent to the server before it is authenticated.
        introduction: the arguments of `register`.
        tool: ``read`` or ``write``: the tool that it selects.
        token: of an earlier registration; without one it registers.
        agent_id: its id; alone, without a token, only for agents that a migration brought.
    """

    def __init__(
        self, client_id: str, introduction: Mapping[str, Any], tool: str, token: str | None, agent_id: str | None
    ) -> None:
        self.phase = Phase.DISCONNECTED
        self.token = token
        self.agent_id = agent_id
        self._client_id = client_id
        self._introduction = introduction
        self._tool = tool
        self._decision: ServerMessage | None = None

    @property
    def awaits_reply(self) -> bool:
        """Whether the server has to reply before the agent can go on."""
        return self.phase in (Phase.REGISTERING, Phase.SELECTING, Phase.AUTHENTICATING)

    @property
    def is_registered(self) -> bool:
        """Whether it has a token or an id to authenticate with."""
        return self.token is not None or self.agent_id is not None

    def connected(self) -> Instructions:
        """A connection was opened."""
        self._decision = None
        if self.is_registered:
            return self._select()
        return self._request(Phase.REGISTERING, "register", self._introduction)

    def disconnected(self) -> None:
        """The connection broke."""
        self.phase = Phase.DISCONNECTED

    def replied(self, message: ServerMessage) -> Instructions:
        """The server has replied to the last step."""
        try:
            if message.type == "error":
                raise from_dict(message.body)
            return self._take_next_step(message)
        except WorkbenchError as error:
            return self.failed(error)

    def failed(self, error: WorkbenchError) -> Instructions:
        """The last step has failed."""
        if self.phase is Phase.AUTHENTICATING and error.code == "NOT_ASSIGNED":
            return self._wait()
        return [Reconnect(error) if self.is_registered and is_temporary(error) else GiveUp(error)]

    def decided(self, message: ServerMessage) -> Instructions:
        """A person has admitted the agent, or not; the message may come before the agent waits for it."""
        self._decision = message
        return self._act_on_decision() if self.phase is Phase.WAITING else []

    def _take_next_step(self, message: ServerMessage) -> Instructions:
        match self.phase:
            case Phase.REGISTERING:
                self.token = str(message.field("token", str))
                return [KeepToken(self.token), *self._wait()]
            case Phase.SELECTING:
                credentials = {"token": self.token} if self.token is not None else {"agent_id": self.agent_id}
                return self._request(Phase.AUTHENTICATING, "authenticate", credentials)
            case Phase.AUTHENTICATING:
                self.agent_id = str(message.field("agent_id", str))
                self.phase = Phase.READY
                return [Ready()]
        return []

    def _wait(self) -> Instructions:
        self.phase = Phase.WAITING
        return self._act_on_decision() if self._decision else []

    def _act_on_decision(self) -> Instructions:
        """Act on the decision."""
        decision, self._decision = self._decision, None
        assert decision is not None
        if decision.type == "agent_assigned":
            return self._select()
        return [GiveUp(from_dict({**decision.body, "details": {"reason": decision.body.get("reason")}}))]

    def _select(self) -> Instructions:
        return self._request(Phase.SELECTING, "select_tool", {"tool": self._tool})

    def _request(self, phase: Phase, action: str, data: Mapping[str, Any]) -> Instructions:
        self.phase = phase
        return [Send(json.dumps([self._client_id, action, {**data, "request_id": STEP}]), STEP)]
