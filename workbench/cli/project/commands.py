"""Make a directory a project, with files to begin with: `init`."""

from __future__ import annotations

import click

from workbench.cli.client import OperatorClient
from workbench.cli.global_options import root
from workbench.cli.output import Note, Shown, pass_client
from workbench.cli.project import starter
from workbench.present.tables import Table
from workbench.state.settings import Settings
from workbench.trust import state_directory


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
    files = [_begun(file, dry_run) for file in starter.files_of(settings)]
    data = {"project": str(project), "dry_run": dry_run, "files": files}
    rows = [[file["state"], file["file"], file["what"]] for file in files]
    return Table(["", "file", "what it is"], rows, "", data, note=_next_step(dry_run), lead=lead)


def _without_git(settings: Settings) -> str:
    """What a project lacks whose directory is in no git repository; empty if it is in one."""
    if any((place / ".git").exists() for place in (settings.project, *settings.project.parents)):
        return ""
    return (
        " It is in no git repository: tasks run, but worktrees and merges need one. Run `git init` there, and make a "
        "first commit."
    )


def _begun(file: starter.StarterFile, dry_run: bool) -> dict[str, str]:
    if dry_run:
        state = "exists" if file.exists else "would be written"
    else:
        state = "written" if file.write() else "exists, unchanged"
    return {"state": state, "file": file.name, "what": file.what}


def _next_step(dry_run: bool) -> str:
    if dry_run:
        return "Nothing was written. Without --dry-run, these files are."
    return (
        f"Open {starter.NOTEBOOK} in JupyterLab and run it (`jupyter lab {starter.NOTEBOOK}`), or run it without a "
        f"browser: `papermill {starter.NOTEBOOK} out.ipynb`. Then write your own tasks into {starter.PLAN}."
    )
