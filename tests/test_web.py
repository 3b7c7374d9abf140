"""The web page without a browser: who may speak to it, what it keeps, what it survives."""

from __future__ import annotations

import io
import json
import logging
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

pytest.importorskip("fastapi", reason="no web page: pip install 'unblur[web]'")

import uvicorn
from fastapi.telemetry import TelemetryConfig
from starlette.testclient import TestClient

import unblur
from unblur.web.app import SILENT, build
from unblur.web.cases import Case, remove_leftovers
from unblur.web.guard import Keys
from unblur.web.jobs import Job
from unblur.web.site import Site

HOST = "127.0.0.1:8321"
HERE = f"http://{HOST}"
LIMIT = 300_000
GOLDEN = Path(__file__).parent / "golden"
RELEASE = """age,sex,reason
"[0, 20[",f,a
"[0, 20[",f,b
"[0, 20[",f,a
"[20, 40[",m,b
"[20, 40[",m,a
"[20, 40[",m,b
"[0, 20[",*,b
"[0, 20[",*,a
"[0, 20[",*,c
*,*,a
"""
RAW = "age,sex,reason\n" + "".join(f"{3 * n % 40},{'fm'[n % 2]},{'abc'[n % 3]}\n" for n in range(60))


class Visitor:
    """Somebody with a browser."""

    def __init__(self, client: TestClient, keys: Keys) -> None:
        self.client, self.keys = client, keys
        self.client.cookies.clear()
        self.client.get(f"/open/{keys.token}")
        self.cookies = dict(client.cookies)
        self.client.cookies.clear()
        self.token = keys.form_token(self.cookies[keys.cookie])

    @property
    def site(self) -> Site:
        found: Site = self.client.app.state.site  # type: ignore[attr-defined]
        return found

    def get(self, path: str, **options: Any) -> Any:
        return self.client.get(path, headers=self._headers(options), follow_redirects=False, **options)

    def post(self, path: str, *, token: str | None = None, data: Any = None, **options: Any) -> Any:
        fields = {"token": self.token if token is None else token, **(data or {})}
        headers = {"origin": HERE} | self._headers(options)
        return self.client.post(path, data=fields, headers=headers, follow_redirects=False, **options)

    def call(self, method: str, path: str, **options: Any) -> Any:
        headers = {"origin": HERE, "x-unblur-token": self.token} | self._headers(options)
        return self.client.request(method, path, headers=headers, **options)

    def _headers(self, options: dict[str, Any]) -> dict[str, str]:
        cookie = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        return {"cookie": cookie, **options.pop("headers", {})}

    def upload(self, content: str | bytes, *, name: str = "release.csv", kind: str = "release", **more: Any) -> str:
        """Send a file, and return the path of its case."""
        data = content.encode() if isinstance(content, str) else content
        answer = self.post("/cases", data={"kind": kind}, files={"table": (name, data), **more})
        assert answer.status_code == 303, answer.text
        return str(answer.headers["location"]).rsplit("/jobs/", 1)[0]

    def case(self, path: str) -> Case:
        return self.site.case(self.cookies[self.keys.cookie], path.rsplit("/", 1)[-1])

    def wait(self, path: str, *, seconds: float = 60) -> Job:
        """Wait for the last job of a case."""
        job = self.case(path).jobs[-1]
        end = time.monotonic() + seconds
        while not job.over:
            assert time.monotonic() < end, f"not done in time: {job.state}, {job.stage}"
            time.sleep(0.05)
        self.case(path)  # takes note of what was done
        return job

    def describe(self, path: str, *, start: bool = True, **changes: str) -> Any:
        """Fill in the form as it stands, with some changes."""
        setting = self.case(path).setting
        assert setting is not None
        fields = {name: str(value) for name, value in setting.model_dump(exclude={"columns"}).items()}
        for number, column in enumerate(setting.columns):
            fields |= {f"columns.{number}.{name}": str(value) for name, value in column.model_dump().items()}
        fields |= {name.replace("__", "."): value for name, value in changes.items()}
        return self.post(f"{path}/describe", data={**fields, "action": "start" if start else "check"})


