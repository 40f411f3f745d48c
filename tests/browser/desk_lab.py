"""A project whose server runs in a kernel, commands of JupyterLab, and screenshots, for the tests of this folder."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import nbformat
from nbformat.v4 import new_code_cell, new_notebook
from playwright.sync_api import Browser, Locator, Page, Playwright, expect

from tests.given import wait_until
from workbench.client import HttpClient
from workbench.state.server_file import ServerFile

ROOT = Path(__file__).parents[2]
SHOTS = Path(__file__).parent / "screenshots"
KEEPS_PICTURES = "WORKBENCH_PICTURES" in os.environ
"""Set it to look at what the tests see, and to make the pictures of the documents."""
CONTRAST, REACH = ((Path(__file__).parent / name).read_text() for name in ("contrast.js", "reach.js"))
CHROMIUM_ARGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
APPS = {"jupyterlab": "LabApp", "notebook": "JupyterNotebookApp"}
OpenDesk = Callable[..., Locator]
"""What the fixtures `open_desk` and `open_bare` give."""
START_SECONDS = 60
ANSWER_SECONDS = 90
SETTLE_SECONDS = 10
"""How long the page may take to be drawn as it stays."""
HEIGHT = 1400
"""Pixels of the page in which a desk has a chosen width."""
STEADY = """async (element, before) => {
  const frame = () => new Promise(requestAnimationFrame);
  for (let waited = 0; element.offsetWidth === before && waited < 300; waited += 1) await frame();
  for (let last = before, same = 0; same < 3; last = element.offsetWidth) {
    await frame();
    same = element.offsetWidth === last ? same + 1 : 0;
  }
}"""
"""Wait until the page is laid out for the new size, which JupyterLab does some frames later, and perhaps in steps."""
THEMES = Path(sys.prefix) / "share" / "jupyter" / "lab" / "themes" / "@jupyterlab"
WEAR = """style => {
  document.querySelector("#worn")?.remove();
  if (style) document.body.append(Object.assign(document.createElement("style"), { id: "worn", textContent: style }));
  document.body.dataset.jpThemeLight = !style;
}"""
START = """\
from kernel_ext.hosting.host import KernelHost
from kernel_ext.panels.desk import Desk
from workbench.services import undo
from workbench.state.settings import Settings
host = KernelHost(Settings())
info = host.start(0)
"""
SHOW = "desk = Desk(host)\ndesk"


@dataclass
class Project:
    """A project directory, and clients of the server that runs in its kernel."""

    path: Path
    threads: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(8))

    def server(self) -> ServerFile:
        """The content of `.aiswarm/server.json`, once it exists."""
        file = ServerFile(self.path / ".aiswarm" / "server.json")
        wait_until(lambda: file.load().info is not None, "the in-kernel server is up")
        return file

    def ask(self, name: str, token: str | None = None, /, **arguments: Any) -> Future[dict[str, Any]]:
        """An operation over HTTP, under way; without a token as a stranger."""
        info = self.server().load().info
        assert info is not None

        async def work() -> dict[str, Any]:
            async with HttpClient(info.url, token) as client:
                return await client.call(name, **arguments)

        return self.threads.submit(lambda: asyncio.run(work()))

    def call(self, name: str, token: str | None = None, /, **arguments: Any) -> dict[str, Any]:
        """Call an operation and wait for its result."""
        return self.ask(name, token, **arguments).result(ANSWER_SECONDS)

    def operate(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """Call an operation as the operator."""
        return self.call(name, self.server().load().operator_token, **arguments)


@dataclass
class Lab:
    """A running JupyterLab, or Jupyter Notebook."""

    url: str
    root: Path

    def kernels(self) -> list[dict[str, Any]]:
        with urlopen(f"{self.url}api/kernels", timeout=10) as answer:
            found: list[dict[str, Any]] = json.load(answer)
        return found

    def end_kernels(self) -> None:
        for kernel in self.kernels():
            with urlopen(Request(f"{self.url}api/kernels/{kernel['id']}", method="DELETE"), timeout=30):
                pass


@contextmanager
def started_lab(home: Path, module: str = "jupyterlab", /, **settings: str) -> Iterator[Lab]:
    """A JupyterLab, or another of `APPS`, with all its files in a directory; keywords are settings of its server.

    Its kernels listen in a directory of its own, because another program may take a port that was chosen for a kernel.
    """
    (root := home / "root").mkdir()
    env = os.environ | {
        **{f"JUPYTER_{kind}_DIR": str(home / kind.lower()) for kind in ("CONFIG", "DATA")},
        "HOME": str(home),
        "IPYTHONDIR": str(home / "ipython"),
        "PYTHONPATH": str(ROOT),
        "GIT_CONFIG_GLOBAL": "/dev/null",
    }
    _settings(home / "config", "@jupyterlab/apputils-extension/notification", fetchNews="false", checkForUpdates=False)
    command = [sys.executable, "-m", module, "--no-browser", "--allow-root", "--ServerApp.ip=127.0.0.1"]
    options = {
        "ServerApp.port": "0",
        "ServerApp.root_dir": str(root),
        "IdentityProvider.token": "",
        "ServerApp.disable_check_xsrf": "True",
        f"{APPS[module]}.expose_app_in_browser": "True",
        "KernelManager.transport": "ipc",
        **{f"ServerApp.{name}": value for name, value in settings.items()},
    }
    # The paths of sockets are short.
    with (home / "lab.log").open("wb") as log, tempfile.TemporaryDirectory(prefix="workbench-lab-") as runtime:
        process = subprocess.Popen(
            [*command, *(f"--{name}={value}" for name, value in options.items())],
            env=env | {"JUPYTER_RUNTIME_DIR": runtime}, cwd=root, stdout=log, stderr=log,
        )  # fmt: skip
        try:
            yield Lab(_address(Path(runtime), process, home / "lab.log"), root)
        finally:
            process.terminate()
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def launch(playwright: Playwright) -> Browser:
    """Debian's Chromium."""
    return playwright.chromium.launch(executable_path=shutil.which("chromium"), args=CHROMIUM_ARGS)


