"""The secrets of a project that this process knows, so that no record shows them."""

from __future__ import annotations

import os
import secrets
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from cachetools import LRUCache

from workbench.errors import Unavailable
from workbench.rules.secrets.marks import KEY_BYTES, Mark, Marks, marks
from workbench.rules.secrets.mask import LineMask, Mask, standing_alone
from workbench.rules.tools.masking import masked
from workbench.system import atomic_file

MOST = 10_000
KEY_FILE = "secrets.key"
"""The key of the marks by which a project's processes recognise each other's secrets; mode 0600, beside its store."""


class KnownSecrets:
    """Values that are masked wherever they occur, besides those secret by their form; and marks of values that other
    processes know, which are masked where they stand alone.

    Its representation does not show them.

    Args:
        key_file: see `KEY_FILE`.
    """

    def __init__(self, key_file: Path = Path(os.devnull)) -> None:
        self._values: LRUCache[str, None] = LRUCache(MOST)
        self._mask: Mask | None = Mask()
        self._key_file = key_file
        self._marks: Marks | None = None
        self._marked: LRUCache[str, None] = LRUCache(MOST)
        self.is_outdated = False
        """Whether another process has learned more since `know` was called."""

    def add(self, values: Iterable[str]) -> None:
        """Mask these values from now on, in this process."""
        for value in values:
            if value not in self._values:
                self._mask = None
            self._values[value] = None

    def unmarked(self, values: Iterable[str]) -> set[str]:
        """The values that other processes have not been told of."""
        return {value for value in values if value not in self._marked}

    def marked(self, values: Iterable[str]) -> None:
        """Note that other processes know these values."""
        self._marked.update(dict.fromkeys(values))

    def marks(self, values: Iterable[str]) -> list[Mark]:
        """The marks of values, which the store keeps for other processes; see `rules.secrets.marks`. Blocks.

        Raises:
            Unavailable: ``PROJECT_UNWRITABLE``.
        """
        return marks(_load_or_create_key(self._key_file), standing_alone(values))

    def know(self, known: Collection[Mark]) -> None:
        """Mask values with one of these marks from now on. Blocks."""
        key = _read_key(self._key_file) if known else None
        self._marks = Marks(key, known) if key else None
        self._mask = None

    def masked(self, value: Any, schema: Mapping[str, Any] | bool = True) -> Any:
        """A JSON value without these secrets, and without values that its schema marks as secret."""
        return self.mask.data(masked(value, schema))

    @property
    def mask(self) -> Mask:
        """A mask for all of them, and for values secret by their form; replaced when secrets are added."""
        if self._mask is None:
            self._mask = Mask(list(self._values), marks=self._marks)
        return self._mask

    def mask_file(self, file: Path) -> None:
        """Mask secrets in a log that nobody writes any more. Blocks.

        Raises:
            OSError: it cannot be read. Unavailable: ``PROJECT_UNWRITABLE``.
        """
        text = file.read_bytes().decode("utf-8", "backslashreplace")
        masked_text = "".join(map(LineMask(self.masked), text.splitlines(keepends=True)))
        if masked_text != text:
            atomic_file.replace(file, masked_text, mode=0o600)

    def also(self, values: Iterable[str]) -> KnownSecrets:
        """These secrets and others; only the returned object masks the others."""
        mask = Mask(frozenset(values), forms=False)
        return _MoreSecrets(self, mask)

    def __repr__(self) -> str:
        return f"<{len(self._values)} secrets>"


class _MoreSecrets(KnownSecrets):
    """Known secrets, with those of one call."""

    def __init__(self, known: KnownSecrets, more: Mask) -> None:
        super().__init__()
        self._known = known
        self._more = more

    def add(self, values: Iterable[str]) -> None:
        self._known.add(values)

    def unmarked(self, values: Iterable[str]) -> set[str]:
        return self._known.unmarked(values)

    def marked(self, values: Iterable[str]) -> None:
        self._known.marked(values)

    def marks(self, values: Iterable[str]) -> list[Mark]:
        return self._known.marks(values)

    def masked(self, value: Any, schema: Mapping[str, Any] | bool = True) -> Any:
        return self._more.data(self._known.masked(value, schema))

    @property
    def mask(self) -> Mask:
        return self._known.mask


def _read_key(file: Path) -> bytes | None:
    """The key in a file; None if there is none that only this user can read."""
    try:
        key = bytes.fromhex(atomic_file.read(file, private=True))
    except (OSError, ValueError):
        return None
    return key if len(key) == KEY_BYTES else None


def _load_or_create_key(file: Path) -> bytes:
    """The key in a file, created if it is missing. If several processes create it at once, the first one wins."""
    if (key := _read_key(file)) is not None:
        return key
    temporary = file.with_name(f".{file.name}.{secrets.token_hex(8)}.tmp")
    atomic_file.replace(temporary, secrets.token_hex(KEY_BYTES), mode=0o600)
    try:
        with suppress(FileExistsError):
            os.link(temporary, file)
        if (key := _read_key(file)) is None:  # it is damaged, and so are the marks that were made with it
            temporary.replace(file)
            key = _read_key(file)
    except OSError as error:
        raise Unavailable("PROJECT_UNWRITABLE", f"{file} cannot be written: {error.strerror}.") from error
    finally:
        temporary.unlink(missing_ok=True)
    if key is None:
        raise Unavailable("PROJECT_UNWRITABLE", f"{file} cannot be read. Remove it.")
    return key
