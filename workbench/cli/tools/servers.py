"""The MCP servers whose tools the project uses: `tools servers`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

import click

from workbench.cli.client import OperatorClient
from workbench.cli.completion import offers
from workbench.cli.definitions.group import as_yaml
from workbench.cli.definitions.servers import config_options, configuration
from workbench.cli.operations.declared import view
from workbench.cli.output import Note, NounGroup, PartialFailure, Shown, Text, pass_client
from workbench.cli.tools.catalogue import tools
from workbench.errors import BadInput, Hint, NotFound
from workbench.present.tables import Table
from workbench.rules.definitions.secrets.references import SecretSource
from workbench.rules.secrets.forms import MASK

_OFF = ("disabled", "stopped")


@tools.group(cls=NounGroup)
def servers() -> None:
    """MCP servers of the project: list, show, log, add, update, enable, disable, restart, remove, sign-in."""


@view("ToolServers")
def server_table(answer: Mapping[str, Any]) -> Table:
    """The servers: their state, their tools, and what is wrong with them."""
    rows = [
        [server["name"], server["state"], len(server["tools"]), server["target"], _problem(server)]
        for server in answer["servers"]
    ]
    note = "\n".join(_notes(answer))
    empty = note or "There are no MCP servers. `workbench tools servers add` adds one."
    columns = ["server", "is", "tools", "command or address", "problem"]
    return Table(columns, rows, empty, answer, note=note)


def _notes(answer: Mapping[str, Any]) -> Iterator[str]:
    """Why the file, and which tools, cannot be used."""
    if answer["problem"]:
        yield f"{answer['path']} cannot be used: {answer['problem']}."
    for server in answer["servers"]:
        yield from _tool_problems(server)


def _tool_problems(server: Mapping[str, Any]) -> Iterator[str]:
    return (f"{server['name']}: {problem}" for problem in server["tool_problems"])


def _problem(server: Mapping[str, Any]) -> str:
    if server["approval_id"] is not None:
        return f"not trusted; `workbench approve {server['approval_id']}` trusts it"
    return server["problem"] or (_left_out(server["left_out"]) if server["left_out"] else "")


def _left_out(number: int) -> str:
    return "1 tool cannot be used" if number == 1 else f"{number:,} tools cannot be used"


@servers.command("show")
@click.argument("name", shell_complete=offers.tool_servers)
@pass_client
def show_tool_server(client: OperatorClient, name: str) -> Shown:
    """Print a server's configuration, state and tools as YAML; secrets that are written out are masked."""
    server = _server(client, name)
    return as_yaml({key: value for key, value in server.items() if key != "log"}, server)


@servers.command("log")
@click.argument("name", shell_complete=offers.tool_servers)
@pass_client
def tool_server_log(client: OperatorClient, name: str) -> Shown:
    """Print the end of what the program of a server wrote to its standard error."""
    log = _server(client, name)["log"]
    return Text(log.rstrip("\n") or f"{name} wrote nothing to its standard error.", {"log": log})


@servers.command("add")
@click.argument("name")
@config_options
@pass_client
def add_tool_server(client: OperatorClient, name: str, **options: Any) -> Shown:
    """Add a server: a program, or an address. Exit status 1 if it does not answer."""
    return _outcome(client.call("add_tool_server", name=name, config=configuration(**options)))


@servers.command("update")
@click.argument("name", shell_complete=offers.tool_servers)
@config_options
@pass_client
def update_tool_server(client: OperatorClient, name: str, **options: Any) -> Shown:
    """Replace the configuration of a server. Exit status 1 if it does not answer."""
    return _outcome(client.call("update_tool_server", name=name, config=configuration(**options)))


def _server(client: OperatorClient, name: str) -> dict[str, Any]:
    servers: list[dict[str, Any]] = client.call("list_tool_servers")["servers"]
    for server in servers:
        if server["name"] == name:
            return server
    names = ", ".join(server["name"] for server in servers) or "none"
    raise NotFound("TOOL_SERVER_NOT_FOUND", f"There is no MCP server {name}. The servers: {names}.")


@view("ToolServer")
def _outcome(server: Mapping[str, Any]) -> Shown:
    """The outcome of a change of a server."""
    name, state = server["name"], server["state"]
    warnings = "".join(f"\n{warning}" for warning in [*server["warnings"], *_tool_problems(server)])
    if state == "ready":
        return Note(f"{name} is ready and offers {len(server['tools'])} tools.{warnings}", server)
    if state in _OFF:
        when = "" if state == "disabled" else " It is used when the servers of the project run."
        return Note(f"{name} is {state}.{when}{warnings}", server)
    return PartialFailure(["server", "is", "problem"], [[name, state, _problem(server)]], data=server)


def _has_secret(url: str) -> bool:
    """Whether a part of an address is masked, or a reference to a secret."""
    rest = url.partition("://")[2]
    return MASK in unquote(url) or any(f"{source}://" in rest for source in SecretSource)


@servers.command("sign-in")
@click.argument("name", shell_complete=offers.tool_servers)
@click.option("--out", is_flag=True, help="Forget what you were given there instead.")
@click.option("--seconds", type=float, default=300.0, show_default=True, help="How long to wait for you.")
@pass_client
def sign_in(client: OperatorClient, name: str, out: bool, seconds: float) -> Shown:
    """Sign in at a server at a URL that asks for it (OAuth), in a browser of this machine.

    The address is printed and not opened. Where no browser can reach this machine, forward the port of the address's
    redirect_uri (`ssh -L`), or sign in on a machine with a browser, with the same files of yours.
    """
    from workbench.system.loop_thread import run_alone
    from workbench.upstream import sign_in as signing

    listed = client.call("list_tool_servers")["servers"]
    server = next((server for server in listed if server["name"] == name), None)
    if server is None or "url" not in server["config"]:
        text = f"There is no MCP server {name} at a URL."
        raise NotFound("TOOL_SERVER_NOT_FOUND", text, Hint("list_tool_servers", "{} lists them."))
    url = str(server["config"]["url"])
    if _has_secret(url):  # here it is masked, and tokens are found again by the whole address only
        text = f"The address of {name} has a secret in it, so you cannot sign in there. Move the secret to a header."
        raise BadInput("INVALID_ARGUMENTS", text, problems=[])
    if out:
        done = signing.SignIns(url).forget()
        said = f"What you were given for {name} is removed." if done else f"You were not signed in at {name}."
    else:
        run_alone(signing.sign_in(url, lambda address: click.echo(f"Open this address: {address}", err=True), seconds))
        said = f"You are signed in at {name}."
    if client.find_server() is not None:
        client.call("restart_tool_server", name=name)
    return Note(said, {"name": name, "url": url})