def write_notebook(path: Path, *sources: str, tags: Sequence[str] = ()) -> Path:
    """A notebook with these code cells, each with these tags."""
    cells = [new_code_cell(source, metadata={"tags": list(tags)} if tags else {}) for source in sources]
    kernel = {"name": "python3", "display_name": "Python 3"}
    nbformat.write(new_notebook(cells=cells, metadata={"kernelspec": kernel}), path)
    return path


def open_notebook(page: Page, lab: Lab, path: Path, mode: str = "doc/tree") -> None:
    """Open a notebook in JupyterLab in one of its modes, and wait until its kernel is ready."""
    page.goto(f"{lab.url}{mode}/{path.relative_to(lab.root)}?reset")
    page.wait_for_function("() => window.jupyterapp?.shell.currentWidget?.sessionContext?.isReady", timeout=60_000)


def show_desk(
    page: Page,
    lab: Lab,
    project: Project,
    *after: str,
    before: str = "",
    show: str = SHOW,
    mode: str = "doc/tree",
    name: str = "desk.ipynb",
) -> Locator:
    """Open a notebook that shows the desk, with further cells after it; the desk's element.

    Args:
        mode: what the address of the page has before the path of the notebook.
    """
    open_notebook(page, lab, write_notebook(project.path / name, START + before, show, *after), mode)
    run(page, 0)
    run(page, 1)
    desk = page.locator(".wb-desk")
    desk.and_(page.locator("[data-link='live']")).wait_for(timeout=30_000)
    return desk


def output(page: Page, cell: int) -> Locator:
    """The output of a code cell of the notebook."""
    return page.locator(".jp-Notebook .jp-CodeCell").nth(cell).locator(".jp-Cell-outputArea")


def restart_kernel(page: Page) -> None:
    """Restart the notebook's kernel as JupyterLab's menu does."""
    page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()")


def run(page: Page, cell: int) -> None:
    """Run one cell of the notebook, without waiting for its end."""
    page.evaluate("cell => { window.jupyterapp.shell.currentWidget.content.activeCellIndex = cell }", cell)
    command(page, "notebook:run-cell", wait=False)