@pytest.fixture(scope="module")
def keys() -> Keys:
    return Keys()


@pytest.fixture(scope="module")
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as found:
        yield found


@pytest.fixture(scope="module")
def client(keys: Keys, listener: socket.socket) -> Iterator[TestClient]:
    hosts = [HOST, _host(listener)]
    with TestClient(build(hosts=hosts, keys=keys, workers=2, limit=LIMIT), base_url=HERE) as found:
        yield found


@pytest.fixture
def live(client: TestClient, listener: socket.socket) -> Iterator[str]:
    """The same site on a real port, for what does not speak to applications."""
    server = uvicorn.Server(uvicorn.Config(client.app, lifespan="off", log_config=None))
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    yield f"http://{_host(listener)}"
    server.should_exit = True
    thread.join()


def _host(listener: socket.socket) -> str:
    return f"127.0.0.1:{listener.getsockname()[1]}"


@pytest.fixture
def visitor(client: TestClient, keys: Keys) -> Visitor:
    return Visitor(client, keys)


@pytest.fixture(scope="module")
def described(client: TestClient, keys: Keys) -> tuple[Visitor, str]:
    """A visitor whose small release has been looked at."""
    found = Visitor(client, keys)
    path = found.upload(RELEASE)
    assert found.wait(path).state == "done"
    return found, path


@pytest.fixture(scope="module")
def audited(described: tuple[Visitor, str]) -> tuple[Visitor, str]:
    visitor, path = described
    visitor.describe(path, made_by="unblur")
    assert visitor.wait(path).state == "done"
    return visitor, path


# Who may speak to it


def test_the_token_of_the_start_address_buys_a_cookie_that_scripts_and_other_sites_do_not_get(
    client: TestClient, keys: Keys
) -> None:
    answer = client.get(f"/open/{keys.token}", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=strict" in cookie
    client.cookies.clear()


@pytest.mark.parametrize("token", ["", "x", "0" * 43, "é"])
def test_a_wrong_token_buys_nothing(client: TestClient, token: str) -> None:
    answer = client.get(f"/open/{token}", follow_redirects=False)
    assert answer.status_code in (403, 404)
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize("path", ["/", "/case/x/describe", "/api/openapi.json", "/api/cases/x/alive", "/nowhere"])
@pytest.mark.parametrize("value", [None, "", "guess"])
def test_without_a_cookie_nothing_is_shown(client: TestClient, keys: Keys, path: str, value: str | None) -> None:
    headers = {} if value is None else {"cookie": f"{keys.cookie}={value}"}
    answer = client.get(path, headers=headers, follow_redirects=False)
    assert answer.status_code == 403
    assert "drop it here" not in answer.text


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost:8321", f"{HOST}.evil.example", f"evil@{HOST}", ""]
)
def test_a_foreign_host_is_refused(visitor: Visitor, host: str) -> None:
    assert visitor.get("/", headers={"host": host}).status_code == 421
    assert visitor.get("/", headers={"host": HOST}).status_code == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "https://127.0.0.1:8321", "http://127.0.0.1:9999", ""]
)
def test_a_foreign_origin_is_refused(visitor: Visitor, origin: str) -> None:
    assert visitor.get("/", headers={"origin": origin}).status_code == 403
    assert visitor.post("/demo", headers={"origin": origin}).status_code == 403
    before = len(visitor.site.cases)
    assert visitor.client.post("/demo", data={"token": visitor.token}, headers=visitor._headers({})).status_code == 403
    assert len(visitor.site.cases) == before


