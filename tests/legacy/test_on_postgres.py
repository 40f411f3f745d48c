"""Bringing the old server's database to a project on PostgreSQL: the same rows as on SQLite."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.legacy.conftest import NOW, SAMPLES, added
from workbench.legacy import import_legacy
from workbench.state.database_url import DatabaseUrl
from workbench.state.settings import Settings
from workbench.store.copying import compare_stores

pytestmark = pytest.mark.postgres


@pytest.fixture
def on_postgres(settings: Settings, postgres_url: str, tmp_path: Path) -> Settings:
    """The settings of another project, whose store is on PostgreSQL."""
    (elsewhere := tmp_path / "elsewhere").mkdir()
    return settings.model_copy(update={"project": elsewhere, "database_url": DatabaseUrl(postgres_url)})


@pytest.mark.parametrize("sample", SAMPLES)
def test_an_import_brings_the_same_rows_as_on_sqlite(
    samples: Path, settings: Settings, on_postgres: Settings, sample: str
) -> None:
    for one in (settings, on_postgres):
        tables = import_legacy(one, samples / f"{sample}.db", clock=lambda: NOW).tables
    assert on_postgres.database_url is not None
    compared = compare_stores(settings.database, on_postgres.database_url.conninfo)
    equal = {table.table for table in compared if table.is_equal}
    assert {*tables, "events"} - equal == {"agents"}, "each import makes tokens of its own"
    assert added(import_legacy(on_postgres, samples / f"{sample}.db")) == {}


def test_a_backup_is_made_before_more_is_imported(samples: Path, on_postgres: Settings) -> None:
    import_legacy(on_postgres, samples / "small.db")
    imported = import_legacy(on_postgres, samples / "registered.db")
    assert imported.backup is not None
    assert Path(imported.backup).is_file()
