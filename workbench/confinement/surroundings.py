"""What every command needs of the machine around it: system directories, the interpreter, and a clean environment."""

from __future__ import annotations

import os
import re
import site
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store")
_ETC = (
    *("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "passwd", "group", "nsswitch.conf", "hosts", "host.conf"),
    *("resolv.conf", "gai.conf", "protocols", "services", "localtime", "timezone", "locale.alias", "locale.conf"),
    *("ssl/certs", "ssl/cert.pem", "ssl/openssl.cnf", "pki/tls/certs", "pki/tls/cert.pem", "pki/tls/openssl.cnf"),
    *("pki/ca-trust/extracted", "ca-certificates", "crypto-policies", "alternatives", "mime.types", "magic"),
    *("gitconfig", "gitattributes", "os-release", "debian_version", "bash.bashrc", "inputrc", "terminfo", "fonts"),
    *(f"python{sys.version_info.major}", f"python{sys.version_info.major}.{sys.version_info.minor}"),
)
_KERNEL = (
    *("meminfo", "cpuinfo", "stat", "loadavg", "uptime", "version", "filesystems", "sys/kernel/osrelease"),
    *("sys/kernel/cap_last_cap", "sys/kernel/pid_max", "sys/kernel/random", "sys/kernel/ngroups_max"),
    *("sys/kernel/threads-max", "sys/vm/overcommit_memory", "sys/vm/max_map_count", "sys/fs/pipe-max-size"),
    *("sys/net/core/somaxconn", "sys/crypto/fips_enabled"),
)
DEVICES = tuple(Path("/dev", name) for name in ("null", "zero", "full", "urandom", "random"))
TERMINAL = Path("/dev/tty")

_PARTS = ("bin", "lib", "lib64", "include", "share", "pyvenv.cfg")
"""What an interpreter needs of its prefix, where the prefix holds other things too."""

_KEPT = re.compile(r"WORKBENCH_PROCESS_MARKS")
_STEERING = re.compile(
    r"(GIT|LD|DYLD|WORKBENCH|JPY|JUPYTER|IPYTHON|NODE|NPM|NPM_CONFIG|PIP|UV|GEM|BASH|XDG|PYTEST|COV|COVERAGE)_.*"
    r"|(PYTHON|PERL|RUBY).*|BASHOPTS|SHELLOPTS|ENV|EDITOR|VISUAL|PAGER|LESSOPEN|LESSCLOSE|CDPATH|GLOBIGNORE"
    r"|JAVA_TOOL_OPTIONS|_JAVA_OPTIONS|VIRTUAL_ENV.*|PWD|OLDPWD|MAIL",
    re.IGNORECASE,
)
_BETRAYING = re.compile(
    r".*(TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|PASSFILE|CREDENTIAL|COOKIE|API_?KEY|PRIVATE).*"
    r"|.*_(KEY|KEYS|PAT|DSN|AUTH|PWD|PASS|SOCK|SOCKET)"
    r"|(SSH|GPG|AWS|AZURE|ARM|GOOGLE|GCP|GCLOUD|CLOUDSDK|DOCKER|KUBE|VAULT|OP|DBUS|SUDO|KRB5)_.*"
    r"|PG.*|KUBECONFIG|KRB5CCNAME|DISPLAY|WAYLAND_DISPLAY|XAUTHORITY|DATABASE_URL|NETRC",
    re.IGNORECASE,
)
_WITH_PASSWORD = re.compile(r"://[^/\s@]*:[^/\s@]+@")


def system() -> Iterator[Path]:
    """What all programs may read of the system; never all of /etc, /proc or /dev."""
    yield from map(Path, _SYSTEM)
    yield from (Path("/etc", name) for name in _ETC)
    yield from (Path("/proc", name) for name in _KERNEL)
    yield Path("/sys/devices/system/cpu")


def interpreter(private: Iterable[Path]) -> Iterator[Path]:
    """The running Python with what is installed for it; of a prefix that holds something `private`, only its parts."""
    private = [Path.home(), *private]
    prefixes = (sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix)
    libraries = (*sysconfig.get_paths().values(), *(site.getsitepackages()), str(Path(sys.executable).resolve().parent))
    for found in (*prefixes, *libraries):
        place = Path(found).resolve()
        if any(each.is_relative_to(place) for each in private):
            yield from (place / part for part in _PARTS)
        else:
            yield place


def package() -> dict[str, Path]:
    """The directories of Workbench, by name, where it is not installed but checked out."""
    around = {name: PACKAGE.parent / name for name in ("kernel_ext", "data")}
    return {PACKAGE.name: PACKAGE} | {name: place for name, place in around.items() if place.is_dir()}


def cleaned(base: Mapping[str, str]) -> dict[str, str]:
    """`base` without what steers programs or betrays secrets: by its name, or a URL with a password in it."""
    return {
        name: value
        for name, value in base.items()
        if _KEPT.fullmatch(name)
        or not (_STEERING.fullmatch(name) or _BETRAYING.fullmatch(name) or _WITH_PASSWORD.search(value))
    }


def search_path(base: str, readable: Iterable[Path] | None) -> str:
    """The interpreter's programs first, then `base` as far as it is `readable` (None: all of it)."""
    places = [str(Path(sys.executable).parent), *filter(os.path.isabs, base.split(os.pathsep)), "/usr/bin", "/bin"]
    readable = None if readable is None else tuple(readable)
    allowed = [
        place
        for place in places
        if readable is None or any(Path(place).resolve().is_relative_to(each) for each in readable)
    ]
    return os.pathsep.join(dict.fromkeys(allowed))


def outermost(paths: Iterable[Path]) -> tuple[Path, ...]:
    """The paths that exist, resolved, without those that lie beneath another."""
    there = {path.resolve() for path in paths if os.path.exists(path)}  # noqa: PTH110 - Path's raises if it may not look
    found = sorted(there, key=lambda path: (len(path.parts), path))
    kept: list[Path] = []
    for path in found:
        if not any(path.is_relative_to(each) for each in kept):
            kept.append(path)
    return tuple(kept)
