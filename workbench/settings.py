"""The settings: every limit and choice, with a safe default.

Each is also an environment variable `WORKBENCH_<NAME>`, and a line `name = value` in the project's
`.aiswarm/settings.toml`; the variable takes precedence.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    Field,
    ModelWrapValidatorHandler,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from workbench import settings_file
from workbench.errors import BadInput

PACKAGE = Path(__file__).parent
PREFIX = "WORKBENCH_"
GIT_SECONDS = 10.0
"""How long git may take to find the root of a repository."""


def shipped(*parts: str) -> Path:
    """A file or directory that comes with Workbench (`data/…`, `notebooks/…`), installed or checked out."""
    inside = PACKAGE.joinpath(*parts)
    return inside if inside.exists() else PACKAGE.parent.joinpath(*parts)


def find_project(start: Path | None = None) -> Path:
    """The project's root: `WORKBENCH_PROJECT`, else the nearest parent with `.aiswarm/`,
    else git's top level, else the directory itself.

    Raises:
        BadInput: ``NOT_A_DIRECTORY``: the current directory was removed.
    """
    if named := os.environ.get(f"{PREFIX}PROJECT"):
        return Path(named).resolve()
    here = (start or _current()).resolve()
    for directory in (here, *here.parents):
        if os.path.isdir(directory / ".aiswarm"):  # noqa: PTH112 (raises where a directory above may not be entered)
            return directory
    return _git_top(here) or here


def _current() -> Path:
    try:
        return Path.cwd()
    except OSError:
        raise BadInput(
            "NOT_A_DIRECTORY", "The current directory no longer exists. Change to another one, or give --project."
        ) from None


def _git_top(here: Path) -> Path | None:
    try:
        found = subprocess.run(
            ["git", "rev-parse", "--show-toplevel"], cwd=here, capture_output=True, text=True, timeout=GIT_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return Path(found.stdout.strip()) if found.returncode == 0 else None


class Settings(BaseSettings):
    """The settings of one project. Times are in seconds, sizes in bytes.

    Raises:
        BadInput: ``BAD_SETTINGS``: names every setting that is wrong, where it is set, and why.
    """

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="ignore")

    project: Path = Field(default_factory=find_project, description="Root directory of the project.")
    host: str = Field("127.0.0.1", description="Address that the servers listen on.")
    allow_remote: bool = Field(False, description="Let the servers listen on another address than loopback.")
    access_token: SecretStr | None = Field(
        None, description="Secret that clients on other machines have to send besides their own token."
    )
    port: int = Field(8765, ge=0, le=65535, description="Preferred port; 0 lets the system choose.")

    lease_seconds: float = Field(120.0, gt=0, description="How long a claim lasts without a heartbeat.")
    heartbeat_seconds: float = Field(15.0, gt=0, description="How often workers renew their leases.")
    max_retries: int = Field(2, ge=0, le=100, description="Attempts after the first before a task fails.")
    retry_base_seconds: float = Field(1.0, ge=0, description="Wait before the first retry; doubles each time.")
    retry_cap_seconds: float = Field(300.0, ge=0, description="Longest wait before a retry.")
    wait_limit_seconds: float = Field(30.0, ge=0, description="Longest wait of a long poll.")

    max_pending_agents: int = Field(256, ge=1, description="Most registrations that may wait for a decision.")
    max_pending_per_address: int = Field(64, ge=1, description="Agents waiting for admission from one address.")
    pending_expires_seconds: float = Field(86_400.0, gt=0, description="How long a registration waits for a decision.")
    silent_seconds: float = Field(
        90.0, gt=0, description="How long an agent without a connection may send nothing before it becomes inactive."
    )
    allowed_agents: str = Field(
        "",
        description="Allowlist: ids separated by commas, besides those in `.aiswarm/allowlist.txt`; empty: everyone.",
    )
    max_connections: int = Field(2_000, ge=1, description="WebSocket connections served at once.")
    idle_anonymous_seconds: float = Field(
        300.0, gt=0, description="How long a WebSocket may stay open if its client neither registers nor authenticates."
    )
    max_frame_bytes: int = Field(1_048_576, ge=1_024, description="Largest WebSocket frame or request body.")
    max_in_flight: int = Field(64, ge=1, description="Messages of one connection that are handled concurrently.")
    max_messages_per_second: int = Field(
        200, ge=1, description="Rate limit of one connection, averaged over ten seconds."
    )
    max_anonymous_requests_per_minute: int = Field(600, ge=1, description="Requests without a token from one address.")
    max_failed_logins: int = Field(5, ge=1, description="Failed authentications before a connection is closed.")
    max_result_bytes: int = Field(1_048_576, ge=1_024, description="Largest result data of a task, as JSON.")
    max_context_bytes: int = Field(262_144, ge=1_024, description="Largest content of a context.")
    max_plan_tasks: int = Field(10_000, ge=1, description="Tasks that one plan may create.")
    feed_queue: int = Field(1_000, ge=1, description="Events by which a slow reader may lag before it is disconnected.")

    max_agents_running: int = Field(32, ge=1, description="Most worker processes of this project.")
    max_agents_per_planner: int = Field(8, ge=1, description="Running agents that one planner has started.")
    max_agents_queued: int = Field(256, ge=1, description="Agents that may wait in the queue.")
    spawn_outside_worktrees: bool = Field(
        True,
        description="Allow agents without a worktree: they can read the project, and what they write is deleted.",
    )
    worker_patience_seconds: float = Field(
        600.0, gt=0, description="How long a worker waits for an unreachable server."
    )
    terminate_grace_seconds: float = Field(5.0, ge=0, description="Time between SIGTERM and SIGKILL.")
    integration_requires_approval: bool = Field(True, description="Merge only what a person has approved.")
    integration_gates: Annotated[tuple[str, ...], NoDecode] = Field(
        (),
        description="Shell commands that have to pass on the merged result, such as `pytest -q`: one per line, or a "
        "list in JSON or TOML. They run confined, in a temporary worktree.",
    )
    gate_seconds: float = Field(600.0, gt=0, description="How long one gate may take.")
    integration_fast_forward: bool = Field(
        False, description="Fast-forward the target branch where possible, instead of making a merge commit."
    )
    max_import_bytes: int = Field(
        1_073_741_824, ge=1_024, description="Largest amount of new data imported from one worktree at once."
    )
    max_diff_bytes: int = Field(524_288, ge=1_024, description="Largest diff shown at once.")
    confinement: Literal["auto", "required", "off"] = Field(
        "auto",
        description="Confinement of workers. auto: as far as the kernel supports it; required: refuse to start "
        "otherwise; off: never.",
    )
    confinement_read: str = Field(
        "", description="Additional paths that workers may read and execute, separated by ':'."
    )
    confinement_write: str = Field(
        "", description="Additional paths that workers may change, separated by ':', such as /dev/shm."
    )
    confinement_connect: str = Field(
        "",
        pattern=r"^(\d{1,5}(,\d{1,5})*)?$",
        description="TCP ports that workers may connect to, separated by commas.",
    )
    switch_interval_seconds: float = Field(
        0.0005, gt=0, description="Interpreter switch interval while the servers run in a kernel."
    )
    gc_threshold: int = Field(
        20_000,
        ge=1,
        description="Python searches for cyclic garbage once in so many allocations while the servers run.",
    )

    @classmethod
    def load(cls, project: Path | None = None) -> Settings:
        """The settings of an existing project; by default that of the current directory.

        Raises:
            BadInput: ``NOT_A_DIRECTORY``, ``BAD_SETTINGS``.
        """
        root = project.resolve() if project else find_project()
        if not os.path.isdir(root):  # noqa: PTH112 (raises where a directory above may not be entered)
            raise BadInput(
                "NOT_A_DIRECTORY",
                f"{root} is not a directory. Create it, or choose another project with --project or {PREFIX}PROJECT.",
            )
        return cls(project=root)

    @model_validator(mode="wrap")
    @classmethod
    def _coded(cls, given: dict[str, Any], validate: ModelWrapValidatorHandler[Self]) -> Self:
        try:
            return validate(given)
        except ValidationError as error:
            raise _bad_settings(error, given) from None

    @field_validator("project", mode="after")
    @classmethod
    def _resolved(cls, given: Path) -> Path:
        return given.resolve()

    @field_validator("integration_gates", mode="before")
    @classmethod
    def _commands(cls, given: Any) -> Any:
        """Parse the lines, or the JSON list, of an environment variable, and drop blank commands."""
        if isinstance(given, str):
            given = json.loads(given) if given.lstrip().startswith("[") else given.splitlines()
        if not isinstance(given, list | tuple):
            return given
        return tuple(one for one in given if not isinstance(one, str) or one.strip())

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Arguments first, then the environment, then the project's file."""
        given = init_settings()
        project = Path(given["project"]) if "project" in given else find_project()
        found = settings_file.read(settings_file.settings_path(project), set(cls.model_fields) - {"project"})
        return init_settings, env_settings, InitSettingsSource(settings_cls, found)

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
        """The file with the running server and the operator's token; mode 0600."""
        return self.home / "server.json"

    @property
    def logs(self) -> Path:
        """Log files of worker processes."""
        return self.home / "logs"

    @property
    def worktrees(self) -> Path:
        """Git worktrees, one directory each."""
        return self.home / "worktrees"

    @property
    def repositories(self) -> Path:
        """The worktrees' own git directories. Workers write there, so nothing in them is trusted."""
        return self.home / "repositories"

    @property
    def scratch(self) -> Path:
        """Home and temporary directories of confined commands."""
        return self.home / "scratch"

    @property
    def gates(self) -> Path:
        """Temporary worktrees with the merge results on which gates run."""
        return self.home / "gates"

    @property
    def trash(self) -> Path:
        """Bundles of discarded work that exists nowhere else."""
        return self.home / "trash"


def _bad_settings(error: ValidationError, given: Mapping[str, Any]) -> BadInput:
    """The coded error for invalid values, which are not repeated, because they may be secret."""
    project = Path(given["project"]) if "project" in given else find_project()
    sources = [(_source(str(one["loc"][0]), given, project), one["msg"]) for one in error.errors()]
    wrong = "; ".join(f"{where}: {reason}" for (where, _), reason in sources)
    remedies = dict.fromkeys(remedy for (_, remedy), _ in sources)
    return BadInput("BAD_SETTINGS", f"{wrong}. {' '.join(remedies)}")


def _source(name: str, given: Mapping[str, Any], project: Path) -> tuple[str, str]:
    """Where the value of a setting comes from, and how to correct it."""
    environment = {variable.upper(): value for variable, value in os.environ.items()}
    variable, file = PREFIX + name.upper(), settings_file.settings_path(project)
    if environment.get(variable) == given[name]:
        return variable, "Correct or unset the environment variable."
    if file.exists() and settings_file.line_of(file, name) is not None:
        return f"{settings_file.place(file, name)}, {name}", "Correct or remove the line."
    return name, "Correct it."
