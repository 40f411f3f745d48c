"""Run in a box: writes the secrets that it finds in every form that it knows, and looks for keys that it must not have.

Arguments: what to do. `SOUGHT` in its environment has the keys, reversed; `NAMES` those of variables with secrets.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import pathlib
import resource
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from urllib.parse import quote

HOME = pathlib.Path(os.environ["HOME"])


def secrets() -> list[str]:
    found = [os.environ[name] for name in os.environ["NAMES"].split() if name in os.environ]
    for file in (HOME / "login.json", HOME / ".mcp.json", HOME / "mcp.json", pathlib.Path(".env")):
        if file.is_file():
            found += [
                word for word in file.read_text().replace('"', " ").replace("=", " ", 1).split() if len(word) > 30
            ]
    return found


def forms(secret: str) -> Iterator[str]:
    raw = secret.encode()
    yield from (secret, repr(secret), ascii(secret), json.dumps(json.dumps(secret)))
    yield from (quote(secret), quote(secret, safe=""), "".join(f"%{byte:02x}" for byte in raw))
    yield "".join(f"%{byte:02X}" if number % 3 else chr(byte) for number, byte in enumerate(raw) if byte < 128)
    yield "".join(f"\\u{ord(one):04x}" for one in secret)
    yield "".join(f"\\x{byte:02X}" for byte in raw)
    for before in ("", "a", "ab"):
        whole = base64.b64encode(before.encode() + raw + b"\n")
        yield from (whole.decode(), whole.translate(bytes.maketrans(b"+/", b"-_")).decode())
        yield base64.encodebytes(b"user:" + raw * 2).decode()
    yield from (raw.hex(), raw.hex().upper(), "\n".join(raw.hex()[at : at + 60] for at in range(0, 2 * len(raw), 60)))
    yield secret[: len(secret) // 2] + "\n" + secret[len(secret) // 2 :]


def everything() -> str:
    return "\n".join(form for secret in secrets() for form in forms(secret))


def found_keys() -> tuple[list[str], int]:
    """The places in the box where one of the keys is, and how many processes it can look into."""
    keys = [word[::-1].encode() for word in os.environ["SOUGHT"].split()]

    def has(place: str, data: bytes) -> list[str]:
        return [place] if any(form in data for key in keys for form in (key, base64.b64encode(key)[:-4])) else []

    found = [place for place, value in os.environ.items() for place in has(place, value.encode())]
    for root in (HOME, pathlib.Path("/tmp"), pathlib.Path("/dev/shm"), pathlib.Path(".")):
        for file in root.rglob("*"):
            if file.is_file():
                with contextlib.suppress(OSError):
                    found += has(str(file), file.read_bytes())
    seen = 0
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            found += has(f"{process}", (process / "environ").read_bytes() + (process / "cmdline").read_bytes())
            seen += 1
            if process.name != str(os.getpid()):  # there they are looked for
                found += has(f"{process}/mem", b"".join(memory(process)))
    return found, seen


def memory(process: pathlib.Path) -> Iterator[bytes]:
    with (process / "mem").open("rb", 0) as memory_of:
        for line in (process / "maps").read_text().splitlines():
            start, _, end = line.split()[0].partition("-")
            if "rw" in line:
                memory_of.seek(int(start, 16))
                yield memory_of.read(min(int(end, 16) - int(start, 16), 1 << 26))


def call(operation: str, **arguments: object) -> None:
    if "WORKBENCH_TOKEN" not in os.environ:  # it is its program's
        return
    url = f"{os.environ['WORKBENCH_URL']}/api/ops/{operation}"
    headers = {"authorization": f"Bearer {os.environ['WORKBENCH_TOKEN']}", "content-type": "application/json"}
    request = urllib.request.Request(url, json.dumps(arguments).encode(), headers)
    try:
        urllib.request.urlopen(request).read()
    except urllib.error.HTTPError as error:
        print(operation, error.code, error.read().decode())


def show() -> None:
    print("by the program")
    print(everything())
    print(everything(), file=sys.stderr)
    for secret in secrets():
        for half in (secret[: len(secret) // 2], secret[len(secret) // 2 :]):
            sys.stdout.write(half)
            sys.stdout.flush()
    print()


def commit() -> None:
    for number, secret in enumerate(dict.fromkeys(secrets())):
        name = secret.replace("/", "_") if number else base64.urlsafe_b64encode(secret.encode()).decode()
        pathlib.Path(name).write_text("made")
        subprocess.run(["git", "add", "-A"], check=True)
        subprocess.run(["git", "commit", "-q", "-m", f"Add {secret}"], check=True)


def result(**more: object) -> None:
    said = {"result": {"said": everything(), "in": [secrets()], everything()[:5_000]: 1} | more}
    artifacts = [f"{secret}.csv" for secret in secrets()]
    pathlib.Path(os.environ["WORKBENCH_RESULT"]).write_text(json.dumps(said | {"artifacts": artifacts}))


def main(what: str) -> None:
    if what == "show":
        show()
        commit()
        task = int(os.environ["WORKBENCH_TASK_ID"])
        call("report_task_progress", task_id=task, progress_note=everything()[:9_999])
        call("write", content={"title": everything()[:400], "content": everything(), "metadata": {"x": secrets()}})
        call(everything()[:200].replace("\n", ""), x=everything())
        found, seen = found_keys()
        result(keys=found, seen=seen, core=resource.getrlimit(resource.RLIMIT_CORE), secrets=len(secrets()))
    if what == "tell":  # shortly: Codex waits for ten seconds only
        show()
        found, seen = found_keys()
        result(keys=found, seen=seen, core=resource.getrlimit(resource.RLIMIT_CORE))
    if what == "fail":
        raise ValueError(everything())
    if what == "crash":
        resource.setrlimit(resource.RLIMIT_CORE, (resource.getrlimit(resource.RLIMIT_CORE)[1],) * 2)
        print(secrets(), flush=True)
        os.kill(os.getpid(), signal.SIGSEGV)


if __name__ == "__main__":
    main(sys.argv[1])
