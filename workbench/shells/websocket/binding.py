"""The binding of a connection to a caller: who sends its messages, and with which tool.

Pure: no socket and no `await`. What the store knows about a caller is an argument.
"""

from __future__ import annotations

from typing import Any

from workbench.errors import BadInput, Refused, Unauthenticated, WorkbenchError
from workbench.model import GrantedAccess, Level
from workbench.ops import ANONYMOUS, Caller
from workbench.rules.wire import message
from workbench.rules.wire.message import Frame

CHANGES = frozenset({"authenticate", "announce", "select_tool"})
"""Actions that change the caller of the messages after them."""
READING_OR_WRITING = frozenset({"read", "write", "request_contexts"})


class Binding:
    """The caller of one connection.

    Args:
        client_id: the name in the connection's URL; messages may give it in place of the bound agent's id.
        origin: the caller of the handshake; its address and client program apply to every bound caller.
        max_failed_logins: the number of failed authentications after which the connection is closed.
    """

    def __init__(self, client_id: str, origin: Caller, max_failed_logins: int) -> None:
        self.client_id = client_id
        self.tool = GrantedAccess.WRITE
        self._origin = origin
        self._logins_left = max_failed_logins
        self._known: Caller | None = None
        self._present = self.caller = self.from_here(ANONYMOUS)

    @property
    def is_anonymous(self) -> bool:
        """Whether nobody has registered or authenticated on it."""
        return self.caller.level is Level.ANONYMOUS and self.caller.agent is None

    def from_here(self, caller: Caller) -> Caller:
        """A caller with this connection's address and client program."""
        return caller.coming_from(self._origin)

    def bind(self, caller: Caller) -> bool:
        """Bind the connection to a caller; whether that is another agent than before."""
        is_other = caller.agent != self.caller.agent
        self.caller, self._known = caller, None
        return is_other

    def release(self) -> None:
        """Make the client anonymous again."""
        self.bind(self.from_here(ANONYMOUS))

    def select(self, tool: str) -> None:
        """Select a tool: with `read`, the caller may only read."""
        self.tool, self._known = GrantedAccess(tool), None

    def present(self, caller: Caller) -> Caller:
        """The bound caller as the store knows it now, with the lesser of the granted and the selected tool."""
        if caller is not self._known:
            bound = self.from_here(caller)
            self._known, self._present = caller, self.narrowed(bound)
        return self._present

    def narrowed(self, caller: Caller) -> Caller:
        """A caller with the lesser of the granted and the selected tool."""
        return caller if caller.agent is None or self.tool is GrantedAccess.WRITE else caller.narrowed

    def check_sender(self, caller: Caller, frame: Frame, *, names_agents: bool) -> None:
        """Refuse a message that names another sender than the connection's authenticated caller.

        Args:
            names_agents: `agent_id` is an argument of the action and does not name the sender.

        Raises:
            Refused: ``FORBIDDEN``.
        """
        if caller.level is Level.ANONYMOUS:
            return
        senders = [frame.agent]
        if caller.agent is not None and "agent_id" in frame.data and not names_agents:
            senders.append(frame.data["agent_id"])
        for sender in senders:
            if sender not in (caller.name, self.client_id):
                raise Refused("FORBIDDEN", f"This connection is {caller.name}; it cannot speak for {sender}.")

    def claimed_id(self, caller: Caller, frame: Frame) -> str | None:
        """The agent id that an old client claims in a message that reads or writes without authentication.

        Raises:
            Unauthenticated: ``TOKEN_REQUIRED``: it claims none.
        """
        if frame.action not in READING_OR_WRITING or caller.agent is not None or caller.level > Level.ANONYMOUS:
            return None
        agent_id = frame.data.get("agent_id")
        if not agent_id or not isinstance(agent_id, str):
            raise message.agent_id_missing()
        return agent_id

    def count_failure(self, error: WorkbenchError, frame: Frame | None) -> bool:
        """Count a failed authentication; whether the limit is reached."""
        if frame is None or not frame.claims or not isinstance(error, Unauthenticated):
            return False
        self._logins_left -= 1
        return self._logins_left <= 0


def credentials(data: dict[str, Any]) -> tuple[str | None, str | None]:
    """The token and the agent id in an `authenticate`: at least one of them.

    Raises:
        Unauthenticated: ``TOKEN_REQUIRED``.
    """
    token, agent_id = data.get("token"), data.get("agent_id")
    if isinstance(token, str):
        return token, agent_id
    if token is None and isinstance(agent_id, str):
        return None, agent_id
    raise Unauthenticated("TOKEN_REQUIRED", "Send the token that register returned, as data.token.")


def check_owner(caller: Caller, agent_id: Any) -> None:
    """Refuse a token that does not belong to the agent id sent with it.

    Raises:
        Unauthenticated: ``INVALID_TOKEN``.
    """
    if agent_id not in (None, caller.name, f"pending_{caller.agent}"):
        raise Unauthenticated("INVALID_TOKEN", "The token does not belong to this agent_id.")


def announced(data: dict[str, Any]) -> str:
    """The id with which an old client announces itself.

    Raises:
        BadInput: ``BAD_MESSAGE``.
    """
    agent_id = data.get("agent_id")
    if not isinstance(agent_id, str):
        raise BadInput("BAD_MESSAGE", "Announce yourself with your agent_id, a string.")
    return agent_id
