"""All refusals by a box, found in a trace of system calls, and nothing else."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.confinement.scene import Scene
from tests.users import SYSTEM_PYTHON
from workbench.confinement import traces
from workbench.confinement.box import Box

REFUSED = {
    "open('{home}/data.csv')": "{home}/data.csv cannot be read",
    "os.listdir('{home}')": "{home} cannot be read",
    "open('{up}/home/b \"\\t\\u00e9.csv')": '{home}/b "\t\u00e9.csv cannot be read',
    "open('{home}/new', 'w')": "{home}/new cannot be written",
    "open('{home}/added', 'a')": "{home}/added cannot be written",
    "os.mkdir('{home}/directory')": "{home}/directory cannot be written",
    "os.unlink('{home}/old')": "{home}/old cannot be written",
    "os.symlink('mine', '{home}/link')": "{home}/link cannot be written",
    "os.open('/dev/tty', os.O_RDONLY)": "The device /dev/tty is closed",
    "socket.socket(socket.AF_UNIX)": "It cannot make UNIX sockets, "
    "which multiprocessing needs for forkserver and Manager",
}
OF_ITS_OWN = {
    "open('{project}/.aiswarm/server.json')": "{project}/.aiswarm/server.json belongs to Workbench and cannot be used",
    "socket.create_connection(('127.0.0.1', 9))": "It cannot connect to port 9",
    "socket.create_connection(('::1', 11))": "It cannot connect to port 11",
    "socket.create_server(('127.0.0.1', 0))": "It cannot listen on a port",
    "socket.socket(socket.AF_INET, socket.SOCK_DGRAM)": "It cannot look up names of machines",
    "multiprocessing.Lock()": "It cannot use /dev/shm, which locks between processes need",
    "os.rename('mine', '{home}/mine')": "{home}/mine cannot be written",
}
"""What a box with namespaces has of its own: nothing there is refused. Files are copied between mounts, not moved."""
ALLOWED = (
    "open('mine', 'w')",
    "open('/usr/no-such-file')",
    "os.mkdir('mine')",
    "open('/no-such-directory/file', 'w')",
    "os.open('/dev/null', os.O_RDWR)",
    "os.listdir('.')",
    "os.kill(1, 0)",
    "subprocess.run(['true'])",
    "subprocess.run(['git', 'status'])",
    "subprocess.run(['no-such-program'])",
    "print('Permission denied: /etc/shadow')",
    "open('closed', 'w').close() or os.chmod('closed', 0) or open('closed')",
    "socket.socket().close()",
)


@pytest.mark.skipif(shutil.which("strace") is None, reason="there is no strace here")
def test_a_trace_shows_every_refusal_and_nothing_else(scene: Scene, tmp_path: Path) -> None:
    for name in ("data.csv", 'b "\t\u00e9.csv', "old"):
        (scene.home / name).write_text("1")
    scene.hand_over()
    places = {"home": scene.home, "project": scene.project, "up": scene.environment["UP"]}
    refused = REFUSED if scene.namespaces else REFUSED | OF_ITS_OWN
    lines = ["import multiprocessing, os, socket, subprocess"]
    for attempt in (*REFUSED, *OF_ITS_OWN, *ALLOWED):
        lines += ["try:", f"    {attempt.format(**places)}", "except OSError:", "    pass"]
    (scene.worktree / "mine").touch()
    program = scene.worktree / "program.py"
    program.write_text("\n".join(lines))
    trace = scene.root / "trace"
    argv = [*traces.tracer(trace), *scene.guard([SYSTEM_PYTHON, "-I", program.name])]
    done = subprocess.run(argv, cwd=scene.worktree, env=scene.environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    with trace.open(errors="surrogateescape") as file:
        found = [refusal.what for refusal in traces.found_in_trace(file, scene.box, scene.worktree)]
    assert sorted(found) == sorted(what.format(**places) for what in refused.values())


def test_paths_in_a_trace_are_read_as_they_were(tmp_path: Path) -> None:
    (tmp_path / 'näh\n"e').write_text("")
    box = Box(write=(), read=(), scratch=tmp_path / "scratch")
    line = rf'12  openat(AT_FDCWD<{tmp_path}>, "n\303\244h\n\"e", O_RDONLY|O_CLOEXEC) = -1 EACCES (Permission denied)'
    [refusal] = traces.found_in_trace([line, line], box, Path("/"))
    assert refusal.what == f'{tmp_path}/näh\n"e cannot be read'
    others = [
        line.replace("EACCES", "ENOENT"),
        line.replace(str(tmp_path), str(tmp_path / "gone")),
        "12  +++ exited +++",
    ]
    assert traces.found_in_trace(others, box, Path("/")) == []
