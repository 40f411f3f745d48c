"""Runs of experiments: `runs` (list, show, compare, series, name, tag, note, archive, restore, end, report)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from workbench.cli.client import OperatorClient
from workbench.cli.completion import offers
from workbench.cli.global_options import root
from workbench.cli.operations.declared import view
from workbench.cli.output import (
    Note,
    NounGroup,
    Shown,
    counted,
    drop_none,
    output_unwritable,
    pass_client,
    size,
    without_empty,
)
from workbench.errors import BadInput
from workbench.present.tables import CellOutput, StateCell, Table, TablePage
from workbench.rules.naming import suggestion

NO_SWEEPS = "There are no sweeps yet. `workbench sweep NOTEBOOK -p NAME=VALUES` runs one."
NO_RUNS = "There are no runs yet. wb.record(loss=0.1) in a notebook begins one."
NAMED = 3
"""The most parameters and metrics that a row of a list names."""
LETTERS = 20
WIDE, NARROW = 26, 15
"""Letters for parameters and metrics, and for other texts of a row: usual names fit into 100 columns."""
COLUMNS = {
    "id": "run",
    "name": "name",
    "state": "state",
    "sweep": "sweep",
    "parameters": "parameters",
    "metrics": "metrics",
    "seconds": "took",
    "tags": "tags",
}
FACTS = (
    *("key", "sweep", "notebook", "output", "error_code", "error", "session_id", "git_commit", "git_dirty", "tries"),
    *("created_by", "started_at", "ended_at", "archived_at"),
)
SWEEPS = {
    **{"name": "sweep", "notebook": "notebook", "runs": "runs", "completed": "completed", "failed": "failed"},
    **{"running": "running", "created_at": "started"},
}
SERIES = {"name": "metric", "last": "last", "step": "at step", "count": "values", "low": "lowest", "high": "highest"}
ARTIFACTS = {"name": "artifact", "path": "path", "media_type": "type", "size": "size", "sha256": "sha256"}


@root.group(cls=NounGroup)
def runs() -> None:
    """Runs of experiments: list, show, compare, report, tag, note, …"""


@runs.command("list")
@click.option("--sweep", default=None, help="Only of this sweep: its name or id.", shell_complete=offers.sweeps)
@click.option(
    "--state",
    type=click.Choice(["running", "completed", "failed", "cancelled", "lost"]),
    default=None,
    help="Only in this state.",
)
@click.option("--tag", default=None, help="Only with this tag.")
@click.option("--search", metavar="TEXT", default=None, help="Only whose name, notebook or notes have this text.")
@click.option("--where", multiple=True, metavar="CONDITION", help="Condition on last values, such as 'loss<0.1'.")
@click.option(
    "--sort",
    default=None,
    metavar="ORDER",
    help="By name, state, started, duration or a metric, lowest first; -ORDER: highest first.",
)
@click.option("--archived", is_flag=True, help="List the archived ones instead.")
@click.option("--limit", type=click.IntRange(1, 500), default=50, show_default=True, help="At most this many.")
@pass_client
def list_runs(client: OperatorClient, where: tuple[str, ...], **options: Any) -> Shown:
    """List runs with their parameters and last values, the newest first."""
    found = client.call("list_runs", where=list(where), **drop_none(**options))
    is_filtered = where or any(value for name, value in options.items() if name != "limit")
    table = run_table(found["runs"], "No run matches." if is_filtered else NO_RUNS)
    note = "… and more: --limit shows them." if found["next_cursor"] else ""
    return Table(table.columns, table.rows, table.empty, found["runs"], note)


@runs.command("sweeps")
@click.option("--search", metavar="TEXT", default=None, help="Only whose name has this text.")
@click.option("--limit", type=click.IntRange(1, 500), default=50, show_default=True, help="At most this many.")
@pass_client
def list_sweeps(client: OperatorClient, search: str | None, limit: int) -> Shown:
    """List sweeps with how many of their runs have ended, the newest first."""
    found = client.call("list_sweeps", limit=limit, **drop_none(search=search))
    rows = [
        {
            **sweep,
            "name": _cut(sweep["name"]),
            "notebook": _cut(sweep["notebook"], WIDE),
            "runs": sweep["specification"].get("runs", ""),
        }
        for sweep in found["sweeps"]
    ]
    note = "… and more: --limit shows them." if found["next_cursor"] else ""
    table = Table.of(rows, SWEEPS, "No sweep matches." if search else NO_SWEEPS, found["sweeps"])
    return Table(table.columns, table.rows, table.empty, found["sweeps"], note)


def run_table(found: Sequence[Mapping[str, Any]], empty: str, columns: Mapping[str, str] = COLUMNS) -> Table:
    """Runs, with the beginning of their parameters and metrics.

    Args:
        columns: the headings by what is below them; those of sweeps and tags are left out if no run has any.
    """
    chosen = without_empty(without_empty(columns, "sweep", found), "tags", found)
    rows = [
        {
            **run,
            "name": _cut(run["name"]),
            "state": StateCell.of(run["state"]),
            "parameters": _named(run["parameters"], WIDE),
            "metrics": _named(run["metrics"], WIDE),
            "seconds": duration(run),
            "sweep": _cut(run["sweep"] or "", NARROW),
            "tags": _cut(", ".join(run["tags"]), NARROW),
        }
        for run in found
    ]
    return Table.of(rows, chosen, empty, found)


def duration(run: Mapping[str, Any]) -> str:
    """How long a run took, for people; empty while it goes on."""
    if run["ended_at"] is None:
        return ""
    seconds = (datetime.fromisoformat(run["ended_at"]) - datetime.fromisoformat(run["started_at"])).total_seconds()
    minutes, rest = divmod(round(seconds), 60)
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def shown_value(value: Any) -> str:
    """A value of a parameter or a metric, for people."""
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: ""}[value]
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _named(values: Mapping[str, Any], letters: int) -> str:
    """The first values, as name=value. No number is cut: a part of it would be another number."""
    named: list[str] = []
    for name, value in list(values.items())[:NAMED]:
        number = f"{value:.4g}" if isinstance(value, float) else _cut(shown_value(value), NARROW)
        named.append(f"{_cut(name, NARROW)}={number}")
        if len(named) > 1 and len(" ".join(named)) > letters:
            named.pop()
            break
    return " ".join([*named, *(["…"] if len(values) > len(named) else [])])


def _cut(text: str, letters: int = LETTERS) -> str:
    return text if len(text) <= letters else f"{text[: letters - 1]}…"


@view("WholeRun")
def run_page(run: Mapping[str, Any]) -> TablePage:
    """All of a run."""
    about = [["state", StateCell.of(run["state"])], ["took", duration(run)], ["tags", ", ".join(run["tags"])]]
    facts = {**run, "error": CellOutput(run["error"]) if run["error"] else None}
    about += [[name.replace("_", " "), facts[name]] for name in FACTS]
    environment = dict(run["environment"])
    packages = environment.pop("packages") if isinstance(environment.get("packages"), Mapping) else {}
    parts = [
        (f"Run {run['id']}: {run['name']}", Table(["", ""], [row for row in about if row[1] not in (None, "")])),
        ("Parameters", _facts(run["parameters"])),
        ("Metrics", Table.of([_rounded(each) for each in run["series"]], SERIES, "It has recorded no values.")),
        ("Artifacts", _artifact_table(run["files"])),
        ("Definitions", _facts(run["definitions"])),
        ("Notes", Table([], [], "", lead=run["notes"])),
        ("Environment", _facts(environment)),
        ("Packages", Table([], [], "", lead=", ".join(f"{name} {version}" for name, version in packages.items()))),
    ]
    return TablePage([part for part in parts if part[1].rows or part[1].lead or part[0] == "Metrics"], dict(run))


def _facts(values: Mapping[str, Any]) -> Table:
    """Values by name; of an object within, each of its values."""
    rows = [
        [f"{name}.{inner}", shown_value(each)]
        for name, value in values.items()
        for inner, each in (value.items() if isinstance(value, Mapping) else [("", value)])
    ]
    return Table(["", ""], [[name.removesuffix("."), value] for name, value in rows], "")


def _rounded(series: Mapping[str, Any]) -> dict[str, Any]:
    return {**series, **{name: shown_value(series[name]) for name in ("last", "low", "high")}}


def _artifact_table(files: Sequence[Mapping[str, Any]]) -> Table:
    rows = [{**file, "size": size(file["bytes"]), "sha256": file["sha256"][:12]} for file in files]
    return Table.of(rows, ARTIFACTS, "")


@runs.command("compare")
@click.argument("refs", nargs=-1, required=True, metavar="RUN...", shell_complete=offers.runs)
@click.option("--all", "all_rows", is_flag=True, help="Also show in what they do not differ.")
@pass_client
def compare(client: OperatorClient, refs: tuple[str, ...], all_rows: bool) -> Shown:
    """Show in what runs differ: parameters, metrics, commits, definitions, environment."""
    return comparison_table(client.call("compare_runs", run_ids=list(refs), all_rows=all_rows))


def comparison_table(found: Mapping[str, Any]) -> Table:
    """A row for each difference, a column for each run."""
    heads = [f"{run['id']} {_cut(run['name'])}" for run in found["runs"]]
    rows = [
        [row["section"], _heading(row), *(_short_commit(row, value) for value in row["values"])]
        for row in found["rows"]
    ]
    same = "They do not differ." if len(heads) > 1 else "One run differs from nothing: name two or more."
    return Table(["", "", *heads], rows, same, dict(found))


def _heading(row: Mapping[str, Any]) -> str:
    """What a row is about: a name that a person gave stays as it is."""
    return row["name"].replace("_", " ") if row["section"] == "run" else str(row["name"])


def _short_commit(row: Mapping[str, Any], value: Any) -> str:
    is_hash = row["section"] == "definitions" or (row["section"], row["name"]) == ("git", "commit")
    return (value or "")[:12] if is_hash else _cut(shown_value(value))


@runs.command("series")
@click.argument("ref", metavar="RUN", shell_complete=offers.runs)
@click.argument("names", nargs=-1)
@click.option("--points", type=click.IntRange(2, 100_000), default=50, show_default=True, help="Of each metric.")
@pass_client
def series(client: OperatorClient, ref: str, names: tuple[str, ...], points: int) -> Shown:
    """Print the values of a run's metrics by step."""
    found = client.call("get_run_series", run_id=ref, names=list(names), max_points=points)["series"]
    if missing := [name for name in names if name not in {each["name"] for each in found}]:
        raise no_series(missing[0], client.call("get_run", run_id=ref))
    rows = [[each["name"], step, shown_value(value)] for each in found for step, value in each["points"]]
    thinned = any(each["thinned"] for each in found)
    note = "Not every step is shown: --points shows more." if thinned else ""
    return Table(["metric", "step", "value"], rows, "It has recorded no values.", found, note)


