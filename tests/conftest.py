"""Fixtures of all tests: a real project in a temporary directory, open or served. No mocks."""

from __future__ import annotations

import asyncio
import functools
import gc
import inspect
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

import hypothesis
import psutil
import pytest
from websockets.asyncio.client import ClientConnection, connect

from tests.chance import SOAK
from workbench.app import Workbench
from workbench.cli import main
from workbench.model import SECOND, ServerInfo
from workbench.ops import Caller
from workbench.rules import access
from workbench.services.agents.register import add_pending
from workbench.shells.serve import Servers
from workbench.state import database_url
from workbench.state.settings import Settings
from workbench.store.opening import open_store
from workbench.trust import project_store, state_directory

if TYPE_CHECKING:
    from tests.postgres import PostgresServer

pytest_plugins = ["tests.postgres"]
LONG_ON_POSTGRES = 4
"""Of so many long tests one runs on PostgreSQL, too; `WORKBENCH_SOAK=1 make test-postgres` runs all."""

LONG_SECONDS = 400
"""Tests with such a deadline, or a longer one, begin before the others."""

# How long examples take depends on the load of the machine; each test has a deadline of its own. The examples of each
# run are others.
hypothesis.settings.register_profile(
    "workbench",
    max_examples=250 * SOAK or 25,
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("workbench")


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--store=postgres`: the projects of the tests have databases of PostgreSQL, and only tests with projects run."""
    choices: dict[str, Any] = {"choices": ("sqlite", "postgres"), "default": "sqlite"}
    parser.addoption("--store", help="the database of the tests' projects", **choices)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Freeze the million collected objects, so that they are never searched for cyclic garbage."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="session", autouse=True)
def _interruptible() -> Iterator[None]:
    """Signals reach the tests, and what they start, also in a run in the background or under nohup."""
    handlers = {signal.SIGINT: signal.default_int_handler, signal.SIGHUP: signal.SIG_DFL}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def anyio_backend() -> str:
    """Asynchronous tests run on asyncio."""
    return "asyncio"


@pytest.fixture(scope="session", autouse=True)
def _plain_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The person's own configuration does not reach the tests, nor what is made once for all of them; and they record
    nothing in it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WORKBENCH_CONFIG", str(tmp_path_factory.mktemp("config")))
        patch.delenv("WORKBENCH_DATABASE_URL", raising=False)
        patch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
        patch.setenv("GIT_CONFIG_NOSYSTEM", "1")
        yield


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """The person's own settings do not reach the tests."""
    for name in ("WORKBENCH_PROJECT", "WORKBENCH_TOKEN", database_url.VARIABLE):
        monkeypatch.delenv(name, raising=False)


class Clock:
    """A clock that only the test moves; microseconds UTC."""

    def __init__(self) -> None:
        self.now = 1_800_000_000 * SECOND

    def __call__(self) -> int:
        """The time."""
        return self.now

    def forward(self, seconds: float) -> None:
        """Let time pass."""
        self.now += int(seconds * SECOND)


@pytest.fixture
def clock() -> Clock:
    """See `Clock`."""
    return Clock()


def git(*arguments: str, cwd: Path) -> str:
    """Run git as a person would."""
    identity = ("-c", "user.name=Person", "-c", "user.email=person@example.org")
    done = subprocess.run(["git", *identity, *arguments], cwd=cwd, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture(scope="session")
def first_commit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository that `repository` copies."""
    root = tmp_path_factory.mktemp("first") / "project"
    root.mkdir()
    git("init", "-q", "-b", "main", cwd=root)
    (root / "README.md").write_text("# A project\n")
    git("add", ".", cwd=root)
    git("commit", "-q", "-m", "Start", cwd=root)
    for example in (root / ".git" / "hooks").iterdir():  # they take as long to copy as all the rest
        example.unlink()
    return root


@pytest.fixture
def repository(first_commit: Path, tmp_path: Path) -> Path:
    """A git repository with one commit on `main`."""
    return Path(shutil.copytree(first_commit, tmp_path / "project"))


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that every user can reach, unlike `tmp_path`."""
    path = Path(tempfile.mkdtemp(prefix="workbench-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.fixture(scope="session")
def settings_of_tests(tmp_path_factory: pytest.TempPathFactory, _plain_home: None) -> Settings:
    """The settings that `settings` copies. To read the environment and the files takes ten times as long."""
    nowhere = tmp_path_factory.mktemp("nowhere")
    return Settings(project=nowhere, port=0, retry_base_seconds=0.0, terminate_grace_seconds=1.0)


NewDatabase = Callable[[], dict[str, Any]]


@pytest.fixture
def new_database(request: pytest.FixtureRequest) -> Iterator[NewDatabase]:
    """`Settings(project=…, **new_database())`: a project with a database of its own, on the store that is tested."""
    if request.config.getoption("--store") == "sqlite":
        yield dict
        return
    server: PostgresServer = request.getfixturevalue("postgres_server")
    template: str = request.getfixturevalue("postgres_template")
    with ExitStack() as databases:

        def made() -> dict[str, Any]:
            name = databases.enter_context(server.new_database(template))
            return {"database_url": database_url.DatabaseUrl(server.url(name))}

        yield made


@pytest.fixture
def database(new_database: NewDatabase, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A new database, which the environment names: that of each project that a test does not give another one."""
    found = new_database()
    for name, value in in_environment(found).items():
        monkeypatch.setenv(name, value)
    return found


def in_environment(database: Mapping[str, Any]) -> dict[str, str]:
    """The variables that name a database to processes; see `new_database`."""
    return {database_url.VARIABLE: database["database_url"].conninfo} if database else {}


@pytest.fixture
def settings(
    settings_of_tests: Settings, repository: Path, database: dict[str, Any], request: pytest.FixtureRequest
) -> Settings:
    """The settings of a fresh project, with the changes that a test asks for; see `limited`."""
    changes = getattr(request, "param", {})
    return settings_of_tests.model_copy(update={"project": repository.resolve(), **database, **changes})


def limited(**changes: Any) -> pytest.MarkDecorator:
    """A test in a project with some settings."""
    return pytest.mark.parametrize("settings", [changes], indirect=True, ids=str)


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store without content. To copy it takes a tenth of the time that its migrations take."""
    path = tmp_path_factory.mktemp("store") / "empty.db"
    open_store(path).close()
    return path


def with_store(settings: Settings, empty_store: Path) -> Settings:
    """The settings of a project that has a store, so that whoever opens it has nothing to migrate."""
    state_directory.create(settings)
    if settings.database_url is not None:
        with ThreadPoolExecutor(1) as apart:  # this thread may run a loop
            apart.submit(project_store.open_store, settings).result().close()
    elif not settings.database.exists():
        shutil.copy(empty_store, settings.database)
    return settings


@pytest.fixture
def migrated(settings: Settings, empty_store: Path) -> Settings:
    """See `with_store`."""
    return with_store(settings, empty_store)


@pytest.fixture
async def workbench(migrated: Settings) -> AsyncIterator[Workbench]:
    """An open project, not served."""
    async with Workbench.open(migrated) as opened:
        yield opened


@dataclass
class Served:
    """An open project with its servers running."""

    workbench: Workbench
    info: ServerInfo
    servers: Servers


@pytest.fixture
async def served(workbench: Workbench) -> AsyncIterator[Served]:
    """An open project that is served on a port of its own."""
    async with Servers(workbench) as servers:
        yield Served(workbench, await servers.start(0), servers)


@pytest.fixture
def machines(served: Served, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The setting `machines` of a project that is served: what is put there is described."""
    machines: dict[str, Any] = {}
    monkeypatch.setitem(served.workbench.settings.__dict__, "machines", machines)
    return machines


@dataclass(frozen=True)
class Admitted:
    """An agent that a person has admitted."""

    agent_id: str
    token: str
    caller: Caller


Admit = Callable[..., Any]


async def admitted(workbench: Workbench, name: str, persona_id: str = "implementer", **choices: Any) -> Admitted:
    """An agent, registered and approved."""
    registration = await workbench.call("register", name=name, persona_id=persona_id)
    await workbench.call("approve", approval_id=registration["approval_id"], choices={"agent_id": name, **choices})
    return Admitted(name, registration["token"], await workbench.identify(registration["token"]))


@pytest.fixture
def admit(workbench: Workbench) -> Admit:
    """`await admit("ada", persona_id="implementer", role="planner")`: see `admitted`."""
    return functools.partial(admitted, workbench)


Child = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def child() -> Iterator[Child]:
    """`child(script, *arguments)`: Python in a process of its own, spoken to line by line; killed at the end."""
    with ExitStack() as ends:

        def start(script: str, *arguments: object) -> subprocess.Popen[str]:
            argv = [sys.executable, script, *map(str, arguments)]
            process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
            ends.enter_context(suppress(BrokenPipeError))  # what it no longer reads
            ends.enter_context(process)
            ends.callback(process.kill)
            return process

        yield start


class Ran(NamedTuple):
    """The status and the output of a command."""

    status: int
    out: str
    err: str


class Stream(io.TextIOWrapper):
    """A standard stream in memory; of a terminal, if somebody is said to sit there."""

    def __init__(self, given: str = "", encoding: str = "utf-8", *, terminal: bool = False) -> None:
        super().__init__(io.BytesIO(given.encode()), encoding, newline="")
        self._terminal = terminal

    def isatty(self) -> bool:
        """Whether somebody sits there."""
        return self._terminal


def typed(*arguments: str, given: str = "", encoding: str = "utf-8", terminal: bool = False) -> Ran:
    """Run `workbench` in this process.

    Args:
        given: what it can read from its standard input, as UTF-8, whatever encoding that is said to have.
    """
    streams = (Stream(given, encoding, terminal=terminal), Stream(), Stream(terminal=terminal))
    before, status = (sys.stdin, sys.stdout, sys.stderr), 0
    sys.stdin, sys.stdout, sys.stderr = streams
    try:
        main(arguments)
    except SystemExit as end:
        status = int(end.code or 0)
    finally:
        sys.stdin, sys.stdout, sys.stderr = before
    out, err = (stream.buffer.getvalue().decode() for stream in streams[1:] if stream.flush() is None)
    return Ran(status, out, err)


Command = Callable[..., Any]


@pytest.fixture
def command(settings: Settings) -> Command:
    """`await command("tasks", token=…)`: the `workbench` command in the project, one at a time in a thread; a server of
    this process answers meanwhile."""
    one_at_a_time = asyncio.Lock()

    async def run(*arguments: str, token: str | None = None, given: str = "") -> Ran:
        async with one_at_a_time:
            with pytest.MonkeyPatch.context() as patch:
                for name, value in _variables(settings, token).items():
                    patch.setenv(name, value)
                return await asyncio.to_thread(typed, *arguments, given=given)

    return run


@pytest.fixture
def program(settings: Settings) -> Command:
    """`await program("tasks", token=…)`: the same in a process of its own."""

    async def run(*arguments: str, token: str | None = None) -> Ran:
        env = os.environ | _variables(settings, token)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "workbench.cli", *arguments), env=env, stdin=DEVNULL, stdout=PIPE, stderr=PIPE
        )
        out, err = await process.communicate()
        assert process.returncode is not None
        return Ran(process.returncode, out.decode(), err.decode())

    return run


def _variables(settings: Settings, token: str | None) -> dict[str, str]:
    return {"WORKBENCH_PROJECT": str(settings.project)} | ({"WORKBENCH_TOKEN": token} if token else {})


class Talk:
    """A WebSocket client as an agent would write it."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket

    async def hear(self) -> dict[str, Any]:
        """The next message of the server."""
        heard: dict[str, Any] = json.loads(await self.socket.recv())
        return heard

    async def send(self, agent: str, action: str, /, **data: Any) -> None:
        """Send a frame."""
        await self.socket.send(json.dumps([agent, action, data]))

    async def say(self, agent: str, action: str, /, **data: Any) -> dict[str, Any]:
        """Send a frame; what the server says next."""
        await self.send(agent, action, **data)
        return await self.hear()


Talks = Callable[..., Any]


@pytest.fixture
async def talk(served: Served) -> AsyncIterator[Talks]:
    """`await talk("me", token)`: a WebSocket connection that has heard the prompt, and authenticated if it can."""
    async with AsyncExitStack() as stack:

        async def connected(client_id: str = "me", token: str | None = None, **options: Any) -> Talk:
            address = f"{served.info.ws_url}/{client_id}"
            plain: dict[str, Any] = {"max_size": None, "max_queue": None}  # a close would wait 10 s behind 16 messages
            made = Talk(await stack.enter_async_context(connect(address, **plain, **options)))
            assert (await made.hear())["type"] == "tool_selection_prompt"
            if token is not None:
                assert (await made.say(client_id, "authenticate", token=token))["type"] == "authentication_success"
            return made

        yield connected


@pytest.fixture
def settle(workbench: Workbench) -> Admit:
    """`await settle("ada", "lab")`: an admitted agent with a worktree to work in, as spawning makes them."""

    async def settled(name: str, worktree: str, persona_id: str = "implementer") -> Admitted:
        await workbench.call("create_worktree", name=worktree)
        token, more = access.new_token("wba"), {"persona_id": persona_id, "worktree": worktree, "capabilities": {}}
        made = await workbench.store.write(lambda tx: add_pending(tx, workbench._ctx, name, token, **more))
        await workbench.call("approve", approval_id=made.approval_id, choices={"agent_id": name})
        return Admitted(name, token, await workbench.identify(token))

    return settled


def nested(depth: int) -> list[Any]:
    """Lists in lists, so many in all."""
    value: list[Any] = []
    for _ in range(depth - 1):
        value = [value]
    return value


async def followed(workbench: Workbench) -> None:
    """Return once somebody follows the feed: whoever was to wait for news does."""
    while not workbench.feed.readers:
        await asyncio.sleep(0.001)


async def ended(*pids: int) -> None:
    """Return once none of some processes runs; nobody need have asked how it ended."""
    for pid in pids:
        with suppress(psutil.NoSuchProcess):
            while psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
                await asyncio.sleep(0.01)


@pytest.hookimpl(trylast=True)  # once those that do not run are left out
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Asynchronous tests end in time by themselves: pytest-timeout only leaves their loop, which then never ends.

    The longest tests begin first, so that no process works alone at the end. On PostgreSQL, only those run whose
    projects are there, except those about SQLite.
    """
    if config.getoption("--store") == "postgres":
        run = getattr(config, "workerinput", {}).get("testrunuid")
        is_chosen = {item: _on_given_store(item) and _has_its_turn(item, run) for item in items}
        config.hook.pytest_deselected(items=[item for item in items if not is_chosen[item]])
        items[:] = [item for item in items if is_chosen[item]]
        for item in items:
            if about := item.get_closest_marker("sqlite"):
                item.add_marker(pytest.mark.skip(reason=about.args[0]))
    seconds = {item: _deadline(item, config) for item in items}
    items[:] = _longest_first(items, seconds, int(getattr(config, "workerinput", {}).get("workercount", 1)))
    for item in items:
        if isinstance(item, pytest.Function) and inspect.iscoroutinefunction(item.obj):
            item.obj = _within(0.75 * seconds[item], item.obj)


def _on_given_store(item: pytest.Item) -> bool:
    """Whether `--store` says on which database a test's projects are."""
    return "new_database" in getattr(item, "fixturenames", ())


def _has_its_turn(item: pytest.Item, run: str | None) -> bool:
    """Whether a test runs on PostgreSQL now: of the long ones of a run in several processes, chance decides."""
    is_long = item.get_closest_marker("long") is not None
    return SOAK or run is None or not is_long or crc32(f"{run} {item.nodeid}".encode()) % LONG_ON_POSTGRES == 0


def _deadline(item: pytest.Item, config: pytest.Config) -> float:
    marked = item.get_closest_marker("timeout")
    return float(marked.args[0] if marked else config.getini("timeout"))


def _longest_first(
    items: Sequence[pytest.Item], seconds: Mapping[pytest.Item, float], processes: int
) -> list[pytest.Item]:
    """Tests in an order for processes that get equal parts of it, each of which begins with the longest deadlines."""
    first = sorted((item for item in items if seconds[item] >= LONG_SECONDS), key=lambda item: -seconds[item])
    rest = [item for item in items if seconds[item] < LONG_SECONDS]
    size = -(-len(rest) // processes)
    parts = [first[one::processes] + rest[one * size : (one + 1) * size] for one in range(processes)]
    return [item for part in parts for item in part]


def _within(seconds: float, test: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(test)
    async def in_time(*arguments: Any, **more: Any) -> None:
        async with asyncio.timeout(seconds):
            await test(*arguments, **more)

    return in_time


@pytest.fixture
def on_disk() -> Iterator[Path]:
    """A directory that no box has its own in place of."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
        yield Path(directory)