def command(page: Page, name: str, wait: bool = True, **arguments: Any) -> None:
    """Run a command of JupyterLab."""
    expression = "([name, args]) => window.jupyterapp.commands.execute(name, args)"
    page.evaluate(expression if wait else f"(a) => {{ ({expression})(a) }}", [name, arguments])


@contextmanager
def in_theme(page: Page, theme: str) -> Iterator[None]:
    """Show JupyterLab in a theme, such as `Dark`; afterwards in the light one again."""
    try:
        command(page, "apputils:change-theme", theme=f"JupyterLab {theme}")
        page.wait_for_function("name => document.body.dataset.jpThemeName === name", arg=f"JupyterLab {theme}")
        yield
    finally:
        command(page, "apputils:change-theme", theme="JupyterLab Light")


@contextmanager
def wearing(page: Page, theme: str) -> Iterator[None]:
    """Show JupyterLab in the style of another dark theme, at once: the commands that `in_theme` uses load it anew."""
    style = (THEMES / f"theme-{theme}-extension" / "index.css").read_text()
    page.evaluate(WEAR, style)
    try:
        yield
    finally:
        page.evaluate(WEAR, "")


def view(desk: Locator, name: str) -> None:
    """Show a view of the desk. With a key, because a count that appears beside a tab moves the others from a click."""
    desk.get_by_role("tab", name=re.compile(f"^{name}")).press("Enter")


def card(desk: Locator, name: str) -> Locator:
    """The card of what has a name."""
    return desk.get_by_role("listitem", name=name, exact=True)


def resize(desk: Locator, width: int) -> None:
    """Give the desk a width."""
    page = desk.page
    for _ in range(5):  # again for a scroll bar that came or went, or for the layout of another width
        before, size = desk.evaluate("e => e.offsetWidth"), page.viewport_size
        assert size is not None
        if before == width and size["height"] == HEIGHT:
            break
        page.set_viewport_size({"width": size["width"] + width - before, "height": HEIGHT})
        desk.evaluate(STEADY, before)
    expect(desk).to_have_js_property("offsetWidth", width)


def expect_readable(page: Page, where: str = "") -> None:
    """Every word and edge of the desk has contrast enough, at the latest when all is drawn."""
    _expect_none(page, CONTRAST, where)


def expect_reachable(page: Page, where: str = "") -> None:
    """Tab reaches every control of the desk."""
    _expect_none(page, REACH, where)


def type_letters(page: Page) -> None:
    """Type letters where the focus is; it says that JupyterLab is to take none for a command, such as to delete a cell.

    That JupyterLab then takes none is seen in `test_desk`.
    """
    assert page.evaluate("document.activeElement.dataset.lmSuppressShortcuts") == "true"
    page.keyboard.type("bdda")


def expect_fitting(desk: Locator, where: str = "") -> None:
    """Nothing of the desk is wider than the desk."""
    wait_until(lambda: bool(desk.evaluate("e => e.scrollWidth <= e.clientWidth + 1")), f"the desk fits {where}")


def _expect_none(page: Page, script: str, where: str) -> None:
    """Run what lists defects of the page until it lists none; what it lists at last is the failure."""
    deadline = time.monotonic() + SETTLE_SECONDS
    while (found := page.evaluate(script)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert found == [], f"{where}: {found}"


def shot(locator: Locator, name: str) -> None:
    """Keep a picture of an element, if pictures were asked for."""
    if not KEEPS_PICTURES:
        return
    path = SHOTS / f"{name}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    locator.screenshot(path=path, animations="disabled")


def _settings(config: Path, name: str, **values: Any) -> None:
    path = config / "lab" / "user-settings" / f"{name}.jupyterlab-settings"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(values))


def _address(runtime: Path, process: subprocess.Popen[bytes], log: Path) -> str:
    urls: list[str] = []

    def is_known() -> bool:
        assert process.poll() is None, log.read_text()
        for file in runtime.glob("jpserver-*.json"):
            with suppress(ValueError):  # it is being written
                urls.append(json.loads(file.read_text())["url"])
        return bool(urls)

    wait_until(is_known, f"JupyterLab starts, see {log}", START_SECONDS)
    return urls[0]
