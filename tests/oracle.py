"""Unmodified koi-net as a test oracle: in an environment of its own with Python 3.12 or newer, as stock nodes in
processes of their own.

The environment is built once, in the user's cache directory, which takes a minute. Tests that need it skip, and say
why, where no such Python is; with WORKBENCH_NEEDS_KOI_NET=1 they fail instead. They are `long`, with a timeout of
three minutes. A directory of tests has the fixture if its `conftest.py` imports `stock` and `koi_net_environments`.

    async def test_a_stock_agent_joins(stock: Stock) -> None:
        agent = await stock("agent", first_contact={"rid": str(our_rid), "url": our_base_url})
        await agent.ask("publish", rid="orn:agent.personality:ada/1", contents={…})
        assert await agent.ask("rids", "orn:koi-net.edge")
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

SCRIPT = Path(__file__).with_name("koi") / "stock_node.py"
VERSION = "2.1.2"
NEEDED = "WORKBENCH_NEEDS_KOI_NET"
PERSONALITY, NODE, EDGE = "orn:agent.personality", "orn:koi-net.node", "orn:koi-net.edge"
LONGEST_LINE = 64 * 1_048_576
SECONDS = 60.0
"""How long a node may take to answer, to report something, or to stop, also on a machine that does much else."""


@functools.cache
def koi_net_python(version: str = VERSION) -> Path:
    """The Python of an environment that has koi-net and what it needs, and no Workbench."""
    python = next(filter(_is_new_enough, _pythons()), None)
    if python is None:
        _unavailable("koi-net needs Python 3.12 or newer, and none was found on PATH or in pyenv")
    pinned = SCRIPT.with_name(f"koi-net-{VERSION}.txt").read_text().replace(f"=={VERSION}", f"=={version}", 1)
    digest = hashlib.sha256(f"{python}\n{pinned}".encode()).hexdigest()[:12]
    place = _cache() / f"koi-net-{version}-{digest}"
    place.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{place}.lock"):
        if not (place / "complete").exists():
            _build(python, place, version, pinned)
    return place / "bin" / "python"


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "workbench-tests"


def _build(python: Path, place: Path, version: str, pinned: str) -> None:
    shutil.rmtree(place, ignore_errors=True)
    wanted = [f"koi-net=={version}"]
    if version == VERSION:
        subprocess.run([python, "-m", "venv", place], check=True, capture_output=True)
        constraints = place / "constraints.txt"
        constraints.write_text(pinned)
        wanted += ["--constraint", str(constraints)]
    else:  # all else is the same
        shutil.copytree(koi_net_python().parents[1], place, symlinks=True)
        (place / "complete").unlink()
        wanted += ["--no-deps"]
    pip = [place / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    done = subprocess.run([*pip, *wanted], capture_output=True, text=True)
    if done.returncode:
        _unavailable(f"koi-net {version} could not be installed: {done.stderr[-500:]}")
    (place / "complete").touch()


def _pythons() -> Iterator[Path]:
    names = ("python3.12", "python3.13", "python3.14", "python3")
    yield from (Path(found) for name in names if (found := shutil.which(name)))
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    for name in names[:-1]:
        yield from sorted(root.glob(f"versions/*/bin/{name}"), reverse=True)
    yield Path(sys.executable)


def _is_new_enough(python: Path) -> bool:
    code = "import sys; sys.exit(sys.version_info < (3, 12))"
    return subprocess.run([python, "-c", code], capture_output=True).returncode == 0


def _unavailable(reason: str) -> Any:
    if os.environ.get(NEEDED) == "1":
        pytest.fail(reason)
    pytest.skip(reason)


class Failed(Exception):
    """A command of a stock node failed; `kind`: the name of koi-net's exception."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind


@dataclass
class StockNode:
    """A node of koi-net in a process of its own.

    Args:
        finals: what it has processed, in order: `final` (the RID), `type` (NEW, UPDATE, FORGET), `source`, and `at`
            (`time.monotonic()` of any process).
    """

    directory: Path
    process: asyncio.subprocess.Process
    info: dict[str, Any] = field(default_factory=dict)
    finals: list[dict[str, Any]] = field(default_factory=list)
    _answers: asyncio.Queue[dict[str, Any]] = field(default_factory=asyncio.Queue)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def rid(self) -> str:
        """Its RID."""
        return str(self.info["rid"])

    @property
    def url(self) -> str:
        """The base URL of its endpoints."""
        return str(self.info["profile"]["base_url"])

    @property
    def log(self) -> str:
        """The log of koi-net."""
        return (self.directory / "output.log").read_text(errors="replace")

    async def ask(self, command: str, /, *more: Any, **arguments: Any) -> Any:
        """Have it do one of the `Commands` in `stock_node.py`.

        Raises:
            Failed: it raised an exception.
        """
        assert self.process.stdin is not None
        line = json.dumps({"do": command, "with": list(more), **arguments})
        self.process.stdin.write(line.encode() + b"\n")
        async with asyncio.timeout(SECONDS):
            answer = await self._answers.get()
        if "error" in answer:
            raise Failed(answer["error"], answer["message"])
        return answer["ok"]

    async def until(self, is_so: Callable[[], bool | Awaitable[bool]], seconds: float = SECONDS) -> None:
        """Return once something is so; asks again whenever it has processed something, and now and then."""
        async with asyncio.timeout(seconds):
            while True:
                self._changed.clear()
                found = is_so()
                if found if isinstance(found, bool) else await found:
                    return
                try:
                    await asyncio.wait_for(self._changed.wait(), 0.05)
                except TimeoutError:
                    continue

    async def final(self, rid: str, kind: str, count: int = 1) -> dict[str, Any]:
        """The node's n-th report that it has processed a change of a resource."""

        def found() -> list[dict[str, Any]]:
            return [one for one in self.finals if (one["final"], one["type"]) == (rid, kind)]

        await self.until(lambda: len(found()) >= count)
        return found()[count - 1]

    async def knows(self, rid: str) -> dict[str, Any]:
        """The bundle of a resource, once it is in the node's cache."""
        bundle: dict[str, Any] = {}

        async def is_cached() -> bool:
            bundle.update(await self.ask("cached", rid=rid) or {})
            return bool(bundle)

        await self.until(is_cached)
        return bundle

    async def lacks(self, rid: str) -> None:
        """Return once a resource is no longer in the node's cache."""

        async def is_missing() -> bool:
            return await self.ask("cached", rid=rid) is None

        await self.until(is_missing)

    async def stop(self) -> None:
        """Stop it as koi-net does, and wait for its end."""
        if self.process.returncode is None and self.process.stdin is not None:
            self.process.stdin.close()
        try:
            async with asyncio.timeout(SECONDS):
                await self.process.wait()
        except TimeoutError:
            await self.kill()

    async def kill(self) -> None:
        """Kill it."""
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()

    async def read(self) -> None:
        """Read what it writes, to its end."""
        assert self.process.stdout is not None
        async for raw in self.process.stdout:
            line = json.loads(raw)
            if "final" in line:
                self.finals.append(line)
            elif "ready" in line:
                self.info = line["ready"]
            elif "stopped" not in line:
                self._answers.put_nowait(line)
            self._changed.set()


