"""A worker of this machine for a project on another one: enlisted with this machine's token, with nothing shared.

Its directory is made like a project: a repository with a copy of the worktree's branch, and a state directory. What its
commands may touch is decided here, by this machine's settings; the server says only what the worker is to do.
"""

from __future__ import annotations

import asyncio
import json
import os
import platform
import secrets
import socket
import ssl
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any

from workbench.client import HttpClient
from workbench.client.connection import ProjectConnection
from workbench.confinement import abilities, gpus, lending
from workbench.errors import BadInput, NotFound, Unauthenticated, Unavailable
from workbench.git import Repository, git_version
from workbench.model import __version__
from workbench.rules.models.upstream import PROVIDERS
from workbench.rules.profile import Profile
from workbench.rules.workplace import Workplace
from workbench.services.processes import profiles
from workbench.services.processes.processes import ResourceLimits
from workbench.services.processes.sandbox import confinement_of, namespaces_of
from workbench.services.processes.workplaces import choose_gpu
from workbench.services.spawning.definition import persona_of
from workbench.services.spawning.request import SpawnRequest
from workbench.services.spawning.startup import ServerAddress, WorkerStart, config_of
from workbench.services.spawning.terms import TOLD
from workbench.services.worktrees.kept_work import writer_lock
from workbench.state.home import home
from workbench.state.root import STATE
from workbench.state.settings import Settings
from workbench.system import atomic_file, file_lock
from workbench.worker.api import RETRY_SECONDS
from workbench.worker.elsewhere import BranchCopy, bundles_of, check_out
from workbench.worker.sessions import DAY, forget_before
from workbench.worker.startup import WorkerConfig, WorktreePlace

MOST_WORKERS = 1_000
OWN_TOKEN = "wba_"
"""How the token of a worker begins, which a server enlisted before it started it."""
CLOCK_SECONDS = 30.0
"""By how much the clocks of two machines may differ without a word about it."""
_OF_SERVER = (*TOLD, "worker_patience_seconds")
"""The settings that the server decides: nothing that opens this machine."""
_TRUSTED_BY = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS")
"""The variables by which programs are told whom to trust."""


@dataclass(frozen=True, slots=True)
class JoinRequest:
    """What a person of this machine asks for.

    Args:
        url: the server's address, as this machine reaches it, without a slash at its end.
        token: this machine's, or the worker's own; None: the worker is enlisted already.
        certificate: see `connection`.
        profile, persona_id, name: of a worker that is enlisted now.
        limits: of each task's command.
        environment: variables of its commands.
        secret: the names of those that are secret.
    """

    url: str
    token: str | None = field(repr=False)
    certificate: Path | None = None
    profile: str = "script"
    persona_id: str | None = None
    name: str | None = None
    limits: ResourceLimits = field(default_factory=ResourceLimits)
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    secret: tuple[str, ...] = ()

    @property
    def kind(self) -> dict[str, str | None]:
        """What an enlisted worker is asked to be: for another kind, another one is enlisted."""
        return {"url": self.url, "profile": self.profile, "persona_id": self.persona_id}

    def client(self, token: str | None) -> HttpClient:
        """A client of the server."""
        return HttpClient(self.url, token, certificate=self.certificate)


def state_directory() -> Path:
    """Where the directories of this machine's workers are, each in one of its host: homes can be shared."""
    state = os.environ.get("XDG_STATE_HOME") or home() / ".local" / "state"
    return Path(state) / "workbench" / "elsewhere" / socket.gethostname()


@dataclass(frozen=True, slots=True)
class Joined:
    """A worker that can begin. `notes`: coded lines about what its machine lacks."""

    config: WorkerConfig
    agent_id: str
    notes: tuple[str, ...]


@contextmanager
def own_directory(request: JoinRequest, directory: Path | None = None) -> Iterator[Path]:
    """A directory that no other worker uses meanwhile: `directory`, or the first free one for workers of this kind.

    Raises:
        Unavailable: ``DIRECTORY_TAKEN``, ``PROJECT_UNWRITABLE``.
    """
    name = blake2b(json.dumps(request.kind).encode(), digest_size=6).hexdigest()
    places = [directory] if directory else (state_directory() / f"{name}-{n}" for n in range(1, MOST_WORKERS))
    for place in places:
        lock = place / "worker.lock"
        if not lock.exists() and any(os.path.lexists(place / name) for name in (".git", STATE)):
            text = f"{place} has a repository or a project, whose branches a worker would move."
            raise Unavailable("DIRECTORY_TAKEN", f"{text} Choose an empty directory with --directory.")
        _make_private(place)
        with file_lock.held(lock) as is_free:
            if is_free:
                yield place.resolve()
                return
    text = f"A worker works in {directory or state_directory()} already."
    raise Unavailable("DIRECTORY_TAKEN", f"{text} End it, or choose another directory with --directory.")


def _make_private(place: Path) -> None:
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        place.chmod(0o700)
    except OSError as error:
        text = f"{place} cannot be used: {error.strerror}. Choose another directory with --directory."
        raise Unavailable("PROJECT_UNWRITABLE", text) from error


