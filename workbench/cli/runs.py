"""Runs of experiments: `runs` (list, show, compare, series, name, tag, note, archive, restore, end, report)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from workbench.cli.client import OperatorClient
from workbench.cli.completion import offers
from workbench.cli.global_options import root
from workbench.cli.operations.declared import view
from workbench.cli.output import (
    MORE,
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
    *("sweep", "notebook", "output", "error_code", "error", "git_commit", "git_dirty", "tries"),
    *("parent_id", "created_by", "started_at", "ended_at", "archived_at"),
)
IDS = ("session_id", "key")
"""What identifies a run for programs, below what is for people."""
SWEEPS = {
    **{"name": "sweep", "notebook": "notebook", "runs": "runs", "completed": "completed", "failed": "failed"},
    **{"lost": "lost", "running": "running", "left": "left", "created_at": "started"},
}
SERIES = {"name": "metric", "last": "last", "step": "at step", "count": "values", "low": "lowest", "high": "highest"}
INNER = {"id": "run", "name": "name", "state": "state"}
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
@click.option(
    "--where", multiple=True, metavar="CONDITION", help="Condition on parameters and last values, as 'lr=0.1'."
)
@click.option(
    "--sort",
    default=None,
    metavar="ORDER",
    help="By name, state, started, duration, a metric or a parameter, lowest first; -ORDER: highest first.",
)
@click.option("--archived", is_flag=True, help="List the archived ones instead.")
@click.option("--limit", type=click.IntRange(1, 500), default=50, show_default=True, help="At most this many.")
@pass_client
def list_runs(client: OperatorClient, where: tuple[str, ...], **filters: Any) -> Shown:
    """List runs with their parameters and last values, the newest first."""
    page = client.call("list_runs", where=list(where), **drop_none(**filters))
    is_filtered = where or any(value for name, value in filters.items() if name != "limit")
    empty = "No run matches." if is_filtered else NO_RUNS
    return replace(run_table(page["runs"], empty, by=filters["sort"]), note=_more(page))


def _more(page: Mapping[str, Any]) -> str:
    """The note below a list that is not whole."""
    return f"{MORE} and more: --limit shows them." if page["next_cursor"] else ""


def _left(sweep: Mapping[str, Any]) -> int | str:
    """How many runs of a sweep are still to be done, those that were lost among them."""
    runs = sweep["specification"].get("runs")
    return "" if runs is None else runs - sweep["completed"] - sweep["failed"] - sweep["running"]


@runs.command("sweeps")
@click.option("--search", metavar="TEXT", default=None, help="Only whose name has this text.")
@click.option("--limit", type=click.IntRange(1, 500), default=50, show_default=True, help="At most this many.")
@pass_client
def list_sweeps(client: OperatorClient, search: str | None, limit: int) -> Shown:
    """List sweeps with how many of their runs have ended, the newest first."""
    page = client.call("list_sweeps", limit=limit, **drop_none(search=search))
    rows = [
        {
            **sweep,
            "name": _cut(sweep["name"]),
            "notebook": _cut(sweep["notebook"], WIDE),
            "runs": sweep["specification"].get("runs", ""),
            "left": _left(sweep),
        }
        for sweep in page["sweeps"]
    ]
    return Table.of(rows, SWEEPS, "No sweep matches." if search else NO_SWEEPS, page["sweeps"], _more(page))


def run_table(
    items: Sequence[Mapping[str, Any]], empty: str, columns: Mapping[str, str] = COLUMNS, by: str | None = None
) -> Table:
    """Runs, with a column for each of the first parameters in which they differ, and the beginning of their metrics.

    Args:
        columns: the headings by what is below them; those of sweeps and tags are left out if no run has any.
        by: what they are sorted by; a metric or parameter gets a column.
    """
    chosen = without_empty(without_empty(columns, "sweep", items), "tags", items)
    varying, value_columns = _varying(items), _sorted_by(items, by)
    value_columns |= {f"parameters:{name}": _cut(name, NARROW) for name in varying[:NAMED]}
    rest = {"parameters": "parameters"} if len(varying) > NAMED or not varying else {}
    chosen = {
        key: head
        for name, column in chosen.items()
        for key, head in ((value_columns | rest).items() if name == "parameters" else [(name, column)])
    }
    rows = [
        {
            **run,
            "name": _cut(run["name"]),
            "state": StateCell.of(run["state"]),
            **{key: _value_text(run[key.partition(":")[0]].get(key.partition(":")[2])) for key in value_columns},
            "parameters": _values_text(_without(run["parameters"], varying), WIDE),
            "metrics": _values_text(run["metrics"], WIDE),
            "seconds": duration(run),
            "sweep": _cut(run["sweep"] or "", NARROW),
            "tags": _cut(", ".join(run["tags"]), NARROW),
        }
        for run in items
    ]
    return Table.of(rows, chosen, empty, items)


def _varying(items: Sequence[Mapping[str, Any]]) -> list[str]:
    """The parameters in which runs differ, and which are no lists or objects."""
    names = dict.fromkeys(name for run in items for name in run["parameters"])
    values = {name: [run["parameters"].get(name) for run in items] for name in names}
    return [
        name
        for name, given in values.items()
        if len({json.dumps(value) for value in given}) > 1
        and not any(isinstance(value, Sequence | Mapping) and not isinstance(value, str) for value in given)
    ]


def _sorted_by(items: Sequence[Mapping[str, Any]], by: str | None) -> dict[str, str]:
    """The column of the metric or parameter that runs are sorted by: its heading by what is below it."""
    field = (by or "").removeprefix("-")
    of, _, name = field.rpartition(":")
    parts = {"metric": ("metrics",), "parameter": ("parameters",)}.get(of, ("metrics", "parameters"))
    part = next((part for part in parts if any(name in run[part] for run in items)), None)
    return {} if part is None else {f"{part}:{name}": _cut(name, NARROW)}


def _without(parameters: Mapping[str, Any], varying: Sequence[str]) -> Mapping[str, Any]:
    """The parameters that the column of them has: all of them, or those that differ and have no column of their own."""
    return {name: parameters[name] for name in varying[NAMED:] if name in parameters} if varying else parameters


def _value_text(value: Any) -> Any:
    """A value in a column of its own: a number stays one, and aligns with the others."""
    if isinstance(value, float):
        return float(f"{value:.4g}")
    return value if isinstance(value, int) and not isinstance(value, bool) else _cut(shown_value(value), NARROW)


def duration(run: Mapping[str, Any]) -> str:
    """How long a run took, for people; empty while it goes on."""
    if run["ended_at"] is None:
        return ""
    seconds = (datetime.fromisoformat(run["ended_at"]) - datetime.fromisoformat(run["started_at"])).total_seconds()
    minutes, rest = divmod(round(seconds), 60)
    if seconds < 0.9995:
        return f"{1_000 * seconds:.0f} ms"
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


def _values_text(values: Mapping[str, Any], letters: int) -> str:
    """The first values, as name=value. No number is cut: a part of it would be another number."""
    texts: list[str] = []
    for name, value in list(values.items())[:NAMED]:
        number = f"{value:.4g}" if isinstance(value, float) else _cut(shown_value(value), NARROW)
        texts.append(f"{_cut(name, NARROW)}={number}")
        if len(texts) > 1 and len(" ".join(texts)) > letters:
            texts.pop()
            break
    return " ".join([*texts, *(["…"] if len(values) > len(texts) else [])])


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
        ("Metrics", Table.of([_round_values(each) for each in run["series"]], SERIES, "It has recorded no values.")),
        ("Artifacts", _artifact_table(run["files"])),
        ("Inner runs", Table.of([_inner(each) for each in run["inner"]], INNER, "")),
        ("Definitions", _facts(run["definitions"])),
        ("Notes", Table([], [], "", lead=run["notes"])),
        ("Environment", _facts(environment)),
        ("Packages", Table([], [], "", lead=", ".join(f"{name} {version}" for name, version in packages.items()))),
        ("Identifiers", _facts({name.removesuffix("_id"): run[name] for name in IDS if run[name]})),
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


def _inner(run: Mapping[str, Any]) -> dict[str, Any]:
    return {**run, "state": StateCell.of(run["state"])}


def _round_values(metric: Mapping[str, Any]) -> dict[str, Any]:
    return {**metric, **{name: shown_value(metric[name]) for name in ("last", "low", "high")}}


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


def comparison_table(comparison: Mapping[str, Any]) -> Table:
    """A row for each difference, a column for each run."""
    heads = [f"{run['id']} {_cut(run['name'])}" for run in comparison["runs"]]
    rows = [
        [row["section"], _heading(row), *(_short_commit(row, value) for value in row["values"])]
        for row in comparison["rows"]
    ]
    same = "They do not differ." if len(heads) > 1 else "One run differs from nothing: name two or more."
    return Table(["", "", *heads], rows, same, dict(comparison))


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
    metrics = client.call("get_run_series", run_id=ref, names=list(names), max_points=points)["series"]
    if unknown := [name for name in names if name not in {metric["name"] for metric in metrics}]:
        raise no_series(unknown[0], client.call("get_run", run_id=ref))
    rows = [[metric["name"], step, shown_value(value)] for metric in metrics for step, value in metric["points"]]
    thinned = any(metric["thinned"] for metric in metrics)
    note = "Not every step is shown: --points shows more." if thinned else ""
    return Table(["metric", "step", "value"], rows, "It has recorded no values.", metrics, note)


def no_series(name: str, run: Mapping[str, Any]) -> BadInput:
    """The error for the name of a metric that a run has not recorded."""
    names = [series["name"] for series in run["series"]]
    hint = suggestion(name, names) + (f"It has {', '.join(names)}." if names else "It has none.")
    return BadInput("UNKNOWN_METRIC", f"Run {run['id']} has no series {name!r}. {hint}")


@runs.command("tag", context_settings={"ignore_unknown_options": True})
@click.argument("ref", metavar="RUN", shell_complete=offers.runs)
@click.argument("tags", nargs=-1, required=True, metavar="[+]TAG|-TAG...")
@pass_client
def tag(client: OperatorClient, ref: str, tags: tuple[str, ...]) -> Shown:
    """Give a run tags; with - before them, take them away: `runs tag 7 baseline -draft`."""
    added = [word.removeprefix("+") for word in tags if not word.startswith("-")]
    removed = [word.removeprefix("-") for word in tags if word.startswith("-")]
    run = client.call("update_run", run_id=ref, add_tags=added, remove_tags=removed)
    tags_text = f"the tags {', '.join(run['tags'])}" if run["tags"] else "no tags"
    return Note(f"Run {run['id']} has {tags_text}.", run)


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
    run = client.call("end_run", run_id=ref, state=state)
    return Note(f"Run {run['id']} is {run['state']}.", run)


@runs.command("archive")
@click.argument("refs", nargs=-1, required=True, metavar="RUN...", shell_complete=offers.runs)
@pass_client
def archive(client: OperatorClient, refs: tuple[str, ...]) -> Shown:
    """Put runs away, so that lists leave them out."""
    archived = [client.call("archive_run", run_id=ref) for ref in refs]
    return Note(f"Archived {counted(len(archived), 'run')}.", archived)


@runs.command("restore")
@click.argument("refs", nargs=-1, required=True, metavar="RUN...", shell_complete=offers.runs)
@pass_client
def restore(client: OperatorClient, refs: tuple[str, ...]) -> Shown:
    """Bring back runs that were archived."""
    restored = [client.call("restore_run", run_id=ref) for ref in refs]
    return Note(f"Restored {counted(len(restored), 'run')}.", restored)


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

    items = [client.call("get_run", run_id=ref) for ref in refs]
    series = {run["id"]: client.call("get_run_series", run_id=run["id"], max_points=500)["series"] for run in items}
    comparison = client.call("compare_runs", run_ids=[run["id"] for run in items])
    pages = [(run, run_page(run)) for run in items]
    text = page(client.settings.project, pages, series, comparison, comparison_table(comparison))
    try:
        file.write_text(text, "utf-8")
    except OSError as error:
        raise output_unwritable(str(file), error) from None
    return Note(f"Wrote {counted(len(items), 'run')} to {file}.", {"file": str(file)})
