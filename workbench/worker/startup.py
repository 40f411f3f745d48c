"""A worker's configuration. The worker reads it from standard input, because the token is in it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from workbench.confinement import Box, BoxLimits
from workbench.confinement.lending import lent
from workbench.drivers import AgentSetup
from workbench.rules.profile import Profile
from workbench.state.settings import Settings


@dataclass(frozen=True, slots=True)
class WorktreePlace:
    """A worktree with a repository of its own, as the server knows it; `writer` is the lock of its one writer."""

    name: str
    path: Path
    git_dir: Path
    branch: str
    writer: Path


@dataclass(frozen=True, slots=True)
class Preparation:
    """What a worker does in its worktree before an attempt.

    Args:
        setup: the command that makes the worktree ready, in its box; empty: none.
        seconds: how long it may take.
        log: where its output goes.
        record: which set-up the worktree is ready for; no command may write there.
        environment: the directory of the environment that commands use.
        stamp: that of the environment when the agent was started; see `environments.stamp`.
    """

    setup: str = ""
    seconds: float = 600.0
    log: Path | None = None
    record: Path | None = None
    environment: Path | None = None
    stamp: str = ""

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Preparation:
        """The preparation in the text of a configuration."""
        paths = {name: data[name] and Path(data[name]) for name in ("log", "record", "environment")}
        return cls(**{**data, **paths})


@dataclass(frozen=True, slots=True)
class WorkerConfig:
    """The server, the worker's identity there, and where and how it works.

    Args:
        url: the server's address.
        token: the worker's own secret. It is passed to nothing: a command gets a token of its attempt.
        scratch: a directory of the worker's own; each task gets one in it, which is removed when the task has ended.
        box: what commands, and git, may touch; its scratch directory is replaced by the task's.
        project: the project's root.
        worktree: where it works, and whose changes it commits; None: in the scratch directory, without git.
        profile: how a task is run.
        definition: the agent's definition with its secrets, if it was spawned with one.
        function: the function that the profile `python` calls, as ``module:name``.
        task_id: the only task it works on; None: any that it can claim.
        limits: of each task's command with all it starts; `limits.tasks`: how many attempts it makes before it ends.
        models: the providers whose models are asked by way of the server; the attempt's token for that comes when it
            begins.
        missing: parts of the box that this system does not enforce, in words.
        environment: variables for the commands.
        secret_variables: the names of variables that are secret, whatever their name and form.
        included_secrets: those in the files that its worktree was given.
        over_mcp: whether it talks MCP to the server instead of plain HTTP.
        server_file: read again when the server is away: it may be restarted at another address; None: the server is on
            another machine, and `project` is a copy of the worktree's branch.
        device_locks: where the locks of this machine's devices are, if the server is on another machine.
        certificate: the file of the certificate that is trusted in place of the system's.
        heartbeat_seconds: how often leases are renewed.
        patience_seconds: how long the worker waits for a server that is away, before it ends.
        grace_seconds: between SIGTERM and SIGKILL, when a command has to end.
        finish_grace_seconds: how long a command may run on after it has ended its attempt itself.
        import_bytes: the most bytes that are imported into the person's repository for one task.
        sessions: a directory for the conversations of programs, one for each task; None: they are not kept.
        session_bytes: of a conversation that is kept.
        silence_seconds: how long a program may say nothing while none of its tools runs.
        result_bytes: of a result, as JSON.
        frame_bytes: of a request to the server.
        preparation: what is done before each attempt.
    """

    url: str
    token: str = field(repr=False)
    scratch: Path
    box: Box
    project: Path
    profile: Profile
    worktree: WorktreePlace | None = None
    definition: AgentSetup | None = None
    function: str | None = None
    task_id: int | None = None
    limits: BoxLimits = field(default_factory=BoxLimits)
    models: Sequence[str] = ()
    missing: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    secret_variables: Sequence[str] = ()
    included_secrets: Sequence[str] = field(default=(), repr=False)
    over_mcp: bool = False
    server_file: Path | None = None
    device_locks: Path | None = None
    certificate: Path | None = None
    heartbeat_seconds: float = 15.0
    patience_seconds: float = 600.0
    grace_seconds: float = 1.0
    finish_grace_seconds: float = 60.0
    import_bytes: int = 1_000_000_000
    sessions: Path | None = None
    session_bytes: int = 50_000_000
    silence_seconds: float = 1_800.0
    result_bytes: int = 1_048_576
    frame_bytes: int = 1_048_576
    preparation: Preparation = field(default_factory=Preparation)

    @property
    def mcp_url(self) -> str:
        """The server's endpoint of MCP."""
        return f"{self.url}/mcp"

    def at(self, url: str) -> Self:
        """The same, with the server at an address, to which its commands have the way that they had to the former."""
        before, now = urlsplit(self.url).port, urlsplit(url).port
        forward = tuple(now if port == before and now else port for port in self.box.forward)
        return replace(self, url=url, box=replace(self.box, forward=forward))

    def as_json(self) -> str:
        """As text; the token and the secrets are in it."""
        fields: dict[str, Any] = {name: getattr(self, name) for name in self.__slots__}
        fields |= {"profile": self.profile.model_dump(), "box": self.box.as_json(), "limits": asdict(self.limits)}
        fields["worktree"] = asdict(self.worktree) if self.worktree else None
        fields["preparation"] = asdict(self.preparation)
        fields["definition"] = self.definition.model_dump() if self.definition else None
        return json.dumps(fields, default=str)

    @classmethod
    def from_json(cls, text: str) -> WorkerConfig:
        """The configuration that `as_json` wrote."""
        fields: dict[str, Any] = json.loads(text)
        worktree, server_file, definition = fields["worktree"], fields["server_file"], fields["definition"]
        values: dict[str, Any] = {
            "box": Box.from_json(fields["box"]),
            "profile": Profile.model_validate(fields["profile"]),
            "limits": BoxLimits(**fields["limits"]),
            "worktree": _worktree(worktree) if worktree else None,
            "definition": AgentSetup.model_validate(definition) if definition else None,
            "server_file": Path(server_file) if server_file else None,
            "device_locks": Path(fields["device_locks"]) if fields["device_locks"] else None,
            "certificate": Path(fields["certificate"]) if fields["certificate"] else None,
            "scratch": Path(fields["scratch"]),
            "project": Path(fields["project"]),
            "sessions": Path(fields["sessions"]) if fields["sessions"] else None,
            "preparation": Preparation.from_json(fields["preparation"]),
        }
        return cls(**fields | values)


