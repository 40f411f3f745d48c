"""`report`: the standard reports."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from workbench.analytics.reports import STANDARD, Report
from workbench.cli.client import OperatorClient
from workbench.cli.completion import offers
from workbench.cli.global_options import root
from workbench.cli.output import Note, Shown, pass_client
from workbench.present.tables import Table


def reports_table() -> Table:
    """The standard reports, and what each shows."""
    rows = [[report.name, report.about] for report in sorted(STANDARD.values(), key=lambda report: report.name)]
    data = [{key: asdict(report)[key] for key in ("name", "about")} for report in STANDARD.values()]
    return Table(["report", "what it shows"], rows, data=data)


@root.command("report")
@click.argument("name", required=False, shell_complete=offers.reports)
@click.argument("of", metavar="[GROUP|RUN|DIRECTORY]...", nargs=-1)
@click.option(
    "--by",
    metavar="COLUMN",
    default=None,
    shell_complete=offers.compared,
    help="What `comparison` compares: plan, persona, run, …",
)
@click.option(
    "--html",
    "file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Save it as a page that needs no server and no network.",
)
@pass_client
def show_report(
    client: OperatorClient, name: str | None, of: tuple[str, ...], by: str | None, file: Path | None
) -> Shown | Report:
    """Show a standard report: a sentence, a picture where one can be shown, and a table. Without NAME, list them.

    `comparison alpha beta` compares two plans, `runs 3 4` two runs, `projects ../other` this project with another.
    """
    if name is None:
        return reports_table()
    report = client.report(name, *of, by=by)
    if file is None:
        return report
    report.save(file)
    return Note(f"{report.sentence} Saved to {file}.", report.data)
