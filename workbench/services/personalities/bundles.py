"""The newest bundle of each RID, and what was forgotten."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from rid_lib import RID

from workbench.koi.payloads import EPOCH, Bundle, Manifest
from workbench.koi.rids import parse
from workbench.store.base import Reader, Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)


@dataclass(frozen=True, slots=True)
class Stored:
    """A bundle as the store has it. manifest, contents: JSON. manifest_at: microseconds UTC."""

    rid: str
    rid_type: str
    manifest: str
    manifest_at: int
    sha256: str
    contents: str
    owner: str
    origin: str

    @property
    def bundle(self) -> Bundle:
        """It, as nodes send it."""
        return Bundle(manifest=Manifest.model_validate_json(self.manifest), contents=json.loads(self.contents))


def manifest_of(rid: RID, at: int, sha256: str) -> Manifest:
    """A manifest by this node, for a time in microseconds."""
    context = {"@context": "orn:koi-net.context:manifest"}
    return Manifest(rid=rid, timestamp=EPOCH + timedelta(microseconds=at), sha256_hash=sha256, **context)


def find(tx: Reader, rid: RID | str) -> Stored | None:
    """The newest bundle of a RID."""
    row = tx.one(SQL.find, rid=str(rid))
    return _bundle_of(row) if row else None


def find_all(tx: Reader, rids: Iterable[RID | str]) -> list[Stored]:
    """The newest bundles of RIDs, of those that are known."""
    return [_bundle_of(row) for row in tx.all(SQL.find_all, rids=json.dumps([str(rid) for rid in rids]))]


def manifests(tx: Reader, types: Sequence[str]) -> list[Manifest]:
    """The manifests of all bundles of some types, by RID; no types: all of them."""
    return [Manifest.model_validate_json(row["manifest"]) for row in _of_types(tx, types)]


def rids(tx: Reader, types: Sequence[str]) -> list[RID]:
    """The RIDs of all bundles of some types; no types: all of them."""
    return [parse(row["rid"]) for row in _of_types(tx, types)]


def of_owner(tx: Reader, owner: str, rid_type: str) -> list[Stored]:
    """The bundles of a type that a node owns."""
    return [_bundle_of(row) for row in tx.all(SQL.of_owner, owner=owner, rid_type=rid_type)]


def forgotten_at(tx: Reader, rid: RID | str) -> int | None:
    """The time of the manifest that was forgotten, if the RID was; only what is newer can come back."""
    row = tx.one(SQL.tombstone, rid=str(rid))
    return row["manifest_at"] if row else None


def put(tx: Tx, bundle: Stored) -> None:
    """Store a bundle in place of the one that is known, if any."""
    tx.run(SQL.put, _values(bundle), bytes=len(bundle.contents.encode()), now=tx.now)
    tx.run(SQL.delete_tombstone, rid=bundle.rid)


def touch(tx: Tx, rid: RID, manifest: Manifest) -> bool:
    """Note that the contents of a bundle were received again; whether their date is newer. It counts from now on.

    Otherwise an old FORGET could remove what was published again as it had been.
    """
    tx.run(SQL.touch, rid=str(rid), now=tx.now)
    text = manifest.model_dump_json(exclude_none=True)
    return bool(tx.run(SQL.date, rid=str(rid), manifest=text, at=manifest.at))


def forget(tx: Tx, bundle: Stored, at: int) -> None:
    """Delete a bundle; only what is newer than a time, microseconds UTC, can come back."""
    tx.run(SQL.delete, rid=bundle.rid)
    bury(tx, bundle.rid, bundle.rid_type, bundle.owner, at)


def bury(tx: Tx, rid: str, rid_type: str, owner: str, at: int) -> None:
    """Note that a RID is forgotten up to a time, microseconds UTC."""
    tx.run(SQL.bury, rid=rid, rid_type=rid_type, owner=owner, at=at, now=tx.now)


def _of_types(tx: Reader, types: Sequence[str]) -> list[Row]:
    return tx.all(SQL.of_types, types=json.dumps(list(types)), every=int(not types))


def _bundle_of(row: Row) -> Stored:
    return Stored(**{name: row[name] for name in Stored.__slots__})


def _values(bundle: Stored) -> dict[str, object]:
    return {name: getattr(bundle, name) for name in Stored.__slots__}
