"""Imports go downward only; this table and docs/explanation/architecture.md change together."""

import ast
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from graphlib import TopologicalSorter
from pathlib import Path, PurePath

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "ledger"
MODULES = sorted(path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py"))

MEANING = {"errors", "records", "views"}
TURNS = MEANING | {
    *(
        "bells",
        "collector",
        "formats",
        "stack",
        "turns.claims",
        "turns.commands",
        "turns",
        "stores.base",
    )
}
SHELL = TURNS | {"_version", "maker", "merging", "stores", "stream", "syncing", "turn"}
FACES = SHELL | {"catalog", "conversation", "opening", "recovery", "memories", "aio"}

# What each place may see beside itself. A module belongs to the most exact place that names it. `turns` receives a
# store by protocol (`stores.base`), never by class. `ledger/__init__.py` is no place: it may see everything.
SEES: dict[str, set[str]] = {
    "_version": set(),
    "bells": set(),
    "collector": set(),
    "errors": set(),
    "records": {"errors"},
    "stack": set(),
    "views": {"collector", "errors", "records"},
    "formats": MEANING,
    "stores.base": {"errors", "records"},
    "stores": {"bells", "errors", "records", "stack", "stores.base"},
    "turns.claims": MEANING | {"turns.commands"},
    "turns.commands": MEANING,
    "turns": TURNS,
    "merging": TURNS,
    "turn": TURNS,
    "stream": TURNS | {"turn"},
    "maker": TURNS | {"merging", "turn"},
    "syncing": TURNS | {"maker"},
    "catalog": SHELL,
    "conversation": SHELL,
    "opening": SHELL | {"conversation"},
    "recovery": SHELL | {"conversation", "opening"},
    "memories": SHELL | {"conversation", "opening"},
    "aio": SHELL | {"catalog", "conversation", "opening", "recovery", "memories"},
    "adapters": FACES,
    "sources": FACES,
    "__main__": {"cli"},
    "cli": FACES | {"adapters", "sources", "_version"},
    "testing": {"errors", "records", "stores.base", "stores"},
}

# Places that are values and functions: the same answer everywhere and always.
PURE = {"_version", "errors", "records", "views", "formats", "turns.claims", "turns.commands"}
IMPURE_MODULES = {
    *(
        "asyncio",
        "concurrent",
        "glob",
        "io",
        "multiprocessing",
        "os",
        "pathlib",
        "random",
        "secrets",
        "shutil",
    ),
    *("socket", "sqlite3", "subprocess", "tempfile", "threading", "time", "zipfile"),
}
IMPURE_CALLS = {"now", "utcnow", "today", "uuid1", "uuid4", "open"}

# The only modules that may import these; what is neither here nor in the standard library is optional.
HOMES = {
    "asyncio": ["aio", "aio.*", "turns.calling", "turns.loops", "turns.stepping"],
    "filelock": ["stores.locks"],
    "msgspec": ["*"],
    "portalocker": ["stores.locks"],
    "psycopg": ["stores.sql.*"],
    "sqlalchemy": ["stores.sql.*"],
    "typer": ["cli", "cli.*"],
}
OPTIONAL_HOMES = ["adapters.*", "testing", "testing.*"]

LONGEST_MODULE = 600


def place_of(module: str) -> str | None:
    """The place a module of the package, or a name in it, belongs to; None: it has no row in the table."""
    parts = module.split(".")
    names = (".".join(parts[:count]) for count in range(len(parts), 0, -1))
    return next((name for name in names if name in SEES), None)


def imports(tree: ast.AST, path: PurePath) -> Iterator[tuple[int, str]]:
    """Line and full name of everything imported anywhere in a module, in functions and for type checking too."""
    package = ["ledger", *path.parent.parts]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) + 1 - node.level] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield from ((node.lineno, f"{module}.{alias.name}") for alias in node.names)


def calls(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and last name of everything called in a module: `now` for `datetime.now()`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute | ast.Name):
            yield (
                node.lineno,
                node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id,
            )


