"""The address of a PostgreSQL database: both forms of libpq, whose secrets nothing shows."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict

from tests.given import refused
from workbench.state import user_files
from workbench.state.database_url import DatabaseUrl, secrets_of
from workbench.state.settings import Settings
from workbench.trust.withheld import trust, withheld

PASSWORD = "hunter2hunter2"
ADDRESSES = {
    f"postgresql://ada:{PASSWORD}@db.lab:5433/work?sslmode=verify-full": (
        "postgresql://ada@db.lab:5433/work?sslmode=verify-full"
    ),
    f"postgres://ada:{PASSWORD}@[::1]/work": "postgresql://ada@[::1]/work",
    "postgresql://ada:p%40%2F%3A@db.lab/my%20work": "postgresql://ada@db.lab/my%20work",
    f"postgresql://one:5432,two:5433/work?password={PASSWORD}&target_session_attrs=read-write": (
        "postgresql://one:5432,two:5433/work?target_session_attrs=read-write"
    ),
    f"postgresql:///work?host=/run/pg&user=ada&password={PASSWORD}": "postgresql://ada@/work?host=/run/pg",
    "postgresql:///?service=lab": "postgresql:///?service=lab",
    "postgresql://": "postgresql://",
    f"host=db.lab port=5433 dbname = work user=ada password={PASSWORD}": "postgresql://ada@db.lab:5433/work",
    r"dbname='my work' user=ada password='it\'s \\ secret'": "postgresql://ada@/my%20work",
    "dbname=work user=ada password=it's": "postgresql://ada@/work",
    f"host=one,two port=5432 dbname=work sslkey=/k sslpassword={PASSWORD}": (
        "postgresql://one:5432,two:5432/work?sslkey=/k"
    ),
}


@pytest.fixture(autouse=True)
def _own_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKBENCH_CONFIG", str(tmp_path.with_name(f"{tmp_path.name}-config")))


@pytest.mark.parametrize("conninfo", ADDRESSES)
def test_an_address_is_read_as_libpq_reads_it_and_shown_without_its_secrets(conninfo: str) -> None:
    url, expected = DatabaseUrl(conninfo), conninfo_to_dict(conninfo)
    secrets = [expected[keyword] for keyword in ("password", "sslpassword") if keyword in expected]
    assert list(url.secrets) == secrets
    assert str(url) == ADDRESSES[conninfo]
    shown = conninfo_to_dict(str(url))
    assert shown.pop("port", None) in (expected.pop("port", None), "5432,5432")
    assert shown == {keyword: value for keyword, value in expected.items() if value not in secrets}
    assert DatabaseUrl(f" {conninfo}\n") == url


@pytest.mark.parametrize(
    "wrong",
    [
        f"mysql://ada:{PASSWORD}@db.lab/work",
        f"postgresql://ada:{PASSWORD}@{PASSWORD}@db.lab/work",
        f"postgresql://ada:{PASSWORD}/{PASSWORD}@db.lab/work",
        f"postgresql://ada:12/{PASSWORD}@db.lab/work",
        f"postgresql://ada:12?{PASSWORD}@db.lab/work",
        f"postgresql://ada:{PASSWORD}@db.lab:port/work",
        f"postgresql://ada:{PASSWORD}@db.lab:99999/work",
        f"postgresql://ada:{PASSWORD}@db.lab/work?sslmode",
        f"host=db.lab {PASSWORD}",
        f"host=db.lab password='{PASSWORD}",
        f"password={PASSWORD}\0",
        f"{PASSWORD}",
    ],
)
def test_a_wrong_address_is_refused_and_not_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: str
) -> None:
    (own := user_files.settings_path()).parent.mkdir(parents=True, exist_ok=True)
    own.write_text(f'database_url = "{wrong}"'.replace("\0", "\\u0000"))
    error = refused("BAD_SETTINGS", Settings, project=tmp_path)
    assert f"{own}, line 1, database_url: " in error.message
    assert PASSWORD not in error.message
    assert "Value error" not in error.message


def test_nothing_shows_the_password_of_the_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKBENCH_DATABASE_URL", f"postgresql://ada:{PASSWORD}@db.lab/work")
    monkeypatch.setenv("PGPASSWORD", "of-another-kind")
    settings = Settings(project=tmp_path)
    assert settings.database_url is not None
    shown = "postgresql://ada@db.lab/work"
    for text in (repr(settings), str(settings), f"{settings.database_url}", settings.model_dump_json()):
        assert (shown in text, PASSWORD in text) == (True, False)
    assert settings.database_secrets == (PASSWORD, "of-another-kind")
    assert set(secrets_of()) == set(settings.database_secrets)
    for same in (copy.deepcopy(settings), pickle.loads(pickle.dumps(settings))):
        assert same.database_url.conninfo == f"postgresql://ada:{PASSWORD}@db.lab/work"


def test_an_empty_address_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKBENCH_DATABASE_URL", " ")
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    assert Settings(project=tmp_path).database_url is None
    assert Settings(project=tmp_path).database_secrets == ()


def test_a_projects_file_may_name_the_database_but_have_no_password(tmp_path: Path) -> None:
    (tmp_path / ".aiswarm").mkdir()
    file = tmp_path / ".aiswarm" / "settings.toml"
    file.write_text('database_url = "postgresql://ada@db.lab/work"\n')
    assert Settings(project=tmp_path).database_url is None, "the file may have come with the repository"
    trust(tmp_path, withheld(tmp_path))
    assert str(Settings(project=tmp_path).database_url) == "postgresql://ada@db.lab/work"
    file.write_text(f'port = 1\ndatabase_url = "host=db.lab password={PASSWORD}"\n')
    error = refused("BAD_SETTINGS", Settings, project=tmp_path)
    assert error.message.startswith(f"{file}, line 2: database_url has a password, which would be committed")
    assert PASSWORD not in error.message
