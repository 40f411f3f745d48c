"""The settings: every limit and choice, with a safe default.

Each is also an environment variable `WORKBENCH_<NAME>`, and a line `name = value` in the project's
`.aiswarm/settings.toml` or in the user's own `~/.config/workbench/settings.toml`; the first of these takes precedence.

A project's file may have come with the repository. Settings that give access to this machine, or run commands, count
from it only after the user has trusted them (see `workbench.trust.withheld`).
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    Field,
    ModelWrapValidatorHandler,
    SecretStr,
    ValidationError,
    ValidationInfo,
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

from workbench.errors import BadInput
from workbench.state import settings_file, user_files
from workbench.state.connection_settings import ConnectionSettings
from workbench.state.database_note import DatabaseNote
from workbench.state.database_url import PASSWORD_VARIABLE, DatabaseUrl, require_no_password
from workbench.state.koi_settings import KoiSettings
from workbench.state.machine import MachineSettings
from workbench.state.notification_settings import NotificationSettings
from workbench.state.project_places import ProjectPlaces
from workbench.state.resource_settings import ResourceSettings
from workbench.state.retention_settings import RetentionSettings
from workbench.state.root import find_project, require_own
from workbench.state.telemetry_settings import TelemetrySettings
from workbench.state.workplace_settings import OPENING_NUMBERS, WorkplaceSettings

PACKAGE = Path(__file__).parents[1]
PREFIX = "WORKBENCH_"
SETTINGS_FILE = "settings.toml"
MOST = {"days": 36_525.0, "seconds": 36_525 * 86_400.0}
"""The longest time that a setting can be, by its unit: a century."""


def shipped(*parts: str) -> Path:
    """A file or directory that comes with Workbench (`data/…`, `notebooks/…`), installed or checked out."""
    inside = PACKAGE.joinpath(*parts)
    return inside if inside.exists() else PACKAGE.parent.joinpath(*parts)


HARMLESS = frozenset({"allowed_agents", "integration_fast_forward", "notify", "spawn_outside_worktrees"})
"""Settings that count from the file of any project, besides the numbers."""


class Settings(
    ProjectPlaces,
    WorkplaceSettings,
    NotificationSettings,
    ResourceSettings,
    MachineSettings,
    ConnectionSettings,
    TelemetrySettings,
    KoiSettings,
    RetentionSettings,
):
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
    database_url: Annotated[DatabaseUrl | None, NoDecode] = Field(
        None,
        description="The PostgreSQL database that has the project's store, as libpq takes it: a URL, or keywords and "
        "values; empty: SQLite in `.aiswarm/`. Its password belongs in libpq's passfile: see docs/postgresql.md.",
    )
    port: int = Field(8765, ge=0, le=65535, description="Preferred port; 0 lets the system choose.")

    person: str = Field(
        "",
        max_length=200,
        description="Your name, as your decisions record it; empty: that of JupyterHub's user, or the system's.",
    )
    lease_seconds: float = Field(120.0, gt=0, description="How long a claim lasts without a heartbeat.")
    heartbeat_seconds: float = Field(15.0, gt=0, description="How often workers renew their leases.")
    max_retries: int = Field(2, ge=0, le=100, description="Attempts after the first before a task fails.")
    retry_base_seconds: float = Field(1.0, ge=0, description="Wait before the first retry; doubles each time.")
    retry_cap_seconds: float = Field(300.0, ge=0, description="Longest wait before a retry.")
    wait_limit_seconds: float = Field(30.0, ge=0, description="Longest wait of a long poll.")

    max_pending_agents: int = Field(500, ge=1, description="Most registrations that may wait for a decision.")
    max_pending_per_address: int = Field(300, ge=1, description="Agents waiting for admission from one address.")
    pending_expires_seconds: float = Field(86_400.0, gt=0, description="How long a registration waits for a decision.")
    definition_roots: str = Field(
        "", description="Directories of agent definitions besides `.aiswarm/agents`, separated by ':', or as a list."
    )
    definition_watch_seconds: float = Field(
        2.0,
        gt=0,
        description="How often definitions are searched that others have added, and those are read again that the KOI "
        "network shows.",
    )
    silent_seconds: float = Field(
        90.0,
        gt=0,
        description="How long an agent without a connection or a lease may send nothing before it is inactive.",
    )
    allowed_agents: str = Field(
        "",
        description="Allowlist: ids as a list, or separated by commas, besides those in `.aiswarm/allowlist.txt`; "
        "empty: everyone.",
    )
    max_connections: int = Field(
        2_000,
        ge=1,
        description="Connections served at once, of all kinds; the operator is never refused. Fewer if the process may "
        "open too few files: a quarter of them is kept free.",
    )
    max_anonymous_per_address: int = Field(
        1_000,
        ge=1,
        description="WebSockets of one address whose clients have neither registered nor authenticated; at most half "
        "of all connections.",
    )
    max_message_bytes: int = Field(
        20_000, ge=100, description="Largest text of a message to an agent, or of a comment."
    )
    max_open_messages: int = Field(1_000, ge=1, description="Messages to an agent that it has not acted on.")
    max_messages_per_minute: int = Field(60, ge=1, description="Messages that an agent may send in a minute.")
    max_agent_questions: int = Field(10, ge=1, description="Questions of an agent that wait for a person's answer.")
    agent_question_seconds: float = Field(
        43_200.0,
        gt=0,
        description="How long an agent's question waits for an answer; its lease does not end meanwhile.",
    )
    max_result_bytes: int = Field(1_048_576, ge=1_024, description="Largest result data of a task, as JSON.")
    max_context_bytes: int = Field(262_144, ge=1_024, description="Largest content of a context.")
    max_sweep_runs: int = Field(10_000, ge=1, description="Runs that one sweep may have.")
    max_sweep_output_bytes: int = Field(
        10_000_000, ge=1_024, description="Largest outputs of one run of a sweep; the rest is left out of its notebook."
    )
    max_sweep_files_bytes: int = Field(
        1_073_741_824,
        ge=1_024,
        description="Largest files that a sweep sends to machines that do not see the project, and that one run there "
        "sends back.",
    )
    max_plan_tasks: int = Field(10_000, ge=1, description="Tasks that one plan may create.")
    plan_needs_approval: Literal["large", "always", "never"] = Field(
        "large",
        description="Which tasks that an agent creates wait for your approval: those of large plans, as the next "
        "four say; always; never.",
    )
    plan_asks_above_tasks: int = Field(20, ge=0, description="A plan of an agent with more tasks is a large one.")
    plan_asks_within_seconds: float = Field(
        3_600.0, ge=0, description="Within how long the tasks that an agent creates count together."
    )
    plan_asks_above_usd: float = Field(
        20.0, ge=0, allow_inf_nan=False, description="A plan whose budget is more US dollars is a large one."
    )
    plan_asks_above_tokens: int | None = Field(
        None, ge=0, description="A plan whose budget is more tokens is a large one; unset: any."
    )
    feed_queue: int = Field(1_000, ge=1, description="Events by which a slow reader may lag before it is disconnected.")

    model_gateway: bool = Field(
        True,
        description="Keep the keys of model providers in the server: agents ask it for models, with a token of their "
        "attempt. false: agents get the keys.",
    )
    max_model_request_bytes: int = Field(
        67_108_864, ge=1_024, description="Largest request of an agent to a model, with what it sends along."
    )
    max_model_event_bytes: int = Field(
        16_777_216, ge=1_024, description="Largest single event in an answer of a model; a longer one ends the answer."
    )
    model_hold_seconds: float = Field(
        540.0,
        ge=0,
        description="How long a request to a model waits in the server while its provider limits the key. One whose "
        "program would give up before gets signs of life meanwhile, or, if its answer is no stream, waits less long. "
        "One that would wait longer gets the provider's answer at once.",
    )
    max_transcript_bytes: int = Field(
        50_000_000, ge=0, description="Most of a transcript of one attempt with its model that is kept; 0: none."
    )
    max_model_requests_at_once: int = Field(
        64, ge=1, description="Requests to models that one attempt may have under way."
    )
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
    finish_grace_seconds: float = Field(
        60.0, ge=0, description="How long a command may run on after it completed or failed its task itself."
    )
    budget_tokens: int | None = Field(None, ge=0, description="Tokens that the whole project may use; unset: any.")
    budget_usd: float | None = Field(
        None, ge=0, allow_inf_nan=False, description="US dollars that the whole project may spend; unset: any."
    )
    budget_attempts: int | None = Field(None, ge=0, description="Attempts of the whole project; unset: any.")
    budget_seconds: float | None = Field(
        None, ge=0, le=1e9, description="How long attempts of the project may be under way, in sum; unset: for ever."
    )
    budget_ends_running: bool = Field(
        False, description="End the agents at work when a budget is used up; otherwise what runs may finish."
    )
    breaker_failures: int = Field(
        3,
        ge=0,
        description="After how many same failures in a row, over several tasks, the agents of a key, a profile or one "
        "agent claim no more and you are asked; 0: never.",
    )
    agent_fallback: str = Field(
        "",
        description="Profiles that may take each other's place while one is limited or fails, separated by commas, "
        "such as `claude, codex`; empty: none.",
    )
    hold_base_seconds: float = Field(
        30.0,
        gt=0,
        description="How long agents wait whose provider is limited or overloaded and does not say until when; it "
        "doubles each time.",
    )
    hold_cap_seconds: float = Field(3_600.0, gt=0, description="Longest such wait.")
    hold_longest_seconds: float = Field(
        691_200.0, gt=0, description="Longest wait for a limit's end that a provider has told."
    )
    agent_silence_seconds: float = Field(
        1_800.0,
        gt=0,
        description="How long an agent's program may say nothing, while none of its tools runs, before it is ended.",
    )
    max_checkouts: int = Field(
        4, ge=1, description="Checkouts that are kept for tasks without a worktree, of one commit each."
    )
    update_worktrees: bool = Field(
        True, description="Merge the target into a worktree before an attempt begins there, if they do not conflict."
    )
    max_archive_bytes: int = Field(
        107_374_182_400, ge=1_000_000, description="Most bytes that an archive of the project may take when unpacked."
    )
    integration_requires_approval: bool = Field(True, description="Merge only what a person has approved.")
    integration_gates: Annotated[tuple[str, ...], NoDecode] = Field(
        (),
        description="Shell commands that have to pass on the merged result, such as `pytest -q`: one per line, or a "
        "list in JSON or TOML. They run confined, in a temporary worktree.",
    )
    gate_seconds: float = Field(600.0, gt=0, description="How long one gate, or one check of a task, may take.")
    max_checks: int = Field(2, ge=1, description="How many checks of tasks run at a time.")
    integration_fast_forward: bool = Field(
        False, description="Fast-forward the target branch where possible, instead of making a merge commit."
    )
    integration_large_bytes: int = Field(
        5_000_000,
        ge=0,
        description="Files that are larger are named in the question about a merge, as binary ones are.",
    )
    max_import_bytes: int = Field(
        1_073_741_824, ge=1_024, description="Largest amount of new data imported from one worktree at once."
    )
    max_diff_bytes: int = Field(524_288, ge=1_024, description="Largest diff shown at once.")
    max_notebook_bytes: int = Field(
        67_108_864, ge=1_024, description="Largest notebook of which a review shows the outputs."
    )
    max_output_picture_bytes: int = Field(
        2_097_152, ge=0, description="Largest picture among a notebook's outputs that a review shows."
    )
    max_outputs_bytes: int = Field(
        4_194_304, ge=0, description="Most bytes of pictures of one notebook that a review shows."
    )
    confinement: Literal["auto", "required", "off"] = Field(
        "auto",
        description="Confinement of workers. auto: as far as the kernel supports it; required: refuse to start "
        "otherwise; off: never.",
    )
    confinement_namespaces: Literal["auto", "off"] = Field(
        "auto",
        description="Whether workers have files, shared memory and a network of their own: their worktree stands at "
        "the project's path, and they serve ports on loopback. auto: if the system allows it; off: never.",
    )
    confinement_read: str = Field(
        "", description="Additional paths that workers may read and execute, separated by ':', or as a list."
    )
    confinement_write: str = Field(
        "", description="Additional paths that workers may change, such as /dev/shm, separated by ':', or as a list."
    )
    confinement_connections: int = Field(
        200, ge=1, le=10_000, description="How many connections a command in a box has to hosts at a time."
    )
    confinement_connect: str = Field(
        "",
        pattern=r"^(\d{1,5}(,\d{1,5})*)?$",
        description="TCP ports that workers may connect to, separated by commas, or as a list.",
    )
    tool_shown_chars: int = Field(
        4_000, ge=100, description="How much of a tool's arguments and result an event has; the record has all."
    )
    tool_server_start_seconds: float = Field(
        10.0, gt=0, description="How long an MCP server may take to start, and to list its tools."
    )
    tool_server_answer_seconds: float = Field(
        60.0,
        gt=0,
        description="How long an MCP server may take to answer a call, from the call or its last report of progress.",
    )
    question_seconds: float = Field(
        600.0, gt=0, le=3_000, description="How long a question of an MCP server waits for your answer."
    )
    tool_server_idle_seconds: float = Field(
        600.0, gt=0, description="After how long without use the MCP servers of a definition are stopped."
    )
    tool_seconds: float = Field(600.0, gt=0, description="How long a tool's function may run, unless it sets a limit.")
    max_tool_calls: int = Field(
        64, ge=1, description="Functions that run at once for tools in one process, with those that a call left behind."
    )
    process_sample_seconds: float = Field(5.0, ge=0, description="How often processes are measured; 0: never.")
    max_tool_result_bytes: int = Field(67_108_864, ge=1_024, description="Largest result of a tool.")
    max_tool_rows: int = Field(1_000, ge=1, description="Most rows of a result that a function does not declare.")
    max_run_metrics: int = Field(1_000_000, ge=1, description="Values that one run may record.")
    max_run_artifacts: int = Field(1_000, ge=1, description="Artifacts that one run may have.")
    max_run_bytes: int = Field(
        262_144, ge=1_024, description="Largest record of a run: its parameters, definitions and environment together."
    )
    sql_seconds: float = Field(300.0, gt=0, description="How long a query of `wb.sql` or `workbench sql` may take.")
    switch_interval_seconds: float = Field(
        0.0005, gt=0, description="Interpreter switch interval while the servers run in a kernel."
    )
    gc_threshold: int = Field(
        20_000,
        ge=1,
        description="Python searches for cyclic garbage once in so many allocations while the servers run.",
    )

    @property
    def store(self) -> str:
        """Where the project's store is, for people: a URL without secrets, or a path below the project."""
        if self.database_url is None and (note := DatabaseNote.of(self.home)) is not None:
            return note.url
        return str(self.database_url or self.database.relative_to(self.project))

    @property
    def database_secrets(self) -> tuple[str, ...]:
        """The secrets with which this process reaches the project's database, besides those in libpq's files."""
        if self.database_url is None:
            return ()
        return (*self.database_url.secrets, *filter(None, [os.environ.get(PASSWORD_VARIABLE)]))

    @classmethod
    def load(cls, project: Path | None = None) -> Settings:
        """The settings of an existing project; by default that of the current directory.

        Raises:
            BadInput: ``NOT_A_DIRECTORY``, ``BAD_SETTINGS``. Refused: ``STATE_NOT_YOURS``.
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
    def _code_errors(cls, values: dict[str, Any], validate: ModelWrapValidatorHandler[Self]) -> Self:
        try:
            return validate(values)
        except ValidationError as error:
            raise _bad_settings(error, values) from None

    @field_validator("project", mode="after")
    @classmethod
    def _resolve_project(cls, project: Path) -> Path:
        return project.resolve()

    @field_validator(*settings_file.LISTS, mode="before")
    @classmethod
    def _join_list(cls, value: Any, info: ValidationInfo) -> Any:
        return settings_file.joined(str(info.field_name), value)

    @field_validator("*", mode="after")
    @classmethod
    def _bound_time(cls, value: Any, info: ValidationInfo) -> Any:
        """`inf`, or as good as that, is a number that clocks and databases can add to the time."""
        unit = str(info.field_name).rpartition("_")[2]
        return min(value, MOST[unit]) if unit in MOST and isinstance(value, float) else value

    @field_validator("integration_gates", mode="before")
    @classmethod
    def _split_commands(cls, value: Any) -> Any:
        return settings_file.commands(value)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Arguments first, then the environment, the project's file, and the user's own."""
        arguments = init_settings()
        project = Path(arguments["project"]) if "project" in arguments else find_project()
        require_own(project)
        project_values = cls.of_project(project)
        withheld = cls.needing_trust(project_values)
        if withheld and user_files.load_record(project).trusted.get(SETTINGS_FILE) != digest(withheld):
            project_values = {name: value for name, value in project_values.items() if name not in withheld}
        user_values = settings_file.read(user_files.settings_path(), cls.names())
        files = (InitSettingsSource(settings_cls, values) for values in (project_values, user_values))
        return init_settings, env_settings, *files

    @classmethod
    def names(cls) -> set[str]:
        """The settings that a file may set."""
        return set(cls.model_fields) - {"project"}

    @classmethod
    def of_project(cls, project: Path) -> dict[str, Any]:
        """The settings in the file of a project, trusted or not.

        Raises:
            BadInput: ``BAD_SETTINGS``.
        """
        file = settings_file.settings_path(project)
        values = settings_file.read(file, cls.names())
        require_no_password(file, values.get("database_url"))
        return values

    @classmethod
    def needing_trust(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        """The settings of a project's file that must be trusted before they count: all but limits and harmless ones."""
        numbers = {name for name in values if cls.model_fields[name].annotation in (int, float)}
        limits = numbers - OPENING_NUMBERS
        return {name: value for name, value in values.items() if name not in limits | HARMLESS}


def digest(values: Mapping[str, Any]) -> str:
    """The digest of settings from a file, by which they are trusted."""
    return hashlib.sha256(json.dumps(values, sort_keys=True, default=str).encode()).hexdigest()


def _bad_settings(error: ValidationError, given: Mapping[str, Any]) -> BadInput:
    """The coded error for invalid values, which are not repeated, because they may be secret."""
    project = Path(given["project"]) if "project" in given else find_project()
    sources = [
        (_source(str(problem["loc"][0]), given, project), problem["msg"].removeprefix("Value error, "))
        for problem in error.errors()
    ]
    problems = "; ".join(f"{where}: {reason}" for (where, _), reason in sources)
    remedies = dict.fromkeys(remedy for (_, remedy), _ in sources)
    return BadInput("BAD_SETTINGS", f"{problems}. {' '.join(remedies)}")


def _source(name: str, given: Mapping[str, Any], project: Path) -> tuple[str, str]:
    """The source of a setting's value, and how to correct it."""
    environment = {variable.upper(): value for variable, value in os.environ.items()}
    if environment.get(variable := PREFIX + name.upper()) == given[name]:
        return variable, "Correct or unset the environment variable."
    for file in (settings_file.settings_path(project), user_files.settings_path()):
        if file.exists() and settings_file.line_of(file, name) is not None:
            return f"{settings_file.place(file, name)}, {name}", "Correct or remove the line."
    return name, "Correct it."
