"""Launch profiles: the shipped ones, and trusted ones in the project's `.aiswarm/profiles/`, which override them."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from workbench.definition_files import model_keys
from workbench.drivers import PROGRAMS, Fit, fit
from workbench.errors import BadInput, NotFound, Refused, Unavailable, WorkbenchError
from workbench.model import Level, Wire
from workbench.ops import Command, Ctx, op
from workbench.rules import profile as rules
from workbench.rules.definitions.mcp_servers import StdioServer
from workbench.rules.definitions.model import Definition
from workbench.rules.models.upstream import PROVIDERS
from workbench.rules.secrets.executed import GivenWords
from workbench.state.home import expanded, home
from workbench.state.settings import Settings, shipped
from workbench.state.user_files import load_record
from workbench.trust.withheld import is_trusted, read_profile

Source = Literal["shipped", "project"]
_SCRIPTS = frozenset((".py", ".js", ".mjs", ".cjs", ".ts", ".rb", ".jar", ".sh"))
"""The endings of files that load others from their directory."""


class ProfileSummary(Wire):
    """A launch profile. `needs` lists what it needs that is not installed or set here."""

    name: str
    summary: str
    command: GivenWords
    source: Source
    available: bool
    needs: list[str]


class Profiles(Wire):
    """Launch profiles by name."""

    profiles: list[ProfileSummary]


@op(allow=Level.PLANNER, reads=True, command=Command("profiles"))
async def list_profiles(ctx: Ctx) -> Profiles:
    """List the profiles that spawn_agent accepts, and what each needs that is not installed or set here."""
    return Profiles(profiles=await asyncio.to_thread(_all, ctx.settings))


def load(settings: Settings, name: str) -> rules.Profile:
    """The profile with a name; one that has a command but no prompt gets the shipped prompt. Blocks.

    Raises:
        NotFound: ``PROFILE_NOT_FOUND``. BadInput: ``PROFILE_INVALID``. Refused: ``PROFILE_NOT_TRUSTED``.
    """
    files = _files(settings)
    if name not in files:
        raise NotFound("PROFILE_NOT_FOUND", f"There is no profile {name!r}. Available: {', '.join(sorted(files))}.")
    profile = files[name].parse()
    if profile.prompt is None and profile.command is not None:
        heard = "prompt_heard.md" if profile.stream else "prompt_alone.md"
        prompt = "prompt.md" if profile.token else heard
        return profile.model_copy(update={"prompt": shipped("data", "profiles", prompt).read_text("utf-8")})
    return profile


def fitted(profile: rules.Profile, definition: Definition) -> Fit:
    """What the program of a profile uses of a definition.

    Raises:
        BadInput: ``DEFINITION_DOES_NOT_FIT``, ``PROVIDER_UNKNOWN``.
    """
    return fit(PROGRAMS[profile.program] if profile.program else None, profile.name, definition)


def missing(profile: rules.Profile, fit: Fit | None = None) -> list[str]:
    """What a profile needs that is not installed or set here: programs, and variables written ``$NAME``.

    Args:
        fit: what it uses of a definition, which may supply a provider's key.
    """
    supplied = f"${PROGRAMS[profile.program].key}" if profile.program and fit and fit.has_key else None
    return [need for need in profile.needs if need != supplied and not _is_there(need)]


def programs(profile: rules.Profile) -> Iterator[Path]:
    """The directories that must be readable for a profile's programs to run."""
    for need in profile.needs:
        if not need.startswith("$") and (program := shutil.which(need)):
            yield from installed(Path(program))


def installed(program: Path) -> Iterator[Path]:
    """The directories of a program and of the file it links to; for a Node package, also of its dependencies."""
    yield program.parent
    real = program.resolve()
    modules = [parent for parent in real.parents if parent.name == "node_modules"]
    yield modules[-1] if modules else real.parent
    if modules and (node := shutil.which("node")):
        yield Path(node).resolve().parent.parent


