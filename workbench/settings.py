"""Every limit and choice, with a safe default; each is also an environment variable `WORKBENCH_<NAME>`."""

from __future__ import annotations

import os
import subprocess
from functools import cached_property
from pathlib import Path
from typing import Literal

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

PACKAGE = Path(__file__).parent


def shipped(*parts: str) -> Path:
    """A file or directory that comes with Workbench (`data/…`, `notebooks/…`), installed or checked out."""
    inside = PACKAGE.joinpath(*parts)
    return inside if inside.exists() else PACKAGE.parent.joinpath(*parts)


def find_project(start: Path | None = None) -> Path:
    """The project's root: `WORKBENCH_PROJECT`, else the nearest parent with `.aiswarm/`,
    else git's top level, else the directory itself."""
    if named := os.environ.get("WORKBENCH_PROJECT"):
        return Path(named).resolve()
    here = (start or Path.cwd()).resolve()
    for directory in (here, *here.parents):
        if (directory / ".aiswarm").is_dir():
            return directory
    return _git_top(here) or here


def _git_top(here: Path) -> Path | None:
    try:
        found = subprocess.run(
            ["git", "rev-parse", "--show-toplevel"], cwd=here, capture_output=True, text=True, timeout=10
        )
    except OSError:
        return None
    return Path(found.stdout.strip()) if found.returncode == 0 else None


class Settings(BaseSettings):
    """The settings of one project. Times are in seconds, sizes in bytes."""

    model_config = SettingsConfigDict(env_prefix="WORKBENCH_", frozen=True, extra="ignore")

    project: Path = Field(default_factory=find_project, description="Root directory of the project.")
    host: str = Field("127.0.0.1", description="Address the servers bind.")
    allow_remote: bool = Field(False, description="Let the servers bind another address than loopback.")
    access_token: SecretStr | None = Field(
        None, description="What every connection from elsewhere than loopback has to bring, besides its own token."
    )
    port: int = Field(8765, ge=0, le=65535, description="Preferred port; 0 lets the system choose.")

    lease_seconds: float = Field(120.0, gt=0, description="How long a claim lasts without a heartbeat.")
    heartbeat_seconds: float = Field(15.0, gt=0, description="How often workers renew their leases.")
    max_retries: int = Field(2, ge=0, le=100, description="Attempts after the first before a task fails.")
    retry_base_seconds: float = Field(1.0, ge=0, description="Wait before the first retry; doubles each time.")
    retry_cap_seconds: float = Field(300.0, ge=0, description="Longest wait before a retry.")
    wait_limit_seconds: float = Field(30.0, ge=0, description="Longest wait of a long poll.")

    max_pending_agents: int = Field(256, ge=1, description="Registrations that may wait for a decision at once.")
    max_pending_per_address: int = Field(64, ge=1, description="The same, from one address.")
    pending_expires_seconds: float = Field(86_400.0, gt=0, description="A registration nobody decided on is dropped.")
    silent_seconds: float = Field(
        90.0, gt=0, description="Agents without connection not heard of so long are inactive."
    )
    allowed_agents: str = Field(
        "", description="Allowlist: ids by comma, added to those in `.aiswarm/allowlist.txt`; empty means everyone."
    )
    max_connections: int = Field(2_000, ge=1, description="WebSocket connections served at once.")
    idle_anonymous_seconds: float = Field(
        300.0, gt=0, description="How long a WebSocket may stay open whose client neither registers nor authenticates."
    )
    max_frame_bytes: int = Field(1_048_576, ge=1_024, description="Largest WebSocket frame or request body.")
    max_in_flight: int = Field(64, ge=1, description="Messages of one connection under way at once.")
    max_messages_per_second: int = Field(200, ge=1, description="Messages of one connection, over ten seconds.")
    max_anonymous_requests_per_minute: int = Field(600, ge=1, description="Requests without a token from one address.")
    max_failed_logins: int = Field(5, ge=1, description="Failed authentications before a connection is closed.")
    max_result_bytes: int = Field(1_048_576, ge=1_024, description="Largest result data of a task, as JSON.")
    max_context_bytes: int = Field(262_144, ge=1_024, description="Largest content of a context.")
    max_plan_tasks: int = Field(10_000, ge=1, description="Tasks that one plan may create.")
    feed_queue: int = Field(1_000, ge=1, description="Events a slow reader may lag before it is cut off.")

    max_agents_running: int = Field(32, ge=1, description="Worker processes of this project at once.")
    terminate_grace_seconds: float = Field(5.0, ge=0, description="Between SIGTERM and SIGKILL.")
    integration_requires_approval: bool = Field(True, description="A person approves what is merged.")
    confinement: Literal["auto", "required", "off"] = Field(
        "auto",
        description="Whether workers are confined: as far as the kernel can, wholly or not at all started, never.",
    )
    confinement_read: str = Field("", description="More paths that workers may read and execute, by ':'.")
    confinement_write: str = Field("", description="More paths that workers may change, by ':'; such as /dev/shm.")
    confinement_connect: str = Field(
        "", pattern=r"^(\d{1,5}(,\d{1,5})*)?$", description="TCP ports that workers may connect to, by comma."
    )
    switch_interval_seconds: float = Field(
        0.0005, gt=0, description="Interpreter switch interval while the servers run in a kernel."
    )

    @cached_property
    def home(self) -> Path:
        """The project's state directory, `.aiswarm/`."""
        return self.project / ".aiswarm"

    @property
    def database(self) -> Path:
        """The store's file."""
        return self.home / "coordination.db"

    @property
    def server_file(self) -> Path:
        """Names the running server and holds the operator's token; mode 0600."""
        return self.home / "server.json"

    @property
    def logs(self) -> Path:
        """Log files of worker processes."""
        return self.home / "logs"

    @property
    def worktrees(self) -> Path:
        """Git worktrees, one directory each."""
        return self.home / "worktrees"
