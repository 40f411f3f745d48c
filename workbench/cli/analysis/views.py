"""`views`: what can be queried with SQL."""

from __future__ import annotations

import click

from workbench.cli.completion import offers
from workbench.cli.global_options import root
from workbench.cli.output import Shown
from workbench.present.tables import Table


@root.command("views")
@click.argument("name", required=False, shell_complete=offers.views)
def show_views(name: str | None) -> Shown:
    """List the views that SQL queries use, or the columns of one. `sql` and `%%wsql` query them."""
    from dataclasses import asdict

    from workbench.analytics import views

    if name is None:
        found = views.described()
        rows = [[view.name, len(view.columns), view.meaning] for view in found]
        note = "`workbench views NAME` lists the columns of one."
        return Table(["view", "columns", "what it has"], rows, data=[asdict(view) for view in found], note=note)
    view = views.find(name)
    rows = [[column.name, column.type.lower(), column.meaning] for column in view.columns]
    return Table(["column", "type", "what it means"], rows, data=asdict(view), lead=view.meaning)
