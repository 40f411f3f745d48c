"""The surroundings that every command needs: system directories, the interpreter, and a clean environment."""

from __future__ import annotations

import os
import re
import site
import sys
import sysconfig
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache, lru_cache
from pathlib import Path

from workbench.state.home import home

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
_PROCESSORS = ("/sys/devices/system/cpu", "/sys/fs/cgroup")
"""How many processors there are, and how much of them and of the memory may be used."""
DEVICES = tuple(Path("/dev", name) for name in ("full", "null", "random", "urandom", "zero"))

_PARTS = (*("bin", "sbin", "lib", "lib32", "lib64", "libexec", "libx32", "include", "local", "share", "pyvenv.cfg"),)
"""The parts of a directory that programs need, if it holds other things too."""

_MARK = "WORKBENCH_PROCESS_MARKS"
"""The variable by which `workbench.process` identifies a process's descendants."""

TOOL_SERVER = frozenset((_MARK, "PATH", "LANG", "TZ"))
"""Variables that the program of an MCP server gets, besides those of its box and those that the person names."""
NETWORK = frozenset(
    (
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"),
        *("GIT_SSL_CAINFO", "GIT_SSL_CAPATH", "PIP_CERT", "AWS_CA_BUNDLE", "CARGO_HTTP_CAINFO", "NIX_SSL_CERT_FILE"),
        *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "FTP_PROXY"),
    )
)
"""Certificates, and proxies; those in lower case, too."""
COMMAND = (
    TOOL_SERVER
    | NETWORK
    | frozenset(
        (
            *("USER", "LOGNAME", "SHELL", "LANGUAGE", "TERM", "TERMINFO", "COLORTERM", "NO_COLOR", "COLUMNS", "LINES"),
            *("CI", "SOURCE_DATE_EPOCH", "NUMEXPR_MAX_THREADS", "NUMEXPR_NUM_THREADS"),
        )
    )
)
"""Variables that commands get, besides the families below. A person can name others."""
_FAMILIES = re.compile(
    r"(LC|CUDA|NVIDIA|NCCL|HIP|ROCR|HSA|OMP|MKL|OPENBLAS|GOMP|KMP)_[A-Z0-9_]+|VECLIB_MAXIMUM_THREADS"
)
_WITH_USER = re.compile(r"://[^/\s@]+@|^[^/\s@:]+:[^/\s@]*@")


def shared(private: Iterable[Path]) -> tuple[Path, ...]:
    """The paths that every box may read: system directories, this Python with its packages, and Workbench itself.

    If such a directory holds a home or a `private` path (a project may be in /usr/src, a Python in a home), only the
    parts for programs can be read.
    """
    return _shared_paths((home(), *private))


@lru_cache(maxsize=256)
def _shared_paths(private: tuple[Path, ...]) -> tuple[Path, ...]:
    places = (part for place in (*_system(), *_prefixes()) for part in _split(place, private))
    return (*places, *package().values())


def _split(place: Path, private: tuple[Path, ...]) -> Iterator[Path]:
    if not any(other.is_relative_to(place) for other in private):
        yield place
        return
    for part in (place / name for name in _PARTS):
        if part.exists() and not part.is_symlink():
            yield from _split(part, private)


@cache
def _system() -> tuple[Path, ...]:
    """The system's directories; never all of /etc, /proc or /dev, and no home."""
    names = (*_SYSTEM, *(f"/etc/{name}" for name in _ETC), *(f"/proc/{name}" for name in _KERNEL), *_PROCESSORS)
    return _keep_outermost(map(Path, names))


def user_packages() -> str | None:
    """The directory below which the user's own packages are; None if they are not used, or the user has no home."""
    user_site = Path(site.getusersitepackages()) if site.ENABLE_USER_SITE else None
    return site.getuserbase() if user_site is not None and user_site.is_absolute() and user_site.is_dir() else None


@cache
def _prefixes() -> tuple[Path, ...]:
    prefixes = (sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix)
    libraries = (*sysconfig.get_paths().values(), *site.getsitepackages(), Path(sys.executable).resolve().parent)
    own = () if user_packages() is None else (site.getusersitepackages(),)
    return tuple(
        place for place in _keep_outermost(map(Path, (*prefixes, *libraries, *own))) if not _is_within(place, _system())
    )


@cache
def package() -> dict[str, Path]:
    """Workbench's own directories, by name, where it is not installed but checked out; else none."""
    if _is_within(PACKAGE, (*_system(), *_prefixes())):
        return {}
    places = {name: PACKAGE.parent / name for name in (PACKAGE.name, "kernel_ext", "data")}
    return {name: place for name, place in places.items() if place.is_dir()}


def inherited(base: Mapping[str, str], names: Collection[str] = COMMAND) -> dict[str, str]:
    """The variables of `base` with these names, and for commands their families, unless a value has credentials.

    No list has variables that steer programs, name a display, or hold a secret.
    """
    return {
        name: value
        for name, value in base.items()
        if (
            name in names
            or (names is COMMAND and name.upper() in NETWORK)
            or (names is COMMAND and _FAMILIES.fullmatch(name))
        )
        and not _WITH_USER.search(value)
    }


def search_path(base: str, readable: Iterable[Path] | None) -> str:
    """The interpreter's programs first, then the `readable` directories of `base` (None: all of them)."""
    places = [str(Path(sys.executable).parent), *filter(os.path.isabs, base.split(os.pathsep)), "/usr/bin", "/bin"]
    if readable is None:
        return os.pathsep.join(dict.fromkeys(places))
    prefixes = tuple(f"{place}/" for place in readable)
    allowed = (place for place in places if f"{os.path.realpath(place)}/".startswith(prefixes))
    return os.pathsep.join(dict.fromkeys(allowed))


def _keep_outermost(paths: Iterable[Path]) -> tuple[Path, ...]:
    """The paths that exist, resolved, without those that lie beneath another."""
    existing = {path.resolve() for path in paths if os.path.exists(path)}  # noqa: PTH110 - Path's raises if it may not look
    ordered = sorted(existing, key=lambda path: (len(path.parts), path))
    outermost: list[Path] = []
    for path in ordered:
        if not _is_within(path, outermost):
            outermost.append(path)
    return tuple(outermost)


def _is_within(path: Path, places: Iterable[Path]) -> bool:
    return any(path.is_relative_to(place) for place in places)