async def join(request: JoinRequest, place: Path) -> Joined:
    """Enlist a worker, unless that of the directory still may act, and make its configuration.

    Raises:
        Unauthenticated: ``MACHINE_TOKEN_REQUIRED``, ``INVALID_TOKEN``. BadInput: ``BAD_URL``. Unavailable:
            ``NO_SERVER``, ``CONFINEMENT_UNAVAILABLE``, ``PROFILE_UNAVAILABLE``, ``GIT_MISSING``, …. WorkbenchError: of
            the server, the disk or git.
    """
    _require_box(Settings(project=place))
    try:
        token = await _enlisted(request, place)
    except NotFound as error:
        if error.code != "NO_SUCH_ENDPOINT":
            raise
        text = f"{request.url} is not the address of a server: nothing is at its path. Leave that out, as in "
        raise BadInput("BAD_URL", f"{text}http://127.0.0.1:8765.") from error
    except Unavailable as error:
        if error.code not in ("NO_SERVER", "NO_REPLY"):
            raise
        said = error.details.get("reason", "it is too late")
        text = (
            f"No Workbench server answers at {request.url}: {said}. Open the way there (`ssh -L …`), if it is closed; "
        )
        raise Unavailable(
            error.code, f"{text}`workbench status` in the project says at which port its server is."
        ) from error
    connection = ProjectConnection(
        *(None, request.url, token),
        connect=lambda _, token: request.client(token),
        patience=Settings(project=place).worker_patience_seconds,
        pauses=RETRY_SECONDS,
    )
    resources = await asyncio.to_thread(lambda: list(lending.rows(Settings(project=place))))
    async with connection as api:
        told = {"facts": await asyncio.to_thread(_facts)} if token == request.token else {}
        terms = await api.call_once("worker_terms", resources=resources, **told)
        apart = abs(time.time() - datetime.fromisoformat(terms["now"]).timestamp())
        settings = _settings(place, terms)
        profile = Profile.model_validate(terms["profile"])
        _require_programs(profile, terms["models"])
        _make_private(settings.scratch)
        oldest = time.time() - settings.keep_attempts_days * DAY  # the server does not say which tasks have ended
        await asyncio.to_thread(forget_before, settings.agent_sessions, oldest)
        repository = await asyncio.to_thread(Repository.create, place, terms["object_format"])
        copy = BranchCopy(
            api.call,
            repository,
            terms["branch_name"],
            bundles_of(place),
            max_bytes=settings.max_import_bytes,
            frame_bytes=settings.max_frame_bytes,
        )
        commit = await copy.fetch()
        worktree = _place(settings, terms)
        await asyncio.to_thread(check_out, repository, worktree, commit)
    config = await asyncio.to_thread(_config, request, settings, token, terms, profile, worktree, repository)
    return Joined(config, terms["agent_id"], tuple(_notes(settings, terms, apart)))


def _notes(settings: Settings, terms: Mapping[str, Any], apart: float) -> Iterator[str]:
    """Coded lines about what this machine lacks, does not get, or has otherwise.

    Args:
        apart: how many seconds its clock is from the server's.
    """
    if confinement_of(settings).enforced and not namespaces_of(settings):
        text = (
            "Commands share this machine's loopback and shared memory, of which they may use nothing, and the worktree"
        )
        yield f"NO_NAMESPACES: {text} stands at a path of its own. Let the user make namespaces (docs/confinement.md)."
    yield from terms.get("stays", ())  # older servers do not say it
    if apart > CLOCK_SECONDS:
        text = f"This machine's clock and the server's differ by {apart:,.0f} s. Leases do not depend on it;"
        yield f"CLOCK_DIFFERS: {text} times in files and commits do. Set it, by NTP for example."
    if terms["version"] != __version__:
        text = f"The server is Workbench {terms['version']}, this worker {__version__}. Install the server's here: "
        yield f"VERSION_DIFFERS: {text}`pip install workbench-agents=={terms['version']}`."


def _require_box(settings: Settings) -> None:
    """Refuse to run commands of others without any box, unless this machine's person has said so.

    Raises:
        Unavailable: ``CONFINEMENT_UNAVAILABLE``.
    """
    if not confinement_of(settings).enforced and settings.confinement != "off":
        raise Unavailable(
            "CONFINEMENT_UNAVAILABLE",
            f"{abilities().summary} On a newer Linux, start the worker again; to let it run unconfined all the same, "
            "set WORKBENCH_CONFINEMENT=off on this machine.",
            missing=list(abilities().missing),
        )


def _require_programs(profile: Profile, models: Collection[str]) -> None:
    """Refuse a profile that needs what is not here: programs, and variables besides the keys that the server has."""
    supplied = {f"${name}" for model in models if model in PROVIDERS for name in PROVIDERS[model].variables}
    if lacks := [need for need in profiles.missing(profile) if need not in supplied]:
        text = (
            f"The profile {profile.name} needs {', '.join(lacks)}, which this machine does not have. Install or set it."
        )
        raise Unavailable("PROFILE_UNAVAILABLE", text, needs=lacks)


