"""Where the browser is that `tools/chromium.sh` installs."""

from __future__ import annotations

import shutil


def chromium() -> str | None:
    """Chromium without windows, where it is: a page in it takes two fifths of the CPU. Else the whole one, headless."""
    return shutil.which("chromium-headless-shell") or shutil.which("chromium")
