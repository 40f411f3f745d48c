"""The way out of a box: named hosts answer every program, and nothing else is reached; what was tried is told."""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.confinement.outside_hosts import GREETING, Host, certify, host, resolve, serve_files, unused_port
from tests.confinement.scene import Scene
from tests.users import SYSTEM_PYTHON
from workbench.confinement import Box, outside
from workbench.confinement.gate import Gate
from workbench.confinement.name_server import Question
from workbench.confinement.outside import Outside, Unreached
from workbench.confinement.refusals import explanation
from workbench.rules.hosts import HostRefusal, HostRules

pytestmark = [pytest.mark.long, pytest.mark.timeout(120)]


@dataclass
class Ended:
    """How a command in a box ended, and what its gate refused."""

    output: str
    status: int
    refused: list[HostRefusal]


@dataclass
class Way:
    """A box with a gate, and hosts outside."""

    scene: Scene
    box: Box
    plain: Host
    secure: Host
    certificate: Path

    def run(self, command: Sequence[str], box: Box | None = None, **more: str) -> Ended:
        """Run a command as the worker does, with a gate."""
        box = box or self.box
        with Gate.beside(box, resolve) as gate:
            done = subprocess.run(
                self.scene.by_the_worker(box.argv(command, way_out=gate.way_out, guarded=True)),
                cwd=self.scene.worktree,
                env={**self.scene.environment, **gate.environment, **more},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=60,
                pass_fds=gate.pass_fds,
            )
        return Ended(done.stdout, done.returncode, gate.refused)

    @property
    def visits(self) -> set[str]:
        return {*self.plain.visits, *self.secure.visits}


@pytest.fixture
def way(scene: Scene) -> Iterator[Way]:
    """A box with or without a network of its own, from which only hosts below good.example can be reached."""
    certificate = certify(scene.root, "good.example")
    shutil.copy(certificate, scene.worktree / "ca.pem")
    scene.hand_over()
    with ExitStack() as stack:
        files = serve_files(scene.root / "outside")
        plain, secure = stack.enter_context(host(files)), stack.enter_context(host(files, certificate))
        ports = (plain.port, secure.port)
        box = replace(
            scene.box,
            hosts=tuple(f"{name}:{port}" for name in ("*.example", "nowhere.test") for port in ports),
            private=tuple(f"{name}:{port}" for name in ("good.example", "*.good.example") for port in ports),
        )
        yield Way(scene, box, plain, secure, certificate)


URLLIB = """
import ssl, sys, urllib.request
print(urllib.request.urlopen(sys.argv[1], context=ssl.create_default_context(cafile="ca.pem")).read().decode(), end="")
"""
HTTPX = """
import ssl, sys, httpx2
print(httpx2.get(sys.argv[1], verify=ssl.create_default_context(cafile="ca.pem")).text, end="")
"""
NODE = "fetch(process.argv[1]).then((answer) => answer.text()).then((text) => process.stdout.write(text))"
PROGRAMS = {
    "curl": ["curl", "-sS", "--cacert", "ca.pem"],
    "urllib": [SYSTEM_PYTHON, "-c", URLLIB],
    "httpx2": [sys.executable, "-c", HTTPX],
    "node": ["node", "-e", NODE],
}


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_an_allowed_host_answers_every_program(way: Way, program: str, scheme: str) -> None:
    if shutil.which(PROGRAMS[program][0]) is None or (program == "httpx2" and way.scene.user is not None):
        pytest.skip("who works here has no such program")
    if program == "node" and not way.box.has_own_network:
        pytest.skip("older versions know no proxy")
    port = way.plain.port if scheme == "http" else way.secure.port
    for name in ("good.example", "deep.sub.good.example"):
        if scheme == "https" and name != "good.example":
            continue
        done = way.run([*PROGRAMS[program], f"{scheme}://{name}:{port}/hi"], NODE_EXTRA_CA_CERTS="ca.pem")
        assert (done.output, done.refused) == (GREETING, [])


def test_git_reads_a_repository_of_an_allowed_host(way: Way) -> None:
    url = f"https://good.example:{way.secure.port}/r.git"
    done = way.run(["git", "-c", "http.sslCAInfo=ca.pem", "ls-remote", url])
    assert "refs/heads/main" in done.output


@pytest.mark.parametrize(
    ("place", "why", "opens"),
    [
        ("evil.test:{port}", "it is not among the hosts of the box", "network"),
        ("good.example.evil.test:{port}", "it is not among the hosts of the box", "network"),
        ("127.0.0.2:{port}", "it is not among the hosts of the box", "network"),
        ("169.254.169.254:80", "it is not among the hosts of the box", "network"),
        ("private.example:{port}", "it has the address 127.0.0.2, which is not public", "private"),
        ("two.example:{port}", "it has the address 127.0.0.2, which is not public", "private"),
        ("keys.example:{port}", "it has the address 169.254.169.254, which is not public", "private"),
        ("nowhere.test:{port}", "its name has no address", None),
    ],
)
def test_another_host_is_refused_and_the_error_says_why_and_what_opens_it(
    way: Way, place: str, why: str, opens: str | None
) -> None:
    name, _, port = place.format(port=way.plain.port).partition(":")
    done = way.run(["curl", "-sSf", f"http://{name}:{port}/hi"])
    assert done.status != 0
    assert GREETING not in done.output
    assert way.visits == set()
    (refusal,) = done.refused
    assert (refusal.host, refusal.opens) == (name, opens)
    assert refusal.port in (None, int(port))
    assert refusal.why.startswith(why if opens != "private" else why.partition("1")[0])
    told = explanation(done.output.splitlines(), way.box, way.scene.worktree, done.refused)
    assert f"- {refusal.what}, by its rules for hosts: {refusal.remedy}." in told.splitlines()
    assert "confinement_connect" not in told


