"""The file with the MCP servers of a project, `.aiswarm/mcp.json`: read when it has changed, and changed in place."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from workbench.errors import BadInput, Unavailable
from workbench.rules.tools.servers import KEY, ServerList, parsed
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
        edit(content.setdefault(KEY, {}))
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
            edit(content.setdefault(KEY, {}))
            atomic_file.replace(self.path, json.dumps(content, indent=2, ensure_ascii=False) + "\n", mode=0o600)
            return parsed(content)

    def _content(self) -> dict[str, Any]:
        try:
            content = json_safety.decode(atomic_file.read(self.path))
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
            return parsed(json_safety.decode(atomic_file.read(self.path)))
        except (OSError, ValueError) as error:
            return ServerList(problems={"": _reason(error)})

    def _signature(self) -> object:
        try:
            status = self.path.lstat()
        except OSError:
            return None
        return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _reason(error: Exception) -> str:
    return f"it cannot be read: {error.strerror or error}" if isinstance(error, OSError) else str(error)


def _unusable_error(path: Path, reason: str) -> BadInput:
    return BadInput("BAD_TOOL_SERVERS", f"{path} cannot be used: {reason}. Correct or remove it.", path=str(path))
