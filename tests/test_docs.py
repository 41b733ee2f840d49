"""Every code block of the README and of docs/ does what the page says."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import postgres

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]
SETUP_COMMANDS = {"README.md": 2}
DATABASES = {"docs/how-to/use-postgresql.md": lambda: {"DATABASE_URL": postgres.fresh_url()}}
"""What a page is given that needs a database."""


@pytest.mark.parametrize("page", [page.relative_to(ROOT).as_posix() for page in PAGES])
def test_every_block_does_what_the_page_says(page, tmp_path):
    """The blocks of a page, run in order by a reader with a fresh home, succeed and print what the page shows."""
    shutil.copy(ROOT / "README.md", tmp_path)
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    setup = str(SETUP_COMMANDS.get(page, 0))

    done = subprocess.run(
        [sys.executable, "-W", "error", ROOT / "tests" / "docs_runner.py", page, setup],
        cwd=tmp_path,
        env=reader_environment(tmp_path) | DATABASES.get(page, dict)(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=240,
    )

    if done.returncode:
        pytest.fail(done.stderr, pytrace=False)


def reader_environment(home: Path) -> dict[str, str]:
    """The same on every machine: nothing of the caller's but where programs lie, with this Python's own first."""
    return {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "PYTHONPATH": str(ROOT),
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "COLUMNS": "80",
        "NO_COLOR": "1",
    }
