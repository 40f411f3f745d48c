"""The files that a new project begins with: a notebook, a plan, and settings with their defaults in comments.

The notebook and the plan are in `data/starter/`; the settings are made from the code.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import tomli_w

from workbench.cli.output import output_unwritable
from workbench.state.settings import SETTINGS_FILE, Settings, shipped

NOTEBOOK = "workbench.ipynb"
PLAN = "plan.yaml"
OFFERED = (
    "port",
    "lease_seconds",
    "max_retries",
    "max_agents_running",
    "integration_gates",
    "gate_seconds",
    "confinement_read",
    "confinement_write",
    "confinement_connect",
    "keep_attempts_days",
    "keep_tool_logs_days",
    "sql_seconds",
)
"""The settings that projects change most."""
HEAD = """\
# Settings of this project, with their defaults. Remove the # to change one, and start the server again.
# docs/reference.md lists all settings. WORKBENCH_<NAME> in the environment takes precedence. A line marked with
# "trust" counts after `workbench trust`. Your own settings for all projects are in ~/.config/workbench/settings.toml.
"""
WIDTH = 118


@dataclass(frozen=True)
class StarterFile:
    """A file of a project.

    Args:
        name: its path below the root of the project.
        what: what it is, for the user.
    """

    project: Path
    name: str
    what: str
    text: str

    @property
    def path(self) -> Path:
        """Where it is."""
        return self.project / self.name

    @property
    def exists(self) -> bool:
        """Whether there is something at its path, if only a link that leads nowhere."""
        return self.path.is_symlink() or self.path.exists()

    def write(self) -> bool:
        """Write it, unless there is something at its path; whether it was written. Blocks.

        Raises:
            Unavailable: ``OUTPUT_UNWRITABLE``.
        """
        try:
            with self.path.open("x", encoding="utf-8") as file:
                file.write(self.text)
        except FileExistsError:
            return False
        except OSError as error:
            raise output_unwritable(str(self.path), error) from None
        return True


def files_of(settings: Settings) -> Iterator[StarterFile]:
    """The files that a project begins with."""
    shared = f"{settings.home.name}/{SETTINGS_FILE}"
    yield StarterFile(settings.project, NOTEBOOK, "a notebook that runs the plan", _shipped(NOTEBOOK))
    yield StarterFile(settings.project, PLAN, "the plan: replace its tasks with your own", _shipped(PLAN))
    yield StarterFile(settings.project, shared, "the settings, as comments", settings_text())


def settings_text() -> str:
    """The settings that projects change most, with their meaning and default, as comments."""
    return HEAD + "".join(
        f"\n{_comment(str(Settings.model_fields[name].description))}\n{_line(name)}\n" for name in OFFERED
    )


def _comment(text: str) -> str:
    return textwrap.fill(text, WIDTH, initial_indent="# ", subsequent_indent="# ")


def _line(name: str) -> str:
    default = tomli_w.dumps({name: Settings.model_fields[name].default}).strip()
    return f"# {default}" + ("  # trust" if Settings.needing_trust({name: None}) else "")


def _shipped(name: str) -> str:
    return shipped("data", "starter", name).read_text("utf-8")
