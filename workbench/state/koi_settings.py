"""The settings of a project as a node of a KOI network; see `workbench.services.personalities`."""

from __future__ import annotations

from pydantic import Field
from pydantic_settings import BaseSettings


class KoiSettings(BaseSettings):
    """The settings of the node, and the limits of what other nodes send."""

    koi: bool = Field(
        False, description="Take part in a KOI network while the servers run. `join_network` does the same."
    )
    koi_name: str = Field(
        "",
        pattern=r"^[A-Za-z0-9._-]{0,64}$",
        description="Name of this node; empty: that of the project's directory. It is part of the node's RID, so it is "
        "kept once the node has joined.",
    )
    koi_first_contact: str = Field(
        "",
        description="URL of the node to contact first, such as `http://127.0.0.1:9000/koi-net`; empty: others contact "
        "this one.",
    )
    koi_first_contact_rid: str = Field(
        "", description="RID of that node; empty: the first one found at the URL, which then has to stay the same."
    )
    koi_base_url: str = Field(
        "",
        description="URL at which other nodes reach this one, such as `https://example.org/koi-net`; empty: the "
        "server's.",
    )
    koi_answer_seconds: float = Field(10.0, gt=0, description="How long another node may take to answer.")
    koi_retry_base_seconds: float = Field(
        0.5, gt=0, description="Wait after a request to a node failed; doubles each time."
    )
    koi_retry_cap_seconds: float = Field(8.0, gt=0, description="Longest wait before a node is tried again.")
    koi_ask_seconds: float = Field(
        20.0, gt=0, description="How often a node that shares an edge with this one is asked whether it is there."
    )
    koi_reconcile_seconds: float = Field(
        300.0,
        gt=0,
        description="How often what a node has is compared with what is known here, besides after each reconnection.",
    )
    koi_poll_seconds: float = Field(
        5.0, gt=0, description="How often to poll nodes whose edge to this one has the type POLL."
    )
    koi_leave_seconds: float = Field(3.0, gt=0, description="How long leaving the network may wait for other nodes.")
    max_koi_batch_events: int = Field(100, ge=1, description="Most events in one request to another node.")
    max_koi_batch_bytes: int = Field(
        524_288, ge=1_024, description="About how large the events of one request to another node may be together."
    )
    max_koi_requests_per_minute: int = Field(
        30_000,
        ge=1,
        description="Requests of other nodes, which have signatures instead of tokens, from one address.",
    )
    max_koi_request_bytes: int = Field(4_194_304, ge=65_536, description="Largest request of another node.")
    max_koi_answer_bytes: int = Field(16_777_216, ge=1_024, description="Largest answer of another node.")
    koi_skew_seconds: float = Field(
        300.0, ge=0, description="How far in the future what other nodes of a KOI network send may be dated."
    )
    max_koi_personalities: int = Field(10_000, ge=1, description="Personalities of other nodes that are kept.")
    max_koi_personalities_per_node: int = Field(
        2_000, ge=1, description="Personalities of one other node that are kept."
    )
    max_koi_bytes_per_node: int = Field(
        16_777_216,
        ge=65_536,
        description="Largest contents that are kept of one other node together: its personalities and profile, and the "
        "edges that it has sent. Their history may be as large again.",
    )
    max_koi_nodes: int = Field(1_000, ge=1, description="Other nodes of a KOI network that are kept.")
    max_koi_profile_bytes: int = Field(
        262_144, ge=1_024, description="Largest contents that another node may send about one personality."
    )
    koi_open_registry: bool = Field(
        False,
        description="Show everybody who reaches the server which agents and tools of the network are known, at "
        "`/resources/list` and `/tools/list`.",
    )
    koi_history: int = Field(100, ge=1, description="Changes of the personalities of one name that are kept.")
    koi_call_seconds: float = Field(
        600.0, gt=0, description="How long a call of another node's trait may take, and theirs of this node's."
    )
    koi_calls_per_minute: int = Field(
        60, ge=1, description="Calls that a node may send a minute, where set_peer_permission sets no other limit."
    )
    koi_parallel_calls: int = Field(16, ge=1, description="Calls of one node that may wait or run at once.")
    max_koi_result_bytes: int = Field(
        4_194_304, ge=1_024, description="Largest result of a trait that another node calls, as JSON."
    )
