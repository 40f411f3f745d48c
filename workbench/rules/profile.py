"""Launch profiles: how an agent's program is started for a task, as data (YAML). No file is read here.

A profile is a template of a command, of the files written for it, and of its environment. The names in `FILLED_IN`, in
braces, are placeholders; all other braces stay as they are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from workbench.errors import BadInput
from workbench.rules.reasons import reason
from workbench.rules.yaml_text import InvalidYaml, load

FILLED_IN = frozenset(
    {
        *("prompt", "prompt_file", "persona", "persona_file", "task_file", "result_file", "mcp_config", "scratch"),
        *("worktree", "project", "title", "description", "task_id", "attempt", "agent_id", "function", "caller"),
        *("python", "url", "mcp_url", "token", "system_prompt", "system_prompt_file", "previous"),
    }
)
"""The placeholders of templates."""
SECRET = frozenset({"token", "mcp_config"})
"""Placeholders that need `token: true`."""
RESERVED = ("WORKBENCH_", "LD_", "GIT_", "PYTHON")
"""Prefixes of environment variables that only Workbench sets for a worker."""

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,49}")
_BRACES = re.compile(r"\{([a-z_]+)\}")
_QUOTED = (".json", ".toml")


def _inside(path: str) -> str:
    parts = PurePosixPath(path).parts
    if not parts or PurePosixPath(path).is_absolute() or ".." in parts or "\0" in path:
        raise ValueError("must be a path below the scratch directory (or home), without '..'")
    return path


def _variable(name: str) -> str:
    if not name.isidentifier() or (name.upper().startswith(RESERVED) and name != "WORKBENCH_TOKEN"):
        raise ValueError(f"must be a variable name that does not begin with {', '.join(RESERVED)}")
    return name


Template = Annotated[str, Field(max_length=100_000)]
Below = Annotated[str, Field(min_length=1, max_length=1_000), AfterValidator(_inside)]
Variable = Annotated[str, Field(max_length=100), AfterValidator(_variable)]


class Profile(BaseModel):
    """One way to run an agent.

    Args:
        command: the program and its arguments; None: the task's own `run`.
        needs: what must exist: programs, or environment variables (written ``$NAME``).
        stdin: what the program reads: the task as JSON, or the prompt.
        answer: its result if it writes no result file: ``output`` (the end of what it prints) or ``none``.
        answer_file: a file in the scratch directory whose text is its result if it writes no result file.
        token: whether it calls Workbench itself, as the agent.
        prompt: the template of its prompt; None: the default.
        files: written into the scratch directory (mode 0600) before each task.
        copies: files of the user's home directory that are copied into the scratch directory, if they exist.
        passes: variables of the user's environment that it gets although they look like secrets.
        environment: variables set for it.
        connect: TCP ports that it may connect to; ``server`` is Workbench's own.
        read: additional paths that it may read.
        program: the program that it starts, if Workbench can configure that one for a definition.
        driver: whose output its command writes, which tells what it does and how it ended; ``acp``: that of an agent
            which gets its prompt by the Agent Client Protocol; ``text``: any text. None: that of `program`, which is
            then started so that it writes it, or text.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

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
    program: Literal["claude", "codex", "gemini"] | None = None
    driver: Literal["acp", "claude", "codex", "gemini", "text"] | None = None

    @property
    def stream(self) -> str | None:
        """The program whose output its command writes; None: any text."""
        return None if self.driver == "text" else self.driver or self.program

    @property
    def templates(self) -> list[str]:
        """All texts that may contain placeholders."""
        return [*(self.command or ()), *self.files.values(), *self.environment.values(), self.prompt or ""]

    @property
    def takes_system_prompt(self) -> bool:
        """Whether a template contains the system prompt of the agent's definition, or names its file."""
        return any({"system_prompt", "system_prompt_file"} & set(_BRACES.findall(text)) for text in self.templates)


def parse(name: str, text: str) -> Profile:
    """Parse the text of a profile file whose stem is `name`.

    Raises:
        BadInput: ``PROFILE_INVALID``.
    """
    try:
        fields = load(text)
    except InvalidYaml as error:
        where = "" if error.line is None else f" (line {error.line})"
        raise _invalid(name, f"it is not YAML: {error}{where}") from None
    if not isinstance(fields, dict):
        raise _invalid(name, "it must be a mapping with summary and command")
    try:
        profile = Profile.model_validate({"name": name, **fields})
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise _invalid(name, f"{where}: {reason(first)}") from None
    _check(profile, name)
    return profile


def _check(profile: Profile, name: str) -> None:
    if profile.name != name:
        raise _invalid(name, f"its name is {profile.name!r}, but must be that of the file")
    used = {found for text in profile.templates for found in _BRACES.findall(text)} & FILLED_IN
    if used & SECRET and not profile.token:
        raise _invalid(name, f"{{{min(used & SECRET)}}} needs token: true")


def _invalid(name: str, why: str) -> BadInput:
    return BadInput("PROFILE_INVALID", f"Profile {name}: {why}.", profile=name)


def fill(template: str, values: Mapping[str, str], *, file: str = "") -> str:
    """Replace the placeholders of a template, once: placeholders in the values are not replaced.

    Args:
        file: the name of the file that it is for; in JSON and TOML, values are escaped for use inside a string.
    """
    write = _escaped if file.endswith(_QUOTED) else str
    return _BRACES.sub(lambda found: write(values[found[1]]) if found[1] in values else found[0], template)


def _escaped(value: str) -> str:
    """The value escaped for use between the quotes of a string, in JSON and in TOML."""
    return json.dumps(value, ensure_ascii=False)[1:-1].replace("\x7f", "\\u007f")


def mcp_config(mcp_url: str, token: str) -> dict[str, Any]:
    """The configuration that many MCP clients read, with the agent's token."""
    headers = {"Authorization": f"Bearer {token}"}
    return {"mcpServers": {"workbench": {"type": "http", "url": mcp_url, "headers": headers}}}
