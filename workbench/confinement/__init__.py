"""STUB until the real one is merged."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Limits:
    cpu_seconds: float | None = None
    memory_bytes: int | None = None
    wall_seconds: float | None = None
    tasks: int | None = None


@dataclass(frozen=True, slots=True)
class Box:
    write: tuple[Path, ...]
    read: tuple[Path, ...]
    scratch: Path
    connect: tuple[int, ...] = ()
    enforce: bool = True

    def argv(self, command: Sequence[str], limits: Limits | None = None) -> list[str]:
        return list(command)

    def environment(self, base: Mapping[str, str]) -> dict[str, str]:
        kept = {k: v for k, v in base.items() if not k.startswith(("GIT_", "WORKBENCH_", "PYTHON", "LD_"))}
        return kept | {"HOME": str(self.scratch), "TMPDIR": str(self.scratch)}

    def as_json(self) -> str:
        return json.dumps(asdict(self), default=str)

    @classmethod
    def from_json(cls, text: str) -> Box:
        s = json.loads(text)
        return cls(
            tuple(map(Path, s["write"])),
            tuple(map(Path, s["read"])),
            Path(s["scratch"]),
            tuple(s["connect"]),
            s["enforce"],
        )


@dataclass(frozen=True, slots=True)
class Abilities:
    abi: int
    enforced: tuple[str, ...]
    missing: tuple[str, ...]
    summary: str


def abilities() -> Abilities:
    return Abilities(0, (), ("everything",), "stub")


def box_for_worktree(*, worktree, git_dir, objects, scratch, read=(), write=(), connect=(), enforce=True) -> Box:
    return Box((worktree, git_dir, *write), (*objects, *read), scratch, tuple(connect), enforce)