def no_series(name: str, run: Mapping[str, Any]) -> BadInput:
    """The error for the name of a metric that a run has not recorded."""
    known = [each["name"] for each in run["series"]]
    hint = suggestion(name, known) + (f"It has {', '.join(known)}." if known else "It has none.")
    return BadInput("UNKNOWN_METRIC", f"Run {run['id']} has no series {name!r}. {hint}")


@runs.command("name")
@click.argument("ref", metavar="RUN", shell_complete=offers.runs)
@click.argument("name")
@pass_client
def rename(client: OperatorClient, ref: str, name: str) -> Shown:
    """Give a run another name."""
    made = client.call("update_run", run_id=ref, name=name)
    return Note(f"Run {made['id']} is called {made['name']}.", made)


@runs.command("tag", context_settings={"ignore_unknown_options": True})
@click.argument("ref", metavar="RUN", shell_complete=offers.runs)
@click.argument("tags", nargs=-1, required=True, metavar="[+]TAG|-TAG...")
@pass_client
def tag(client: OperatorClient, ref: str, tags: tuple[str, ...]) -> Shown:
    """Give a run tags; with - before them, take them away: `runs tag 7 baseline -draft`."""
    added = [each.removeprefix("+") for each in tags if not each.startswith("-")]
    removed = [each.removeprefix("-") for each in tags if each.startswith("-")]
    made = client.call("update_run", run_id=ref, add_tags=added, remove_tags=removed)
    named = f"the tags {', '.join(made['tags'])}" if made["tags"] else "no tags"
    return Note(f"Run {made['id']} has {named}.", made)


