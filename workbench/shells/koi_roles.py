"""Stand-alone roles on a KOI network (spec 5): a coordinator or one agent, without a project of its own.

Each is the ordinary server of a small project, whose state is kept in a directory of its own.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from workbench.app import Workbench
from workbench.errors import BadInput, NotFound
from workbench.functions.host import ToolHost
from workbench.functions.offered import OfferedFunction
from workbench.present.inert import inert
from workbench.rules.personalities.role_config import AgentConfig, CoordinatorConfig, NetworkConfig, unserved_port
from workbench.rules.tools.function import function_tool
from workbench.rules.tools.results import as_json
from workbench.shells import headless
from workbench.state.settings import Settings
from workbench.system import atomic_file

FUNCTION = "function"
"""The entry of a trait that names the Python function behind it, as ``module:name``."""

log = logging.getLogger(__name__)


def run_coordinator(config: CoordinatorConfig, network: NetworkConfig, directory: Path) -> None:
    """Serve as a coordinator until SIGINT or SIGTERM.

    Args:
        directory: for its state.

    Raises:
        WorkbenchError: see `headless.run`.
    """
    _serve(config, partial(_coordinating, config, network), directory)


def run_agent(config: AgentConfig, network: NetworkConfig, directory: Path) -> None:
    """Serve as an agent until SIGINT or SIGTERM.

    Args:
        directory: for its state.

    Raises:
        BadInput: ``BAD_TOOL``. WorkbenchError: see `headless.run`.
    """
    functions = _functions(config)
    _serve(config, partial(_being, config, network, functions), directory)


def _serve(config: AgentConfig | CoordinatorConfig, around: headless.Around, directory: Path) -> None:
    parts = urlsplit(config.base_url)
    if says := unserved_port(config):
        click.echo(says)
    directory.mkdir(parents=True, exist_ok=True)
    settings = Settings(
        project=directory, host=parts.hostname or "127.0.0.1", koi_open_registry=True, database_url=None
    )
    headless.run(settings, parts.port, end_workers=True, around=around)


@asynccontextmanager
async def _coordinating(config: CoordinatorConfig, network: NetworkConfig, workbench: Workbench) -> AsyncIterator[None]:
    joined = await _join(workbench, config.name, network)
    click.echo(f"{config.name} coordinates at {joined['base_url']}. Its registry: {_server(joined)}/resources/list")
    yield


@asynccontextmanager
async def _being(
    config: AgentConfig, network: NetworkConfig, functions: Mapping[str, OfferedFunction], workbench: Workbench
) -> AsyncIterator[None]:
    joined = await _join(workbench, config.name, network)
    host = ToolHost(workbench.settings, workbench.call, config.name, functions)
    tasks = [asyncio.create_task(host.run(), name="running the functions of the agent")]
    if network.first_contact_may_call:
        permitting = _let_first_contact_call(workbench)
        tasks.append(asyncio.create_task(permitting, name="letting the first contact call"))
    for task in tasks:
        task.add_done_callback(_log_failure)
    try:
        await host.offer(list(functions.values()), add=False)
        traits = {name: _without_function(value) for name, value in config.traits.items()}
        await _publish(workbench, config, traits)
        click.echo(
            f"{config.name} is an agent at {joined['base_url']}. Its tools: {_server(joined)}/agents/{config.name}"
        )
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _publish(workbench: Workbench, config: AgentConfig, traits: Mapping[str, Any]) -> None:
    """Publish what the file says, if it was not published before: what was set by hand since then stays."""
    text = as_json({"name": config.name, "version": config.version, "traits": traits})
    published = workbench.settings.home / "koi" / "published.json"
    if await asyncio.to_thread(lambda: published.exists() and published.read_text("utf-8") == text):
        return
    await workbench.call("publish_personality", name=config.name, version=config.version, traits=traits)
    await asyncio.to_thread(atomic_file.replace, published, text)


def _log_failure(task: asyncio.Task[None]) -> None:
    """The agent goes on without the task, so the log has to say that it ended."""
    if not task.cancelled() and (error := task.exception()):
        log.error("%s failed; start the agent again", task.get_name(), exc_info=error)


async def _join(workbench: Workbench, name: str, network: NetworkConfig) -> dict[str, Any]:
    joined = await workbench.call(
        "join_network",
        name=name,
        first_contact=network.first_contact,
        first_contact_rid=network.first_contact_rid,
    )
    if joined["first_contact"] and (error := joined["first_contact"]["error"]):
        click.echo(inert(f"{name} has not met its first contact yet, and tries again: {error}"), err=True)
    return joined


async def _let_first_contact_call(workbench: Workbench) -> None:
    """Let the first contact call every tool, once it is known."""
    met: dict[str, Any] = {"next_after": 0}
    while True:
        contact = (await workbench.call("get_network"))["first_contact"]
        with suppress(NotFound):
            if contact and contact["rid"]:
                await workbench.call("set_peer_permission", peer=contact["rid"], permission="always")
                return
        met = await workbench.call(
            "list_events", after=met["next_after"], kinds=["peer.*"], wait_seconds=workbench.settings.wait_limit_seconds
        )


def _server(joined: Mapping[str, Any]) -> str:
    return str(joined["base_url"]).removesuffix("/koi-net")


def _functions(config: AgentConfig) -> dict[str, OfferedFunction]:
    """The functions behind the traits of an agent, by the names of the traits."""
    places = {
        name: value[FUNCTION] for name, value in config.traits.items() if isinstance(value, dict) and FUNCTION in value
    }
    functions = {}
    for name, place in places.items():
        tool = function_tool(_import(place), name, config.traits[name].get("description"))
        functions[name] = OfferedFunction(tool, title=None, read_only=False, seconds=None, trait=config.name)
    return functions


def _without_function(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {name: item for name, item in value.items() if name != FUNCTION}


def _import(place: str) -> Any:
    """A function in a module of the current directory or the environment.

    Raises:
        BadInput: ``BAD_TOOL``.
    """
    module, _, name = place.partition(":")
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.append(here)  # last: it takes the place of no other module
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise BadInput("BAD_TOOL", f"{place} is no function: {error}. Write module:name.") from None
