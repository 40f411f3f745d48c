"""Has the servers of a project start with the machine: a unit of the person's systemd, `workbench-NAME-….service`.

Source of its form: systemd.unit(5), systemd.service(5), systemd.syntax(7).
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from workbench.errors import BadInput, Unavailable
from workbench.shells.detached import FLAG
from workbench.state import database_url
from workbench.state.home import home
from workbench.state.settings import Settings
from workbench.state.user_files import CONFIG_VARIABLE
from workbench.system import atomic_file

SYSTEMCTL_SECONDS = 30.0
PASSED_ON = ("PATH", CONFIG_VARIABLE, database_url.VARIABLE)
"""The variables of this shell that the servers get, besides libpq's: systemd's own `PATH` lacks programs that agents
need."""
RESTART_SECONDS = 30
"""Another server may run, such as a notebook's; then this one is tried again."""
UNIT = """\
# Made by `workbench start --detach --on-boot`; `workbench stop --on-boot` removes it.
[Unit]
Description=Workbench serves {project}
StartLimitIntervalSec=0

[Service]
ExecStart={command}
WorkingDirectory={directory}
Environment={environment}
Restart=on-failure
RestartSec={restart}
KillMode=process

[Install]
WantedBy=default.target
"""


def unit_path(settings: Settings) -> Path:
    """The file of the unit. Projects of the same name have units of their own."""
    name = re.sub(r"[^A-Za-z0-9_-]", "_", settings.project.name)
    digest = hashlib.sha256(os.fsencode(settings.project.resolve())).hexdigest()[:8]
    configured = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    directory = configured if configured.is_absolute() else home() / ".config"
    return directory / "systemd" / "user" / f"workbench-{name}-{digest}.service"


def unit(settings: Settings, port: int | None) -> str:
    """The text of the unit.

    Raises:
        BadInput: ``BAD_PATH``, ``PASSWORD_IN_UNIT``.
    """
    project = str(settings.project)
    argv = [sys.executable, "-P", "-m", "workbench.cli", "serve", "--project", project, FLAG]
    argv += [] if port is None else ["--port", str(port)]
    if any(database_url.secrets_of()):
        raise BadInput(
            "PASSWORD_IN_UNIT",
            "The database's password is in a variable, and systemd shows everybody the variables of its units. Put it "
            "into ~/.pgpass, or the address into your own settings, and take it out of "
            f"{database_url.VARIABLE} and {database_url.PASSWORD_VARIABLE}.",
        )
    names = (*PASSED_ON, *filter(database_url.OF_LIBPQ.fullmatch, os.environ))
    environment = [f"{name}={os.environ[name]}" for name in names if os.environ.get(name)]
    for text in (*argv, *environment):
        if not text.isprintable():
            raise BadInput("BAD_PATH", f"{text!r} has characters that a unit of systemd cannot have. Rename it.")
    return UNIT.format(
        project=project.replace("%", "%%"),
        command=" ".join(_quoted(word).replace("$", "$$") for word in argv),
        directory=project.replace("%", "%%"),
        environment=" ".join(map(_quoted, environment)),
        restart=RESTART_SECONDS,
    )


def _quoted(word: str) -> str:
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"'


def enable(settings: Settings, port: int | None) -> str:
    """Have the servers start with the machine; what there is to know of it, in sentences. Blocks.

    Raises:
        Unavailable: ``NO_SYSTEMD``, ``PROJECT_UNWRITABLE``. BadInput: see `unit`.
    """
    text, path = unit(settings, port), unit_path(settings)
    _systemctl("show-environment")  # before anything is written
    atomic_file.replace(path, text)
    _systemctl("daemon-reload")
    _systemctl("enable", path.name)
    says = f"They also start with the machine, by {path}; `workbench stop --on-boot` undoes that."
    if not _lingers():
        says += (
            " Until `loginctl enable-linger` was run once, they start only when you log in, and end when you log out."
        )
    return says


def disable(settings: Settings) -> bool:
    """Have the servers start with the machine no more; whether they did. Blocks.

    Raises:
        Unavailable: ``NO_SYSTEMD``.
    """
    path = unit_path(settings)
    if not path.is_file():
        return False
    _systemctl("disable", path.name)
    path.unlink(missing_ok=True)
    _systemctl("daemon-reload")
    return True


def _systemctl(*words: str) -> None:
    """Tell the person's systemd something.

    Raises:
        Unavailable: ``NO_SYSTEMD``.
    """
    said = _run("systemctl", "--user", *words)
    if said is None or said.returncode:
        why = (
            ""
            if said is None
            else f" (`systemctl --user {words[0]}`: {(said.stderr.strip().splitlines() or [''])[-1]})"
        )
        raise Unavailable(
            "NO_SYSTEMD",
            f"No systemd of yours can be reached here{why}. Have whatever starts programs on this machine run "
            "`workbench start` in the project, such as a line `@reboot` of crontab.",
        )


def _lingers() -> bool:
    """Whether the person's systemd runs while she is not logged in."""
    said = _run("loginctl", "show-user", str(os.getuid()), "--property=Linger")
    return said is not None and said.stdout.strip() == "Linger=yes"


def _run(*argv: str) -> subprocess.CompletedProcess[str] | None:
    """Run a program; None: there is none, or it does not end."""
    program = shutil.which(argv[0])
    if program is None:
        return None
    words: Sequence[str] = (program, *argv[1:])
    try:
        return subprocess.run(words, capture_output=True, text=True, timeout=SYSTEMCTL_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
