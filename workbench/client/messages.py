"""The messages of the server as data: text to messages, messages to results, and arguments to JSON."""

from __future__ import annotations

import builtins
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from workbench.errors import BadInput, NotFound, Unavailable, WorkbenchError, from_dict
from workbench.rules.wire.arguments import plain

REPLIES = frozenset({"registration_success", "agent_id_required", "authentication_success", "echo", "contexts"})
"""Types of replies, besides those that end in ``_response``."""


@dataclass(frozen=True, slots=True)
class ServerMessage:
    """A message of the server.

    Args:
        request_id: of the request it answers; None for an unsolicited message.
        body: all of it.
    """

    type: str
    request_id: int | None
    body: Mapping[str, Any]

    @property
    def is_reply(self) -> bool:
        """Whether it belongs to a request, errors aside."""
        return self.type.endswith("_response") or self.type in REPLIES

    def field(self, name: str, of: builtins.type) -> Any:
        """A required field.

        Raises:
            Unavailable: ``BAD_REPLY``.
        """
        value = self.body.get(name)
        if not isinstance(value, of):
            raise bad_reply(f"{self.type!r} without {name}")
        return value


def decode(text: str | bytes) -> ServerMessage:
    """Read a message.

    Raises:
        Unavailable: ``BAD_REPLY``: it is not a JSON object with a type.
    """
    if isinstance(text, bytes):
        raise bad_reply("binary data")
    try:
        body = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise bad_reply(f"text that is not JSON ({error})") from None
    if not isinstance(body, dict) or not isinstance(body.get("type"), str):
        raise bad_reply("JSON without a type")
    number = body.get("request_id")
    if number is not None and type(number) is not int:
        raise bad_reply(f"{body['type']!r} with a request_id that no request has")
    return ServerMessage(body["type"], number, body)


def result(action: str, message: ServerMessage) -> dict[str, Any]:
    """The result of an operation in the reply to it.

    Raises:
        WorkbenchError: the one that the reply describes. NotFound: ``UNKNOWN_OPERATION``.
        Unavailable: ``BAD_REPLY``.
    """
    if message.type == "error":
        raise from_dict(message.body)
    if message.type == "echo":
        raise NotFound("UNKNOWN_OPERATION", f"There is no operation {action!r}.")
    if not message.is_reply:
        raise bad_reply(f"{message.type!r} in reply to {action!r}")
    if action in ("read", "write"):
        return {key: value for key, value in message.body.items() if key not in ("type", "request_id")}
    data: dict[str, Any] = message.field("data", dict)
    return data


def encoded(name: str, arguments: Mapping[str, Any]) -> bytes:
    """The arguments of an operation as JSON; see `plain`.

    Raises:
        BadInput: ``INVALID_ARGUMENTS``.
    """
    try:
        return json.dumps(arguments, allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError):
        return _encode_plain(name, plain(name, arguments))


def _encode_plain(name: str, arguments: Mapping[str, Any]) -> bytes:
    try:
        return json.dumps(arguments, allow_nan=False, ensure_ascii=False).encode()
    except ValueError as error:  # text that is not Unicode
        raise BadInput("INVALID_ARGUMENTS", f"{name}: the arguments are not JSON: {error}.", problems=[]) from None


def not_here() -> ConnectionError:
    """The error when another program may have the server's address: it gets neither a token nor a request."""
    return ConnectionError("no server of the project runs at this address")


def no_server(error: BaseException) -> WorkbenchError:
    """The coded form of a server that cannot be reached."""
    return Unavailable(
        "NO_SERVER", f"No Workbench server answers: {error}. Start one with `workbench serve`.", reason=str(error)
    )


def bad_reply(what: str) -> WorkbenchError:
    """The error of a call whose reply cannot be understood."""
    return Unavailable(
        "BAD_REPLY", f"The server sent {what}. Is it a Workbench server, of the same version as this client?"
    )


def no_reply(seconds: float) -> WorkbenchError:
    """The error of a call that the server does not reply to."""
    return Unavailable(
        "NO_REPLY",
        f"The server did not reply within {seconds:g} s: it runs, but is busy. A change may have been made or not.",
    )
