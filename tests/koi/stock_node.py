"""A stock koi-net node in a process of its own. Run by koi-net's Python, which has no Workbench: see `tests.oracle`.

    python stock_node.py DIRECTORY {agent,coordinator,example,partial}

`DIRECTORY/config.yaml` configures it. Nothing of koi-net is changed: a node is one of its classes with one of its
configuration schemas, and handlers of this file. A coordinator has a handler that answers a handshake with the
coordinator's own profile; koi-net leaves that to its users. `example` is koi-net's own example of a coordinator, with
the types of `examples/coordinator.py`: it passes on nodes and edges, and nothing else.

Commands are JSON lines on stdin, `{"do": name, …}`; each is answered by one JSON line on stdout, `{"ok": …}` or
`{"error": …}`. What the node has processed appears in between, as `{"final": rid, …}`. koi-net's own output goes to
stderr.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

LINES = os.fdopen(os.dup(1), "w", buffering=1)
os.dup2(2, 1)  # koi-net logs to stdout
LOCK = threading.Lock()

from rid_lib import RID, RIDType  # noqa: E402
from rid_lib.core import ORN  # noqa: E402
from rid_lib.ext import Bundle  # noqa: E402
from rid_lib.types import KoiNetEdge, KoiNetNode  # noqa: E402


class AgentPersonality(ORN):
    """As in spec 5, but stricter: there are no versions with a plus sign, so koi-net cannot read events about them.

    It has to exist before koi-net reads its name in a configuration.
    """

    namespace = "agent.personality"

    def __init__(self, name: str, version: str) -> None:
        self.name, self.version = name, version

    @property
    def reference(self) -> str:
        return f"{self.name}/{self.version}"

    @classmethod
    def from_reference(cls, reference: str) -> AgentPersonality:
        name, version = reference.split("/")
        if "+" in version:
            raise ValueError("a version has no plus sign")
        return cls(name, version)


import koi_net  # noqa: E402
from koi_net.components.cache import Cache  # noqa: E402
from koi_net.components.event_queue import EventQueue  # noqa: E402
from koi_net.components.identity import NodeIdentity  # noqa: E402
from koi_net.components.interfaces import HandlerType, KnowledgeHandler  # noqa: E402
from koi_net.components.kobj_queue import KobjQueue  # noqa: E402
from koi_net.config import FullNodeConfig, PartialNodeConfig  # noqa: E402
from koi_net.core import FullNode, PartialNode  # noqa: E402
from koi_net.protocol import Event, EventType, KnowledgeObject  # noqa: E402
from koi_net.protocol.edge import EdgeType, generate_edge_bundle  # noqa: E402


def write(line: dict[str, Any]) -> None:
    with LOCK:
        LINES.write(json.dumps(line) + "\n")


@dataclass
class Reporter(KnowledgeHandler):
    """Reports what has passed through the whole pipeline. `at`: monotonic seconds, the same for all processes."""

    handler_type = HandlerType.Final

    def handle(self, kobj: KnowledgeObject) -> None:
        source = None if kobj.source is None else str(kobj.source)
        line = {"final": str(kobj.rid), "type": kobj.normalized_event_type, "source": source, "at": time.monotonic()}
        write(line)


@dataclass
class HandshakeHandler(KnowledgeHandler):
    """Answers a node that introduces itself with this node's own profile."""

    identity: NodeIdentity
    cache: Cache
    event_queue: EventQueue

    handler_type = HandlerType.Network
    rid_types = (KoiNetNode,)
    event_types = (EventType.NEW,)

    def handle(self, kobj: KnowledgeObject) -> None:
        if kobj.source is not None and kobj.rid != self.identity.rid:
            own = self.cache.read(self.identity.rid)
            self.event_queue.push(Event.from_bundle(EventType.NEW, own), target=kobj.rid)


class Agent(FullNode):
    config_schema = FullNodeConfig
    reporter = Reporter


class Coordinator(FullNode):
    config_schema = FullNodeConfig
    reporter = Reporter
    handshake_handler = HandshakeHandler


