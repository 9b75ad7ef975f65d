"""A page in a headless browser: its width, its pictures and its colours."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--hide-scrollbars", "--enable-logging=stderr", "--virtual-time-budget=5000",
)  # fmt: skip
MEASURE = """
<script>
window.addEventListener("load", () => {
  const broken = [...document.images].filter(image => !image.complete || !image.naturalWidth);
  const style = getComputedStyle(document.body);
  document.documentElement.dataset.found = JSON.stringify({
    width: document.documentElement.scrollWidth, window: window.innerWidth, broken: broken.length,
    images: document.images.length, back: style.backgroundColor, text: style.color});
});
</script></body>
"""


with_browser = pytest.mark.skipif(
    not os.environ.get("MPILBM_TEST_BROWSER"), reason="runs in .ci/run, which installs Chromium"
)


def require_readable(page: Path, folder: Path, width: int, dark: bool, images: int) -> None:
    """Fail unless the page fits a width, shows all images, and contrasts; no console messages.

    A window of Chromium is at least 500 pixels wide; a frame in it has 400.
    """
    shown = folder / "shown.html"
    shown.write_text(page.read_text().replace("</body>", MEASURE))
    frame = folder / "frame.html"
    inner = 400 if width == 500 else width - 20
    frame.write_text(
        f'<!DOCTYPE html><body style="margin:0"><iframe id="f" src="shown.html" '
        f'style="width:{inner}px;height:900px;border:0"></iframe><script>'
        'window.addEventListener("load", () => setTimeout(() => {const f = document.getElementById'
        '("f"); document.body.dataset.found = f.contentDocument.documentElement.dataset.found;}, '
        "500));</script></body>"
    )
    scheme = ["--blink-settings=preferredColorScheme=0"] if dark else []
    done = subprocess.run(
        [str(CHROMIUM), *FLAGS, *scheme, "--allow-file-access-from-files",
         f"--window-size={width},1000",
         f"--user-data-dir={folder / 'profile'}", "--dump-dom", f"file://{frame}"],
        capture_output=True, text=True, timeout=200,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "CONSOLE" not in done.stderr, done.stderr
    match = re.search(r"data-found=\"([^\"]*)\"", done.stdout)
    found = json.loads(match[1].replace("&quot;", '"'))
    assert found["window"] == inner
    assert found["width"] <= inner
    assert (found["images"], found["broken"]) == (images, 0)
    brightness = sum(map(int, re.findall(r"\d+", found["back"])[:3]))
    assert brightness < 200 if dark else brightness > 700
    letters = sum(map(int, re.findall(r"\d+", found["text"])[:3]))
    assert abs(letters - brightness) > 400
