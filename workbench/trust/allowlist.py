"""The allowlist, `.aiswarm/allowlist.txt` and the setting `allowed_agents`: only agents with these ids may act.

The file has one id per line; ``#`` starts a comment. An empty list restricts nobody.
"""

from __future__ import annotations

import os
from pathlib import Path

from workbench.errors import Unavailable, why_unreadable
from workbench.state.settings import Settings
from workbench.system import atomic_file

_Stamp = tuple[int, int, int]


class Allowlist:
    """The list of one project. Each use checks whether the file has changed, and reads it only then."""

    def __init__(self, settings: Settings) -> None:
        self.path: Path = settings.home / "allowlist.txt"
        self._name = str(self.path)
        self._fixed = frozenset(filter(None, (part.strip() for part in settings.allowed_agents.split(","))))
        self._stamp: _Stamp | None = None
        self._listed: frozenset[str] = frozenset()

    @property
    def fixed(self) -> frozenset[str]:
        """The ids from the setting; the file cannot remove them."""
        return self._fixed

    def ids(self) -> frozenset[str]:
        """All ids on the list. If it is empty, every agent may act.

        Raises:
            Unavailable: ``ALLOWLIST_UNREADABLE``: no agent may act until the file can be read again.
        """
        stamp = self._file_stamp()
        if stamp != self._stamp:
            self._listed, self._stamp = self._read() if stamp else frozenset(), stamp
        return self._listed | self._fixed

    def allows(self, agent_id: str) -> bool:
        """Whether the agent with this id may act."""
        ids = self.ids()
        return not ids or agent_id in ids

    def add(self, agent_id: str) -> None:
        """Add an id at the end of the file.

        Raises:
            Unavailable: ``ALLOWLIST_UNREADABLE``, ``PROJECT_UNWRITABLE``.
        """
        if agent_id not in self.ids():
            self._write([*self._lines(), agent_id])

    def remove(self, agent_id: str) -> None:
        """Remove an id from the file; comments stay."""
        if agent_id in self.ids():
            self._write([line for line in self._lines() if _id(line) != agent_id])

    def admit(self, agent_id: str) -> None:
        """Add the id of an admitted agent, if the list is not empty."""
        if self.ids():
            self.add(agent_id)

    def rename(self, before: str, after: str) -> None:
        """Replace an agent's id in one step, so that it is never missing."""
        if before != after and before in self.ids():
            self._write([*(line for line in self._lines() if _id(line) != before), after])

    def require_writable(self) -> None:
        """Check, before a decision, that `admit` will be able to write the file.

        Raises:
            Unavailable: ``ALLOWLIST_UNREADABLE``, ``PROJECT_UNWRITABLE``.
        """
        if self.ids():
            self._write(self._lines())

    def _file_stamp(self) -> _Stamp | None:
        try:
            status = os.stat(self._name)  # noqa: PTH116 (pathlib is half as fast, and this runs for every message)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._unreadable_error(error) from error
        return status.st_mtime_ns, status.st_size, status.st_ino

    def _read(self) -> frozenset[str]:
        return frozenset(filter(None, map(_id, self._lines())))

    def _lines(self) -> list[str]:
        try:
            return self.path.read_text("utf-8-sig").splitlines()
        except FileNotFoundError:
            return []
        except (OSError, UnicodeDecodeError) as error:
            raise self._unreadable_error(error) from error

    def _write(self, lines: list[str]) -> None:
        atomic_file.replace(self.path, "".join(f"{line}\n" for line in lines))
        self._stamp = None

    def _unreadable_error(self, error: Exception) -> Unavailable:
        return Unavailable(
            "ALLOWLIST_UNREADABLE", f"{self.path} cannot be read: {why_unreadable(error)}. Correct or remove it."
        )


def _id(line: str) -> str:
    return line.partition("#")[0].strip()
