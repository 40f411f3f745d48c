"""TLS before a server, with a certificate that nobody has signed."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from subprocess import DEVNULL


@asynccontextmanager
async def tls_in_front(url: str, place: Path) -> AsyncIterator[str]:
    """A proxy with TLS before a server, whose certificate, `certificate.pem`, nobody has signed; its address."""
    subject = ("-subj", "/CN=lab", "-addext", "subjectAltName=IP:127.0.0.1")
    made = ("-keyout", str(place / "key.pem"), "-out", str(place / "certificate.pem"))
    options = ("-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")
    await asyncio.to_thread(subprocess.run, ["openssl", "req", *options, *subject, *made], check=True, stderr=DEVNULL)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(place / "certificate.pem", place / "key.pem")

    async def pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, ssl.SSLError):
            while data := await reader.read(65_536):
                writer.write(data)
                await writer.drain()
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
        await asyncio.gather(pipe(reader, inner_writer), pipe(inner_reader, writer))

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    try:
        yield f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
