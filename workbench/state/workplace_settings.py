"""The settings of a workplace: what commands in worktrees find and reach; see `workbench.rules.workplace`."""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, field_validator
from pydantic_settings import BaseSettings, NoDecode

from workbench.state import settings_file

LISTS = ("include", "read", "network", "private", "hide")
OPENING_NUMBERS = frozenset({"gpu"})
"""Numbers that are no limits, so need trust."""


class WorkplaceSettings(BaseSettings):
    """The settings that are keys of a workplace, and its limits."""

    include: Annotated[tuple[str, ...], NoDecode] = Field(
        (),
        description="Patterns of files that git ignores, as in .gitignore: new worktrees get copies. This and "
        "the next eleven are the keys of a workplace: see docs/worktrees.md. Lists: an item per line, or in JSON or "
        "TOML.",
    )
    read: Annotated[tuple[str, ...], NoDecode] = Field(
        (),
        description="Files and directories that commands in worktrees may read, where the project has them: paths from "
        "its root, or absolute ones.",
    )
    environment: str = Field(
        "", description="The directory of the virtual or conda environment whose programs commands use, such as .venv."
    )
    setup: str = Field("", description="A shell command that runs in the box of a worktree, once, such as npm ci.")
    setup_seconds: float = Field(600.0, ge=1, le=86_400, description="How long setup may take.")
    submodules: bool = Field(
        True, description="Give worktrees the files of submodules, as far as your own `.git/modules` has them."
    )
    env: Annotated[dict[str, str], NoDecode] = Field(
        {}, description="Variables of commands in worktrees; a value may name a secret, such as env://NAME."
    )
    shm: Annotated[str, BeforeValidator(str)] = Field(
        "1G", pattern=r"^[0-9]{1,15}[kMG]?$", description="The size of a box's own /dev/shm, such as 512M."
    )
    gpu: int = Field(0, ge=0, le=1, description="How many GPUs the commands of an agent may use.")
    network: Annotated[tuple[str, ...], NoDecode] = Field(
        (),
        description="Public hosts that commands may reach, such as pypi.org or *.example.org:8443; the port is 443 "
        "unless it is named.",
    )
    private: Annotated[tuple[str, ...], NoDecode] = Field(
        (),
        description="Hosts, addresses and networks that commands may reach although they are not public, such as "
        "db.lab:5432 or 10.0.0.0/8; without a port, as far as network has them.",
    )
    hide: Annotated[tuple[str, ...], NoDecode] = Field(
        (), description="Paths that no command in a worktree may read, even below one that is open."
    )
    max_include_bytes: int = Field(
        1_073_741_824, ge=1_024, description="Most bytes that include may copy into one worktree."
    )

    @field_validator(*LISTS, mode="before")
    @classmethod
    def _split_items(cls, value: Any) -> Any:
        return settings_file.commands(value)

    @field_validator("env", mode="before")
    @classmethod
    def _load_variables(cls, value: Any) -> Any:
        return json.loads(value) if isinstance(value, str) else value
