"""What a user installs."""

import subprocess
import sys
import tarfile
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest

import ledger

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder with a source archive of this checkout and the wheel built from that archive."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT]
    subprocess.run(command, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def wheel(built):
    """The wheel's files by name."""
    with zipfile.ZipFile(next(built.glob("*.whl"))) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def metadata(wheel):
    """What the wheel says about itself."""
    (text,) = (text for name, text in wheel.items() if name.endswith(".dist-info/METADATA"))
    return message_from_bytes(text)


def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    """The wheel installs `ledger` with its type marker, and no other top-level name."""
    assert "ledger/py.typed" in wheel
    assert {name.partition("/")[0] for name in wheel if ".dist-info/" not in name} == {"ledger"}


def test_the_wheel_says_what_it_is(wheel):
    """Name, version, licence and extras are what the project says; the version comes from the package."""
    said = metadata(wheel)

    assert said["Name"] == "turn-ledger"
    assert said["Version"] == ledger.__version__
    assert said["License-Expression"] == "MIT"
    assert said.get_all("Provides-Extra") == ["bench", "cli", "parquet", "sql", "test", "testing"]
    assert any(name.endswith("/licenses/LICENSE") for name in wheel)


def test_the_core_stays_small(wheel):
    """Without an extra, three packages are required and no other."""
    required = [
        line for line in metadata(wheel).get_all("Requires-Dist", []) if "extra ==" not in line
    ]

    assert {line.partition("<")[0] for line in required} == {"filelock", "msgspec", "portalocker"}


def test_the_source_archive_can_test_itself(built):
    """The source archive holds the tests, the tools and the documentation."""
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}

    assert {
        "tests/test_packaging.py",
        "tools/check",
        "docs/changes/README.md",
        ".ci/run",
        "README.md",
    } <= names
