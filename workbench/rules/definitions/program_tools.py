"""The own tools of programs such as Claude Code, which a definition may limit: their names, and what limits amount to.

Tools have the names that Claude Code gives them: `Read`, or `Bash(git diff:*)` for some uses of a tool. A definition
limits what a profile gives; it never adds to that.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

_ENTRY = re.compile(r"(?P<tool>[A-Za-z][A-Za-z0-9_-]{0,99})(?:\((?P<uses>[^()\x00-\x1f\x7f]{1,300})\))?")
_SEPARATED = re.compile(r"[^\s,()]+(?:\([^()]*\))?")
WRITING = frozenset({"Bash", "Edit", "MultiEdit", "NotebookEdit", "Write"})
"""The tools that change files."""
READING = frozenset({"Bash", "Glob", "Grep", "LS", "Read"})
"""The tools that read files."""
MODES = ("default", "acceptEdits", "dontAsk", "plan")
"""Permission modes that are no more than profiles give, the strictest last."""
PermissionMode = Literal["default", "acceptEdits", "dontAsk", "plan"]


def _entry(text: str) -> str:
    if not _ENTRY.fullmatch(text):
        raise ValueError("must be the name of a tool, such as Read, or some uses of one, such as Bash(git diff:*)")
    return text


def separated(value: Any) -> Any:
    """The tools in a text, which commas or blanks separate; anything else as it is."""
    return _SEPARATED.findall(value) if isinstance(value, str) else value


ProgramTool = Annotated[str, AfterValidator(_entry)]
ProgramTools = Annotated[list[ProgramTool], Field(max_length=200), BeforeValidator(separated)]


def tool_of(entry: str) -> str:
    """The name of the tool of an entry."""
    return entry.partition("(")[0]


def uses_of(entry: str) -> str:
    """The uses that an entry is limited to; empty for all."""
    return entry.partition("(")[2].removesuffix(")")


def is_tool(text: Any) -> bool:
    """Whether a text is an entry of a list of tools."""
    return isinstance(text, str) and _ENTRY.fullmatch(text) is not None


class ToolLimits(BaseModel):
    """What an agent's program may do with its own tools.

    Args:
        allowed: the tools that it may use; None: all that its profile gives.
        refused: those that it may not use.
        mode: a stricter permission mode than that of its profile.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    allowed: tuple[str, ...] | None = None
    refused: tuple[str, ...] = ()
    mode: PermissionMode | None = None

    def __bool__(self) -> bool:
        return self.allowed is not None or bool(self.refused) or self.mode in ("dontAsk", "plan")

    @property
    def is_plan(self) -> bool:
        """Whether nothing may be changed."""
        return self.mode == "plan"

    def allows(self, tool: str) -> bool:
        """Whether all uses of a tool are allowed."""
        if (self.is_plan and tool in WRITING) or any(tool_of(entry) == tool for entry in self.refused):
            return False
        return self.allowed is None or tool in self.allowed

    def allows_any(self, tools: Iterable[str]) -> bool:
        """Whether all uses of one of some tools are allowed."""
        return any(map(self.allows, tools))

    @property
    def partial(self) -> tuple[str, ...]:
        """The entries about some uses of a tool only."""
        return tuple(entry for entry in (*(self.allowed or ()), *self.refused) if uses_of(entry))

    @property
    def fully_allowed(self) -> tuple[str, ...] | None:
        """The tools of which all uses are allowed; None: all but those that are refused."""
        if self.allowed is None:
            return None
        return tuple(tool for tool in self.allowed if not uses_of(tool) and self.allows(tool))

    @property
    def refused_tools(self) -> tuple[str, ...]:
        """The tools of which some uses are refused."""
        planned = sorted(WRITING) if self.is_plan else ()
        return tuple(dict.fromkeys([*map(tool_of, self.refused), *planned]))


GEMINI: Mapping[str, Sequence[str]] = {
    "Read": ("read_file", "read_many_files"),
    "Grep": ("grep_search", "search_file_content"),
    "Glob": ("glob", "list_directory"),
    "LS": ("list_directory",),
    "Bash": ("run_shell_command",),
    "Edit": ("replace",),
    "MultiEdit": ("replace",),
    "Write": ("write_file",),
    "NotebookEdit": (),
    "WebFetch": ("web_fetch",),
    "WebSearch": ("google_web_search",),
    "TodoWrite": ("write_todos",),
}
"""What Gemini CLI calls tools; one that is not here has the same name there."""
_CLASSES = {
    "read_file": "ReadFileTool",
    "read_many_files": "ReadManyFilesTool",
    "grep_search": "GrepTool",
    "glob": "GlobTool",
    "list_directory": "LSTool",
    "run_shell_command": "ShellTool",
    "replace": "EditTool",
    "write_file": "WriteFileTool",
    "web_fetch": "WebFetchTool",
    "google_web_search": "WebSearchTool",
}
_FROM_GEMINI = {name: tool for tool, names in reversed([*GEMINI.items()]) for name in names} | {
    kind: next(tool for tool, names in GEMINI.items() if name in names) for name, kind in _CLASSES.items()
}


def from_gemini(entry: str) -> str:
    """An entry of Gemini CLI by the name of the tool here; one that has none stays."""
    tool, uses = _FROM_GEMINI.get(tool_of(entry), tool_of(entry)), uses_of(entry)
    return (
        f"{tool}({uses}:*)"
        if uses and tool == "Bash" and not uses.endswith("*")
        else f"{tool}({uses})"
        if uses
        else tool
    )


def to_gemini(tools: Iterable[str]) -> list[str]:
    """The names of tools in Gemini CLI."""
    return sorted({name for tool in tools for name in GEMINI.get(tool, (tool,))})
