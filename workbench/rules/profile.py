"""Launch profiles: how an agent's program is started for a task, as data (YAML). Pure: no file is read here.

A profile is a template of a command, of files that are written for it, and of its environment. What may be filled
in are the names in `FILLED_IN`, in braces; any other brace stays as it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from workbench.errors import BadInput
from workbench.rules.tasks.plan import NOT_YAML

FILLED_IN = frozenset(
    {
        *("prompt", "prompt_file", "persona", "persona_file", "task_file", "result_file", "mcp_config", "scratch"),
        *("worktree", "project", "title", "description", "task_id", "attempt", "agent_id", "function", "caller"),
        *("python", "url", "mcp_url", "token"),
    }
)
"""What can stand in braces in a template."""
SECRET = frozenset({"token", "mcp_config"})
"""What only a profile with `token: true` is given."""
RESERVED = ("WORKBENCH_", "LD_", "GIT_", "PYTHON")
"""Beginnings of variables that nobody but Workbench sets for a worker."""

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,49}")
_BRACES = re.compile(r"\{([a-z_]+)\}")
_QUOTED = (".json", ".toml")


def _inside(path: str) -> str:
    parts = PurePosixPath(path).parts
    if not parts or PurePosixPath(path).is_absolute() or ".." in parts or "\0" in path:
        raise ValueError("a path below the scratch directory (or home), without '..'")
    return path


def _variable(name: str) -> str:
    if not name.isidentifier() or (name.upper().startswith(RESERVED) and name != "WORKBENCH_TOKEN"):
        raise ValueError(f"a variable; names that begin with {', '.join(RESERVED)} are kept")
    return name


Template = Annotated[str, Field(max_length=100_000)]
Below = Annotated[str, Field(min_length=1, max_length=1_000), AfterValidator(_inside)]
Variable = Annotated[str, Field(max_length=100), AfterValidator(_variable)]


class Profile(BaseModel):
    """One way to run an agent.

    Args:
        command: the program and its arguments; None: the task's own `run`.
        needs: what has to be there: programs; or, written ``$NAME``, variables of the environment.
        stdin: what it reads: the task as JSON, or the prompt.
        answer: what its result is if it wrote no result file: ``output``: the last of what it printed; or ``none``.
        answer_file: a file in the scratch directory whose text is its result, if it wrote no result file.
        token: it talks to Workbench itself, as the agent.
        prompt: what it is told; None: as shipped.
        files: written into the scratch directory (mode 0600) before each task.
        copies: files of the person's home that are copied into the scratch directory if they are there.
        passes: variables of the person's environment that it gets though they look like secrets.
        environment: variables that are set for it.
        connect: TCP ports it may connect to, ``server`` for Workbench's own.
        read: more paths that it may read.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, Field(pattern=_NAME.pattern)]
    summary: Annotated[str, Field(min_length=1, max_length=500)]
    command: Annotated[list[Template], Field(min_length=1, max_length=200)] | None = None
    needs: Annotated[list[str], Field(max_length=20)] = []
    stdin: Literal["task", "prompt"] = "task"
    answer: Literal["output", "none"] = "none"
    answer_file: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-][A-Za-z0-9._-]{0,100}$")] | None = None
    token: bool = False
    prompt: Template | None = None
    files: dict[Below, Template] = {}
    copies: list[Below] = []
    passes: list[Variable] = []
    environment: dict[Variable, Template] = {}
    connect: list[Annotated[int, Field(gt=0, lt=65_536)] | Literal["server"]] = []
    read: Annotated[list[str], Field(max_length=100)] = []

    @property
    def templates(self) -> list[str]:
        """Everything in which something may be filled in."""
        return [*(self.command or ()), *self.files.values(), *self.environment.values(), self.prompt or ""]


def parse(name: str, text: str) -> Profile:
    """Read a profile from a file whose stem is `name`.

    Raises:
        BadInput: ``PROFILE_INVALID``.
    """
    try:
        said = yaml.safe_load(text)
    except NOT_YAML as error:
        raise _invalid(name, f"it is not YAML: {error}") from None
    if not isinstance(said, dict):
        raise _invalid(name, "it has to be a mapping with summary and command")
    try:
        profile = Profile.model_validate({"name": name, **said})
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise _invalid(name, f"{where}: {first['msg'].removeprefix('Value error, it has to be ')}") from None
    _check(profile, name)
    return profile


def _check(profile: Profile, name: str) -> None:
    if profile.name != name:
        raise _invalid(name, f"it says that its name is {profile.name!r}; the file's name counts")
    used = {found for text in profile.templates for found in _BRACES.findall(text)} & FILLED_IN
    if used & SECRET and not profile.token:
        raise _invalid(name, f"{{{min(used & SECRET)}}} needs token: true")


def _invalid(name: str, why: str) -> BadInput:
    return BadInput("PROFILE_INVALID", f"Profile {name}: {why}.", profile=name)


def fill(template: str, values: Mapping[str, str], *, file: str = "") -> str:
    """Fill a template in, once: what is filled in is not read again.

    Args:
        file: the name of the file that it is for; in JSON and TOML what is filled in stands inside a string.
    """
    write = _inside_string if file.endswith(_QUOTED) else str
    return _BRACES.sub(lambda found: write(values[found[1]]) if found[1] in values else found[0], template)


def _inside_string(value: str) -> str:
    """As it stands between the quotation marks of a string, in JSON and in TOML."""
    return json.dumps(value, ensure_ascii=False)[1:-1].replace("\x7f", "\\u007f")


def mcp_config(mcp_url: str, token: str) -> dict[str, Any]:
    """The configuration that many MCP clients read, with the agent's token in it."""
    headers = {"Authorization": f"Bearer {token}"}
    return {"mcpServers": {"workbench": {"type": "http", "url": mcp_url, "headers": headers}}}
