"""Launch profiles: the shipped ones, and those in the project's `.aiswarm/profiles/`, which override them."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from workbench.errors import BadInput, NotFound
from workbench.model import Level, Wire
from workbench.ops import Ctx, op
from workbench.rules import profile as rules
from workbench.settings import Settings, shipped

Source = Literal["shipped", "project"]


class ProfileSummary(Wire):
    """A launch profile. `needs` lists what it needs that is not installed or set here."""

    name: str
    summary: str
    command: list[str]
    source: Source
    available: bool
    needs: list[str]


class Profiles(Wire):
    """Launch profiles by name."""

    profiles: list[ProfileSummary]


@op(allow=Level.PLANNER, reads=True)
async def list_profiles(ctx: Ctx) -> Profiles:
    """List the profiles that spawn_agent accepts, and what each needs that is not installed or set here."""
    return Profiles(profiles=await asyncio.to_thread(_all, ctx.settings))


def load(settings: Settings, name: str) -> rules.Profile:
    """The profile with a name; one that has a command but no prompt gets the shipped prompt. Blocks.

    Raises:
        NotFound: ``PROFILE_NOT_FOUND``. BadInput: ``PROFILE_INVALID``.
    """
    files = _files(settings)
    if name not in files:
        raise NotFound("PROFILE_NOT_FOUND", f"There is no profile {name!r}. Available: {', '.join(sorted(files))}.")
    found = _read(files[name][0])
    if found.prompt is None and found.command is not None:
        return found.model_copy(update={"prompt": shipped("data", "profiles", "prompt.md").read_text("utf-8")})
    return found


def missing(profile: rules.Profile) -> list[str]:
    """What a profile needs that is not installed or set here: programs, and variables written ``$NAME``."""
    return [need for need in profile.needs if not _is_there(need)]


def programs(profile: rules.Profile) -> Iterator[Path]:
    """The directories that must be readable for a profile's programs to run."""
    for need in profile.needs:
        if not need.startswith("$") and (found := shutil.which(need)):
            yield from _installed(Path(found))


def _installed(program: Path) -> Iterator[Path]:
    """The directories of a program and of the file it links to; for a Node package, also of its dependencies."""
    yield program.parent
    real = program.resolve()
    modules = [parent for parent in real.parents if parent.name == "node_modules"]
    yield modules[-1] if modules else real.parent
    if modules and (node := shutil.which("node")):
        yield Path(node).resolve().parent.parent


def _is_there(need: str) -> bool:
    return bool(os.environ.get(need[1:])) if need.startswith("$") else shutil.which(need) is not None


def _all(settings: Settings) -> list[ProfileSummary]:
    return [_summary(name, path, source) for name, (path, source) in sorted(_files(settings).items())]


def _summary(name: str, path: Path, source: Source) -> ProfileSummary:
    try:
        found = _read(path)
    except BadInput as error:
        return ProfileSummary(
            name=name, summary=error.message, command=[], source=source, available=False, needs=["a valid file"]
        )
    lacks = missing(found)
    return ProfileSummary(
        name=name,
        summary=found.summary,
        command=found.command or [],
        source=source,
        available=not lacks,
        needs=lacks,
    )


def _files(settings: Settings) -> dict[str, tuple[Path, Source]]:
    found: dict[str, tuple[Path, Source]] = {}
    places: tuple[tuple[Path, Source], ...] = (
        (shipped("data", "profiles"), "shipped"),
        (settings.home / "profiles", "project"),
    )
    for directory, source in places:
        found |= {path.stem: (path, source) for path in directory.glob("*.yaml")}
    return found


def _read(path: Path) -> rules.Profile:
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput("PROFILE_INVALID", f"Profile {path.stem} cannot be read: {error}.") from None
    return rules.parse(path.stem, text)