@dataclass
class Stock:
    """Starts stock nodes, and kills them at the end of a test."""

    root: Path
    stack: AsyncExitStack

    async def __call__(
        self,
        role: str,
        name: str = "",
        *,
        directory: Path | None = None,
        version: str = VERSION,
        hash_seed: int = 0,
        interests: list[str] | None = None,
        provides: list[str] | None = None,
        first_contact: dict[str, str] | None = None,
        **more: Any,
    ) -> StockNode:
        """Start a node, and wait until it runs.

        Args:
            role: agent, coordinator, example (koi-net's example of a coordinator) or partial.
            directory: of a node that ran before, to start it again as it is.
            hash_seed: PYTHONHASHSEED; the order of handlers depends on it.
            interests: the types of RIDs to subscribe to; for an agent nodes, for the others also personalities.
            provides: the types of RIDs that it sends.
            first_contact: `rid` and `url` of the node to contact first.
            more: fields of `koi_net` in the configuration, such as `event_worker`.
        """
        python = koi_net_python(version)
        if directory is None:
            directory = Path(tempfile.mkdtemp(prefix=f"{role}-", dir=self.root))
            interests = interests or ([NODE] if role == "agent" else [NODE, PERSONALITY])
            config = _config(role, name or role, interests, provides or [PERSONALITY], first_contact or {})
            config["koi_net"] |= more
            (directory / "config.yaml").write_text(json.dumps(config))
        node = await _started(python, directory, role, hash_seed)
        reading = asyncio.create_task(node.read())
        self.stack.callback(reading.cancel)
        self.stack.push_async_callback(node.kill)
        await node.until(lambda: bool(node.info) or node.process.returncode is not None, 2 * SECONDS)
        if node.info.get("state") != "RUNNING":
            pytest.fail(f"The stock node did not start: {node.log[-2_000:]}")
        print("stock node:", *node.info["koi_net"])
        return node


def _config(
    role: str, name: str, interests: list[str], provides: list[str], first_contact: dict[str, str]
) -> dict[str, Any]:
    """A configuration; JSON is YAML."""
    profile = {
        "node_type": "PARTIAL" if role == "partial" else "FULL",
        "provides": {"event": provides, "state": provides},
    }
    found: dict[str, Any] = {
        "koi_net": {
            "node_name": name,
            "node_profile": profile,
            "rid_types_of_interest": interests,
            "first_contact": first_contact,
        }
    }
    if role == "partial":
        return found | {"poller": {"polling_interval": 1}}
    return found | {"server": {"host": "127.0.0.1", "port": _free_port()}}


def _free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])


async def _started(python: Path, directory: Path, role: str, hash_seed: int) -> StockNode:
    environment = {"PATH": os.defpath, "PRIV_KEY_PASSWORD": "secret", "PYTHONHASHSEED": str(hash_seed)}
    with (directory / "output.log").open("ab") as log:
        process = await asyncio.create_subprocess_exec(
            *(str(python), str(SCRIPT), str(directory), role),
            cwd=directory,
            env=environment,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=log,
            limit=LONGEST_LINE,
        )
    return StockNode(directory, process)


@pytest.fixture
def koi_net_environments(request: pytest.FixtureRequest) -> None:
    """Build the environments that a test needs, also of its parameter `version`, while no event loop waits for it."""
    call = getattr(request.node, "callspec", None)
    for version in {VERSION, (call.params if call else {}).get("version", VERSION)}:
        koi_net_python(version)


@pytest.fixture
async def stock(koi_net_environments: None, tmp_path: Path) -> AsyncIterator[Stock]:
    """`await stock("agent", first_contact=…)`: a stock node of koi-net; see `Stock`."""
    root = tmp_path / "stock"
    root.mkdir()
    async with AsyncExitStack() as stack:
        yield Stock(root, stack)