@runs.command("end")
@click.argument("ref", metavar="RUN", shell_complete=offers.runs)
@click.option(
    "--state",
    type=click.Choice(["completed", "failed", "cancelled", "lost"]),
    default="cancelled",
    show_default=True,
    help="How it ended.",
)
@pass_client
def end(client: OperatorClient, ref: str, state: str) -> Shown:
    """Record that a run has ended, for example because its machine is gone. It ends no process."""
    made = client.call("end_run", run_id=ref, state=state)
    return Note(f"Run {made['id']} is {made['state']}.", made)


@runs.command("archive")
@click.argument("refs", nargs=-1, required=True, metavar="RUN...", shell_complete=offers.runs)
@pass_client
def archive(client: OperatorClient, refs: tuple[str, ...]) -> Shown:
    """Put runs away, so that lists leave them out."""
    made = [client.call("archive_run", run_id=each) for each in refs]
    return Note(f"Archived {counted(len(made), 'run')}.", made)


@runs.command("restore")
@click.argument("refs", nargs=-1, required=True, metavar="RUN...", shell_complete=offers.runs)
@pass_client
def restore(client: OperatorClient, refs: tuple[str, ...]) -> Shown:
    """Bring back runs that were archived."""
    made = [client.call("restore_run", run_id=each) for each in refs]
    return Note(f"Restored {counted(len(made), 'run')}.", made)