TRY = """
import os, socket, sys
PORT, UDP, OTHER = (int(os.environ[name]) for name in ("PORT", "UDP", "OTHER"))

def raw():
    socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)

def datagram():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.connect(("127.0.0.1", UDP))
        one.send(b"x")
        one.settimeout(5)
        one.recv(1)

def stream(address, port):
    with socket.create_connection((address, port), 5) as one:
        one.sendall(b"GET /hi HTTP/1.0\\r\\nHost: x\\r\\n\\r\\n")
        return one.recv(9)

for name, way in {
    "raw": raw,
    "datagram": datagram,
    "loopback": lambda: stream("127.0.0.1", OTHER),
    "other loopback": lambda: stream("127.0.0.2", PORT),
    "IPv6": lambda: stream("::1", PORT),
    "mapped": lambda: stream("::ffff:127.0.0.2", PORT),
    "zero": lambda: stream("0.0.0.0", OTHER),
}.items():
    try:
        print(name, "->", way() or "nothing")
    except OSError as error:
        print(name, "->", type(error).__name__)
"""


def test_raw_sockets_datagrams_and_addresses_of_this_machine_lead_nowhere(way: Way) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp, host(way.scene.root / "outside") as other:
        udp.bind(("127.0.0.1", 0))
        udp.setblocking(False)
        ports = {"PORT": way.plain.port, "UDP": udp.getsockname()[1], "OTHER": other.port}
        done = way.run([SYSTEM_PYTHON, "-c", TRY], **{name: str(port) for name, port in ports.items()})
        assert [line.partition(" -> ")[2] in ("nothing", "b''") for line in done.output.splitlines()] == [False] * 7
        assert "b'HTTP" not in done.output
        with pytest.raises(BlockingIOError):
            udp.recv(1)
        assert (way.visits, other.visits) == (set(), [])
    if way.box.has_own_network:
        assert {refusal.host for refusal in done.refused} >= {"127.0.0.2", "::1"}


LOOK_UP = """
import socket, sys
packet = bytes.fromhex("002a01000001000000000000") + b"\\4good\\7example\\0\\0\\1\\0\\1"
for server in sys.argv[1:]:
    with socket.socket(socket.AF_INET6 if ":" in server else socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.connect((server, 53))
        one.settimeout(10)
        one.send(packet)
        print(server, socket.inet_ntoa(one.recv(512)[-4:]))
"""


def test_every_name_server_that_is_asked_answers(way: Way) -> None:
    if not way.box.has_own_network:
        pytest.skip("it cannot ask any")
    servers = ["127.0.0.53", "192.0.2.1", "::1", "2001:db8::53"]
    done = way.run([SYSTEM_PYTHON, "-c", LOOK_UP, *servers])
    assert done.output.splitlines() == [f"{server} 198.18.0.1" for server in servers]


def test_a_name_that_is_not_allowed_never_leaves_the_machine(way: Way) -> None:
    asked: list[str] = []

    async def note(name: str, port: int) -> Sequence[str]:
        asked.append(name)
        return await resolve(name, port)

    command = ["curl", "-sS", f"http://secret.evil.test:{way.plain.port}", f"http://good.example:{way.plain.port}/hi"]
    with Gate.beside(way.box, note) as gate:
        argv = way.scene.by_the_worker(way.box.argv(command, way_out=gate.way_out))
        environment = {**way.scene.environment, **gate.environment}
        subprocess.run(argv, cwd=way.scene.worktree, env=environment, pass_fds=gate.pass_fds, capture_output=True)
    assert asked == ["good.example"]


def test_ports_of_this_machine_are_forwarded_by_the_same_number_and_no_others(way: Way) -> None:
    box = replace(way.box, hosts=(), private=(), forward=(way.plain.port,))
    urls = [f"http://{name}:{way.plain.port}/hi" for name in ("127.0.0.1", "localhost")]
    assert way.run(["curl", "-sS", *urls], box).output == 2 * GREETING
    assert way.run(["curl", "-sS", f"http://127.0.0.1:{way.secure.port}/hi"], box).status == 7
    assert way.run(["curl", "-sS", f"http://127.0.0.2:{way.plain.port}/hi"], box).status != 0 or not box.has_own_network


