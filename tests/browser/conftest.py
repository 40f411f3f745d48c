"""A real JupyterLab for all tests, a real Chromium for each module, a project, kernel and page for each test."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Locator, Page, expect, sync_playwright

from kernel_ext.hosting.host import KernelHost
from tests.browser.bare_desk import LASTING_UNDO, BareDesk
from tests.browser.desk_lab import ROOT, Lab, Project, open_notebook, run, wait_until, write_notebook
from tests.browser.scenes import repository
from workbench.services import undo
from workbench.settings import Settings

HERE = Path(__file__).parent
CHROMIUM = shutil.which("chromium")
CHROMIUM_ARGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
START_SECONDS = 60
EXPECT_SECONDS = 30
"""How long anything may take to appear: a bound for what never comes, not a measure of speed."""
START = """\
from kernel_ext.hosting.host import KernelHost
from kernel_ext.panels.desk import Desk
from workbench.services import undo
from workbench.settings import Settings
host = KernelHost(Settings())
info = host.start(0)
"""
SHOW = "desk = Desk(host)\ndesk"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.browser)
            item.add_marker(pytest.mark.timeout(240))


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with started_lab(tmp_path_factory.mktemp("lab")) as lab:
        yield lab


@contextmanager
def started_lab(home: Path, **settings: str) -> Iterator[Lab]:
    """A JupyterLab with all its files in a directory; keywords are settings of its server."""
    (root := home / "root").mkdir()
    env = os.environ | {
        **{f"JUPYTER_{kind}_DIR": str(home / kind.lower()) for kind in ("CONFIG", "DATA", "RUNTIME")},
        "HOME": str(home),
        "IPYTHONDIR": str(home / "ipython"),
        "PYTHONPATH": str(ROOT),
        "GIT_CONFIG_GLOBAL": "/dev/null",
    }
    _settings(home / "config", "@jupyterlab/apputils-extension/notification", fetchNews="false", checkForUpdates=False)
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ServerApp.ip=127.0.0.1"]
    options = {
        "ServerApp.port": "0",
        "ServerApp.root_dir": str(root),
        "IdentityProvider.token": "",
        "ServerApp.disable_check_xsrf": "True",
        "LabApp.expose_app_in_browser": "True",
        **{f"ServerApp.{name}": value for name, value in settings.items()},
    }
    with (home / "lab.log").open("wb") as log:
        process = subprocess.Popen(
            [*command, *(f"--{name}={value}" for name, value in options.items())],
            env=env, cwd=root, stdout=log, stderr=log,
        )  # fmt: skip
        try:
            yield Lab(_address(home / "runtime", process, home / "lab.log"), root)
        finally:
            process.terminate()
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@pytest.fixture(scope="module")
def context() -> Iterator[BrowserContext]:
    """A browser whose cache keeps JupyterLab's scripts from one test to the next.

    Not for the session: playwright keeps an event loop in this thread, which asynchronous tests would meet.
    """
    if CHROMIUM is None:
        pytest.skip("chromium is not installed; the panel is tested in a real browser only")
    expect.set_options(timeout=1_000 * EXPECT_SECONDS)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_ARGS)
        made = chromium.new_context(viewport={"width": 1200, "height": 1200}, color_scheme="light")
        made.set_default_timeout(1_000 * EXPECT_SECONDS)
        yield made
        chromium.close()


@pytest.fixture
def project(lab: Lab, request: pytest.FixtureRequest) -> Iterator[Project]:
    name = f"{request.path.stem}-{request.node.name}".replace("[", "-").replace("]", "")
    (path := lab.root / name).mkdir()
    (path / ".aiswarm").mkdir()
    made = Project(path)
    yield made
    lab.end_kernels()
    made.threads.shutdown(wait=False, cancel_futures=True)


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    page = context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("dialog", lambda dialog: problems.append(f"a dialog: {dialog.message}"))
    yield page
    page.close()
    assert problems == []


@pytest.fixture
def open_desk(lab: Lab, project: Project, page: Page) -> Callable[..., Locator]:
    """Opens a notebook that shows the desk, with further cells after it; the desk's element. `mode` is JupyterLab's."""

    def opened(*after: str, before: str = "", show: str = SHOW, mode: str = "doc") -> Locator:
        open_notebook(page, lab, write_notebook(project.path / "desk.ipynb", START + before, show, *after), mode)
        run(page, 0)
        run(page, 1)
        desk = page.locator(".wb-desk")
        desk.and_(page.locator("[data-link='live']")).wait_for(timeout=30_000)
        return desk

    return opened


@pytest.fixture
def open_bare_desk(tmp_path: Path, page: Page) -> Iterator[Callable[..., BareDesk]]:
    """Opens the desk of a new project in an empty page, or in another one (`on`); keywords are settings."""
    opened: list[tuple[BareDesk, KernelHost]] = []

    def open_one(on: Page = page, **settings: object) -> BareDesk:
        (project := tmp_path / "project").mkdir()
        repository(project)
        host = KernelHost(Settings(project=project, port=0, terminate_grace_seconds=1.0, **settings))
        host.start(0)
        opened.append((desk := BareDesk(host, on), host))
        return desk

    yield open_one
    for desk, host in opened:
        desk.close()
        host.stop()


@pytest.fixture
def lasting_undo(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is done can be undone for an hour, however slow the test is: in the page and in the server."""
    monkeypatch.setattr(undo, "UNDO_SECONDS", 3600)
    page.add_init_script(LASTING_UNDO)


@pytest.fixture
def coordinator(tmp_path: Path) -> Iterator[KernelHost]:
    """Another project, which others contact first."""
    (project := tmp_path / "coordinator").mkdir()
    host = KernelHost(Settings(project=project, port=0, terminate_grace_seconds=1.0))
    host.start(0)
    host.call("join_network", name="coordinator")
    yield host
    host.stop()


def _settings(config: Path, name: str, **values: Any) -> None:
    path = config / "lab" / "user-settings" / f"{name}.jupyterlab-settings"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(values))


def _address(runtime: Path, process: subprocess.Popen[bytes], log: Path) -> str:
    def known() -> bool:
        assert process.poll() is None, log.read_text()
        return any(runtime.glob("jpserver-*.json"))

    wait_until(known, f"JupyterLab starts, see {log}", START_SECONDS)
    time.sleep(0.2)
    url: str = json.loads(next(runtime.glob("jpserver-*.json")).read_text())["url"]
    return url
