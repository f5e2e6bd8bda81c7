"""A real headless Chromium for tests that look at pages."""

import os
import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Error, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Yield the browser; skip where none is installed, or where it does not start on a machine other than CI's."""
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip("no Chromium is installed: apt-get install chromium")
    with sync_playwright() as playwright:
        try:
            chromium = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        except Error as error:
            message = f"{path} does not start: {error.message.splitlines()[0]}"
            pytest.fail(message) if os.environ.get("CI") == "true" else pytest.skip(message)
        yield chromium
        chromium.close()
