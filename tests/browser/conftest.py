"""A real JupyterLab and a real Chromium for all tests, a project, servers and a page for each."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Container, Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Locator, Page, expect, sync_playwright

from kernel_ext.hosting.host import KernelHost
from kernel_ext.panels import publisher
from tests.browser.bare_desk import LASTING_UNDO, BareDesk
from tests.browser.desk_lab import Lab, Project, launch, show_desk, started_lab, view
from tests.browser.scenes import repository
from workbench.services import undo
from workbench.state.settings import Settings

HERE = Path(__file__).parent
CONTEXT, ENDS = pytest.StashKey[BrowserContext](), pytest.StashKey[ExitStack]()
"""The browser that is open, and what closes it."""
EXPECT_SECONDS = 30
"""How long anything may take to appear: a bound for what never comes, not a measure of speed."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.browser)
            item.add_marker(pytest.mark.timeout(240))


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with started_lab(tmp_path_factory.mktemp("lab")) as lab:
        yield lab


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """Close the browser before a test of another folder: playwright keeps an event loop in this thread, which
    asynchronous tests would meet."""
    try:
        return (yield)
    finally:
        if nextitem is None or HERE not in nextitem.path.parents:
            item.config.stash.setdefault(ENDS, ExitStack()).close()


@pytest.fixture
def context(request: pytest.FixtureRequest) -> BrowserContext:
    """A browser whose cache keeps JupyterLab's scripts from one test of this folder to the next."""
    stash = request.config.stash
    if shutil.which("chromium") is None:
        pytest.skip("chromium is not installed; the panel is tested in a real browser only")
    if CONTEXT not in stash:
        ends = stash.setdefault(ENDS, ExitStack())
        browser = ends.enter_context(launch(ends.enter_context(sync_playwright())))
        made = browser.new_context(viewport={"width": 1200, "height": 1200}, color_scheme="light")
        made.set_default_timeout(1_000 * EXPECT_SECONDS)
        expect.set_options(timeout=1_000 * EXPECT_SECONDS)
        stash[CONTEXT] = made
        ends.callback(stash.__delitem__, CONTEXT)
    return stash[CONTEXT]


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
    with sound_page(context) as page:
        yield page


@pytest.fixture
def second_page(context: BrowserContext) -> Iterator[Page]:
    """Another tab of the same browser."""
    with sound_page(context) as page:
        yield page


@contextmanager
def sound_page(context: BrowserContext, known: Container[str] = ()) -> Iterator[Page]:
    """A page in which nothing throws but errors with known messages, and no dialog of the browser opens."""
    page = context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("dialog", lambda dialog: problems.append(f"a dialog: {dialog.message}"))
    yield page
    page.close()
    assert [problem for problem in problems if problem not in known] == []


@contextmanager
def started_host(project: Path, **settings: object) -> Iterator[KernelHost]:
    """The servers of a project, in this process."""
    host = KernelHost(Settings(project=project, port=0, terminate_grace_seconds=1.0, **settings))
    host.start(0)
    try:
        yield host
    finally:
        host.stop()


@contextmanager
def shown_bare(project: Path, page: Page, **settings: object) -> Iterator[BareDesk]:
    """The desk of a project in an empty page."""
    with started_host(project, **settings) as host, closing(BareDesk(host, page)) as desk:
        yield desk


@pytest.fixture
def open_desk(lab: Lab, project: Project, page: Page) -> Callable[..., Locator]:
    """Opens a notebook that shows the desk, as `show_desk` does; the desk's element."""
    return partial(show_desk, page, lab, project)


@pytest.fixture
def open_bare(project: Project, page: Page) -> Iterator[Callable[..., Locator]]:
    """Opens the desk in an empty page: what JupyterLab has no part in takes a third of the time there."""
    with ExitStack() as ends:

        def open_one() -> Locator:
            desk = ends.enter_context(shown_bare(project.path, page)).element
            view(desk, "Inbox")
            return desk

        yield open_one


@pytest.fixture
def open_bare_desk(tmp_path: Path, page: Page) -> Iterator[Callable[..., BareDesk]]:
    """Opens the desk of a new project in an empty page, or in another one (`on`); keywords are settings."""
    with ExitStack() as ends:

        def open_one(on: Page = page, **settings: object) -> BareDesk:
            (project := tmp_path / "project").mkdir()
            repository(project)
            return ends.enter_context(shown_bare(project, on, **settings))

        yield open_one


@pytest.fixture
def desk(open_bare_desk: Callable[..., BareDesk]) -> BareDesk:
    """The desk of a new project in an empty page."""
    return open_bare_desk()


@pytest.fixture
def lasting_undo(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    """Undo stays possible for an hour, however slow the test is, in the page and in the server."""
    monkeypatch.setattr(undo, "UNDO_SECONDS", 3600)
    page.add_init_script(LASTING_UNDO)


@pytest.fixture
def brisk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of a project are looked at every half second: by panels that are opened after this, in an empty page."""
    monkeypatch.setattr(publisher, "REFRESH_SECONDS", 0.5)


@pytest.fixture
def coordinator(tmp_path: Path) -> Iterator[KernelHost]:
    """Another project, which others contact first."""
    (project := tmp_path / "coordinator").mkdir()
    with started_host(project) as host:
        host.call("join_network", name="coordinator")
        yield host