def verdict(module: str, imported: str) -> str | None:
    """What is wrong with a module's importing a name; None: nothing."""
    here, (top, _, inside) = place_of(module), imported.partition(".")
    if top == "ledger":
        there = place_of(inside)
        allowed = module == "" or (
            there is not None and there in {here, *SEES.get(here or "", set())}
        )
        return None if allowed else f"{here} must not see {there or imported}"
    if here in PURE and top in IMPURE_MODULES:
        return f"{here} is pure and must not import {top}"
    homes = HOMES.get(top, ["*"] if top in sys.stdlib_module_names else OPTIONAL_HOMES)
    return (
        None
        if any(fnmatch(module, home) for home in homes)
        else f"only {' and '.join(homes)} may import {top}"
    )


def violations(path: PurePath, source: str) -> list[str]:
    """Every breach of the table by one module, as `line: what`."""
    tree = ast.parse(source)
    module = ".".join(path.with_suffix("").parts).removesuffix("__init__").removesuffix(".")
    if module and place_of(module) is None:
        return [f"1: {module} has no row in the table"]
    found = [
        (line, wrong) for line, name in imports(tree, path) if (wrong := verdict(module, name))
    ]
    if place_of(module) in PURE:
        found += [
            (line, f"pure, but calls {name}()")
            for line, name in calls(tree)
            if name in IMPURE_CALLS
        ]
    return [f"{line}: {wrong}" for line, wrong in sorted(found)]


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_imports_go_downward(path):
    """A module imports only what its place may see."""
    assert violations(path, (PACKAGE / path).read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_modules_stay_short(path):
    """A module has at most 600 lines."""
    assert len((PACKAGE / path).read_text(encoding="utf-8").split("\n")) <= LONGEST_MODULE


def test_the_table_is_a_direction():
    """No place sees, by whatever way round, a place that sees it."""
    TopologicalSorter({place: seen - {place} for place, seen in SEES.items()}).prepare()


@pytest.mark.parametrize(
    ("path", "source", "found"),
    [
        (
            "views/place.py",
            "def f():\n    from ledger.stores import folder",
            ["2: views must not see stores"],
        ),
        (
            "views/place.py",
            "if TYPE_CHECKING:\n    from .. import stores",
            ["2: views must not see stores"],
        ),
        ("stores/folder.py", "import ledger.views.history", ["1: stores must not see views"]),
        ("stores/folder.py", "from ledger import open", ["1: stores must not see ledger.open"]),
        ("turns/commands.py", "from .keeper import x", ["1: turns.commands must not see turns"]),
        (
            "turns/keeper.py",
            "from ledger.stores import FolderStore",
            ["1: turns must not see stores"],
        ),
        ("formats/chatgpt.py", "from ledger.turns import x", ["1: formats must not see turns"]),
        (
            "records/ids.py",
            "from os.path import join",
            ["1: records is pure and must not import os"],
        ),
        ("records/ids.py", "x = 1\ny = dt.datetime.now(UTC)", ["2: pure, but calls now()"]),
        (
            "stores/folder.py",
            "import asyncio",
            [
                "1: only aio and aio.* and turns.calling and turns.loops and turns.stepping may import asyncio"
            ],
        ),
        ("stores/folder.py", "import filelock", ["1: only stores.locks may import filelock"]),
        (
            "conversation.py",
            "from typer import Option",
            ["1: only cli and cli.* may import typer"],
        ),
        (
            "views/place.py",
            "import numpy",
            ["1: only adapters.* and testing and testing.* may import numpy"],
        ),
        ("helpers.py", "", ["1: helpers has no row in the table"]),
    ],
)
def test_a_breach_is_found(path, source, found):
    """Each rule of the table can fail."""
    assert violations(PurePath(path), source) == found


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("__init__.py", "from ledger.opening import open\nfrom ledger.cli import main"),
        (
            "views/place.py",
            "from .history import History\nfrom ..records.kinds import Turn\nimport msgspec, re",
        ),
        (
            "turns/keeper.py",
            "from ledger.stores.base import Store\nfrom . import commands\nimport time",
        ),
        ("turns/loops.py", "import asyncio"),
        ("stores/locks.py", "import filelock, portalocker, os"),
        ("stores/folder.py", "from datetime import UTC, datetime\ndatetime.now(UTC)"),
        ("cli/__init__.py", "import typer\nfrom ledger.sources import files"),
        ("adapters/functai.py", "from functai import x\nfrom ledger.opening import open"),
    ],
)
def test_what_the_table_allows_is_no_breach(path, source):
    """Imports that go downward, and each special import at home, pass."""
    assert violations(PurePath(path), source) == []
