"""Make a directory a project: `init`, with files to begin with, such as a notebook, a plan and settings.

All but the settings are in `data/starter/`; those, with their defaults in comments, are made from the code.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import tomli_w

from workbench.cli.client import OperatorClient
from workbench.cli.global_options import root
from workbench.cli.output import Note, Shown, output_unwritable, pass_client
from workbench.errors import WorkbenchError
from workbench.present.tables import Table
from workbench.state.settings import SETTINGS_FILE, Settings, shipped
from workbench.trust import state_directory

NOTEBOOK = "workbench.ipynb"
PLAN = "plan.yaml"
SANITIZING = "nbval.cfg"
NEEDS_GIT = "  - name: note\n"
"""Where the tasks of the plan begin that need a worktree."""
OFFERED = (
    "port",
    "lease_seconds",
    "max_retries",
    "max_agents_running",
    "integration_gates",
    "gate_seconds",
    "environment",
    "read",
    "include",
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


@root.command()
@click.option("--bare", is_flag=True, help="Only the state directory: no starter notebook, plan and settings.")
@click.option("--dry-run", is_flag=True, help="Only show what would be written.")
@pass_client
def init(client: OperatorClient, bare: bool, dry_run: bool) -> Shown:
    """Make this directory a project, with a notebook, a plan and settings to begin with. Files that exist stay."""
    settings = client.settings
    project, home = settings.project, settings.home
    lead = f"{project} {'would be' if dry_run else 'is'} a project. Its state is in {home}.{_without_git(settings)}"
    if dry_run:
        state_directory.check(project)
    else:
        client.create_project()
    if bare:
        return Note(lead, {"project": str(project), "dry_run": dry_run, "files": []})
    files = [_begin(file, dry_run) for file in files_of(settings)]
    data = {"project": str(project), "dry_run": dry_run, "files": files}
    rows = [[file["state"], file["file"], file["what"]] for file in files]
    return Table(["", "file", "what it is"], rows, "", data, note=_next_step(dry_run), lead=lead)


def _without_git(settings: Settings) -> str:
    """What a project lacks whose directory is in no git repository, or in one that cannot be used yet; else empty."""
    from workbench.git import Repository

    try:
        Repository.open(settings.project, limit=state_directory.GIT_SECONDS)
        return ""
    except WorkbenchError as error:
        places = (settings.project, *settings.project.parents)
        if error.code == "BARE_REPOSITORY" or any((place / ".git").exists() for place in places):
            return f" Its repository cannot be used: {error.message}"
    return (
        " It is in no git repository: tasks run, but worktrees and merges need one. Run `git init` there, and make a "
        "first commit."
    )


def _begin(file: StarterFile, dry_run: bool) -> dict[str, str]:
    if dry_run:
        state = "exists" if file.exists else "would be written"
    else:
        state = "written" if file.write() else "exists, unchanged"
    return {"state": state, "file": file.name, "what": file.what}


def _next_step(dry_run: bool) -> str:
    if dry_run:
        return "Nothing was written. Without --dry-run, these files are."
    return (
        f"Run the plan here: `workbench run {PLAN}`. Or open {NOTEBOOK} in JupyterLab and run it (`jupyter lab "
        f"{NOTEBOOK}`), or without a browser: `papermill {NOTEBOOK} out.ipynb -p approve later`. Then write your own "
        f"tasks into {PLAN}."
    )


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
    plan = _shipped(PLAN)
    if _without_git(settings):
        plan = plan.partition(NEEDS_GIT)[0]
    yield StarterFile(settings.project, PLAN, "the plan: replace its tasks with your own", plan)
    what = "what differs between runs, for pytest --nbval"
    yield StarterFile(settings.project, SANITIZING, what, _shipped(SANITIZING))
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
