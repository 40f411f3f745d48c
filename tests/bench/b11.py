"""B11: how long a person waits for `import workbench`, `%load_ext workbench` and `%workbench start`."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.bench.child import environment
from tests.bench.project import scratch
from tests.bench.rows import Row, Samples, at_most, over, take_turns, within

TIMED = "import time; started = time.perf_counter()\n{}\nprint(time.perf_counter() - started)"
SHELL = "from IPython.core.interactiveshell import InteractiveShell\nshell = InteractiveShell.instance()\n"
IPYTHON = TIMED.format("import IPython")
WORKBENCH = TIMED.format("import IPython, workbench")
LOAD = SHELL + TIMED.format("shell.run_line_magic('load_ext', 'workbench')")
ANSWER = "http.client.HTTPConnection('127.0.0.1', port)\nasked.request('GET', '/health')\nasked.getresponse().read()"
START = f"""
{SHELL}shell.run_line_magic('load_ext', 'workbench')
import http.client, time
started = time.perf_counter()
shell.run_line_magic('workbench', 'start --port 0')
port = int(shell.user_ns['wb'].server.url.rpartition(':')[2])
asked = {ANSWER}
print(time.perf_counter() - started)
shell.run_line_magic('workbench', 'stop')
"""
BARE = f"""
{SHELL}import http.client, os, threading, time

def serve():
    import asyncio, socket
    import uvicorn
    from mcp.server import MCPServer

    made = MCPServer('bare', log_level='CRITICAL')

    @made.tool()
    def add(a: int, b: int) -> int:
        return a + b

    global port
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    bound.bind(('127.0.0.1', 0))
    bound.listen()
    port = bound.getsockname()[1]
    server = uvicorn.Server(uvicorn.Config(made.streamable_http_app(), log_config=None, access_log=False))

    async def main():
        running = asyncio.create_task(server.serve(sockets=[bound]))
        while not server.started:
            await asyncio.sleep(0.002)
        ready.set()
        await running

    asyncio.run(main())

ready = threading.Event()
started = time.perf_counter()
threading.Thread(target=serve, daemon=True).start()
ready.wait()
asked = {ANSWER}
print(time.perf_counter() - started, flush=True)
os._exit(0)
"""


def fresh(code: str, directory: Path) -> float:
    """Seconds that a new interpreter says its code took."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=directory,
        env=environment() | {"HOME": str(directory), "WORKBENCH_PROJECT": str(directory)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    seconds = re.search(r"^\d[\d.e-]*$", done.stdout, re.MULTILINE)  # magics print, too
    assert seconds is not None, done.stdout
    return float(seconds[0])


def run(rounds: int, quick: bool) -> Mapping[str, Samples]:
    """Seconds, each in an interpreter of its own. What is timed begins after the interpreter has."""
    codes = {"ipython": IPYTHON, "workbench": WORKBENCH, "load": LOAD, "start": START, "bare": BARE}
    with scratch() as directory:
        took = take_turns(rounds, **{name: lambda code=code: fresh(code, directory) for name, code in codes.items()})
    return {
        "import workbench": Samples(took["workbench"], took["ipython"], "s", "import IPython"),
        "%load_ext workbench": Samples(took["load"], unit="s"),
        "%workbench start to the first answer": Samples(took["start"], took["bare"], "s", "bare uvicorn + MCPServer"),
    }


ROW = Row(
    "B11",
    "in a notebook",
    "bare IPython; bare uvicorn + MCPServer in a thread",
    {
        "import workbench": over(0.15, "s"),
        "%load_ext workbench": within(0.3, "s"),
        "%workbench start to the first answer": at_most(1.3),
    },
    run,
)
