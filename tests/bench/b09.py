"""B9: how servers in a kernel's thread, and beside it, answer while a cell computes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any

from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

from tests.bench.child import Child, environment
from tests.bench.project import Seed, in_session, opened, prepare, scratch
from tests.bench.rows import Row, Samples, at_least, take_turns, within
from workbench.sweeps import sockets

CONNECTIONS = 50
UNDER_WAY = 8
FLOATS = 2_000_000
LEASE_SECONDS, HEARTBEAT_SECONDS = 6.0, 0.75
"""In the proportion that they have by default: a lease that is not renewed ends while the row runs."""
LIMITS = {
    "WORKBENCH_MAX_IN_FLIGHT": "64",
    "WORKBENCH_MAX_MESSAGES_PER_SECOND": "1000000",
}
LOOP = "print('It computes.')\nnumber = 0\nwhile True:\n    number = number + 1"
FILL = "import random\nfloats = [random.random() for _ in range({floats})]"
SORT = "print('It computes.')\nfor _ in range(3):\n    sorted(floats)"
IN_THREAD, DETACHED = "servers in the kernel's thread", "servers detached"


class Kernel:
    """A kernel of Jupyter."""

    def __init__(self, manager: KernelManager, client: BlockingKernelClient) -> None:
        self._manager = manager
        self._client = client

    def run(self, code: str, hear: Callable[[str], None] = lambda text: None) -> str:
        """Run a cell; what it prints, which `hear` is also told at once.

        Raises:
            RuntimeError: it fails, unless it is interrupted.
        """
        texts: list[str] = []

        def take(message: dict[str, Any]) -> None:
            if message["msg_type"] == "stream":
                texts.append(message["content"]["text"])
                hear(texts[-1])

        reply = self._client.execute_interactive(code, output_hook=take, timeout=120)["content"]
        if reply["status"] != "ok" and reply["ename"] != "KeyboardInterrupt":
            raise RuntimeError(f"{reply['ename']}: {reply['evalue']}")
        return "".join(texts)

    @contextmanager
    def computing(self, code: str, *, ends: bool = False) -> Iterator[None]:
        """While a cell computes, which prints something first. It `ends` by itself, or is interrupted."""
        began = Event()
        with ThreadPoolExecutor(1) as apart:
            cell = apart.submit(self.run, code, lambda text: began.set())
            began.wait()
            try:
                yield
            finally:
                if not ends:
                    self._manager.interrupt_kernel()
                cell.result()


@contextmanager
def kernel(root: Path) -> Iterator[Kernel]:
    """A kernel for a project, which no one shares."""
    with sockets.directory() as place:
        manager = KernelManager(kernel_name="python3")
        sockets.listen_in(place, manager)
        manager.start_kernel(cwd=str(root), env={**environment(), **LIMITS, "IPYTHONDIR": str(root / ".ipython")})
        client = manager.blocking_client()
        client.start_channels()
        try:
            client.wait_for_ready(timeout=60)
            yield Kernel(manager, client)
        finally:
            client.stop_channels()
            manager.shutdown_kernel(now=True)


def measured(rounds: int, jupyter: Kernel, seed: Seed, start: str, messages: int) -> dict[str, Samples]:
    """The rates while the kernel is idle and while it computes, and what the agents that hold a lease have lost."""
    with Child("ws_load", "load") as load, Child("ws_load", "hold", str(HEARTBEAT_SECONDS)) as holders:
        jupyter.run(f"%workbench start --port 0 {start}")
        url = jupyter.run("print(wb.server.ws_url)").strip()
        tokens = [(f"agent-{number}", token) for number, token in enumerate(seed.tokens)]
        load.ask({"url": url, "tokens": tokens[::2]})
        holders.ask({"url": url, "tokens": tokens[1::2]})

        def burst() -> float:
            return float(load.ask({"messages": messages, "under_way": UNDER_WAY})["rate"])

        def busy() -> float:
            with jupyter.computing(LOOP):
                return burst()

        def sorting() -> float:
            with jupyter.computing(SORT, ends=True):
                return burst()

        rates = take_turns(rounds, idle=burst, busy=busy, sorting=sorting)
        held = holders.ask("end")
    jupyter.run("%workbench stop")
    return {
        "a loop": Samples(rates["busy"], rates["idle"], "messages/s"),
        "a sort": Samples(rates["sorting"], rates["idle"], "messages/s"),
        "slowest heartbeat": _alone(held["slowest"], "ms"),
        "leases lost": _alone(held["lost"], "leases"),
        "connections dropped": _alone(held["dropped"], "connections"),
    }


async def _add_tasks(seed: Seed, count: int) -> None:
    task = {"title": "Hold on", "persona_id": "implementer", "lease_seconds": LEASE_SECONDS}
    async with opened(seed.root) as workbench:
        await workbench.call("create_tasks", tasks=[task] * count)


def _alone(figure: float, unit: str) -> Samples:
    """A figure of all rounds together: each of them counts."""
    return Samples([figure], unit=unit, against="–")


def run(rounds: int, quick: bool) -> Mapping[str, Samples]:
    """The kernel, the client and the agents that hold a lease are processes of their own."""
    connections, messages, floats = (4, 10, FLOATS // 20) if quick else (CONNECTIONS, 200, FLOATS)
    with scratch() as directory:
        seed = in_session(prepare(directory / "seed", agents=2 * connections, tasks=0))
        asyncio.run(_add_tasks(seed, 2 * connections))
        with kernel(seed.root) as jupyter:
            jupyter.run(f"%load_ext workbench\n{FILL.format(floats=floats)}")
            figures = {
                where: measured(rounds, jupyter, seed, start, messages)
                for where, start in ((IN_THREAD, ""), (DETACHED, "--detach"))
            }
    return {f"{where}, {name}": samples for where, lines in figures.items() for name, samples in lines.items()}


ROW = Row(
    "B9",
    f"B6 with {CONNECTIONS} connections while a cell computes",
    "the same while the kernel is idle",
    {
        f"{IN_THREAD}, a loop": at_least(0.15),
        f"{DETACHED}, a loop": at_least(0.7),
        **{f"{where}, leases lost": within(0, "leases") for where in (IN_THREAD, DETACHED)},
        **{f"{where}, connections dropped": within(0, "connections") for where in (IN_THREAD, DETACHED)},
    },
    run,
)
