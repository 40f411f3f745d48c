"""`workbench runs`: lists that fit into a terminal, one run whole, comparisons, notes and tags."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Type, code, cut_data, data
from tests.conftest import Ran
from workbench.cli.client import ProjectClient

WIDTH = 100


@pytest.fixture
def client(repository: Path) -> Iterator[ProjectClient]:
    """The project in which the command is typed, with two runs."""
    with ProjectClient(repository) as client:
        client.create_project()
        for number, loss in ((1, 0.123456789), (2, 0.05)):
            about = {"lr": number / 10, "seed": number, "layers": [1, 2], "a long name of a parameter": "x" * 100}
            client.call("start_run", name=f"run {number} with a name that is rather long", parameters=about)
            client.call("record_metrics", run_id=number, metrics={"loss": [1, loss], "val/accuracy": "NaN"})
            client.call("end_run", run_id=number)
        yield client


@pytest.mark.usefixtures("client")
def test_the_list_of_runs_fits_into_a_hundred_columns(run: Type) -> None:
    shown = run("runs")
    assert shown.status == 0
    head, second, first = shown.out.splitlines()
    assert head.split() == ["run", "name", "state", "lr", "seed", "metrics", "took"]
    assert run("runs", "--sort", "-val/accuracy").out.split()[3:6] == ["val/accuracy", "lr", "seed"]
    assert run("runs", "--sort", "lr", "--where", "lr=0.2").out.splitlines()[1].split()[0] == "2"
    assert max(len(head), len(second), len(first)) <= WIDTH
    assert "loss=0.1235 …" in first
    assert "0.2" in second.split()
    assert "loss=0.05" in run("runs", "--where", "loss<0.1").out
    assert run("runs", "--state", "failed").out.strip() == "No run matches."
    for order, found in (("loss", 2), ("-loss", 1), ("name", 1), ("-name", 2), ("-started", 2)):
        assert cut_data(run("runs", "list", "--sort", order, "--limit", "1", "--json"))[0]["id"] == found


def test_sweeps_are_listed_with_how_many_of_their_runs_have_ended(client: ProjectClient, run: Type) -> None:
    assert "There are no sweeps yet." in run("runs", "sweeps").out
    about = {"notebook": "train.ipynb", "notebook_sha256": "0" * 64, "specification": {"runs": 3}}
    sweep = client.call("start_sweep", name="seeds", **about)
    for number, end in ((1, {}), (2, {"state": "failed", "error": "no"})):
        begun = client.call("start_run", name=f"seeds {number}", sweep_id=sweep["id"], key=str(number))
        client.call("end_run", run_id=begun["id"], **end)
    head, row = run("runs", "sweeps").out.splitlines()
    assert head.split() == ["sweep", "notebook", "runs", "completed", "failed", "lost", "running", "left", "started"]
    assert row.split()[:8] == ["seeds", "train.ipynb", "3", "1", "1", "0", "0", "1"]
    client.call("record_metrics", run_id=4, metrics={"acc": 0.95, "loss": 0.0106118})
    _, last, *_ = run("runs", "--sweep", "seeds").out.splitlines()
    assert "acc=0.95 loss=0.01061 " in last  # no number is cut: a part of it would be another number
    assert run("runs", "sweeps", "--search", "other").out.strip() == "No sweep matches."
    assert [one["name"] for one in data(run("runs", "sweeps", "--json"))] == ["seeds"]


@pytest.mark.usefixtures("client")
def test_a_run_is_shown_whole_and_compared(run: Type) -> None:
    shown = run("runs", "show", "1").out
    for text in ("Run 1: run 1", "layers", "[1, 2]", "loss", "0.123457", "git commit"):
        assert text in shown
    compared = run("runs", "compare", "1", "2").out
    assert max(map(len, compared.splitlines())) <= WIDTH
    assert "seed" in compared
    assert "layers" not in compared
    everything = run("runs", "compare", "1", "2", "--all").out
    assert "layers" in everything
    assert "error code" in everything
    assert run("runs", "compare", "1").out == "One run differs from nothing: name two or more.\n"
    error = "UNKNOWN_METRIC: Run 1 has no series 'los'. Did you mean loss? It has loss, val/accuracy.\n"
    assert run("runs", "series", "1", "los") == Ran(1, "", error)
    points = data(run("runs", "series", "1", "loss", "--json"))[0]["points"]
    assert points == [[0, 1.0], [1, 0.123456789]]


def test_many_packages_of_a_run_take_one_paragraph_after_its_notes(client: ProjectClient, run: Type) -> None:
    packages = {f"package-{number}": f"1.{number}" for number in range(80)}
    made = client.call("start_run", name="crowded", environment={"python": "3.11", "packages": packages})
    client.call("update_run", run_id=made["id"], notes="It worked.")
    shown = run("runs", "show", str(made["id"])).out
    assert shown.index("It worked.") < shown.index("Environment") < shown.index("Packages")
    assert "package-0 1.0, package-1 1.1, package-2" in shown
    assert len(shown.splitlines()) < 40


def test_runs_are_named_tagged_noted_ended_and_archived(run: Type, client: ProjectClient) -> None:
    assert run("runs", "tag", "1", "baseline", "+second", "-none").out == "Run 1 has the tags baseline, second.\n"
    assert run("runs", "tag", "1", "-second").out == "Run 1 has the tags baseline.\n"
    assert max(map(len, run("runs").out.splitlines())) <= WIDTH
    assert run("runs", "name", "1", "short").status == 0
    assert run("runs", "note", "1", "It worked.").status == 0
    assert "It worked." in run("runs", "show", "1").out
    assert run("runs", "archive", "1", "2").out == "Archived 2 runs.\n"
    assert run("runs").out.startswith("There are no runs")
    assert run("runs", "restore", "1").status == 0
    client.call("start_run", name="gone")
    assert run("runs", "end", "3", "--state", "lost").out == "Run 3 is lost.\n"
    (client.settings.project / "plot.svg").write_text("<svg/>")
    client.call("add_run_artifact", run_id=3, path="plot.svg")
    assert str(client.settings.project / "plot.svg") in run("runs", "open", "3").out
    assert "RUN_NOT_FOUND" in run("runs", "show", "99").err


def test_a_run_is_named_by_its_name_if_only_one_has_it(run: Type, client: ProjectClient) -> None:
    client.call("update_run", run_id=1, name="short")
    assert run("runs", "show", "short").out.startswith("Run 1: short")
    assert run("runs", "tag", "short", "best").out == "Run 1 has the tags best.\n"
    assert "seed" in run("runs", "compare", "short", "2").out
    client.call("update_run", run_id=2, name="2024")
    assert run("runs", "show", "2024").out.startswith("Run 2: 2024")
    assert run("runs", "note", "2024", "It worked.").out == "The notes of run 2 are saved.\n"
    client.call("update_run", run_id=2, name="short")
    for words in (("show", "short"), ("tag", "short", "best"), ("compare", "short", "1")):
        refused = run("runs", *words)
        assert (code(refused), "Choose by id: 2, 1." in refused.err) == ("AMBIGUOUS_NAME", True)


def test_a_report_is_one_file_in_which_nothing_that_was_recorded_is_active(
    run: Type, client: ProjectClient, tmp_path: Path
) -> None:
    evil = "<script>alert(1)</script>\u202e"
    client.call("update_run", run_id=1, notes=evil)
    client.call("record_metrics", run_id=1, metrics={evil.replace("<", "").replace(">", ""): [1, 2], "text": evil})
    picture = client.settings.project / "plot.png"
    picture.write_bytes(b"\x89PNG picture")
    client.call("add_run_artifact", run_id=1, path="plot.png", name=f"plot {evil[:8]}")
    file = tmp_path / "report.html"
    assert run("runs", "report", "1", "2", "--html", str(file)).out == f"Wrote 2 runs to {file}.\n"
    page = file.read_text("utf-8")
    plain = page.replace("http://www.w3.org", "")
    assert [active for active in ("<script", "\u202e", "http://", "https://") if active in plain] == []
    for part in ("default-src 'none'", "&lt;script&gt;alert(1)", "data:image/png;base64,"):
        assert part in page
    assert page.count("data:image/svg+xml;base64,") >= 3
    picture.write_bytes(b"other")
    run("runs", "report", "1", "--html", str(file))
    assert "changed since the run" in file.read_text("utf-8")
    assert code(run("runs", "report", "1", "--html", str(tmp_path / "no" / "report.html"))) == "OUTPUT_UNWRITABLE"
