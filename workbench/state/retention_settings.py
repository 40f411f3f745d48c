"""The settings of what a project keeps of its past.

Alone: what keeps, prunes and rolls up is in several services, and whoever looks for it looks for all of it.
"""

from __future__ import annotations

from pydantic import Field
from pydantic_settings import BaseSettings


class RetentionSettings(BaseSettings):
    """How long things are kept, and how much of them."""

    keep_events_days: float = Field(
        0.0,
        ge=0,
        description="How long events stay in the feed, before they are rolled up to Parquet for queries (0: for ever).",
    )
    keep_attempts_days: float = Field(
        30.0, ge=0, description="How long `worktrees prune` keeps what attempts made that did not complete their task."
    )
    keep_process_samples_days: float = Field(7.0, ge=0, description="How long what was measured is kept.")
    keep_tool_logs_days: float = Field(
        30.0, ge=0, description="How long what functions printed while they ran for tools is kept."
    )
    max_agent_session_bytes: int = Field(
        50_000_000,
        ge=0,
        description="Largest conversation of an agent's program that is kept for the next attempt; 0: none is kept.",
    )
    max_disk_bytes: int = Field(
        0,
        ge=0,
        description="Of more bytes on the disk, what can be made again is cleared: `workbench disk` (0: never).",
    )
