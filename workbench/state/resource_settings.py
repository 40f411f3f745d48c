"""The settings of what a project has that tasks can need; see `workbench.services.resources`."""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings, NoDecode


class ResourceSettings(BaseSettings):
    """What there is, and how long something big waits for it."""

    resources: Annotated[dict[str, Any], NoDecode] = Field(
        {},
        description='What tasks can need, as a table: gpus ("all", or names, or {name, vram, devices}), vram of each, '
        "cpu, memory, licenses, and names of your own with how many there are. Processors and memory are found out if "
        "they are not in it; no GPU is lent that is not. See docs/night.md.",
    )
    resource_patience_seconds: float = Field(
        600.0,
        ge=0,
        description="How long a task waits for scarce things before nothing that wants the same overtakes it.",
    )

    @field_validator("resources", mode="before")
    @classmethod
    def _load_resources(cls, value: Any) -> Any:
        return json.loads(value) if isinstance(value, str) else value
