"""The configuration of a worker process: its worktree, profile, token, limits and sandbox."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Self
from urllib.parse import SplitResult, urlsplit

from workbench.confinement import Box, BoxLimits
from workbench.confinement.gpus import Gpu
from workbench.drivers import PROGRAMS, AgentSetup
from workbench.errors import BadInput
from workbench.git import Repository
from workbench.ops import Ctx
from workbench.rules.definitions.mcp_servers import HttpServer, StdioServer
from workbench.rules.failures import account_name
from workbench.rules.hosts import LOOPBACK
from workbench.rules.models.upstream import ProviderKey
from workbench.rules.profile import Profile
from workbench.rules.workplace import Workplace
from workbench.services import holds
from workbench.services.access import secret_marks
from workbench.services.processes import profiles, sandbox, workplaces
from workbench.services.processes.sandbox import Confinement
from workbench.services.spawning.request import SpawnRequest
from workbench.services.worktrees.places import find_included, included_secrets
from workbench.state.home import expanded
from workbench.state.settings import Settings
from workbench.store.base import Tx
from workbench.worker import person
from workbench.worker.startup import Preparation, WorkerConfig, WorktreePlace


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """Where a worker reaches its server; `file`: the project's `server.json`, if they are on one machine."""

    url: str
    file: Path | None = None

    @classmethod
    def here(cls, ctx: Ctx) -> Self:
        """The address of this server."""
        assert ctx.local.server is not None, "it needs the server"
        return cls(ctx.local.server.url, ctx.settings.server_file)


@dataclass(frozen=True, slots=True)
class WorkerStart:
    """The values that a worker gets at one start.

    Args:
        token: its new token.
        scratch: its scratch directory.
        environment: variables for its commands.
        definition: its definition as it is now.
        workplace: what its commands find in its worktree.
        gpu: the one that they may use.
        models: the providers that the gateway answers for; their keys are in none of these.
        included_secrets: those in the files that its worktree was given.
    """

    token: str = field(repr=False)
    scratch: Path
    environment: Mapping[str, str] = field(repr=False)
    confinement: Confinement
    definition: AgentSetup | None
    workplace: Workplace = field(default_factory=Workplace)
    gpu: Gpu | None = None
    models: tuple[str, ...] = ()
    included_secrets: tuple[str, ...] = field(default=(), repr=False)


async def included(ctx: Ctx, repository: Repository | None, workplace: Workplace) -> tuple[str, ...]:
    """What is secret in the files that a worktree was given; it is masked from now on.

    Args:
        repository: the person's; None: the agent has no worktree.
    """

    def find() -> set[str]:
        if repository is None:
            return set()
        with suppress(BadInput):  # there are others now than when the worktree was made
            return included_secrets(ctx.settings, find_included(ctx.settings, repository, workplace))
        return set()

    values = tuple(sorted(await asyncio.to_thread(find)))
    await secret_marks.learn(ctx, values)
    return values


async def variables(ctx: Ctx, workplace: Workplace) -> dict[str, str]:
    """The variables of a workplace; what is secret of them is masked from now on.

    Raises:
        Unavailable: ``SECRET_UNRESOLVED``.
    """
    values = await asyncio.to_thread(workplaces.variables, ctx.settings, workplace)
    await secret_marks.learn(ctx, list(workplaces.secrets_of(workplace, values)))
    return values


def worker_config(
    ctx: Ctx, request: SpawnRequest, place: WorktreePlace | None, repository: Repository | None, start: WorkerStart
) -> WorkerConfig:
    """Build the configuration of a worker of this machine. Blocks."""
    profile = profiles.load(ctx.settings, request.profile)
    return config_of(ctx.settings, ServerAddress.here(ctx), profile, request, place, repository, start)