def server_places(settings: Settings, server: StdioServer, directory: Path | None = None) -> list[Path]:
    """The paths that must be readable for the program of an MCP server to run: itself, its interpreter, the scripts
    with their packages that its arguments name; for one in a virtual environment, the whole environment. A directory
    that contains the user's home, the project or its state is left out.

    Args:
        directory: where it is started, if that is to be readable; a relative command is found there.
    """
    program = Path(shutil.which(server.command) or (directory or Path("/")) / server.command)
    places = [directory] if directory else []
    if program.is_file():
        places += [program, program.resolve(), *installed(program), *_interpreter(program)]
        if (program.parent.parent / "pyvenv.cfg").is_file():
            places.append(program.parent.parent)
    for path in (path for word in server.args if (path := expanded(word)).is_absolute()):
        own = any(path.resolve().is_relative_to(root.resolve()) for root in (settings.project, settings.home))
        if path.suffix in _SCRIPTS and path.is_file() and not own:
            places += [path, *installed(path)]
    private = [root.resolve() for root in (home(), settings.project, settings.home)]
    return [place for place in places if not any(root.is_relative_to(place.resolve()) for root in private)]


def _interpreter(program: Path) -> Iterator[Path]:
    """The directories of what runs a program, with its libraries: of a script, of what its first line names."""
    try:
        with program.open("rb") as file:
            first = file.readline(500)
    except OSError:
        return
    words = first[2:].decode(errors="replace").split() if first.startswith(b"#!") else []
    named = [word for word in words if Path(word).name != "env" and not word.startswith("-")]
    found = shutil.which(named[0]) if named else str(program)
    if found is not None and (place := Path(found).resolve().parent).name == "bin":
        yield from (place, place.parent / "lib")


def _is_there(need: str) -> bool:
    if not need.startswith("$"):
        return shutil.which(need) is not None
    return bool(os.environ.get(need[1:])) or _is_key_kept(need[1:])


def _is_key_kept(variable: str) -> bool:
    """Whether the person keeps a key of the provider that a variable is of."""
    with suppress(Unavailable):
        return any(variable in PROVIDERS[name].variables for name in model_keys.load())
    return False


@dataclass(frozen=True, slots=True)
class _File:
    """The file of a profile. `refusal`: why it is not used; a project's is used only if its exact text is trusted."""

    name: str
    source: Source
    text: str = ""
    refusal: WorkbenchError | None = None

    def parse(self) -> rules.Profile:
        """The profile.

        Raises:
            BadInput: ``PROFILE_INVALID``. Refused: ``PROFILE_NOT_TRUSTED``.
        """
        if self.refusal is not None:
            raise self.refusal
        return rules.parse(self.name, self.text)


def _all(settings: Settings) -> list[ProfileSummary]:
    return [_summary(file) for _, file in sorted(_files(settings).items())]


def _summary(file: _File) -> ProfileSummary:
    try:
        profile = file.parse()
    except WorkbenchError as error:
        needs = ["`workbench trust`" if isinstance(error, Refused) else "a valid file"]
        return ProfileSummary(
            name=file.name, summary=error.message, command=[], source=file.source, available=False, needs=needs
        )
    lacks = missing(profile)
    return ProfileSummary(
        name=file.name,
        summary=profile.summary,
        command=profile.command or [],
        source=file.source,
        available=not lacks,
        needs=lacks,
    )


def _files(settings: Settings) -> dict[str, _File]:
    """The profiles by name. One of the project overrides a shipped one only if it may be used."""
    shipped_ones = shipped("data", "profiles").glob("*.yaml")
    files = {path.stem: _File(path.stem, "shipped", path.read_text("utf-8")) for path in shipped_ones}
    trusted = load_record(settings.project).trusted
    for path in (settings.home / "profiles").glob("*.yaml"):
        file = _of_project(path, trusted)
        if file.refusal is None or file.name not in files:
            files[file.name] = file
    return files


def _of_project(path: Path, trusted: Mapping[str, str]) -> _File:
    name = path.stem
    try:
        read = read_profile(path)
    except BadInput as error:
        return _File(name, "project", refusal=error)
    if is_trusted(read, trusted):
        return _File(name, "project", read.text)
    reason = f"Profile {name} is of this project, and may have come with the repository. `workbench trust` shows it."
    return _File(name, "project", refusal=Refused("PROFILE_NOT_TRUSTED", reason, profile=name))
