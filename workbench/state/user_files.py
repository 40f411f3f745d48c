"""The user's own files, outside every repository: settings for all projects, and records of what is trusted."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from workbench.errors import Unavailable
from workbench.state.home import NOWHERE, home
from workbench.system import atomic_file, file_lock

CONFIG_VARIABLE = "WORKBENCH_CONFIG"
LOCK_SECONDS = 30.0


class Record(BaseModel):
    """The record of one project.

    Args:
        project: its root.
        origin: the secret in its `.aiswarm/origin`, which shows that this user's Workbench made the directory.
        inode: of that directory, once it is known at several paths: a copy that lies at one of them has another.
        trusted: the digest of the trusted content of each file, by path below `.aiswarm/`.
    """

    model_config = ConfigDict(frozen=True)

    project: str
    origin: str | None = None
    inode: int | None = None
    trusted: Mapping[str, str] = {}


def directory() -> Path:
    """The directory of these files: `WORKBENCH_CONFIG` if it is an absolute path, else `~/.config/workbench`.

    Not `XDG_CONFIG_HOME`, which MCP clients do not pass on to `workbench mcp`: it would look elsewhere than the server.
    """
    configured = Path(os.environ.get(CONFIG_VARIABLE, ""))
    return configured if configured.is_absolute() else home() / ".config" / "workbench"


def settings_path() -> Path:
    """The path of the user's own settings, which apply to all projects."""
    return directory() / "settings.toml"


def record_path(project: Path) -> Path:
    """The path of the record of a project."""
    return directory() / "projects" / f"{hashlib.sha256(os.fsencode(project.resolve())).hexdigest()[:32]}.json"


def load_record(project: Path) -> Record:
    """The record of a project; an empty one if there is none, it is damaged, or another user could have written it."""
    empty = Record(project=str(project.resolve()))
    try:
        record = Record.model_validate_json(atomic_file.read(record_path(project), private=True))
    except (OSError, ValidationError, ValueError):
        return empty
    return record if record.project == empty.project else empty


def all_records() -> Iterator[Record]:
    """The records of all projects."""
    for path in (directory() / "projects").glob("*.json"):
        with suppress(OSError, ValidationError, ValueError):
            yield Record.model_validate_json(atomic_file.read(path, private=True))


@contextmanager
def record_lock(project: Path) -> Iterator[None]:
    """Hold the lock of the record of a project, for reading it and changing it. Blocks.

    Raises:
        Unavailable: ``CONFIG_UNWRITABLE``.
    """
    path = record_path(project)
    with ExitStack() as stack:
        try:
            path.parent.mkdir(parents=True, mode=0o700, exist_ok=True)
            is_held = stack.enter_context(file_lock.held(path.with_suffix(".lock"), LOCK_SECONDS, remove=True))
        except (OSError, Unavailable) as error:
            raise _unwritable_error(path, error) from None
        if not is_held:
            raise _unwritable_error(path, f"another process has locked it for {LOCK_SECONDS:g} s")
        yield


def update_record(project: Path, **changes: Any) -> None:
    """Change the record of a project. Hold `record_lock` since you read it, because other processes change it too.

    Raises:
        Unavailable: ``CONFIG_UNWRITABLE``.
    """
    path = record_path(project)
    record = load_record(project).model_copy(update=changes)
    try:
        atomic_file.replace(path, json.dumps(record.model_dump(), indent=2), mode=0o600)
    except Unavailable as error:
        raise _unwritable_error(path, error) from None


def _unwritable_error(path: Path, why: object) -> Unavailable:
    if path.is_relative_to(NOWHERE):
        return Unavailable(
            "CONFIG_UNWRITABLE",
            "Workbench records in your home directory which projects you trust, and the user that you run as has none. "
            "Set WORKBENCH_CONFIG to a directory of yours, or HOME.",
        )
    return Unavailable(
        "CONFIG_UNWRITABLE",
        f"Workbench records in {path.parent} which projects you trust, and cannot write there: {why}. "
        "Make it writable, or set WORKBENCH_CONFIG to a directory of yours.",
    )
