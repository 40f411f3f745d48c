"""Tries the GPU of this machine in a box: `python -m tests.gpu.try_gpu [PYTHON]`, where PYTHON has PyTorch or CuPy.

No test runs it: the machines of the tests have no GPU. It says, for each GPU, whether a box with it computes on it, and
whether a box without it is refused.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from workbench.confinement import box_for_worktree, environments
from workbench.confinement.gpus import Gpu, find, variables_of

COMPUTE = """
try:
    import torch
    assert torch.cuda.device_count() == 1, torch.cuda.device_count()
    print("computed", (torch.ones(1000, 1000, device="cuda") @ torch.ones(1000, 1000, device="cuda")).sum().item())
except ModuleNotFoundError:
    import cupy
    assert cupy.cuda.runtime.getDeviceCount() == 1
    print("computed", float((cupy.ones((1000, 1000)) @ cupy.ones((1000, 1000))).sum()))
"""


def run(python: Path, gpu: Gpu | None) -> subprocess.CompletedProcess[str]:
    """Compute in a box with a GPU, or with none."""
    environment = environments.find(python.parent.parent)
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory) / "work"
        place.mkdir()
        box = box_for_worktree(
            worktree=place,
            git_dir=place,
            objects=(),
            scratch=Path(directory) / "scratch",
            read=(environment.directory, *environment.base, *(gpu.read if gpu else ())),
            devices=gpu.devices if gpu else (),
            variables=variables_of([gpu] if gpu else []),
        )
        argv = box.guarded([str(python), "-c", COMPUTE])
        return subprocess.run(
            argv, cwd=place, env=box.environment(os.environ), capture_output=True, text=True, timeout=300, check=False
        )


def main() -> int:
    """Try every GPU; the exit status is 1 if one does not compute, or if a box without one does."""
    python = Path(sys.argv[1] if len(sys.argv) > 1 else sys.executable)
    gpus, failed = find(), False
    if not gpus:
        print("This machine has no GPU.")
        return 1
    for gpu in gpus:
        result = run(python, gpu)
        computes = result.returncode == 0 and "computed" in result.stdout
        failed |= not computes
        print(f"{gpu.name}: {result.stdout.strip() if computes else result.stderr.strip()[-2000:]}")
    without = run(python, None)
    print("without a GPU: " + ("it computes, although it may not" if without.returncode == 0 else "refused"))
    return int(failed or without.returncode == 0)


if __name__ == "__main__":
    sys.exit(main())