def test_what_another_page_wants_for_itself_is_refused_but_a_link_may_be_followed(visitor: Visitor) -> None:
    for site in ("cross-site", "same-site"):
        image = {"sec-fetch-site": site, "sec-fetch-mode": "no-cors", "sec-fetch-dest": "image"}
        link = {"sec-fetch-site": site, "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
        frame = {**link, "sec-fetch-dest": "iframe"}
        assert [visitor.get("/", headers=each).status_code for each in (image, link, frame)] == [403, 200, 403]


def test_forms_and_calls_need_the_token_of_their_page(described: tuple[Visitor, str]) -> None:
    visitor, path = described
    for token in ("", "x", visitor.keys.form_token("somebody else")):
        assert visitor.post("/demo", token=token).status_code == 403
        assert visitor.post(f"{path}/delete", token=token).status_code == 403
        answer = visitor.call(
            "POST", f"/api{path.replace('case', 'cases')}/check", json={}, headers={"x-unblur-token": token}
        )
        assert answer.status_code == 403
    assert visitor.case(path)


def test_every_answer_tells_the_browser_to_trust_nothing_else(audited: tuple[Visitor, str]) -> None:
    visitor, path = audited
    pages = ["/", f"{path}/describe", f"{path}/jobs/2/report", f"{path}/compare", "/static/page.js", "/nowhere"]
    for each in pages:
        answer = visitor.get(each)
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert "server" not in answer.headers
    report = visitor.get(f"{path}/jobs/2/show/report").headers["content-security-policy"]
    assert report.startswith("sandbox;") and "script-src" not in report and "default-src 'none'" in report


def test_pages_have_no_scripts_or_styles_of_their_own_and_load_nothing_from_outside(
    audited: tuple[Visitor, str],
) -> None:
    visitor, path = audited
    for each in ("/", f"{path}/describe", f"{path}/jobs/2/report", f"{path}/compare"):
        text = visitor.get(each).text
        assert re.findall(r"<script(?![^>]*src=\"/static/)", text) == []
        assert re.findall(r"<style|\sstyle=|\son[a-z]+=|javascript:", text) == []
        assert re.findall(r"(?:src|href|action)=\"(?:https?:|//)", text) == []


# Paths and names


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py",
        "/static/..%2fapp.py",
        "/static/%2e%2e/app.py",
        "/static/page.css/../../app.py",
        "/static//etc/passwd",
        "/{case}/jobs/2/download/..%2f..%2ftask.json",
        "/{case}/jobs/2/download/task.json",
        "/{case}/jobs/2/download/%2fetc%2fpasswd",
        "/{case}/jobs/2/show/json",
        "/{case}/jobs/0/show/report",
        "/{case}/jobs/-1/show/report",
        "/{case}/jobs/99/show/report",
        "/{case}/jobs/2%00/show/report",
        "/{case}/../../etc/passwd",
        "/case/..%2f..%2fetc/describe",
    ],
)
def test_no_path_leads_to_a_file_that_is_not_offered(audited: tuple[Visitor, str], path: str) -> None:
    visitor, case = audited
    answer = visitor.get(path.replace("/{case}", case))
    assert answer.status_code in (404, 422)
    assert "root:" not in answer.text and "import" not in answer.text and "kind" not in answer.text


@pytest.mark.parametrize(
    "name", ["../../evil.csv", "/etc/evil.csv", "..\\..\\evil.csv", "evil.csv\x00.png", "a" * 3000]
)
def test_a_file_name_of_the_client_is_shown_but_never_a_path(visitor: Visitor, name: str) -> None:
    path = visitor.upload(RELEASE, name=name)
    case = visitor.case(path)
    stored = case.files["table"]
    assert stored.path.parent == case.folder and re.fullmatch(r"upload-[0-9a-f]{16}", stored.path.name)
    assert "/" not in stored.name and "\\" not in stored.name and len(stored.name) <= 120
    assert not (case.folder.parent / "evil.csv").exists()
    visitor.post(f"{path}/delete")


def test_files_are_for_their_owners_eyes_only(described: tuple[Visitor, str]) -> None:
    visitor, path = described
    case = visitor.case(path)
    for folder in (case.folder.parent, case.folder, case.folder / "job-1"):
        assert folder.stat().st_mode & 0o077 == 0
    assert case.files["table"].path.stat().st_mode & 0o077 == 0


