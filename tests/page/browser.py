"""A real Chromium for the tests of the page: found on this machine, started once a test process, or said to be missing.

It is the browser that the system has (`apt install chromium-headless-shell`, which computes a quarter less than the one
with windows), driven by playwright; nothing is downloaded. Names are looked up nowhere: everything but this machine's
loopback addresses is unknown to it, and `REBINDING` is one of those.
"""

import importlib.util
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.async_api import Browser

REBINDING = "rebinding.test"  # a name of someone else's that points to this machine (A8)
_NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_RESOLVER = f"MAP {REBINDING} 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"


def missing() -> str:
    """Why there is no browser to test with, "" when there is one."""
    if importlib.util.find_spec("playwright") is None:
        return "no playwright: `make setup` installs it"
    if not program():
        return f"no browser: none of {', '.join(_NAMES)} is installed (Debian: apt install chromium-headless-shell)"
    return ""


def program() -> str:
    """The path of the browser, "" if there is none."""
    return next((path for name in _NAMES if (path := shutil.which(name))), "")


@asynccontextmanager
async def started() -> AsyncIterator["Browser"]:
    from playwright.async_api import async_playwright

    arguments = [f"--host-resolver-rules={_RESOLVER}"]
    if os.geteuid() == 0:
        arguments.append("--no-sandbox")  # Chromium refuses to start as root with one
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program(), args=arguments)
        try:
            yield browser
        finally:
            await browser.close()