def lent_here(config: WorkerConfig, task: Mapping[str, Any]) -> dict[str, Any]:
    """What the commands of an attempt get of this machine, which has no clone, for what its server has leased. Blocks.

    Raises:
        Conflict: ``DEVICE_GONE``. BadInput: ``BAD_SETTINGS``.
    """
    leased = task["attempts"][-1]["leased"]
    return lent(Settings(project=config.project), leased, config.device_locks).model_dump()


def lending(config: WorkerConfig, lent: Mapping[str, Any]) -> WorkerConfig:
    """The configuration of an attempt, with what it holds: its devices and no others, its variables, its memory.

    Args:
        lent: as `begin_attempt` answers it. Without devices, those that the agent has for itself stay.
    """
    box, limits, variables, memory = config.box, config.limits, lent["variables"], lent["memory_bytes"]
    if lent["devices"]:
        box = box.lending(map(Path, lent["devices"]), map(Path, lent["read"]))
    elif box.has_gpu:
        variables = {name: value for name, value in variables.items() if not name.endswith("_VISIBLE_DEVICES")}
    if memory is not None:
        limits = replace(limits, memory_bytes=min(memory, limits.memory_bytes or memory))
    return replace(config, box=box, limits=limits, environment={**config.environment, **variables})


def _worktree(fields: Mapping[str, str]) -> WorktreePlace:
    path, git_dir, writer = (Path(fields[name]) for name in ("path", "git_dir", "writer"))
    return WorktreePlace(fields["name"], path, git_dir, fields["branch"], writer)
