"""Which machine this is, among those that share a project by its database.

A clone of the repository on a machine, with its `.aiswarm/`, is what counts as one: it has the worktrees, processes and
logs. Two clones on one host are two machines, and need two names.
"""

from __future__ import annotations

import json
import socket
import uuid
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, TypeAdapter, field_validator
from pydantic_settings import BaseSettings, NoDecode

from workbench.errors import Conflict
from workbench.state import user_files
from workbench.state.root import identity
from workbench.system import atomic_file

SERVER = r"^(https?://[^\s/?#]+[^\s?#]*)?$"
"""The address of a server, or nothing."""
MACHINE_IDS = (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id"))


class DaskMachine(BaseModel, frozen=True, extra="forbid"):
    """A Dask cluster that runs.

    Args:
        address: of its scheduler, such as ``tcp://head:8786``.
        server: see `SlurmMachine`.
    """

    kind: Literal["dask"]
    address: str = Field(pattern=r"^(tcp|tls|ws|wss)://[^\s/]+:[0-9]+$")
    server: str = Field("", max_length=1_000, pattern=SERVER)


class SlurmMachine(BaseModel, frozen=True, extra="forbid"):
    """Jobs of Slurm that are workers of a Dask cluster as long as a sweep or an agent needs them.

    Args:
        server: the address at which agents there reach the project's server; empty: at that where it listens.
        jobs: how many a sweep has.
        cores, memory: of each.
        patience_seconds: how long to wait for the first job to start.
        options: what else `SLURMCluster` of dask-jobqueue takes, such as `queue`, `account`, `walltime`, `interface`.
    """

    kind: Literal["slurm"]
    server: str = Field("", max_length=1_000, pattern=SERVER)
    jobs: int = Field(1, ge=1, le=10_000)
    cores: int = Field(ge=1, le=10_000)
    memory: str = Field(min_length=1, max_length=50)
    patience_seconds: float = Field(86_400.0, gt=0)
    options: dict[str, Any] = {}


class SshMachine(BaseModel, frozen=True, extra="forbid"):
    """A machine without a clone, on which agents are spawned by ssh.

    Args:
        host: as ssh takes it, such as ``you@node``.
        command: what the shell there calls Workbench.
        options: more options of ssh, such as ``-p``, ``2222``.
    """

    kind: Literal["ssh"]
    host: str = Field(max_length=255, pattern=r"^[^\s-]\S*$")
    command: str = Field("workbench", min_length=1, max_length=1_000)
    options: tuple[str, ...] = ()


Cluster = DaskMachine | SlurmMachine
DescribedMachine = Cluster | SshMachine
_DESCRIBED: TypeAdapter[DescribedMachine] = TypeAdapter(Annotated[DescribedMachine, Field(discriminator="kind")])
NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,49}"
"""Of a machine."""


class MachineSettings(BaseSettings):
    """What this machine is called, how long others may be silent, and which others work for it."""

    machines: Annotated[dict[Annotated[str, Field(pattern=f"^{NAME}$")], dict[str, Any]], NoDecode] = Field(
        {},
        description="Other machines, by name, as tables. Agents are spawned on all, sweeps executed on clusters. "
        'kind = "ssh" has host, command and options; kind = "dask" has the address of a scheduler and server; '
        'kind = "slurm" has jobs, cores, memory, patience_seconds, options and server. See docs/machines.md.',
    )

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
    elsewhere_patience_seconds: float = Field(
        86_400.0, gt=0, description="How long a worker without a clone waits for an unreachable server."
    )
    max_artifact_bytes: int = Field(
        1_073_741_824,
        ge=0,
        description="Most bytes of files outside of git that an attempt on a machine without a clone may send.",
    )
    max_sent_log_bytes: int = Field(
        20_000_000,
        ge=100_000,
        description="Most bytes of the log that a worker on a machine without a clone sends: then the older half goes.",
    )
    max_workers_of_machine: int = Field(
        16, ge=1, description="Most workers that a machine without a clone may enlist with its token."
    )

    @field_validator("machines", mode="before")
    @classmethod
    def _load_machines(cls, value: Any) -> Any:
        return json.loads(value) if isinstance(value, str) else value

    @field_validator("machines", mode="after")
    @classmethod
    def _check_machines(cls, value: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        for described in value.values():
            _DESCRIBED.validate_python(described)
        return value

    @property
    def described_machines(self) -> dict[str, DescribedMachine]:
        """The machines of the settings, by name."""
        return {name: _DESCRIBED.validate_python(described) for name, described in self.machines.items()}

    @property
    def clusters(self) -> dict[str, Cluster]:
        """Those that execute sweeps, by name."""
        return {
            name: machine for name, machine in self.described_machines.items() if not isinstance(machine, SshMachine)
        }


@dataclass(frozen=True, slots=True)
class Machine:
    """This machine.

    Args:
        name: what it is called in this project; no other machine of the project is.
        is_alone: no other machine can reach the project's store, so everything in it is of this one.
    """

    name: str
    is_alone: bool = True

    @property
    def only(self) -> str | None:
        """The machine to whose rows a query is limited; None: there are none of others."""
        return None if self.is_alone else self.name

    def has(self, machine: str) -> bool:
        """Whether what a row says of its machine is this one."""
        return self.is_alone or machine == self.name

    def require(self, machine: str, what: str) -> None:
        """Refuse what can only be done on the machine that has it.

        Args:
            what: what is there, as the subject of a sentence.

        Raises:
            Conflict: ``ON_ANOTHER_MACHINE``.
        """
        if not self.has(machine):
            raise on_another(machine, what)


def on_another(machine: str, what: str) -> Conflict:
    """The error for what can only be done on another machine of the project."""
    return Conflict(
        "ON_ANOTHER_MACHINE",
        f"{what} is on the machine {machine}: do this there, in its clone of the repository. `workbench servers` says "
        f"whether its server runs; if the machine is gone for good, `workbench servers forget {machine}` gives this "
        "one what is recorded of it.",
        machine=machine,
    )


def name_of(settings: MachineSettings) -> str:
    """What this machine is to be called: as the settings say, or its host name."""
    return settings.machine or socket.gethostname() or "machine"


def place_of(home: Path) -> str:
    """Identifies this clone on this host: it keeps its identity when it is renamed, and a copy has another. Blocks.

    Raises:
        Unavailable: ``PROJECT_UNWRITABLE``.
    """
    return blake2b(f"{host()}\0{identity(home)}".encode(), digest_size=16).hexdigest()


@cache
def host() -> str:
    """Identifies this host, and keeps doing so when it is renamed or restarted. Blocks.

    Raises:
        Unavailable: ``PROJECT_UNWRITABLE``.
    """
    return system_id() or _of_user(user_files.directory() / "machine-id")


def system_id() -> str:
    """A hash of the identity that the system has given this host; empty without one, as in many containers. Blocks."""
    for path in MACHINE_IDS:
        with suppress(OSError, UnicodeDecodeError):
            if text := path.read_text("ascii").strip():
                return blake2b(text.encode(), digest_size=16).hexdigest()
    return ""


def _of_user(path: Path) -> str:
    """The identity in a file of the user's, which is made if there is none."""
    with suppress(OSError, ValueError):
        return uuid.UUID(atomic_file.read(path, private=True).strip()).hex
    new = uuid.uuid4().hex
    atomic_file.replace(path, new, mode=0o600)
    return new