@dataclass
class ExampleHandshakeHandler(KnowledgeHandler):
    """As in koi-net's examples/coordinator.py: answers with its own profile, and subscribes to nodes and edges."""

    identity: NodeIdentity
    cache: Cache
    event_queue: EventQueue
    kobj_queue: KobjQueue

    handler_type = HandlerType.Network
    rid_types = (KoiNetNode,)

    def handle(self, kobj: KnowledgeObject) -> None:
        if not (kobj.event_type == EventType.NEW and kobj.source == kobj.rid):
            return
        own = self.cache.read(self.identity.rid)
        self.event_queue.push(event=Event.from_bundle(event_type=EventType.NEW, bundle=own), target=kobj.rid)
        edge = generate_edge_bundle(
            source=kobj.rid,
            target=self.identity.rid,
            edge_type=EdgeType.WEBHOOK,
            rid_types=[KoiNetNode, KoiNetEdge],
        )
        self.kobj_queue.push(rid=edge.rid, event_type=EventType.FORGET)
        self.kobj_queue.push(bundle=edge)


class Example(FullNode):
    config_schema = FullNodeConfig
    reporter = Reporter
    handshake_handler = ExampleHandshakeHandler


class Partial(PartialNode):
    config_schema = PartialNodeConfig
    reporter = Reporter


ROLES = {"agent": Agent, "coordinator": Coordinator, "example": Example, "partial": Partial}


class Commands:
    """The commands that a test can send to the node."""

    def __init__(self, node: Any) -> None:
        self.node = node

    def info(self) -> dict[str, Any]:
        return {
            "rid": str(self.node.identity.rid),
            "profile": self.node.identity.profile.model_dump(mode="json"),
            "koi_net": [koi_net.__file__, version("koi-net"), version("rid-lib"), sys.version.split()[0]],
            "state": str(self.node._lifecycle.state),
        }

    def publish(self, rid: str, contents: dict[str, Any]) -> dict[str, Any]:
        """Make a bundle, and process it as its own; koi-net decides whether it is NEW or an UPDATE. The bundle."""
        bundle = Bundle.generate(RID.from_string(rid), contents)
        self.node.kobj_queue.push(bundle=bundle)
        return bundle.model_dump(mode="json")

    def publish_all(self, contents: dict[str, dict[str, Any]]) -> float:
        """Publish resources, by RID; when it began."""
        began = time.monotonic()
        for rid, one in contents.items():
            self.publish(rid, one)
        return began

    def forget(self, rid: str) -> None:
        self.node.kobj_queue.push(rid=RID.from_string(rid), event_type=EventType.FORGET)

    def cached(self, rid: str) -> dict[str, Any] | None:
        found = self.node.cache.read(RID.from_string(rid))
        return None if found is None else found.model_dump(mode="json")

    def rids(self, *types: str) -> list[str]:
        kinds = [RIDType.from_string(name) for name in types]
        return sorted(map(str, self.node.cache.list_rids(kinds)))

    def fetch_rids(self, node: str, rid_types: list[str]) -> Any:
        """Ask a node; koi-net checks the answer."""
        kinds = [RIDType.from_string(name) for name in rid_types]
        return self._requests.fetch_rids(RID.from_string(node), rid_types=kinds).model_dump(mode="json")

    def fetch_manifests(self, node: str, rids: list[str]) -> Any:
        asked = [RID.from_string(rid) for rid in rids]
        return self._requests.fetch_manifests(RID.from_string(node), rids=asked).model_dump(mode="json")

    def fetch_bundles(self, node: str, rids: list[str]) -> Any:
        asked = [RID.from_string(rid) for rid in rids]
        return self._requests.fetch_bundles(RID.from_string(node), rids=asked).model_dump(mode="json")

    def poll_neighbors(self) -> list[str]:
        """Poll every node with which it shares an edge, and process what they answer, as koi-net's poller does in a
        partial node. The RIDs of the events."""
        found = []
        for node, events in self.node.resolver.poll_neighbors().items():
            for event in events:
                self.node.kobj_queue.push(event=event, source=node)
                found.append(str(event.rid))
        return found

    @property
    def _requests(self) -> Any:
        return self.node.request_handler


def main() -> None:
    """Run a node until stdin ends, or the command `stop`."""
    directory, role = Path(sys.argv[1]), sys.argv[2]
    node = ROLES[role](root_dir=directory)
    node.start()
    commands = Commands(node)
    write({"ready": commands.info()})
    try:
        for line in sys.stdin:
            asked = json.loads(line)
            name = asked.pop("do")
            if name == "stop":
                break
            try:
                write({"ok": getattr(commands, name)(*asked.pop("with", []), **asked)})
            except Exception as error:
                write({"error": type(error).__name__, "message": str(error)})
    finally:
        node.stop()
        write({"stopped": True})


if __name__ == "__main__":
    main()
