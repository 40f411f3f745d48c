"""The command `workbench sweep`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from workbench.cli.client import OperatorClient
from workbench.cli.global_options import root
from workbench.cli.output import Shown, pass_client
from workbench.cli.sweeps.request import of_options, sweep_options


@root.command()
@sweep_options
@pass_client
def sweep(client: OperatorClient, **options: Any) -> Shown:
    """Run a notebook once for each combination of values, several at a time, and record each run.

    VALUES are separated by commas; 1..50 and 0..1:0.25 are ranges. A YAML file has the same as keys: notebook,
    parameters, over, repeat, workers, name, timeout, memory, share, dask.
    """
    from workbench.cli.sweeps.running import run_sweep, showing
    from workbench.shells.meanwhile import connected
    from workbench.system.interpreter import termination_interrupts

    client.require_operator("sweep")
    settings = client.settings
    request = of_options(settings.max_sweep_runs, Path.cwd(), **options)
    with termination_interrupts():
        return run_sweep(settings, request, lambda: connected(settings), showing)