@runs.command("open")
@click.argument("ref", metavar="RUN", shell_complete=offers.runs)
@pass_client
def open_paths(client: OperatorClient, ref: str) -> Shown:
    """Print where the files of a run are: the executed notebook and the artifacts."""
    run = client.call("get_run", run_id=ref)
    places = [("notebook", run["output"])] if run["output"] else []
    places += [(file["name"], file["path"]) for file in run["files"]]
    rows = [[name, str(client.settings.project / path)] for name, path in places]
    return Table(["", "path"], rows, "It has left no files.", rows)


@runs.command("report")
@click.argument("refs", nargs=-1, required=True, metavar="RUN...", shell_complete=offers.runs)
@click.option(
    "--html", "file", type=click.Path(path_type=Path, dir_okay=False), required=True, help="The file to write."
)
@pass_client
def report(client: OperatorClient, refs: tuple[str, ...], file: Path) -> Shown:
    """Write a page about runs into one HTML file, which needs no server and no network.

    It has their differences, charts of their metrics, parameters, environment, commit, notes and artifacts.
    """
    from workbench.analytics.run_report import page

    found = [client.call("get_run", run_id=ref) for ref in refs]
    series = {run["id"]: client.call("get_run_series", run_id=run["id"], max_points=500)["series"] for run in found}
    compared = client.call("compare_runs", run_ids=[run["id"] for run in found])
    shown = [(run, run_page(run)) for run in found]
    text = page(client.settings.project, shown, series, compared, comparison_table(compared))
    try:
        file.write_text(text, "utf-8")
    except OSError as error:
        raise output_unwritable(str(file), error) from None
    return Note(f"Wrote {counted(len(found), 'run')} to {file}.", {"file": str(file)})
