"""The copy of a worktree's branch on a machine that shares no path with the project: taken and sent back as bundles.

What was taken of a bundle stays in a file named by its hash, so a transfer goes on where the link was cut.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import logging
import os
import stat
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from io import BufferedReader
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from workbench.client.connection import Operations
from workbench.errors import Conflict, Unavailable, WorkbenchError
from workbench.git import CommitIdentity, Repository, unverified
from workbench.git.bundles import MOST_KNOWN
from workbench.rules.tasks import artifacts
from workbench.state.root import STATE
from workbench.system import atomic_file, file_pieces
from workbench.system.tree_removal import remove_tree
from workbench.worker.checkout import WorkerCheckout
from workbench.worker.startup import WorkerConfig, WorktreePlace

ID_BYTES = 80
"""Bytes of a request for each commit that it names."""
TRIES = 3
"""How often a bundle is taken or sent that arrives damaged."""

_DAMAGED = ("BUNDLE_DAMAGED", "BUNDLE_INCOMPLETE", "BUNDLE_NOT_FOUND", "ARTIFACT_DAMAGED")

T = TypeVar("T")

log = logging.getLogger(__name__)


class BranchCopy:
    """The copy of one branch.

    Args:
        call: runs operations as the worker of the branch's worktree.
        repository: of this machine; `Repository.create` made it.
        files: a directory for bundles on their way.
        max_bytes: of a bundle's objects.
        frame_bytes: of a request.
    """

    def __init__(
        self, call: Operations, repository: Repository, branch: str, files: Path, *, max_bytes: int, frame_bytes: int
    ) -> None:
        self._call = call
        self._repository = repository
        self._branch = branch
        self._files = files
        self._max_bytes = max_bytes
        self._frame_bytes = frame_bytes
        self._others: Mapping[str, str] = {}
        """The commits of other branches that the server has offered."""

    async def fetch(self) -> str:
        """Move the copy to the commit at which the branch is at its server; that commit.

        Raises:
            WorkbenchError: of the server, the disk, or git. Conflict: ``BUNDLE_DAMAGED``.
        """
        commit = await _repeated(self._fetch)
        await asyncio.to_thread(self._repository.return_branch, self._branch, commit)
        return commit

    async def fetch_others(self) -> None:
        """Copy the branches of other worktrees, and the targets, to merge and compare with; call `fetch` before.

        A failure does not end the attempt: those that are not copied stay as they were.
        """
        try:
            here = await asyncio.to_thread(self._repository.heads, self._others)
            for name in [name for name, commit in self._others.items() if here.get(name) != commit]:
                commit = await self._fetch(name)
                await asyncio.to_thread(self._repository.return_branch, name, commit)
        except WorkbenchError as error:
            log.warning("some branches are not up to date: %s", error.message)

    async def _fetch(self, other: str | None = None) -> str:
        """Take the objects of the branch, or of another one; its commit."""
        most = min(MOST_KNOWN, self._frame_bytes // ID_BYTES)
        known = list(dict.fromkeys((await asyncio.to_thread(self._repository.branches)).values()))[:most]
        given = {} if other is None else {"branch": other}
        offer = await self._call("offer_worktree_bundle", known=known, **given)
        if offer["bytes"]:
            file, name = await self._take(offer["sha256"], offer["bytes"]), other or self._branch
            await asyncio.to_thread(self._repository.import_bundle, file, name, max_bytes=self._max_bytes)
            await asyncio.to_thread(file.unlink, missing_ok=True)
        self._others = offer["branches"]
        commit: str = offer["commit"]
        return commit

    async def _take(self, sha256: str, size: int) -> Path:
        """Take a bundle, from where an earlier transfer ended."""
        file = self._files / "taken" / sha256
        offset: int | None = await asyncio.to_thread(_begin, file, size)
        while offset is not None and offset < size:
            piece = await self._call("read_worktree_bundle", sha256=sha256, offset=offset)
            await asyncio.to_thread(_append, file, offset, base64.b64decode(piece["data"]))
            offset = piece["next_offset"]
        if not await asyncio.to_thread(_has_hash, file, sha256):
            await asyncio.to_thread(file.unlink)
            raise Conflict(
                "BUNDLE_DAMAGED", "The bundle that has arrived has another hash. Look at the link and the disk."
            )
        return file

    async def send(self, base: str, **attempt: Any) -> str | None:
        """Send the commits since `base`; the commit that the server has the branch at then, None if there are none.

        Args:
            attempt: names the attempt that made them.

        Raises:
            WorkbenchError: of the server, the disk, or git, such as ``BRANCH_MOVED`` or ``LEASE_LOST``.
        """
        file = self._files / "sent"
        if await asyncio.to_thread(self._repository.bundle_branch, file, self._branch, known=[base]) is None:
            return None
        with _file_errors(file), file.open("rb") as content:
            sha256, size = await asyncio.to_thread(_hash_and_size, content)

            async def send() -> str:
                call = partial(self._call, "send_worktree_bundle", sha256=sha256)
                await _send_pieces(content, size, call, self._frame_bytes)
                imported = await self._call("import_worktree_bundle", sha256=sha256, bytes=size, **attempt)
                commit: str = imported["commit"]
                return commit

            commit = await _repeated(send)
        await asyncio.to_thread(file.unlink)
        return commit


class CheckoutElsewhere(WorkerCheckout):
    """The worktree of a worker whose server is on another machine; what it commits is sent there.

    Args:
        key: by which the server knows the supervisor of the attempts.
    """

    def __init__(self, config: WorkerConfig, worktree: WorktreePlace, call: Operations, key: str) -> None:
        super().__init__(config, worktree)
        self._call = call
        self._key = key
        self._attempt: Mapping[str, Any] = {}

    def begin(self, attempt: Mapping[str, Any], commit: str | None) -> None:
        """See `WorkerCheckout`."""
        super().begin(attempt, commit)
        self._attempt = attempt

    async def prepare(self) -> None:
        """Bring the worktree to the commit at which the attempt begins; what an earlier one left goes.

        Raises:
            WorkbenchError: see `BranchCopy.fetch`.
        """
        copy, place = self._copy(), self._worktree
        commit = await copy.fetch()
        await copy.fetch_others()
        try:
            await self._git(lambda checkout: checkout.return_to(place.branch, self._base or commit))
        except WorkbenchError as error:
            log.warning("the worktree is made anew, because an earlier command has damaged it: %s", error.message)
            await asyncio.to_thread(self._check_out_anew, self._base or commit)
        await super().prepare()
        prepared = {"attempt": self._attempt, "base": self._base}
        await asyncio.to_thread(atomic_file.replace, self._record, json.dumps(prepared))

    def resume(self, task: Mapping[str, Any]) -> bool:
        """Go on with the attempt that an earlier process held, if it had prepared the worktree for that. Blocks."""
        try:
            prepared = json.loads(self._record.read_text("utf-8"))
        except (OSError, ValueError):
            return False
        attempt = {"task_id": task["id"], "attempt": task["attempt"]}
        if prepared["attempt"] != attempt:
            return False
        self.begin(attempt, prepared["base"])
        return True

    @property
    def _record(self) -> Path:
        """For which attempt the worktree is prepared."""
        return self._config.project / STATE / "prepared.json"

    def _check_out_anew(self, commit: str) -> None:
        repository, place = self._repository(), self._worktree
        check_out(repository, place, commit, anew=True)
        repository.anchor_worktree(place.path, place.git_dir, self._config.box.mount_points)

    async def commit(self, message: str, author: CommitIdentity) -> str | None:
        """Commit all changes and send them; the commit that the branch is at then, if it has moved.

        Raises:
            WorkbenchError: see `WorkerCheckout.commit` and `BranchCopy.send`.
        """
        if await super().commit(message, author) is None or self._base is None:
            return None
        return await self._copy().send(self._base, key=self._key, **self._attempt)

    async def hand_over(self, names: Sequence[str]) -> Sequence[str]:
        """Send the files of the worktree among an attempt's artifacts that its last commit does not have.

        Raises:
            WorkbenchError: of the server, such as ``ARTIFACT_TOO_LARGE``.
        """
        places = {name: artifacts.place(name, self._worktree.path) for name in names if artifacts.kind(name) == "file"}
        if paths := list(filter(None, places.values())):
            tip = await asyncio.to_thread(self._repository().commit, self._worktree.branch)
            for path in await asyncio.to_thread(self._repository().absent, tip, paths):
                await self._send_file(path)
        return [places.get(name) or name for name in names]

    async def _send_file(self, path: str) -> None:
        """Send a file of the worktree; what cannot be read, or is none, stays a name."""
        try:
            with unverified.opened(self._worktree.path, PurePosixPath(path).parts) as number:
                if not stat.S_ISREG(os.fstat(number).st_mode):
                    return
                with os.fdopen(number, "rb", closefd=False) as file:
                    sha256, size = await asyncio.to_thread(_hash_and_size, file)
                    about = {"name": path, "sha256": sha256, "bytes": size, "key": self._key, **self._attempt}
                    call = partial(self._call, "send_artifact", **about)
                    if size:
                        await _repeated(lambda: _send_pieces(file, size, call, self._config.frame_bytes))
        except OSError as error:
            log.warning("the artifact %s is not sent: %s", path, error.strerror)

    async def leave(self, message: str, author: CommitIdentity) -> None:
        """Send what an attempt has left that did not complete its task: its server keeps it."""
        try:
            await self.commit(message, author)
        except WorkbenchError as error:
            log.warning("what the attempt has left was not sent: %s: %s", error.code, error.message)

    def _copy(self) -> BranchCopy:
        config = self._config
        return BranchCopy(
            self._call,
            self._repository(),
            self._worktree.branch,
            bundles_of(config.project),
            max_bytes=config.import_bytes,
            frame_bytes=config.frame_bytes,
        )


def check_out(repository: Repository, place: WorktreePlace, commit: str, *, anew: bool = False) -> None:
    """Make the worktree of a branch, with a repository of its own; one that is there stays, unless it is made anew."""
    if anew or not (place.path / ".git").is_file() or not (place.git_dir / "HEAD").is_file():
        repository.unlist_worktree(place.path)
        for rest in (place.path, place.git_dir):
            remove_tree(rest)
        repository.add_worktree(place.path, place.git_dir, place.branch, commit, existing=True)


def bundles_of(project: Path) -> Path:
    """Where the bundles of a copy are on their way."""
    return project / STATE / "bundles"


def _begin(file: Path, size: int) -> int:
    """How many bytes of a bundle are here; what is here of others goes."""
    with _file_errors(file):
        file.parent.mkdir(parents=True, exist_ok=True)
        for other in file.parent.iterdir():
            if other != file:
                other.unlink()
        here = file.stat().st_size if file.exists() else 0
        return here if here <= size else 0


def _append(file: Path, offset: int, piece: bytes) -> None:
    with _file_errors(file):
        file_pieces.write(file, offset, piece)


def _has_hash(file: Path, sha256: str) -> bool:
    with _file_errors(file):
        return file_pieces.has_hash(file, sha256)


def _hash_and_size(file: BufferedReader) -> tuple[str, int]:
    file.seek(0)
    return hashlib.file_digest(file, "sha256").hexdigest(), file.tell()


def _piece(file: BufferedReader, offset: int, size: int) -> str:
    file.seek(offset)
    return base64.b64encode(file.read(size)).decode()


async def _send_pieces(
    file: BufferedReader, size: int, send: Callable[..., Awaitable[dict[str, Any]]], frame_bytes: int
) -> None:
    """Send what of a file has not arrived yet."""
    received: int = (await send())["received"]
    while received < size:
        data = await asyncio.to_thread(_piece, file, received, file_pieces.fitting(frame_bytes))
        received = (await send(offset=received, data=data))["received"]


async def _repeated(transfer: Callable[[], Awaitable[T]]) -> T:
    """The result of a transfer, which is repeated if something has arrived damaged."""
    for _ in range(TRIES - 1):
        try:
            return await transfer()
        except WorkbenchError as error:
            if error.code not in _DAMAGED:
                raise
            log.warning("%s", error.message)
    return await transfer()


@contextmanager
def _file_errors(file: Path) -> Iterator[None]:
    """Raise `Unavailable` for errors of the system, such as a full disk."""
    try:
        yield
    except OSError as error:
        raise Unavailable("BUNDLE_NOT_WRITTEN", f"{file} cannot be written or read: {error.strerror}.") from error
