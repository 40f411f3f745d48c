"""The suites that are compared: archives of PyPI, what their tests need, and which tests no box lets pass."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Suite:
    """A project and its tests.

    Args:
        sha256: the digest of its source archive.
        needs: what its tests need besides what it needs itself.
        installed: what `pip install -e` is given: its directory, and extras.
        arguments: of pytest.
        sockets: patterns of tests that need a socket in the file system, which no box allows: `class::name`, as JUnit
            has them.
        processes: patterns of tests that need what `/proc` tells of other processes, which a box that shares the
            machine's numbers of processes does not have.
    """

    name: str
    version: str
    sha256: str
    needs: tuple[str, ...]
    installed: str = "."
    arguments: tuple[str, ...] = ()
    sockets: tuple[str, ...] = ()
    processes: tuple[str, ...] = ()

    @property
    def listed(self) -> tuple[str, ...]:
        """Patterns of the tests that are known to end otherwise in a box."""
        return (*self.sockets, *self.processes)


_ALL = (
    Suite(
        "joblib",
        "1.6.0",
        "2ccc96785b12046c08fd6d55839c12857831b54a3c1673ffadd2f04bfc4eda03",
        ("pytest==9.2.0", "pytest-asyncio", "pytest-timeout", "numpy", "lz4", "threadpoolctl"),
        arguments=("--timeout=300",),
        sockets=(
            "joblib.test.test_parallel::test_dispatch_multiprocessing*",
            "joblib.test.test_parallel::test_initializer_*",
        ),
        processes=("joblib.test.test_parallel::test_threadpool_limitation_in_child_*",),
    ),
    Suite(
        "nbclient",
        "0.11.0",
        "04a134a5b087f2c5887f228aca155db50169b8cd9334dee6942c8e927e56081a",
        (),
        installed=".[test]",
        arguments=("-o", "asyncio_default_fixture_loop_scope=function"),
        processes=("tests.test_client::test_*parallel_notebooks",),
    ),
    Suite(
        "click",
        "8.5.1",
        "9bbfada76703fd1d784b83eea012e3e8c6a001a876543ef104fa56aaaeb072b4",
        ("pytest==9.2.0",),
    ),
    Suite(
        "httpx",
        "0.28.1",
        "75e98c5f16b0f35b567856f597f06ff2270a374470a5c2392242528e3e3e42fc",
        ("pytest==9.2.0", "chardet==5.2.0", "trio", "trio-typing", "trustme", "uvicorn"),
        installed=".[brotli,cli,http2,socks,zstd]",
    ),
    Suite(
        "requests",
        "2.34.2",
        "f288924cae4e29463698d6d60bc6a4da69c89185ad1e0bcc4104f584e960b9ed",
        ("pytest==9.2.0", "pytest-httpbin==2.1.0", "httpbin~=0.10.0", "pytest-mock", "pytest-cov", "trustme"),
        installed=".[socks]",
    ),
    Suite(
        "attrs",
        "26.1.0",
        "d03ceb89cb322a8fd706d4fb91940737b6642aa36998fe130a9bc96c985eff32",
        ("pytest==9.2.0", "cloudpickle", "hypothesis", "pympler", "pytest-xdist"),
    ),
    Suite(
        "tqdm",
        "4.70.1",
        "cefd0eca11b2a37a3aee776544d4f4ae913f02688135b5556b8788dfa474afc4",
        ("pytest==9.2.0", "pytest-timeout", "pytest-asyncio", "numpy", "pandas", "rich", "nbval", "ipywidgets", "dask"),
    ),
    Suite(
        "anyio",
        "4.16.0",
        "59bb03251907983d1603d27c3087ddb1e93299ea2163adcdba37899a4fb12ffb",
        (
            *(
                "pytest==9.2.0",
                "blockbuster",
                "coverage",
                "hypothesis",
                "psutil",
                "pytest-mock",
                "pytest-timeout",
                "trustme",
            ),
            *("truststore", "uvloop", "exceptiongroup"),
        ),
        installed=".[trio]",
    ),
    Suite(
        "flask",
        "3.1.3",
        "0ef0e52b8a9cd932855379197dd8f94047b359ca0a78695144304cb45f87c9eb",
        ("pytest<9", "asgiref", "greenlet", "python-dotenv"),
    ),
    Suite(
        "pluggy",
        "1.7.0",
        "d1eaa46ebb595891b860ab086b4d09c8588af65ebd4361b8e8f4bb8920b90ba8",
        ("pytest==9.2.0", "pytest-benchmark"),
    ),
)
SUITES = {suite.name: suite for suite in _ALL}
