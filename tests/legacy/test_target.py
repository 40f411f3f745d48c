"""The writing of legacy rows: with events, after a backup, whole or not at all."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from tests import given
from tests.legacy.conftest import NOW, asked, column, dump
from workbench.errors import Conflict, Unavailable
from workbench.legacy import import_legacy
from workbench.state.settings import Settings
from workbench.store.sqlite import open_store
from workbench.trust import state_directory

# The feed.


def test_each_agent_has_an_event_and_each_other_table_one(samples: Path, settings: Settings) -> None:
    import_legacy(settings, samples / "small.db")
    events = asked(settings.database, "SELECT kind, actor, subject, session, data FROM events ORDER BY id")
    tables = [("project", 1), ("session", 2), ("team", 2), ("context", 3)]
    assert [(e["kind"], e["subject"], json.loads(e["data"])) for e in events] == [
        *((f"{noun}.migrated", "legacy:small.db", {"found": n, "added": n}) for noun, n in tables),
        *(("agent.migrated", f"agent:{a}", {"agent_id": a}) for a in ("a-ada", "a-bob", "a-eve")),
    ]
    assert {e["actor"] for e in events} == {"operator"}
    assert [e["session"] for e in events[-3:]] == ["s-field", "s-field", None]


# The backup.


def test_the_backup_is_the_store_as_it_was_before(samples: Path, settings: Settings) -> None:
    first = import_legacy(settings, samples / "small.db", clock=lambda: NOW)
    assert first.backup is None  # there was nothing to back up
    before = dump(settings.database)
    imported = import_legacy(settings, samples / "full.db", clock=lambda: NOW)
    assert imported.backup == str(settings.home / "backups" / "coordination-20270115T080000.000000Z.db")
    backup = Path(imported.backup)
    assert list(backup.parent.iterdir()) == [backup]
    assert dump(backup) == before != dump(settings.database)
    assert column(backup, "PRAGMA integrity_check") == ["ok"]
    open_store(backup).close()


def test_without_a_backup_nothing_is_imported(samples: Path, settings: Settings) -> None:
    import_legacy(settings, samples / "small.db")
    (settings.home / "backups").write_text("in the way")
    before = dump(settings.database)
    error = given.refused("BACKUP_FAILED", import_legacy, settings, samples / "full.db")
    assert type(error) is Unavailable
    assert dump(settings.database) == before


# Whole or not at all.


def test_a_row_that_the_store_refuses_leaves_nothing_behind(samples: Path, settings: Settings) -> None:
    state_directory.create(settings)
    open_store(settings.database).close()
    with closing(sqlite3.connect(settings.database)) as db, db:
        db.execute("""CREATE TRIGGER house_rule BEFORE INSERT ON contexts WHEN new.id = 'c-2'
            BEGIN SELECT RAISE(ABORT, 'not in this house'); END""")
    before = dump(settings.database)
    error = given.refused("LEGACY_REFUSED", import_legacy, settings, samples / "small.db")
    assert (type(error), error.details) == (Conflict, {"reason": "not in this house"})
    assert dump(settings.database) == before
    with closing(sqlite3.connect(settings.database)) as db, db:
        db.execute("DROP TRIGGER house_rule")
    assert import_legacy(settings, samples / "small.db").tables["contexts"].added == 3
