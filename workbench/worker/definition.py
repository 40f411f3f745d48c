"""Passes the agent's definition to a command: as the configuration of its program, or as files.

A program that Workbench can configure (`Profile.program`) gets the system prompt, the model, the provider and the MCP
servers in its own way. Any other command finds the definition's files in the directory that `WORKBENCH_DEFINITION`
names, and the system prompt in the file that `WORKBENCH_SYSTEM_PROMPT` names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from workbench.confinement import Box
from workbench.drivers import DRIVERS, PROGRAMS, AgentSetup, Configuration, ModelAccess, ProgramStream, TelemetryAccess
from workbench.drivers.fit import OWN_SERVER
from workbench.rules.profile import Profile
from workbench.worker.sessions import KeptSession

SYSTEM_PROMPT = "system_prompt.md"
_FOLDER = "definition"


def configuration(
    setup: AgentSetup | None,
    profile: Profile,
    scratch_dir: Path,
    files: Mapping[str, str],
    models: ModelAccess | None = None,
    telemetry: TelemetryAccess | None = None,
) -> Configuration:
    """The arguments, files and variables that a definition, and the server's access to models, add to a command.

    Args:
        files: those that the profile writes to the scratch directory.
        telemetry: where its program tells of itself.
    """
    added = _of_definition(setup, profile, scratch_dir, files)
    if models is not None:
        of_program: Mapping[str, str] = {}
        if profile.program is not None:
            of_program = PROGRAMS[profile.program].route(models, {**files, **added.files})
        added = _with(added, Configuration(files=of_program, environment=models.environment))
    if telemetry is not None and profile.program is not None:
        added = _with(added, PROGRAMS[profile.program].telling(telemetry, {**files, **added.files}))
    return added


def _with(added: Configuration, more: Configuration) -> Configuration:
    return replace(added, files={**added.files, **more.files}, environment={**added.environment, **more.environment})


def _of_definition(
    setup: AgentSetup | None, profile: Profile, scratch_dir: Path, files: Mapping[str, str]
) -> Configuration:
    if setup is None:
        return Configuration(files={SYSTEM_PROMPT: ""} if profile.takes_system_prompt else {})
    if profile.program is not None:
        return PROGRAMS[profile.program].configure(setup, str(scratch_dir), files)
    return Configuration(
        files={f"{_FOLDER}/{path}": text for path, text in setup.files.items()} | {SYSTEM_PROMPT: setup.system_prompt},
        environment={
            "WORKBENCH_DEFINITION": str(scratch_dir / _FOLDER),
            "WORKBENCH_SYSTEM_PROMPT": str(scratch_dir / SYSTEM_PROMPT),
        },
    )


def limited(command: Sequence[str], setup: AgentSetup | None, profile: Profile, box: Box) -> tuple[Sequence[str], Box]:
    """The command of a profile, and its box, with which its program does no more than the definition allows."""
    if setup is None or profile.program is None or not setup.limits:
        return command, box
    program = PROGRAMS[profile.program]
    if box.enforce and program.is_read_only(setup.limits):
        return command, replace(box, write=(), read=(*box.read, *box.write))
    return program.limit(command, setup.limits), box


def stream(setup: AgentSetup | None, profile: Profile) -> ProgramStream | None:
    """What reads the output of a profile's command; None: any text."""
    if profile.stream is None:
        return None
    servers = (OWN_SERVER, *(setup.servers if setup else ()))
    of_program = DRIVERS[profile.stream].stream(servers=servers)
    of_program.talks |= _is_talked_to(profile)
    return of_program


def takes_another_prompt(profile: Profile) -> bool:
    """Whether a profile's program can be given another prompt than its first."""
    words = profile.command or ()
    return profile.stream is not None and (profile.stdin == "prompt" or any("{prompt}" in word for word in words))


def can_continue(profile: Profile) -> bool:
    """Whether a profile's program can continue its own conversation."""
    return profile.stream in ("acp", profile.program)


def started(command: Sequence[str], profile: Profile, session: KeptSession | None) -> Sequence[str]:
    """The command of a profile so that it writes what its driver reads, and continues a conversation."""
    if profile.program is None or profile.program != profile.stream:
        return command
    program = PROGRAMS[profile.program]
    streaming = program.streaming(command)
    if program.talking and _is_talked_to(profile):
        streaming = program.talking(streaming)
    return program.resumed(streaming, session.id, str(session.file)) if session else streaming


def _is_talked_to(profile: Profile) -> bool:
    is_own = profile.program is not None and profile.program == profile.stream and profile.stdin == "prompt"
    return is_own and profile.program is not None and PROGRAMS[profile.program].talking is not None


def prefixed(prompt: str, setup: AgentSetup | None, profile: Profile) -> str:
    """A prompt, after the system prompt if the profile passes that on in no other way."""
    if setup is None or profile.program is not None or profile.takes_system_prompt:
        return prompt
    return f"{setup.system_prompt}\n\n{prompt}"
