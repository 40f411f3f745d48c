"""Everything that can be queried is saved to files that read back equal, hold no secret and replace nothing unasked."""

from __future__ import annotations

import asyncio
import csv
import json
import os
import signal
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import product
from pathlib import Path

import pytest

from tests import given
from tests.conftest import Admit, Admitted, Clock
from tests.small_disk import fill, small_disk
from workbench.analytics import export as exports
from workbench.analytics import replica
from workbench.analytics.export import SavedExport, export, export_view, in_thread
from workbench.analytics.live import Live, refresh
from workbench.analytics.mirrors import TABLES
from workbench.analytics.replica import Replica
from workbench.analytics.views import VIEWS
from workbench.app import Workbench
from workbench.errors import Conflict, Unavailable
from workbench.state.settings import Settings

pytestmark = pytest.mark.anyio

FILES = (*VIEWS, *(table for table in TABLES if table != "raw_events"))
TITLES = ["é\U0001f427", "a'b\"c\\d", "two\nlines", "NULL", "1", "=1+1", "'=1", " x ", "-"]


@pytest.fixture
async def ada(workbench: Workbench, admit: Admit, clock: Clock) -> Admitted:
    """An agent that has completed one of the project's tasks."""
    await given.worktree(workbench, "fix")
    for title in TITLES:
        await given.task(workbench, title)
    admitted: Admitted = await admit("ada")
    await workbench.dispatch(admitted.caller, "claim_task", {"task_id": 1})
    clock.forward(7)
    await workbench.dispatch(admitted.caller, "complete_task", {"task_id": 1, "result_data": {"n": -1}})
    return admitted


async def save_files(settings: Settings, directory: Path, form: str, force: bool = False) -> Sequence[SavedExport]:
    """Export in a thread that has no loop."""
    return await asyncio.to_thread(export, settings, directory, form, force)


async def saved_view(settings: Settings, view: str, file: Path, form: str) -> SavedExport:
    """Export a view in a thread that has no loop."""
    return await asyncio.to_thread(export_view, settings, view, file, form)


async def test_parquet_reads_back_equal(
    workbench: Workbench, settings: Settings, ada: Admitted, tmp_path: Path
) -> None:
    made = await save_files(settings, tmp_path / "out", "parquet")
    live = Live(files=True)
    news = await refresh(live, workbench.store)
    assert [one.file for one in made] == [f"{table}.parquet" for table in FILES]
    for table, one in zip(FILES, made, strict=True):
        here, there = (
            live.answer(news, f"SELECT * FROM {source} ORDER BY ALL")
            for source in (table, f"'{tmp_path}/out/{table}.parquet'")
        )
        assert here.columns == there.columns
        texts = ["VARCHAR" if str(kind) == "JSON" else str(kind) for kind in here.types]  # others take JSON for bytes
        assert texts == [str(kind) for kind in there.types]
        rows = here.fetchall()
        assert rows == there.fetchall()
        assert one.rows == len(rows)
        assert one.bytes == (tmp_path / "out" / one.file).stat().st_size
    sizes = {one.file: one.rows for one in made}
    assert sizes["tasks.parquet"] == len(TITLES)
    assert sizes["attempts.parquet"] == sizes["worktrees.parquet"] == 1
    assert sizes["approvals.parquet"] >= 1
    assert list((tmp_path / "out").glob(".*")) == []


@pytest.mark.long
async def test_a_single_view_reads_back_equal(
    workbench: Workbench, settings: Settings, ada: Admitted, tmp_path: Path
) -> None:
    """Parquet with its values, the others with all their rows; what they keep of values is tested below."""
    live = Live(files=True)
    news = await refresh(live, workbench.store)
    readers = {"parquet": "read_parquet", "jsonl": "read_json", "json": "read_json", "csv": "read_csv"}
    for form, view in product(readers, ("tasks", "attempts", "approvals", "worktrees", "events")):
        file = tmp_path / f"one.{form}"
        every = "COLUMNS(*)" if form == "parquet" else "count(*)"
        file.write_text("of an earlier export")
        made = await saved_view(settings, view, file, form)
        here, there = (
            live.answer(news, f"SELECT {every} FROM {source}").fetchall()
            for source in (view, f"{readers[form]}('{file}')")
        )
        assert (form, view, sorted(map(repr, here))) == (form, view, sorted(map(repr, there)))
        count = live.answer(news, f"SELECT count(*) FROM {view}").fetchall()[0][0]
        assert made == SavedExport(file.name, count, file.stat().st_size)
        assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".export")] == []


@pytest.mark.long
async def test_csv_is_safe_for_spreadsheets_and_json_lines_keep_values_but_no_token(
    workbench: Workbench, settings: Settings, ada: Admitted, tmp_path: Path
) -> None:
    await save_files(settings, tmp_path / "csv", "csv")
    await save_files(settings, tmp_path / "jsonl", "jsonl")
    with (tmp_path / "csv" / "tasks.csv").open(newline="", encoding="utf-8") as file:
        cells = {int(row["id"]): row for row in csv.DictReader(file)}
    lines = (tmp_path / "jsonl" / "tasks.jsonl").read_text("utf-8").split("\n")
    tasks = {task["id"]: task for task in map(json.loads, filter(None, lines))}
    assert [tasks[number + 1]["title"] for number in range(len(TITLES))] == TITLES
    escaped = {"=1+1": "'=1+1", "'=1": "''=1", "-": "'-"}
    assert [cells[number + 1]["title"] for number in range(len(TITLES))] == [escaped.get(t, t) for t in TITLES]
    assert tasks[1]["result"] == {"n": -1}
    assert cells[1]["created_at"] == tasks[1]["created_at"]
    assert cells[1]["created_at"].endswith("Z")
    text = "".join(path.read_text("utf-8") for path in (tmp_path / "jsonl").iterdir())
    assert "implementer" in text
    for secret in (ada.token, ada.token.removeprefix("wba_"), workbench.operator_token, "token_hash"):
        assert secret not in text


