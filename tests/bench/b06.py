"""B6: a WebSocket message, its committed row and its reply, beside a bare JSON echo."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from tests.bench.child import Child
from tests.bench.project import in_session, prepare, scratch
from tests.bench.rows import Row, Samples, at_least, at_most, take_turns

CONNECTIONS = 200
UNDER_WAY = 8


def run(rounds: int, quick: bool) -> Mapping[str, Samples]:
    """Both servers in a thread of a process of their own, both clients in another."""
    connections, messages = (10, 20) if quick else (CONNECTIONS, 100)
    with scratch() as directory:
        seed = in_session(prepare(directory / "seed", agents=connections, tasks=0))
        with (
            Child("ws_load", "workbench", str(seed.root)) as ours,
            Child("ws_load", "echo") as bare,
            Child("ws_load", "load") as our_load,
            Child("ws_load", "load") as bare_load,
        ):
            names = [f"agent-{number}" for number in range(connections)]
            our_load.ask({**ours.hear(), "tokens": list(zip(names, seed.tokens, strict=True))})
            bare_load.ask({**bare.hear(), "tokens": [(name, "") for name in names]})
            found: dict[str, list[Any]] = {"ours": [], "bare": []}

            def burst(kind: str, client: Child) -> float:
                answer = client.ask({"messages": messages, "under_way": UNDER_WAY})
                found[kind].append(answer)
                return float(answer["rate"])

            rates = take_turns(rounds, ours=partial(burst, "ours", our_load), bare=partial(burst, "bare", bare_load))
    slow = {kind: [answer["p99"] for answer in answers[-rounds:]] for kind, answers in found.items()}
    return {
        "rate": Samples(rates["ours"], rates["bare"], "messages/s"),
        "p99": Samples(slow["ours"], slow["bare"], "ms"),
    }


ROW = Row(
    "B6",
    f"WebSocket message → committed row → reply, {CONNECTIONS} connections with {UNDER_WAY} under way each",
    "JSON echo by bare websockets in a thread",
    {"rate": at_least(0.15), "p99": at_most(8)},
    run,
)
