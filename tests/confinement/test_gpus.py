"""Which GPU a box has, and what is opened for it, on a directory that stands in for a machine."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path

import pytest

from tests.given import refused
from workbench.confinement import Box, abilities
from workbench.confinement.gpus import choose, find
from workbench.confinement.surroundings import DEVICES

INFORMATION = """\
Model: \t\t NVIDIA A100-SXM4-40GB
GPU UUID: \t GPU-{identity}
Device Minor: \t {number}
"""


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A machine with three GPUs of NVIDIA whose numbers are not in the order of their addresses, and parts of one."""
    for name in ("nvidia0", "nvidia1", "nvidia10", "nvidiactl", "nvidia-uvm", "nvidia-caps/nvidia-cap21", "null"):
        device = tmp_path / "dev" / name
        device.parent.mkdir(parents=True, exist_ok=True)
        device.touch()
    for address, number in (("0000:07:00.0", 1), ("0000:0f:00.0", 0)):
        directory = tmp_path / "proc/driver/nvidia/gpus" / address
        directory.mkdir(parents=True)
        (directory / "information").write_text(INFORMATION.format(identity=f"of-{number}", number=number))
    (tmp_path / "sys/devices").mkdir(parents=True)
    return tmp_path


def test_a_gpu_is_one_device_with_what_all_share_and_is_named_by_its_identity(machine: Path) -> None:
    gpus = find(machine)
    assert [gpu.name for gpu in gpus] == ["nvidia0", "nvidia1", "nvidia10"]
    first, _, last = gpus
    assert [str(path.relative_to(machine / "dev")) for path in first.devices] == [
        "nvidia0",
        "nvidiactl",
        "nvidia-uvm",
        "nvidia-caps/nvidia-cap21",
    ]
    assert set(first.read) == {machine / "proc/driver/nvidia", machine / "sys/devices"}
    assert dict(first.variables)["CUDA_VISIBLE_DEVICES"] == "GPU-of-0"
    assert dict(last.variables)["CUDA_VISIBLE_DEVICES"] == "10", "its driver says nothing about it"


def test_a_gpu_of_amd_is_the_kernels_device_and_its_own_node(tmp_path: Path) -> None:
    (tmp_path / "dev/dri").mkdir(parents=True)
    for name in ("kfd", "dri/card0", "dri/renderD128", "dri/renderD129"):
        (tmp_path / "dev" / name).touch()
    _, second = find(tmp_path)
    assert second.devices == (tmp_path / "dev/kfd", tmp_path / "dev/dri/renderD129")
    assert dict(second.variables)["ROCR_VISIBLE_DEVICES"] == "1"


def test_two_agents_never_get_the_same_gpu(machine: Path) -> None:
    gpus = find(machine)[:2]
    assert choose(gpus, {"nvidia0"}).name == "nvidia1"
    assert "belongs to a running agent" in refused("GPU_UNAVAILABLE", choose, gpus, {"nvidia0", "nvidia1"}).message


def test_without_a_gpu_the_box_is_refused_instead_of_a_run_on_the_processor(tmp_path: Path) -> None:
    assert "This machine has no GPU" in refused("GPU_UNAVAILABLE", choose, find(tmp_path), ()).message


NAME_THREAD = "import threading; open(f'/proc/self/task/{threading.get_native_id()}/comm', 'w').write('worker')"


@pytest.mark.skipif(os.geteuid() != 0 or not abilities().abi, reason="only root makes device files")
@pytest.mark.parametrize("mode", ["mounts", "no mounts"])
def test_a_box_opens_its_own_gpu_and_no_other_and_may_name_its_threads(tmp_path: Path, mode: str) -> None:
    own, other, scratch = tmp_path / "nvidia0", tmp_path / "nvidia1", tmp_path / "scratch"
    for device in (own, other):
        os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    namespaces = abilities().namespaces if mode == "mounts" else frozenset()
    with_gpu = Box((), (), scratch, devices=(*DEVICES, own), namespaces=namespaces)
    without = Box((), (), scratch, namespaces=namespaces)

    def status(box: Box, *command: str) -> int:
        return subprocess.run(
            box.argv(command), cwd=tmp_path, env=box.environment(os.environ), capture_output=True, check=False
        ).returncode

    assert status(with_gpu, "/bin/sh", "-c", f"echo x > {own} && ! echo x > {other}") == 0
    assert status(with_gpu, "/usr/bin/env", "python", "-c", NAME_THREAD) == 0
    assert status(with_gpu, "/bin/sh", "-c", "echo 1 > /proc/sys/vm/drop_caches") != 0
    assert status(without, "/bin/sh", "-c", f"echo x > {own}") != 0