def test_a_port_of_this_machine_can_be_opened_as_a_private_address(way: Way) -> None:
    box = replace(way.box, hosts=(), private=(f"127.0.0.1:{way.plain.port}",), forward=(way.secure.port,))
    for name in ("127.0.0.1", "localhost"):
        done = way.run(["curl", "-sS", f"http://{name}:{way.plain.port}/hi"], box)
        assert done.output == GREETING or (name == "localhost" and not box.has_own_network), done
    forwarded = way.run(["curl", "-sS", "--insecure", f"https://127.0.0.1:{way.secure.port}/hi"], box)
    assert forwarded.output == GREETING


def test_an_open_port_is_open_on_every_host(way: Way) -> None:
    box = replace(way.box, hosts=(), private=(), connect=(way.plain.port,))
    assert way.run(["curl", "-sS", f"http://127.0.0.2:{way.plain.port}/hi"], box).output == GREETING
    if box.has_own_network:
        assert way.run(["curl", "-sS", f"http://private.example:{way.plain.port}/hi"], box).output == GREETING
        done = way.run(["curl", "-sS", f"http://keys.example:{way.plain.port}/hi"], box)
        assert [refusal.opens for refusal in done.refused] == ["private"]


def test_what_is_served_in_a_box_with_its_own_network_answers_there_only(way: Way) -> None:
    if not way.box.has_own_network:
        pytest.skip("it can serve nothing")
    port = unused_port()
    script = f"{SYSTEM_PYTHON} -m http.server {port} & until curl -s http://127.0.0.1:{port}/ca.pem; do :; done"
    assert "BEGIN CERTIFICATE" in way.run(["sh", "-c", script]).output
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))


def test_the_proxy_asks_everybody_for_the_password_of_its_command(way: Way) -> None:
    if way.box.has_own_network:
        pytest.skip("it needs no proxy")
    with Gate.beside(way.box, resolve) as gate:
        own = gate.environment["HTTP_PROXY"]
        place = own.partition("@")[2]
        for proxy, code in {own: 200, f"http://{place}": 407, f"http://box:wrong@{place}": 407}.items():
            opener = urllib.request.build_opener(urllib.request.ProxyHandler({"http": proxy}))
            try:
                with opener.open(f"http://good.example:{way.plain.port}/hi") as answer:
                    status = answer.status
            except urllib.error.HTTPError as error:
                status = error.code
            assert status == code, proxy
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", int(place.partition(":")[2])))


# Without a box


@pytest.mark.anyio
async def test_addresses_that_change_are_checked_again_and_only_those_that_were_checked_are_dialled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = [["127.0.0.1"], ["127.0.0.2"], ["127.0.0.1"]]

    async def change(name: str, port: int) -> Sequence[str]:
        return answers.pop(0)

    monkeypatch.setattr(outside, "KEPT_SECONDS", 0.0)
    with socket.create_server(("0.0.0.0", 0)) as server:
        port = server.getsockname()[1]
        reached = Outside(HostRules.parse([f"turning.example:{port}"], [f"127.0.0.1:{port}"]), change)
        (await reached.connect("turning.example", port)).writer.close()
        with pytest.raises(Unreached, match=r"127\.0\.0\.2, which is not public"):
            await reached.connect("turning.example", port)
        assert answers == [["127.0.0.1"]], "each connection resolves once"
        accepted, _ = server.accept()
        with accepted:
            assert accepted.getsockname()[0] == "127.0.0.1"
        await reached.close()


@pytest.mark.anyio
async def test_a_command_has_a_limited_number_of_connections() -> None:
    reached = Outside(HostRules(), connections=1)
    held = asyncio.Event()

    async def hold(streams: object) -> None:
        await held.wait()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reached.serve(outside.Streams(reader, writer), hold)

    async with await asyncio.start_server(accept, "127.0.0.1", 0) as server:
        place = server.sockets[0].getsockname()
        first_reader, first = await asyncio.open_connection(*place)
        while not reached._connections:
            await asyncio.sleep(0)
        second_reader, second = await asyncio.open_connection(*place)
        with pytest.raises(ConnectionResetError):
            await second_reader.read()
        held.set()
        assert await first_reader.read() == b""
        for writer in (first, second):
            writer.close()
    assert [refusal.code for refusal in reached.refused] == ["TOO_MANY_CONNECTIONS"]
    await reached.close()


@given(st.binary(max_size=80))
def test_any_packet_is_a_question_or_an_error(packet: bytes) -> None:
    try:
        question = Question(packet)
    except ValueError:
        return
    for address in (None, "198.18.0.1"):
        assert question.answer(address)[:2] == packet[:2]


@pytest.mark.anyio
async def test_listeners_for_which_the_supervisor_has_no_room_are_told(caplog: pytest.LogCaptureFixture) -> None:
    gate = Gate(Box(write=(), read=(), scratch=Path(), hosts=("example.org",)))
    ours, theirs = socket.socketpair()
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
    socket.send_fds(theirs, [b"."], [listener.fileno() for listener in listeners])
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (unused := os.dup(ours.fileno()), hard))
    try:
        gate._take(ours)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        os.close(unused)
    assert "some ports cannot be reached from a box" in caplog.text
    for end in (ours, theirs, *listeners):
        end.close()
