"""Settings of a machine that shares a project with others."""

from __future__ import annotations

from pydantic import Field
from pydantic_settings import BaseSettings


class MachineSettings(BaseSettings):
    """What this machine is called, and how long others may be silent."""

    machine: str = Field(
        "",
        max_length=100,
        pattern=r"^([A-Za-z0-9][A-Za-z0-9._-]*)?$",
        description="The name of this machine, or of this clone on it, among those that share the project's database; "
        "empty: its host name.",
    )
    server_silent_seconds: float = Field(
        20.0,
        ge=10,
        description="How long a server on another machine may give no sign of life before it counts as gone.",
    )
