"""What is tried before an attempt."""

from __future__ import annotations

from pathlib import Path

import pytest

from workbench.confinement import box_for_worktree
from workbench.rules.profile import Profile
from workbench.worker import preparation
from workbench.worker.startup import WorkerConfig


def test_a_gpu_that_does_not_open_in_time_refuses_the_attempt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places = {name: tmp_path / name for name in ("worktree", "git_dir", "scratch")}
    for place in places.values():
        place.mkdir()
    box = box_for_worktree(**places, objects=(), devices=(tmp_path / "gpu",))
    config = WorkerConfig(
        "", "", tmp_path / "scratch", box, tmp_path, Profile(name="own", summary="own", command=["true"])
    )
    monkeypatch.setattr(preparation, "_GPU_SECONDS", 0.0)
    refused = preparation._refuse_without_gpu(config)
    assert refused is not None
    assert (refused.error_class, refused.retryable) == ("GPU_UNAVAILABLE", False)
