"""What every command needs of the machine around it: system directories, the interpreter, and a clean environment."""

from __future__ import annotations

import os
import re
import site
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
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
_PROCESSORS = "/sys/devices/system/cpu"
DEVICES = tuple(Path("/dev", name) for name in ("full", "null", "random", "urandom", "zero"))

_PARTS = (*("bin", "sbin", "lib", "lib32", "lib64", "libexec", "libx32", "include", "local", "share", "pyvenv.cfg"),)
"""What programs need of a directory that holds other things too."""

_MARK = "WORKBENCH_PROCESS_MARKS"
"""What `workbench.process` knows a process's descendants by."""

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


def shared(private: Iterable[Path]) -> tuple[Path, ...]:
    """What every box may read: the system's directories, this Python with its packages, and Workbench itself.

    Of a directory that also holds a home or something `private`, it is only the parts where programs lie: a project may
    be in /usr/src, a Python in a home.
    """
    return _beside((Path.home(), *private))


@lru_cache(maxsize=256)
def _beside(private: tuple[Path, ...]) -> tuple[Path, ...]:
    found = (part for place in (*_system(), *_prefixes()) for part in _apart(place, private))
    return (*found, *package().values())


def _apart(place: Path, private: tuple[Path, ...]) -> Iterator[Path]:
    if not any(each.is_relative_to(place) for each in private):
        yield place
        return
    for part in (place / name for name in _PARTS):
        if part.exists() and not part.is_symlink():
            yield from _apart(part, private)


@cache
def _system() -> tuple[Path, ...]:
    """Never all of /etc, /proc or /dev, and nobody's home."""
    names = (*_SYSTEM, *(f"/etc/{name}" for name in _ETC), *(f"/proc/{name}" for name in _KERNEL), _PROCESSORS)
    return _outermost(map(Path, names))


@cache
def _prefixes() -> tuple[Path, ...]:
    prefixes = (sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix)
    libraries = (*sysconfig.get_paths().values(), *site.getsitepackages(), Path(sys.executable).resolve().parent)
    own = (site.getusersitepackages(),) if site.ENABLE_USER_SITE else ()
    return tuple(
        place for place in _outermost(map(Path, (*prefixes, *libraries, *own))) if not _within(place, _system())
    )


@cache
def package() -> dict[str, Path]:
    """Workbench's own directories, by name, where it is not installed but checked out; else none."""
    if _within(PACKAGE, (*_system(), *_prefixes())):
        return {}
    places = {name: PACKAGE.parent / name for name in (PACKAGE.name, "kernel_ext", "data")}
    return {name: place for name, place in places.items() if place.is_dir()}


def cleaned(base: Mapping[str, str]) -> dict[str, str]:
    """`base` without what steers programs or betrays secrets: by its name, or a URL with a password in it."""
    return {
        name: value
        for name, value in base.items()
        if name == _MARK
        or not (_STEERING.fullmatch(name) or _BETRAYING.fullmatch(name) or _WITH_PASSWORD.search(value))
    }


def search_path(base: str, readable: Iterable[Path] | None) -> str:
    """The interpreter's programs first, then `base` as far as it is `readable` (None: all of it)."""
    places = [str(Path(sys.executable).parent), *filter(os.path.isabs, base.split(os.pathsep)), "/usr/bin", "/bin"]
    if readable is None:
        return os.pathsep.join(dict.fromkeys(places))
    inside = tuple(f"{place}/" for place in readable)
    allowed = (place for place in places if f"{os.path.realpath(place)}/".startswith(inside))
    return os.pathsep.join(dict.fromkeys(allowed))


def _outermost(paths: Iterable[Path]) -> tuple[Path, ...]:
    """The paths that exist, resolved, without those that lie beneath another."""
    there = {path.resolve() for path in paths if os.path.exists(path)}  # noqa: PTH110 - Path's raises if it may not look
    found = sorted(there, key=lambda path: (len(path.parts), path))
    kept: list[Path] = []
    for path in found:
        if not _within(path, kept):
            kept.append(path)
    return tuple(kept)


def _within(path: Path, places: Iterable[Path]) -> bool:
    return any(path.is_relative_to(place) for place in places)