def config_of(
    settings: Settings,
    server: ServerAddress,
    profile: Profile,
    request: SpawnRequest,
    place: WorktreePlace | None,
    repository: Repository | None,
    start: WorkerStart,
) -> WorkerConfig:
    """Build the configuration of a worker. Blocks.

    Args:
        settings: those of the machine where it works.
    """
    return WorkerConfig(
        url=server.url,
        token=start.token,
        scratch=start.scratch,
        box=_box(settings, server, profile, place, repository, start),
        project=settings.project,
        profile=profile,
        worktree=place,
        definition=start.definition,
        models=start.models,
        function=request.function,
        task_id=request.task_id,
        limits=BoxLimits(**request.limits.model_dump()),
        environment=start.environment,
        secret_variables=(*request.secret, *workplaces.secret_variables(start.workplace)),
        included_secrets=start.included_secrets,
        preparation=_preparation(settings, place, start.workplace),
        missing=start.confinement.missing,
        over_mcp=request.mcp,
        server_file=server.file,
        heartbeat_seconds=settings.heartbeat_seconds,
        patience_seconds=settings.worker_patience_seconds,
        grace_seconds=settings.terminate_grace_seconds / 4,
        finish_grace_seconds=settings.finish_grace_seconds,
        import_bytes=settings.max_import_bytes,
        sessions=settings.agent_sessions,
        session_bytes=settings.max_agent_session_bytes,
        silence_seconds=settings.agent_silence_seconds,
        result_bytes=settings.max_result_bytes,
        frame_bytes=settings.max_frame_bytes,
    )


def account_of(config: WorkerConfig, keys: Mapping[str, ProviderKey] = MappingProxyType({})) -> str | None:
    """A name of the key or the login of an agent's program; None if it is not known. Blocks.

    Args:
        keys: those with which the gateway answers for it.
    """
    program = config.profile.program
    used: Collection[str] = PROGRAMS[program].providers if program else keys if len(keys) == 1 else ()
    if key := next((keys[name] for name in used if name in keys), None):
        return account_name(key.provider, key.value)
    provider = config.definition.provider_config if config.definition else {}
    return person.account(config.profile, provider, config.environment)


def enlist(tx: Tx, agent_uid: str, config: WorkerConfig, account: str | None) -> None:
    """Record what an agent works with, so that it waits with others when that fails; not of one whose tasks bring
    their own commands."""
    if config.profile.command is not None:
        holds.enlist(tx, agent_uid, config.profile.name, account)


async def repository_of(ctx: Ctx, place: WorktreePlace | None) -> Repository | None:
    """The person's repository, from which that of a worktree borrows objects; None without a worktree."""
    return await ctx.local.repositories.open() if place else None


def _box(
    settings: Settings,
    server: ServerAddress,
    profile: Profile,
    place: WorktreePlace | None,
    repository: Repository | None,
    start: WorkerStart,
) -> Box:
    """The box of an agent's commands. Without a worktree, they can write only to their scratch directory, and read the
    project except its entries that begin with a dot. The programs and ports of its definition's MCP servers are added:
    the operator trusts those."""
    own = urlsplit(server.url)
    own_port, is_far = _port_of(own), server.file is None and own.hostname not in LOOPBACK
    to_server = "server" in profile.connect or bool(start.models)
    servers = [one.server for one in start.definition.servers.values()] if start.definition else []
    read = [*profiles.programs(profile), *(expanded(path) for path in profile.read)]
    read += [path for one in servers if isinstance(one, StdioServer) for path in profiles.server_places(settings, one)]
    if place is None:
        read += [entry for entry in settings.project.iterdir() if not entry.name.startswith(".")]
    box = sandbox.box(
        settings,
        worktree=place.path if place else start.scratch,
        git_dir=place.git_dir if place else start.scratch,
        objects=repository.object_directories() if repository else (),
        scratch=start.scratch,
        read=read,
        connect=[*(port for port in profile.connect if port != "server"), *_ports(servers)],
        private=[own.netloc if own.port else f"{own.netloc}:{own_port}"]
        if to_server and own.hostname not in LOOPBACK
        else (),
        forward=[own_port] if to_server and not is_far else (),
        project=repository.root if repository else None,
        workplace=start.workplace,
        gpu=start.gpu,
    )
    if place and repository:
        repository.anchor_worktree(place.path, place.git_dir, box.mount_points)
    return box


def _preparation(settings: Settings, place: WorktreePlace | None, workplace: Workplace) -> Preparation:
    """What a worker does before each attempt. Blocks."""
    environment = workplaces.environment_of(settings, workplace)
    name = place.name if place and workplace.setup else None
    return Preparation(
        setup=workplace.setup if name else "",
        seconds=workplace.setup_seconds,
        log=settings.logs / f"setup-{name}.log" if name else None,
        record=settings.setups / name if name else None,
        environment=environment.directory if environment else None,
        stamp=environment.stamp if environment else "",
    )


def _ports(servers: Iterable[StdioServer | HttpServer]) -> Iterator[int]:
    for server in servers:
        if isinstance(server, HttpServer):
            yield _port_of(urlsplit(server.url))


def _port_of(address: SplitResult) -> int:
    return address.port or (443 if address.scheme == "https" else 80)
