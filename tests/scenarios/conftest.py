"""Each scenario that asks for them is run on both stores, and in both faces."""

import pytest

import ledger
from tests.scenarios.support import FACES


@pytest.fixture(params=["memory", "folder"])
def store(request, tmp_path):
    """A store of each kind."""
    return ledger.MemoryStore() if request.param == "memory" else ledger.FolderStore(tmp_path / "s")


@pytest.fixture(params=list(FACES))
def face(request):
    """Each face."""
    face = FACES[request.param]()
    yield face
    face.close()
