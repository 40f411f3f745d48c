"""`workbench start --detach --on-boot`: a unit of systemd really starts the servers, and is removed again."""

from __future__ import annotations

import configparser
import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import typed
from tests.given import refused, wait_until
from workbench.shells import detached, on_boot
from workbench.state.server_file import ServerFile
from workbench.state.settings import Settings

SYSTEMCTL = '#!/bin/sh\necho "$@" >> "{said}"\n'


@pytest.fixture
def project(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose path has what a unit has to escape."""
    project = Path(shutil.copytree(repository, tmp_path / 'a b$c%d"e'))
    monkeypatch.setenv("WORKBENCH_PROJECT", str(project))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return project


@pytest.fixture
def said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What a `systemctl` was told."""
    (place := tmp_path / "bin").mkdir()
    said = tmp_path / "said"
    for name in ("systemctl", "loginctl"):
        (place / name).write_text(SYSTEMCTL.format(said=said))
        (place / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(place), prepend=os.pathsep)
    return said


@pytest.mark.long
def test_the_unit_starts_the_servers_and_is_removed(project: Path, said: Path) -> None:
    settings = Settings(project=project)
    unit = on_boot.unit_path(settings)
    started = typed("start", "--detach", "--port", "0", "--on-boot")
    try:
        assert f"They also start with the machine, by {unit}; `workbench stop --on-boot` undoes" in started.out
        assert "`loginctl enable-linger`" in started.out
        assert said.read_text().splitlines()[:3] == [
            "--user show-environment",
            "--user daemon-reload",
            f"--user enable {unit.name}",
        ]
        parsed = configparser.ConfigParser(interpolation=None)
        parsed.read(unit)
        assert parsed["Install"]["WantedBy"] == "default.target"
        if shutil.which("systemd-analyze"):
            verified = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True)
            assert (verified.returncode, verified.stderr) == (0, "")
        typed("stop")
        argv = shlex.split(parsed["Service"]["ExecStart"].replace("%%", "%").replace("$$", "$"))
        with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
            wait_until(lambda: ServerFile(settings.server_file).load().info, "the server")
            info = ServerFile(settings.server_file).load().info
            assert info is not None
            assert (info.pid, detached.is_detached(info)) == (server.pid, True)
            stopped = typed("stop", "--on-boot")
            assert server.wait(30) == 0, "systemd does not start it again"
        assert stopped.out.endswith("It does not start with the machine any more.\n")
        assert f"--user disable {unit.name}" in said.read_text()
        assert not unit.exists()
    finally:
        typed("stop")


def test_without_a_systemd_nothing_is_written_or_started_and_the_next_step_is_said(project: Path, said: Path) -> None:
    (said.parent / "bin" / "systemctl").write_text("#!/bin/sh\necho 'Failed to connect to bus' >&2\nexit 1\n")
    refused = typed("start", "--detach", "--on-boot")
    assert refused.err.startswith("NO_SYSTEMD: No systemd of yours can be reached here")
    assert "Failed to connect to bus" in refused.err
    assert "`@reboot` of crontab" in refused.err
    assert not on_boot.unit_path(Settings(project=project)).exists()
    assert ServerFile(Settings(project=project).server_file).load().info is None


def test_the_unit_has_the_projects_database_but_never_its_password(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(project=project)
    monkeypatch.setenv("WORKBENCH_DATABASE_URL", "postgresql://ada@db.lab/work")
    monkeypatch.setenv("PGPASSFILE", "/home/ada/pass")
    text = on_boot.unit(settings, None)
    assert '"WORKBENCH_DATABASE_URL=postgresql://ada@db.lab/work" "PGPASSFILE=/home/ada/pass"' in text
    for name, value in (("PGPASSWORD", "hunter2"), ("WORKBENCH_DATABASE_URL", "password=hunter2")):
        with monkeypatch.context() as patch:
            patch.setenv(name, value)
            assert "hunter2" not in refused("PASSWORD_IN_UNIT", on_boot.unit, settings, None).message
