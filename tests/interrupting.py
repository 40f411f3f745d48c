"""Commands of a shell, also interrupted as by Ctrl-C at a chosen moment of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.conftest import Ran

_PROGRAM = """
import os, signal, sys
event, word = sys.argv[1:3]
del sys.argv[1:3]
waits = [True]
def watch(name, details):
    if waits and name == event and word in str(details):
        waits.clear()
        os.kill(os.getpid(), signal.SIGINT)
sys.addaudithook(watch)
from workbench import main
main()
"""

IN_DUCKDB = """
import os, signal, threading
from workbench.analytics import views
def create(db, create=views.create):
    views.create = create
    while True:
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            while True:
                db.execute("SELECT sum(range) FROM range(1000000)")
        except KeyboardInterrupt:  # it came between two queries
            pass
views.create = create
"""
"""Have the program interrupted while DuckDB makes the views."""


def interrupted_in_duckdb(project: Path, *words: str) -> Ran:
    """Run a command of the project, interrupted while DuckDB makes the views."""
    return _ran(project, "-c", f"{IN_DUCKDB}\nfrom workbench import main\nmain()", *words)


def interrupted(event: str, word: str, project: Path, *words: str) -> Ran:
    """Run a command of the project, interrupted at an audit event of Python with a word in its details."""
    return _ran(project, "-c", _PROGRAM, event, word, *words)


def typed(project: Path, *words: str) -> Ran:
    """Run a command of the project."""
    return _ran(project, "-m", "workbench.cli", *words)


def _ran(project: Path, *argv: str) -> Ran:
    env = os.environ | {"WORKBENCH_PROJECT": str(project)}
    ran = subprocess.run(
        [sys.executable, *argv], cwd=project, env=env, capture_output=True, text=True, start_new_session=True
    )
    return Ran(ran.returncode, ran.stdout, ran.stderr)
