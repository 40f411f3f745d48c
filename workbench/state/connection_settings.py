"""The settings of connections to the servers, and of calls over them."""

from __future__ import annotations

from pydantic import Field
from pydantic_settings import BaseSettings


class ConnectionSettings(BaseSettings):
    """What clients may send, how fast, and how long they may take; and calls over MCP that take long."""

    max_handshakes: int = Field(
        1_000,
        ge=1,
        description="Connections that wait for a complete request without a valid token. For a new one, the oldest of "
        "the address that has most is closed.",
    )
    handshake_seconds: float = Field(
        10.0, gt=0, description="How long a client may take to send the head of a request, and how long its body."
    )
    stalled_seconds: float = Field(
        10.0, gt=0, description="How long a client may leave sent data unread before it is disconnected."
    )
    max_unsent_bytes: int = Field(
        67_108_864, ge=65_536, description="Most data kept for one slow client before it is disconnected."
    )
    idle_anonymous_seconds: float = Field(
        300.0, gt=0, description="How long a WebSocket may stay open if its client neither registers nor authenticates."
    )
    max_frame_bytes: int = Field(
        1_048_576,
        ge=65_536,
        description="Largest WebSocket frame or request body; workers send what is larger in pieces.",
    )
    max_in_flight: int = Field(64, ge=1, description="Messages of one connection that are handled concurrently.")
    max_messages_per_second: int = Field(
        200, ge=1, description="Rate limit of one connection, averaged over ten seconds."
    )
    max_anonymous_requests_per_minute: int = Field(
        3_000, ge=1, description="Requests without a token from one address."
    )
    max_failed_logins: int = Field(5, ge=1, description="Failed authentications before a connection is closed.")
    mcp_task_after_seconds: float = Field(
        5.0, gt=0, le=600, description="After how long a call becomes a task, for MCP clients that know tasks."
    )
    mcp_task_kept_seconds: float = Field(
        3_600.0, gt=0, le=604_800, description="How long the result of a call that became a task is kept."
    )
    max_mcp_tasks: int = Field(
        32, ge=0, le=1_000, description="Most calls of one MCP client that are tasks, or were and are still kept."
    )
