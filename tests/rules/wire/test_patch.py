"""Differences of files, one after the other."""

from __future__ import annotations

from typing import Any

from workbench.rules.wire.patch import patch_text


def test_a_file_without_a_patch_says_why() -> None:
    def file(patch: str, **more: bool) -> dict[str, Any]:
        return {"patch": patch, "status": "M", "path": "m.bin", "truncated": False, "binary": False, **more}

    files = [file("+a\n"), file("", truncated=True, binary=True), file("", binary=True), file(""), file("-b\n\n")]
    shown = "+a\nM m.bin (too long to show)\nM m.bin (binary)\nM m.bin (nothing to show)\n-b"
    assert (patch_text(files), patch_text([])) == (shown, "")