@pytest.mark.long
@pytest.mark.parametrize("form", ["json", "jsonl"])
async def test_json_is_strict_where_a_number_is_not_finite(
    workbench: Workbench, settings: Settings, tmp_path: Path, form: str
) -> None:
    run = await workbench.call("start_run", name="r")
    recorded = {"a": "Infinity", "b": "-Infinity", "c": "NaN", "d": 0.1}
    await workbench.call("record_metrics", run_id=run["id"], metrics=recorded)

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    await saved_view(settings, "run_metrics", file := tmp_path / "metrics", form)
    text = file.read_text()
    lines = [text] if form == "json" else text.splitlines()
    made = [json.loads(line, parse_constant=refuse) for line in lines]
    rows = made[0] if form == "json" else made
    assert {row["name"]: row["value"] for row in rows} == recorded


async def test_an_export_replaces_existing_files_only_with_force(
    workbench: Workbench, settings: Settings, ada: Admitted, tmp_path: Path
) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(Conflict, match=r"OUTPUT_EXISTS.*--force"):
        await save_files(settings, tmp_path, "csv")
    await save_files(settings, tmp_path, "csv", force=True)
    before = (tmp_path / "tasks.csv").read_text()
    await workbench.call("cancel_task", task_id=2)
    await save_files(settings, tmp_path, "csv", force=True)
    assert (tmp_path / "tasks.csv").read_text() != before
    assert (tmp_path / "mine.txt").read_text() == "mine"
    (tmp_path / "empty").mkdir()
    await save_files(settings, tmp_path / "empty", "csv")


async def test_an_export_that_fails_says_why_and_leaves_nothing(
    settings: Settings, ada: Admitted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("x")
    with small_disk(tmp_path / "disk", 1) as place:
        fill(place, 8_192)
        for out in (place / "out", tmp_path / "file" / "out"):
            with pytest.raises(Unavailable, match="OUTPUT_UNWRITABLE"):
                await save_files(settings, out, "parquet")
        assert [path.name for path in place.iterdir()] == ["filler"]
    monkeypatch.setattr(replica, "MEMORY", "1MB")
    with pytest.raises(Unavailable, match=r"OUTPUT_UNWRITABLE.*Memory"):
        await save_files(settings, tmp_path / "out", "parquet")
    assert list(tmp_path.glob("out*")) == []


async def test_a_file_is_replaced_where_a_link_leads_and_only_as_a_whole(
    settings: Settings, ada: Admitted, tmp_path: Path
) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "link.csv").symlink_to(tmp_path / "kept" / "tasks.csv")
    await saved_view(settings, "tasks", tmp_path / "link.csv", "csv")
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "kept" / "tasks.csv").read_text().startswith("id,title")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(Unavailable, match=r"OUTPUT_UNWRITABLE.*It is not a regular file"):
        await saved_view(settings, "tasks", tmp_path / "pipe", "csv")
    assert (tmp_path / "pipe").is_fifo()
    with small_disk(tmp_path / "disk", 1) as place:
        (place / "tasks.csv").write_text("before")
        fill(place, 0)
        with pytest.raises(Unavailable, match=r"OUTPUT_UNWRITABLE.*: No space left on device\. Choose another place"):
            await saved_view(settings, "tasks", place / "tasks.csv", "csv")
        assert (place / "tasks.csv").read_text() == "before"


def test_an_interrupt_ends_an_export_that_leaves_nothing(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    endless = "SELECT count(*) FROM range(100000000000) a, range(1000) b WHERE a.range + b.range = 7"
    began = threading.Event()

    def cells(*_: object) -> str:
        began.set()
        return f"({endless}) AS n"

    monkeypatch.setattr(exports, "_cells", cells)
    out = tmp_path / "out"

    def interrupt() -> None:
        assert began.wait(30)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    with ThreadPoolExecutor(1) as person:
        interrupting = person.submit(interrupt)
        with pytest.raises(KeyboardInterrupt):
            in_thread(partial(export, settings, out, "csv", False))
        interrupting.result()
    assert not out.exists()


def test_a_replica_spills_to_the_scratch_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replica, "MEMORY", "20MB")
    copy = Replica(files=True, scratch=tmp_path)
    with copy.connection() as db:
        db.execute(
            "CREATE TABLE large AS SELECT n, repeat(md5(CAST(n AS VARCHAR)), 10) AS text FROM range(200000) r(n)"
        )
        assert list(tmp_path.iterdir())
        assert db.execute("SELECT count(*), sum(length(text)) FROM large").fetchone() == (200_000, 64_000_000)
    copy.close()