# Enlisting.


async def _enlisted(request: JoinRequest, place: Path) -> str:
    """The token of the worker of a directory, which is enlisted if there is none that may act."""
    if request.token is not None and request.token.startswith(OWN_TOKEN):
        return request.token
    file = place / STATE / "agent.json"
    known = _read(file)
    if "token" in known and (request.token is None or known["kind"] == request.kind):
        try:
            async with request.client(known["token"]) as client:
                await client.call("whoami")
        except Unauthenticated:
            known = {}  # it was revoked
        else:
            token: str = known["token"]
            return token
    if request.token is None:
        text = "There is no token of this machine. Name its file with --token-file, or set WORKBENCH_MACHINE_TOKEN; "
        raise Unauthenticated("MACHINE_TOKEN_REQUIRED", f"{text}`workbench machines add NAME` gives one.")
    # Kept before the call, so that a lost answer does not enlist another one.
    is_same = known.get("kind") == request.kind
    own = {"kind": request.kind, "key": known["key"] if is_same else secrets.token_urlsafe(32)}
    _write(file, own)
    persona_id = persona_of(request.persona_id, None)
    given = {"persona_id": persona_id, "name": request.name, "profile": request.profile}
    async with request.client(request.token) as client:
        agent = await client.call("enlist_elsewhere", key=own["key"], facts=await asyncio.to_thread(_facts), **given)
    _write(file, {**own, "agent_id": agent["agent_id"], "token": agent["token"]})
    return str(agent["token"])


def _read(file: Path) -> dict[str, Any]:
    try:
        known = json.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise BadInput("BAD_STATE", f"{file} cannot be read: {error}. Remove it to enlist another worker.") from None
    return known if isinstance(known, dict) else {}


def _write(file: Path, content: Mapping[str, Any]) -> None:
    atomic_file.replace(file, json.dumps(content), 0o600)


def _facts() -> dict[str, Any]:
    """What this machine has, for people."""
    able = abilities()
    return {
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "devices": [gpu.name for gpu in gpus.find()],
        "namespaces": bool(able.namespaces),
        "missing": [sentence[:200] for sentence in able.missing],
        "git": git_version(),
        "python": platform.python_version(),
        "system": platform.platform(),
        "workbench": __version__,
    }


# Its configuration.


def _settings(place: Path, terms: Mapping[str, Any]) -> Settings:
    """This machine's settings, with what the server decides.

    Raises:
        BadInput: ``BAD_SETTINGS``. Unavailable: ``CONFINEMENT_UNAVAILABLE``.
    """
    decided = {name: terms["settings"][name] for name in _OF_SERVER if name in terms["settings"]}
    if terms["confinement"] == "required":
        decided["confinement"] = "required"
    settings = Settings(project=place, **decided)
    confinement_of(settings)
    return settings


def _place(settings: Settings, terms: Mapping[str, Any]) -> WorktreePlace:
    name = terms["worktree"]
    writer = writer_lock(settings, name).path
    return WorktreePlace(name, settings.worktrees / name, settings.repositories / name, terms["branch_name"], writer)


def _authorities(file: Path, certificate: Path) -> Path:
    """A file with the certificates that this system trusts, as far as they are in one file, and one more."""
    system = ssl.get_default_verify_paths().cafile
    files = [*([Path(system)] if system else []), certificate]
    atomic_file.replace(file, "\n".join(one.read_text("utf-8", "replace") for one in files))
    return file


def _config(
    request: JoinRequest,
    settings: Settings,
    token: str,
    terms: Mapping[str, Any],
    profile: Profile,
    worktree: WorktreePlace,
    repository: Repository,
) -> WorkerConfig:
    """The configuration of the worker. Blocks."""
    workplace = Workplace.from_json(terms["workplace"])
    environment = {**terms["environment"], **request.environment}
    if request.certificate:  # for programs that ask the server for models
        trusted = _authorities(settings.home / "certificates.pem", request.certificate)
        environment = dict.fromkeys(_TRUSTED_BY, str(trusted)) | environment
        profile = profile.model_copy(update={"read": [*profile.read, str(trusted)]})
    start = WorkerStart(
        token,
        settings.scratch,
        environment,
        confinement_of(settings),
        None,
        workplace,
        choose_gpu(workplace),
        tuple(terms["models"]),
    )
    secret = (*terms["secret_variables"], *request.secret)
    spawn = SpawnRequest(profile.name, None, None, request.limits, False, bool(environment), secret=secret)
    server = ServerAddress(request.url)
    config = config_of(settings, server, profile, spawn, worktree, repository, start)
    # Where workers of one machine and one server meet: one that lends a device ends what is left of the holder before.
    names = blake2b(f"{request.url}\0{terms['machine']}".encode(), digest_size=6).hexdigest()
    return replace(config, certificate=request.certificate, device_locks=state_directory() / f"devices-{names}")
