"""The file with the MCP servers of a project, `.aiswarm/mcp.json`: read when it has changed, and changed in place."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from workbench.errors import BadInput, Unavailable
from workbench.rules.tools.servers import ServerList, key_of, parsed
from workbench.rules.wire import json_safety
from workbench.system import atomic_file, file_lock

LOCK_SECONDS = 10.0


class ServersFile:
    """The file at a path, which need not exist. Every method blocks."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._known: tuple[object, ServerList] = (None, ServerList())

    def read(self) -> ServerList:
        """The servers, cached until the file changes. If it cannot be used, `problems` says why."""
        signature = self._signature()
        if signature is None:
            return ServerList()
        if self._known[0] != signature:
            self._known = (signature, self._parse())
        return self._known[1]

    def preview(self, edit: Callable[[dict[str, Any]], None]) -> ServerList:
        """The servers as a change would leave them; see `change`."""
        content = self._content()
        edit(content.setdefault(key_of(content), {}))
        return parsed(content)

    def change(self, edit: Callable[[dict[str, Any]], None]) -> ServerList:
        """Change the entries by name in place; the rest of the file stays.

        Raises:
            BadInput: ``BAD_TOOL_SERVERS``: the file cannot be used as it is. Unavailable: ``PROJECT_UNWRITABLE``.
            WorkbenchError: whatever `edit` raises; the file is unchanged.
        """
        with file_lock.held(self.path.with_name(".mcp.json.lock"), LOCK_SECONDS, remove=True) as is_held:
            if not is_held:
                raise Unavailable("PROJECT_UNWRITABLE", f"{self.path} is being changed by another program. Try again.")
            content = self._content()
            edit(content.setdefault(key_of(content), {}))
            atomic_file.replace(self.path, json.dumps(content, indent=2, ensure_ascii=False) + "\n", mode=0o600)
            return parsed(content)

    def _content(self) -> dict[str, Any]:
        try:
            content = self._decoded()
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise _unusable_error(self.path, _reason(error)) from None
        if problem := parsed(content).problems.get(""):
            raise _unusable_error(self.path, problem)
        servers: dict[str, Any] = content
        return servers

    def _parse(self) -> ServerList:
        try:
            return parsed(self._decoded())
        except (OSError, ValueError) as error:
            return ServerList(problems={"": _reason(error)})

    def _decoded(self) -> Any:
        text = atomic_file.read(self.path).removeprefix("\ufeff")  # with which some editors begin a file
        try:
            return json_safety.decode(text)
        except json_safety.NotJson:
            json.loads(text)  # says where
            raise

    def _signature(self) -> object:
        try:
            status = self.path.lstat()
        except OSError:
            return None
        return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _reason(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        place = f"line {error.lineno}, column {error.colno}"
        return f"{place}: {error.msg}. JSON has no comments, and no comma after the last entry"
    return f"it cannot be read: {error.strerror or error}" if isinstance(error, OSError) else str(error)


def _unusable_error(path: Path, reason: str) -> BadInput:
    return BadInput("BAD_TOOL_SERVERS", f"{path} cannot be used: {reason}. Correct or remove it.", path=str(path))