# What it keeps, and for how long


def test_an_upload_above_the_limit_is_refused_in_plain_words_and_leaves_nothing(visitor: Visitor) -> None:
    before = sorted(visitor.site.cases.folder.iterdir())
    answer = visitor.post("/cases", data={"kind": "release"}, files={"table": ("big.csv", b"x" * (LIMIT + 1))})
    assert answer.status_code == 413
    assert "The files are larger than 300 kB, the limit of this page" in answer.text
    assert sorted(visitor.site.cases.folder.iterdir()) == before


def test_two_files_share_the_limit(visitor: Visitor) -> None:
    half = b"x" * (LIMIT // 2 + 1)
    files = {"table": ("a.csv", half), "truth": ("b.csv", half)}
    assert visitor.post("/cases", data={"kind": "release"}, files=files).status_code == 413


def test_an_upload_that_is_cut_off_leaves_nothing(visitor: Visitor) -> None:
    before = sorted(visitor.site.cases.folder.iterdir())
    kind = {"content-type": "multipart/form-data; boundary=B", "origin": HERE}
    body = b'--B\r\ncontent-disposition: form-data; name="table"; filename="a.csv"\r\n\r\nage,sex\n1,'
    answer = visitor.client.post("/cases", content=body, headers={**visitor._headers({}), **kind})
    assert answer.status_code == 400 and "cut off" in answer.text
    assert sorted(visitor.site.cases.folder.iterdir()) == before


def test_a_second_tab_is_a_case_of_its_own(visitor: Visitor) -> None:
    first, second = (visitor.case(visitor.upload(RELEASE)) for _ in range(2))
    assert first.id != second.id and first.folder != second.folder
    assert len(first.id) >= 20


def test_nobody_sees_the_case_of_somebody_else(audited: tuple[Visitor, str], client: TestClient, keys: Keys) -> None:
    path, other = audited[1], Visitor(client, keys)
    for each in (
        "",
        "/describe",
        "/jobs/2",
        "/jobs/2/report",
        "/jobs/2/show/report",
        "/jobs/2/download/json",
        "/compare",
    ):
        assert audited[0].get(path + each).status_code in (200, 303)
        assert other.get(path + each).status_code == 404
    assert other.post(f"{path}/delete").status_code == 404
    assert other.call("GET", f"/api/cases/{path.rsplit('/', 1)[-1]}/jobs/2").status_code == 404


def test_deleting_a_case_removes_its_files_and_its_pages(visitor: Visitor) -> None:
    path = visitor.upload(RELEASE)
    folder = visitor.case(path).folder
    assert any(folder.iterdir())
    assert visitor.post(f"{path}/delete").headers["location"] == "/?deleted=1"
    assert not folder.exists()
    assert visitor.get(f"{path}/describe").status_code == 404


def test_a_case_that_nobody_asks_for_any_more_is_removed_and_one_in_use_is_not() -> None:
    keys = Keys()
    with TestClient(build(hosts=[HOST], keys=keys, workers=1, idle=4), base_url=HERE) as client:
        visitor = Visitor(client, keys)
        forgotten, used = (visitor.upload(RELEASE) for _ in range(2))
        folders = [visitor.case(each).folder for each in (forgotten, used)]
        end = time.monotonic() + 60
        while folders[0].exists() and time.monotonic() < end:
            visitor.case(used)
            time.sleep(0.1)
        assert [folder.exists() for folder in folders] == [False, True]


def test_the_end_of_the_server_removes_everything_and_stops_running_jobs() -> None:
    keys = Keys()
    with TestClient(build(hosts=[HOST], keys=keys, workers=1), base_url=HERE) as client:
        visitor = Visitor(client, keys)
        path = visitor.upload(RELEASE)
        folder, job = visitor.site.cases.folder, visitor.case(path).jobs[0]
        _until(lambda: job.process is not None)
        process = job.process
    assert process is not None and process.poll() is not None
    assert not folder.exists()


def test_a_server_that_was_killed_is_cleaned_up_after_by_the_next_one(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with _serving(environment) as (process, _):
        left = list(tmp_path.glob("unblur-*"))
        assert len(left) == 1 and left[0].stat().st_mode & 0o077 == 0
        process.kill()
        process.wait()
    assert left[0].exists()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(tmp_path))
        remove_leftovers()
    assert list(tmp_path.iterdir()) == []


def test_serve_listens_on_this_machine_only_and_ends_cleanly_on_a_signal(tmp_path: Path) -> None:
    with _serving({**os.environ, "TMPDIR": str(tmp_path)}) as (process, address):
        found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/open/[\w-]{43}", address)
        assert found is not None
        listening = [line.split() for line in Path(f"/proc/{process.pid}/net/tcp").read_text().splitlines()[1:]]
        port = f"{int(found[1]):04X}"
        assert [line[1] for line in listening if line[3] == "0A" and line[1].endswith(port)] == [f"0100007F:{port}"]
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=20)
    assert (process.returncode, output) == (0, "")
    assert errors.endswith("The page has ended; its files are deleted.\n")
    assert list(tmp_path.iterdir()) == []


