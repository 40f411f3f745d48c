"""A project with a notebook to sweep."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import nbformat
import psutil

from workbench.cli.sweeps.request import SweepRequest
from workbench.cli.sweeps.running import run_sweep
from workbench.present.tables import Table
from workbench.process import is_running
from workbench.process.marks import marks_of
from workbench.rules.sweeps.grid import sweep_mark
from workbench.state.settings import Settings
from workbench.sweeps.job import SweepCall


def write_notebook(path: Path, parameters: str, *cells: str) -> Path:
    """A notebook with a cell for parameters and others."""
    made = new_notebook(parameters, *cells)
    made.cells[0].metadata.tags = ["parameters"]
    nbformat.write(made, path)
    return path


def new_notebook(*cells: str) -> nbformat.NotebookNode:
    """A notebook of Python cells."""
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    made.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return made


class SweepLab:
    """Runs sweeps in a project that is served.

    Args:
        dask: the scheduler of the Dask cluster that executes the runs; None: threads do.
    """

    def __init__(self, settings: Settings, call: SweepCall, dask: str | None = None) -> None:
        self.dask = dask
        self.settings = settings
        self.call = call
        self.place = settings.project

    def notebook(self, name: str, parameters: str, *cells: str) -> Path:
        return write_notebook(self.place / name, parameters, *cells)

    def sweep(self, notebook: Path, others: Mapping[str, Any] = {}, **how: Any) -> Table:
        """Run a sweep to its end."""
        parameters = {name: tuple(values) for name, values in how.pop("parameters", {}).items()}
        over = how.pop("over", {})
        chosen = {"workers": 2, "name": notebook.stem, "dask": self.dask, **others}
        request = SweepRequest(notebook.name, self.place, parameters, over, others=chosen, **how)
        made = self.run(request)
        assert isinstance(made, Table)
        return made

    def run(self, request: SweepRequest) -> object:
        """Run what is asked for to its end."""
        return run_sweep(self.settings, request, lambda: nullcontext(self.call), lambda: nullcontext(lambda _: None))

    def session(self, project: str, name: str) -> str:
        """A new session of a new project."""
        made = self.call("create_project", name=project)
        return str(self.call("create_session", project_id=made["id"], name=name)["id"])

    def agent(self, session_id: str) -> str:
        """An agent whose process runs, in a session."""
        agent = self.call("spawn_agent", persona_id="implementer")["agent_id"]
        self.call("assign_agents", agent_ids=[agent], changes={"session_id": session_id})
        return str(agent)

    def running_agents(self) -> set[str]:
        agents = self.call("get_managed_agents")["agents"]
        return {agent["agent_id"] for agent in agents if agent["process"]["running"]}

    def runs(self, sweep: str) -> list[dict[str, Any]]:
        """The recorded runs of a sweep, oldest first."""
        return sorted(self.call("list_runs", sweep=sweep, limit=500)["runs"], key=lambda run: str(run["name"]))

    def printed(self, run: Mapping[str, Any]) -> str:
        """The printed output of an executed notebook."""
        document = json.loads((self.place / run["output"]).read_text("utf-8"))
        outputs = [output for cell in document["cells"] for output in cell.get("outputs", [])]
        return "".join("".join(output.get("text", "")) for output in outputs)


def left_running(project: Path, sweep: str) -> list[psutil.Process]:
    """The running processes of a sweep."""
    mark = sweep_mark(sweep, str(project))
    return [process for process in psutil.process_iter() if mark in marks_of(process) and is_running(process)]
