"""`server.json`: which server counts as running."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from workbench.model import ServerInfo
from workbench.state.server_file import ServerFile

WAITS = "import sys; print('begun', flush=True); sys.stdin.read()"


@pytest.mark.timeout(60)
def test_a_process_that_ended_and_was_not_waited_for_serves_nothing(tmp_path: Path) -> None:
    file = ServerFile(tmp_path / "server.json")
    command = [sys.executable, "-c", WAITS]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        url = "http://127.0.0.1:8765"
        started = psutil.Process(process.pid).create_time()
        info = ServerInfo(pid=process.pid, started=started, nonce="n", url=url, ws_url=url, mcp_url=url)
        file.save(info, "wbo_x")
        assert file.load().info == info
        process.kill()
        process.stdout.read()  # until the system has closed its files
        while psutil.Process(process.pid).status() != psutil.STATUS_ZOMBIE:
            pass
        assert file.load().info is None
        assert file.load().port == 8765