class _serving:
    """`unblur serve` in a process of its own, and its address."""

    def __init__(self, environment: dict[str, str]) -> None:
        code = "from unblur.cli.serve import run; run(browser=False)"
        self._process = subprocess.Popen(
            [sys.executable, "-c", code],
            env=environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def __enter__(self) -> tuple[subprocess.Popen[str], str]:
        assert self._process.stdout is not None
        self._process.stdout.readline()
        address = self._process.stdout.readline().strip()
        _until(lambda: _answers(address))
        return self._process, address

    def __exit__(self, *exception: object) -> None:
        self._process.kill()
        self._process.communicate()


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(address.rsplit("/open", 1)[0] + "/static/page.css", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def _until(condition: Any, seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "not in time"
        time.sleep(0.02)


# What it survives


def test_a_crash_of_one_audit_ends_neither_the_server_nor_the_next_audit(described: tuple[Visitor, str]) -> None:
    visitor, path = described
    visitor.describe(path)
    job = visitor.case(path).jobs[-1]
    _until(lambda: job.process is not None)
    assert job.process is not None
    os.kill(job.process.pid, signal.SIGSEGV)
    assert visitor.wait(path).state == "failed"
    page = visitor.get(f"{path}/jobs/{job.number}").text
    assert "Something went wrong" in page and "your other work are not affected" in page
    visitor.describe(path)
    assert visitor.wait(path).state == "done"


def test_a_job_that_is_running_and_one_that_waits_can_be_cancelled(described: tuple[Visitor, str]) -> None:
    visitor, path = described
    jobs = []
    for _ in range(4):
        visitor.describe(path)
        jobs.append(visitor.case(path).jobs[-1])
    _until(lambda: jobs[0].process is not None)
    waiting = visitor.get(f"{path}/jobs/{jobs[-1].number}").text
    assert "Cancel" in waiting
    for job in jobs:
        answer = visitor.post(f"{path}/jobs/{job.number}/cancel")
        assert answer.headers["location"] == f"{path}/jobs/{job.number}"
        assert "nothing of it is kept" in visitor.get(answer.headers["location"]).text
    assert {job.state for job in jobs} == {"cancelled"}
    process = jobs[0].process
    assert process is not None
    _until(lambda: process.poll() is not None)


def test_twenty_tabs_that_send_a_file_at_once_are_all_answered(visitor: Visitor) -> None:
    paths = [visitor.upload(RELEASE) for _ in range(20)]
    jobs = [visitor.case(path).jobs[0] for path in paths]
    assert sum(job.state == "waiting" for job in jobs) >= 15
    assert [visitor.wait(path, seconds=120).state for path in paths] == ["done"] * 20
    for path in paths:
        visitor.post(f"{path}/delete")


@pytest.mark.skipif(os.environ.get("UNBLUR_TESTS") != "long", reason="20 audits take a minute: make test-long")
def test_twenty_audits_queued_at_once_finish(described: tuple[Visitor, str]) -> None:
    visitor, path = described
    for _ in range(20):
        visitor.describe(path)
    jobs = visitor.case(path).jobs[-20:]
    assert sum(job.state == "waiting" for job in jobs) >= 17
    visitor.wait(path, seconds=300)
    _until(lambda: all(job.over for job in jobs))
    assert [job.state for job in jobs] == ["done"] * 20
    assert visitor.get(f"{path}/jobs/{jobs[-1].number}/report").status_code == 200


SENTINEL = "Zaphod-4711"


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("empty.csv", b"", "is empty"),
        ("header.csv", b"age,sex\n", "there are no rows, only a header"),
        ("ragged.csv", f"{RELEASE}x,y,z,{SENTINEL}\n".encode(), "line 12 has 4 fields, but the header has 3"),
        ("noise.parquet", b"PAR1" + bytes(range(256)), "not a Parquet file that can be read"),
        ("paper.pdf", b"%PDF-1.7 and so on", "not a table"),
        ("picture.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "not a table"),
        ("old.xls", b"\xd0\xcf\x11\xe0" + b"\0" * 600, "an old Excel file"),
        ("packed.csv.gz", b"\x1f\x8b" + b"\0" * 50, "unpack it first"),
        ("broken.deid", b"PK\x03\x04" + b"\0" * 50, "not an Excel workbook"),
    ],
)
def test_a_wrong_file_is_answered_with_one_friendly_line_and_none_of_its_values(
    visitor: Visitor, name: str, content: bytes, said: str
) -> None:
    path = visitor.upload(content, name=name)
    assert visitor.wait(path).state == "failed"
    page = visitor.get(f"{path}/jobs/1").text
    message = re.search(r"<p class=\"problem\" role=\"alert\">(.*?)</p>", page)
    assert message is not None and said in message[1] and name in message[1]
    assert SENTINEL not in page and str(visitor.case(path).folder) not in page and "Traceback" not in page
    assert "Choose another file" in page
    visitor.post(f"{path}/delete")


def test_no_value_of_a_raw_table_is_shown_in_a_message_or_logged(
    visitor: Visitor, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    raw = RAW.replace("\n3,", f"\n{SENTINEL},", 1)
    path = visitor.upload(RELEASE, truth=("raw.csv", raw.encode()))
    visitor.wait(path)
    visitor.describe(path, made_by="unblur")
    job = visitor.wait(path)
    assert job.state == "failed"
    page = visitor.get(f"{path}/jobs/{job.number}").text
    assert SENTINEL not in page and "raw.csv" in page
    out, err = capfd.readouterr()
    assert SENTINEL not in out + err + caplog.text
    visitor.post(f"{path}/delete")


def test_fastapi_reports_to_nobody_whatever_the_environment_says() -> None:
    switches = {name for name, kind in TelemetryConfig.__annotations__.items() if "bool," in str(kind)}
    assert switches == set(SILENT) and not any(SILENT.values())


# From a file to a report


def test_what_is_generalized_is_proposed_and_marked_as_a_proposal(described: tuple[Visitor, str]) -> None:
    visitor, path = described
    setting = visitor.case(path).proposal
    assert setting is not None
    assert [(each.role, each.method) for each in setting.columns] == [
        ("quasi", "labels"),
        ("quasi", "values"),
        ("other", "values"),
    ]
    assert setting.k == "3"
    page = visitor.get(f"{path}/describe").text
    assert page.count("data-proposal") == 3
    assert "10 records, 3 classes of 3 records, 1 record suppressed." in page


@pytest.mark.parametrize(
    ("changes", "field", "said"),
    [
        ({"k": "1"}, "k", "whole number of 2 or more"),
        ({"k": "five"}, "k", "whole number of 2 or more"),
        ({"made_by": "arx", "iterations": "0"}, "iterations", "whole number of 1 or more"),
        ({"made_by": "arx", "gs_factor": "2"}, "iterations", "“gsFactor” must be a number from 0 to 1"),
        ({"columns.0.low": "x"}, "columns.0", "“From” must be a number"),
        ({"columns.0.low": "10"}, "columns.0", "reaches beyond the domain"),
        ({"columns.0.method": "file"}, "columns.0", "choose the hierarchy file"),
        ({"columns.2.role": "quasi", "columns.2.method": "labels"}, "columns.2", "neither an interval"),
        ({"columns.0.role": "other", "columns.1.role": "other"}, "columns", "at least one"),
    ],
)
def test_a_description_is_checked_field_by_field_as_it_is_typed(
    described: tuple[Visitor, str], changes: dict[str, str], field: str, said: str
) -> None:
    visitor, path = described
    case = visitor.case(path)
    assert case.proposal is not None
    setting = case.proposal.model_dump()
    for name, value in changes.items():
        if name.startswith("columns."):
            _, number, key = name.split(".")
            setting["columns"][int(number)][key] = value
        else:
            setting[name] = value
    found = visitor.call("POST", f"/api/cases/{case.id}/check", json=setting).json()
    assert not found["ok"]
    assert [each["field"] for each in found["problems"]] == [field]
    assert said.lower() in found["problems"][0]["message"].lower()
    case.setting = case.proposal


def test_a_description_that_does_not_hold_starts_nothing(described: tuple[Visitor, str]) -> None:
    visitor, path = described
    before = len(visitor.case(path).jobs)
    assert visitor.describe(path, k="0").headers["location"] == f"{path}/describe"
    assert len(visitor.case(path).jobs) == before
    assert "k must be a whole number of 2 or more." in visitor.get(f"{path}/describe").text
    visitor.describe(path, start=False, k="3")


def test_the_downloads_are_those_of_the_library_and_the_config_works_on_the_command_line(
    audited: tuple[Visitor, str], tmp_path: Path
) -> None:
    visitor, path = audited
    base = f"{path}/jobs/2/download"
    packed = visitor.get(f"{base}/config-zip")
    assert packed.headers["content-disposition"] == 'attachment; filename="unblur-config.zip"'
    with zipfile.ZipFile(io.BytesIO(packed.content)) as archive:
        archive.extractall(tmp_path)
    (tmp_path / "release.csv").write_text(RELEASE)
    again = unblur.audit(unblur.read_release(tmp_path / "release.csv", tmp_path / "release.toml"))
    assert visitor.get(f"{base}/json").text == again.to_json()
    internal, public = (visitor.get(f"{base}/{name}").text for name in ("report", "public"))
    assert "[20, 40[" in internal and "[20, 40[" not in public


def test_a_project_of_arx_needs_no_description(visitor: Visitor) -> None:
    project = next(GOLDEN.glob("g21*")) / "project.deid"
    path = visitor.upload(project.read_bytes(), name="anything.bin")
    assert visitor.wait(path).state == "done"
    page = visitor.get(f"{path}/describe").text
    assert "Local transformation using iterations" in page and "k = 3" in page
    visitor.post(f"{path}/describe")
    assert visitor.wait(path).state == "done"
    found = json.loads(visitor.get(f"{path}/jobs/2/download/json").text)
    assert (found["release"]["rows"], found["release"]["k"], found["replay"]["same"]) == (800, 3, True)
    visitor.post(f"{path}/delete")


def test_a_raw_table_becomes_releases_without_its_identifiers_that_can_be_compared(visitor: Visitor) -> None:
    lines = RAW.splitlines()
    raw = "\n".join([f"name,{lines[0]}", *(f"Person {n},{line}" for n, line in enumerate(lines[1:]))])
    path = visitor.upload(raw, name="raw.csv", kind="raw")
    visitor.wait(path)
    case = visitor.case(path)
    assert case.profile is not None and all(look.samples == () for look in case.profile.looks)
    assert case.proposal is not None and [each.role for each in case.proposal.columns][:3] == ["drop", "quasi", "quasi"]
    for k in ("3", "6"):
        visitor.describe(path, k=k, columns__1__low="0", columns__1__high="40", columns__1__leaves="4")
        assert visitor.wait(path).state == "done"
    published = visitor.get(f"{path}/jobs/2/download/release").text
    assert published.splitlines()[0] == "age,sex,reason" and len(published.splitlines()) == 61
    compared = visitor.get(f"{path}/compare").text
    assert re.findall(r"<th scope=\"row\">k</th><td>(\d)</td><td>(\d)</td>", compared) == [("3", "6")]
    visitor.post(f"{path}/delete")


def test_what_files_say_is_shown_as_text_whatever_it_looks_like(visitor: Visitor) -> None:
    bad = "<img src=x onerror=alert(1)>"
    path = visitor.upload(f'{bad},age\n{bad},"[0, 20["\n{bad},"[0, 20["\n*,*\n', name=f"{bad}.csv")
    assert visitor.wait(path).state == "done"
    setting = visitor.case(path).setting
    assert setting is not None and [each.role for each in setting.columns] == ["quasi", "quasi"]
    case = visitor.case(path)
    found = visitor.call("POST", f"/api/cases/{case.id}/check", json=setting.model_dump()).json()
    shown = visitor.get(f"{path}/describe").text
    for text in (shown, found["trees"]["0"]):
        assert "&lt;img src=x" in text and "<img" not in text
    visitor.post(f"{path}/delete")


def test_a_hierarchy_file_of_arx_can_be_given_for_a_column(described: tuple[Visitor, str]) -> None:
    visitor, path = described
    case = visitor.case(path)
    answer = visitor.call(
        "PUT", f"/api/cases/{case.id}/columns/1/hierarchy?name=../sex.csv", content=b"f;*\nm;*\nx;*\n"
    )
    assert answer.status_code == 200 and case.files["columns.1.file"].name == "sex.csv"
    assert case.proposal is not None
    setting = case.proposal.model_dump()
    setting["columns"][1]["method"] = "file"
    found = visitor.call("POST", f"/api/cases/{case.id}/check", json=setting).json()
    assert found["ok"] and "3 values" in found["trees"]["1"]
    case.setting = case.proposal


def test_serve_without_its_extra_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    from unblur.cli.serve import run

    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.delitem(sys.modules, "unblur.web.server", raising=False)
    with pytest.raises(unblur.UnblurError, match=r"pip install 'unblur\[web\]'"):
        run(browser=False)


# The schema of the API


def test_the_schema_lists_the_api_and_no_pages(visitor: Visitor) -> None:
    schema = visitor.get("/api/openapi.json").json()
    assert all(path.startswith("/api/cases/{case}/") for path in schema["paths"])
    assert len(schema["paths"]) == 5


def test_whatever_is_sent_to_the_api_it_answers_as_its_schema_says(described: tuple[Visitor, str], live: str) -> None:
    schemathesis = pytest.importorskip("schemathesis", reason="no fuzzing of the API: pip install schemathesis")
    visitor, path = described
    case = visitor.case(path)
    schema = schemathesis.openapi.from_dict(visitor.get("/api/openapi.json").json())
    headers = {**visitor._headers({}), "origin": live, "x-unblur-token": visitor.token}
    statuses = set()
    for operation in (each.ok() for each in schema.get_all_operations()):

        @given(sent=operation.as_strategy())
        @settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck), database=None)
        def send(sent: Any) -> None:
            sent.path_parameters = {**(sent.path_parameters or {}), "case": case.id}
            answer = sent.call(base_url=live, headers=headers)
            statuses.add(answer.status_code)
            sent.validate_response(answer)

        send()
    assert {200, 404} <= statuses and not any(status >= 500 for status in statuses)
    case.setting = case.proposal
