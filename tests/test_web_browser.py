"""The web page in a real browser, as people use it. Screenshots go to UNBLUR_ARTEFACTS, or to pytest's own folder."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import _absent
from tests.test_web import RAW, RELEASE

PATIENCE = 120_000
"""Milliseconds until anything must be there: the machine may be busy."""
QUIET = ["--no-first-run", "--disable-sync", "--disable-quic", "--disable-features=DownloadBubble,OptimizationHints"]
"""What a browser would ask of the world outside, which may be closed here, before it gives us a file."""
PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
WIDE, NARROW = {"width": 1280, "height": 900}, {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        _absent("no browser: install Chromium (Debian: chromium)")
    playwright = pytest.importorskip("playwright.sync_api", reason="no Playwright: pip install playwright")
    with playwright.sync_playwright() as running:
        # Without a sandbox of its own, because a container's root may not make one; it opens our own pages only.
        found = running.chromium.launch(executable_path=program, args=["--no-sandbox", *QUIET])
        yield found
        found.close()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("serve")
    code = "from unblur.cli.serve import run; run(browser=False, limit=1)"
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        env={**os.environ, "TMPDIR": str(folder)},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    process.stdout.readline()
    yield process.stdout.readline().strip()
    process.terminate()
    process.communicate(timeout=20)
    assert list(folder.iterdir()) == [], "files are left"


@pytest.fixture
def open_page(browser: Any, address: str) -> Iterator[Callable[..., Any]]:
    """Open the start page in a browser of its own; at the end, nothing may have been complained about."""
    contexts, complaints = [], []

    def make(**options: Any) -> Any:
        context = browser.new_context(**{"viewport": WIDE, "accept_downloads": True, **options})
        context.set_default_timeout(PATIENCE)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(address)
        return page

    yield make
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.fixture(scope="module")
def artefacts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    chosen = os.environ.get("UNBLUR_ARTEFACTS")
    folder = Path(chosen) if chosen else tmp_path_factory.mktemp("screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    (folder / "release.csv").write_text(RELEASE)
    (folder / "raw.csv").write_text(RAW)
    (folder / "wrong.csv").write_text(f"{RELEASE}one,two,three,four\n")
    (folder / "large.csv").write_text("age\n" + "30\n" * 400_000)
    return folder


def choose(page: Any, file: Path, *, kind: str = "release") -> None:
    form = page.locator(f"form:has(input[name=kind][value={kind}])")
    form.locator("input[name=table]").set_input_files(file)
    form.locator("button").click()


def fits(page: Any) -> bool:
    """Whether nothing reaches beyond the width of the screen."""
    width: bool = page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    return width


def download(page: Any, name: str) -> Any:
    """Follow a link of the open menu, with the keyboard.

    The menu lies over the report, which is a frame of its own. A browser without a screen may draw so rarely that it
    goes by an older picture, without the menu, and gives clicks there to the report.
    """
    with page.expect_download() as found:
        page.locator(f"a[href$='download/{name}']").press("Enter")
    return found.value


def downloaded(page: Any, name: str) -> str:
    return Path(download(page, name).path()).read_text(encoding="utf-8")


def test_the_whole_way_from_upload_to_download(open_page: Callable[..., Any], files: Path, artefacts: Path) -> None:
    page = open_page()
    page.screenshot(path=artefacts / "start.png", full_page=True)
    choose(page, files / "release.csv")
    page.wait_for_url("**/describe")
    assert page.get_by_text("proposal", exact=True).count() == 4
    page.screenshot(path=artefacts / "describe.png", full_page=True)

    page.get_by_label("k", exact=False).and_(page.locator("[name=k]")).fill("1")
    problem = page.locator("[data-problem=k]")
    problem.wait_for(state="visible")
    assert problem.inner_text() == "k must be a whole number of 2 or more."
    page.fill("[name=k]", "3")
    problem.wait_for(state="hidden")
    tree = page.locator("[data-tree='0']")
    page.fill("[name='columns.0.high']", "80")
    tree.get_by_text("[60, 80[").first.wait_for()
    page.fill("[name='columns.0.high']", "40")
    page.get_by_text("3 classes of 3 records, 1 record suppressed").wait_for()
    page.check("[name=made_by][value=unblur]")

    page.get_by_role("button", name="Audit this release").click()
    page.wait_for_url("**/report")
    frame = page.frame_locator("iframe")
    assert frame.locator("h1").inner_text() == "What this release gives away"
    page.screenshot(path=artefacts / "report.png")
    page.get_by_text("Download", exact=True).click()
    page.screenshot(path=artefacts / "downloads.png")
    assert "[20, 40[" in downloaded(page, "report")
    assert "[20, 40[" not in downloaded(page, "public")
    assert '"schema": "unblur/audit/1"' in downloaded(page, "json")
    packed = download(page, "config-zip")
    assert packed.suggested_filename == "unblur-config.zip"

    # Back: the description as it was left; forward: the report again, and nothing was sent twice.
    page.go_back()
    page.wait_for_url("**/describe")
    assert page.input_value("[name=k]") == "3" and page.is_checked("[name=made_by][value=unblur]")
    page.go_forward()
    page.wait_for_url("**/jobs/2/report")

    # The same pages on a telephone, in the dark.
    page.set_viewport_size(NARROW)
    page.emulate_media(color_scheme="dark")
    for name, path in (("report", page.url), ("describe", re.sub("jobs.*", "describe", page.url)), ("start", "/")):
        page.goto(path if path.startswith("http") else re.sub("/case.*", "/", page.url))
        page.screenshot(path=artefacts / f"{name}-narrow-dark.png", full_page=name != "report")
        assert fits(page), name


def test_a_wrong_file_and_one_too_large_are_answered_in_plain_words(
    open_page: Callable[..., Any], files: Path, artefacts: Path
) -> None:
    page = open_page()
    choose(page, files / "large.csv")
    page.get_by_text("larger than 1 MB, the limit of this page").first.wait_for()
    choose(page, files / "wrong.csv")
    page.get_by_role("heading", name="This cannot be read").wait_for(timeout=PATIENCE)
    page.screenshot(path=artefacts / "wrong-file.png")
    assert "wrong.csv" in page.locator(".problem").inner_text()
    page.get_by_text("Choose another file").click()
    page.get_by_role("heading", name="Audit a release").wait_for()


def test_the_demo_is_one_click_away_and_can_be_cancelled(open_page: Callable[..., Any], artefacts: Path) -> None:
    page = open_page()
    page.get_by_role("button", name="Show me the demo").click()
    page.get_by_role("heading", name="Making a release and auditing it …").wait_for()
    page.screenshot(path=artefacts / "progress.png")
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("heading", name="Cancelled").wait_for()
    page.screenshot(path=artefacts / "cancelled.png")
    page.goto(re.sub("jobs.*", "describe", page.url))
    page.wait_for_url("**/describe")
    page.get_by_text("500 records with all values").wait_for()
    page.screenshot(path=artefacts / "settings.png", full_page=True)
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Delete everything").click()
    page.get_by_text("The files and results were deleted.").wait_for()


def choose_by_keyboard(page: Any, path: Path) -> None:
    """Open the chooser of the file that has the focus; a busy browser may miss the first press."""
    from playwright.sync_api import TimeoutError as TooLate

    for key in ("Space", "Enter", "Space"):
        try:
            with page.expect_file_chooser(timeout=10_000) as chooser:
                page.keyboard.press(key)
        except TooLate:
            continue
        chooser.value.set_files(path)
        return
    raise AssertionError("the keyboard opens no chooser")


def test_the_keyboard_alone_is_enough(open_page: Callable[..., Any], files: Path) -> None:
    page = open_page()

    def go_to(name: str) -> None:
        for _ in range(80):
            page.keyboard.press("Tab")
            if name in page.evaluate("document.activeElement.closest('label, button, a, summary')?.innerText ?? ''"):
                assert page.evaluate(
                    "getComputedStyle(document.activeElement).outlineStyle"
                ) != "none" or page.evaluate("document.activeElement.type === 'file'")
                return
        raise AssertionError(f"the keyboard does not reach {name!r}")

    page.wait_for_load_state("load")
    go_to("The release")
    choose_by_keyboard(page, files / "release.csv")
    go_to("Look at the release")
    page.keyboard.press("Enter")
    page.wait_for_url("**/describe")
    go_to("Audit this release")
    page.keyboard.press("Enter")
    page.wait_for_url("**/report")
    go_to("Download")
    page.keyboard.press("Enter")
    go_to("public version")
    with page.expect_download() as found:
        page.keyboard.press("Enter")
    assert found.value.suggested_filename == "unblur-report-public.html"


def test_without_scripts_everything_still_works(open_page: Callable[..., Any], files: Path, artefacts: Path) -> None:
    page = open_page(java_script_enabled=False)
    choose(page, files / "raw.csv", kind="raw")
    page.wait_for_url("**/describe")
    page.fill("[name='columns.0.leaves']", "x")
    page.get_by_role("button", name="Check").click()
    page.get_by_text("“Intervals” must be a whole number.").wait_for()
    page.fill("[name='columns.0.leaves']", "4")
    page.get_by_role("button", name="Make and audit it").click()
    page.wait_for_url("**/report")
    page.screenshot(path=artefacts / "made.png")
    assert page.frame_locator("iframe").locator("h1").inner_text() == "What this release gives away"
