"""The Final stage: derives personalities, nodes and edges from bundles, with their history and their events."""

from __future__ import annotations

import json

from rid_lib import RID
from rid_lib.types import KoiNetNode

from workbench.koi.nodes import EdgeProfile, EdgeStatus, NodeProfile
from workbench.koi.payloads import EventType
from workbench.rules.personalities.profile import PersonalityProfile
from workbench.rules.personalities.rid import AgentPersonality
from workbench.services.personalities.bundles import Stored
from workbench.services.personalities.peers import rows
from workbench.services.personalities.pipeline import owners
from workbench.services.personalities.pipeline.item import Batch, Profile
from workbench.store.base import Tx
from workbench.store.queries import beside

SQL = beside(__file__)


def stored(tx: Tx, batch: Batch, rid: RID, event_type: EventType, bundle: Stored, profile: Profile) -> None:
    """Derive what follows from a bundle that is new or has changed."""
    if isinstance(profile, PersonalityProfile):
        owners.pin(tx, profile.rid.name, bundle.owner)
        tools_changed = event_type is not EventType.UPDATE or _have_tools_changed(tx, profile)
        _put_personality(tx, profile, bundle)
        _note(tx, batch, profile.rid, event_type, bundle, tools_changed=tools_changed)
    elif isinstance(profile, NodeProfile):
        if rid != batch.me and isinstance(rid, KoiNetNode):
            _put_node(tx, rid, event_type, profile)
    else:
        _put_edge(tx, str(rid), profile)


def dated(tx: Tx, rid: RID) -> None:
    """Derive what follows from a newer date alone."""
    if isinstance(rid, AgentPersonality):
        tx.run(SQL.set_latest, name=rid.name)


def forgotten(tx: Tx, batch: Batch, rid: RID, bundle: Stored) -> EdgeProfile | None:
    """Undo what followed from a bundle that is about to be forgotten; its profile, if it is of an edge."""
    if isinstance(rid, AgentPersonality):
        tx.run(SQL.delete_personality, rid=str(rid))
        tx.run(SQL.set_latest, name=rid.name)
        _note(tx, batch, rid, EventType.FORGET, bundle)
    elif isinstance(rid, KoiNetNode):
        rows.forget(tx, rid)
        tx.emit("peer.forgotten", f"peer:{rid}", rid=str(rid), name=rid.name)
    else:
        edge = EdgeProfile.model_validate_json(bundle.contents)
        tx.run(SQL.delete_edge, rid=str(rid))
        tx.emit("edge.forgotten", f"edge:{rid}", source=str(edge.source), target=str(edge.target))
        return edge
    return None


def _put_personality(tx: Tx, profile: PersonalityProfile, bundle: Stored) -> None:
    rid, tools = profile.rid, len(profile.tools)
    tx.run(SQL.put_personality, rid=str(rid), name=rid.name, version=rid.version, owner=bundle.owner, tools=tools)
    tx.run(SQL.set_latest, name=rid.name)


def _have_tools_changed(tx: Tx, profile: PersonalityProfile) -> bool:
    """Whether other tools can be called after an update than before, as far as the history tells."""
    row = tx.one(SQL.before, rid=str(profile.rid))
    if row is None or not row["is_latest"] or row["contents"] is None:
        return True
    return PersonalityProfile.model_validate_json(row["contents"]).tools != profile.tools


def _note(
    tx: Tx, batch: Batch, rid: AgentPersonality, event_type: EventType, bundle: Stored, *, tools_changed: bool = True
) -> None:
    """Add to the history of a name, and announce the change.

    Args:
        tools_changed: its callable traits are others than before.
    """
    tx.run(
        SQL.add_history,
        rid=str(rid),
        name=rid.name,
        event_type=event_type,
        sha256=None if event_type is EventType.FORGET else bundle.sha256,
        contents=None if event_type is EventType.FORGET else bundle.contents,
        bytes=0 if event_type is EventType.FORGET else len(bundle.contents.encode()),
        origin=batch.origin,
        manifest_at=bundle.manifest_at,
        now=tx.now,
    )
    tx.run(SQL.prune_history, name=rid.name, kept=batch.settings.koi_history)
    subject, about = f"personality:{rid.reference}", {"name": rid.name, "version": rid.version}
    about |= {"rid": str(rid), "owner": bundle.owner, "origin": batch.origin}
    match event_type:
        case EventType.NEW:
            tx.emit("personality.published", subject, **about)
        case EventType.UPDATE:
            tx.emit("personality.updated", subject, **about, tools_changed=tools_changed)
        case EventType.FORGET:
            tx.emit("personality.forgotten", subject, **about)


def _put_node(tx: Tx, rid: KoiNetNode, event_type: EventType, profile: NodeProfile) -> None:
    rows.note(tx, rid, profile)
    kind = "peer.met" if event_type is EventType.NEW else "peer.updated"
    tx.emit(kind, f"peer:{rid}", rid=str(rid), name=rid.name, node_type=profile.node_type)


def _put_edge(tx: Tx, rid: str, profile: EdgeProfile) -> None:
    ends = {"source": str(profile.source), "target": str(profile.target)}
    types = json.dumps(profile.rid_types)
    tx.run(SQL.put_edge, ends, rid=rid, edge_type=profile.edge_type, status=profile.status, rid_types=types)
    kind = "edge.approved" if profile.status is EdgeStatus.APPROVED else "edge.proposed"
    tx.emit(kind, f"edge:{rid}", **ends)
