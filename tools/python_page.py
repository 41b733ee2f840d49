"""The page of the public Python names, made of their signatures and docstrings. Used by tools/generate.

Everything is read from the source and nothing from running objects, so that each Python version gives
the same page. House style puts an attribute's docstring below it; those are read too.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PARTS = re.compile(r"(?:^|(?<!,)\s+)(?=(?:Args|Returns|Raises|Not promised)\b[^:.]{0,20}:\s)")
WIDTH = 96
INSIDE = frozenset(
    {"add", "after_fork", "annotated", "before_fork", "cleared", "is_here", "kept", "map", "proven"}
)
"""Names without an underscore that are for other modules of the package only."""
NOT_MADE = ("Answer", "Catalog", "Conversation", "Turn", "Lineage", "Running", "Shown")
"""Classes that users are given and do not make."""
FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef
SPECIAL = {
    "__call__": "the call (`await chat(...)`)",
    "__aiter__": "the stream itself",
    "__aenter__": "entering and leaving it (`async with`)",
    "__aexit__": "entering and leaving it (`async with`)",
    "__await__": "the object itself",
}
"""How a special method is told among the names of the awaitable face."""
RETURNED = [
    ("ledger.turns.current", "Running", "what `ledger.current()` gives"),
    ("ledger.memories", "Memory", "what `ledger.memory` returns"),
    ("ledger.memories", "MemoryTurn", "what `memory.turn` returns"),
    ("ledger.syncing", "Synced", "what `chat.sync` returns"),
    ("ledger.formats.base", "Report", "what `import_conversations` returns"),
    ("ledger.formats.base", "Notes", "`report.notes`"),
    ("ledger.formats.base", "Skipped", "one of `report.notes.skipped`"),
    ("ledger.formats.base", "Counted", "one of `report.sources`"),
    ("ledger.turns.rendering", "Rendered", "what `chat.render` returns"),
    ("ledger.views.drawing", "Tree", "what `chat.tree` returns"),
    ("ledger.views.flowchart", "Drawn", "one of `tree.turns`"),
    ("ledger.views.diff", "Difference", "one of `diff.outputs`, and the like"),
    ("ledger.views.diff", "Side", "`diff.a` and `diff.b`"),
    ("ledger.views.diff", "Saw", "`diff.saw`"),
    ("ledger.views.words", "Piece", "one of `difference.pieces`"),
    ("ledger.views.threeway", "Conflict", "what `on_conflict` is given"),
    ("ledger.views.lineage", "Rest", "one of `lineage.rests_on`"),
    ("ledger.views.place", "Place", "what `history.place` returns"),
    ("ledger.views.rules", "Rule", "what `all_turns` and the other rules return"),
    ("ledger.views.earlier", "Earlier", "what context rules are given"),
    ("ledger.views.summaries", "Summary", "`shown.summary`"),
    ("ledger.views.summaries", "Wanted", "`shown.wants`"),
    ("ledger.views.context", "Shown", "what `history.shown` returns"),
    ("ledger.stores.verify", "Report", "what `store.verify` returns"),
    ("ledger.stores.verify", "Finding", "one of `report.findings`"),
]
"""Classes that are met but have no public name: where, which, and how one gets one."""


class Member(NamedTuple):
    """An attribute or a method of a class."""

    name: str
    signature: str
    """Empty: an attribute."""
    doc: str


def page() -> str:
    """Return the page, without the line that says it is generated."""
    lines = [
        "# Python\n",
        "The public names of `ledger`. What is not here may change in any release. Errors have a",
        "[page of their own](errors.md).\n",
        "`TurnLike` is what names a turn: a `Turn`, its ordinal, its id, or a part of its id that",
        "only one turn has.\n",
    ]
    for name, place in public():
        lines += top(f"ledger.{name}", place, name)
    lines.append("## What calls give you\n")
    lines.append("These have no public name. Do not make them; use what they have.\n")
    for place, name, how in RETURNED:
        lines += [f"### {name}: {how}\n", *class_body(find_class(place, name), place)]
    return "\n".join(lines).rstrip() + "\n"


def public() -> Iterator[tuple[str, str]]:
    """Give the public names that are no modules and not the version, each with its module."""
    tree = ast.parse((ROOT / "ledger" / "__init__.py").read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_PLACES":
            places: dict[str, str] = ast.literal_eval(node.value)
            yield from ((n, p) for n, p in sorted(places.items(), key=order) if n != "errors")


def order(item: tuple[str, str]) -> tuple[int, str]:
    """Put what one begins with first."""
    first = ["open", "Conversation", "Turn"]
    return (first.index(item[0]) if item[0] in first else len(first)), item[0].lower()


def top(title: str, place: str, name: str) -> list[str]:
    """Return the section of one public name."""
    if name == "aio":
        return [f"## {title}\n", *awaiting(place)]
    if place == f"ledger.{name}":
        return [f"## {title}\n", *module_body(place)]
    node = find(place, name)
    if isinstance(node, ast.ClassDef):
        return [f"## {title}\n", *class_body(node, resolve(place, name))]
    if isinstance(node, ast.FunctionDef):
        return [f"## {title}\n", *code(signature(node)), *told(ast.get_docstring(node) or "")]
    raise ValueError(f"{title} is neither a class nor a function")


def awaiting(place: str) -> list[str]:
    """Return what the awaitable face says of itself, its names, and which of them are awaited."""
    lines = told(ast.get_docstring(parsed(place)) or "")
    lines.append("Its names are those of the blocking face, and mean what they mean there:\n")
    functions = [n for n in parsed(place).body if isinstance(n, FUNCTIONS) and is_public(n.name)]
    lines.append(f"- `ledger.aio`: {by_await(functions)}")
    for name in ("Conversation", "Turn", "Stream"):
        node = find_class(place, name)
        above = [base for base, _ in bases(node, resolve(place, name))]
        items = [item for cls in (node, *above) for item in cls.body if isinstance(item, FUNCTIONS)]
        shown = [item for item in items if is_public(item.name) or item.name in SPECIAL]
        lines.append(f"- `{name}`: {by_await(shown)}")
    asked = find_class(f"{place}.catalog", "Catalog")
    shown = [item for item in asked.body if isinstance(item, FUNCTIONS) and is_public(item.name)]
    lines.append(f"- `catalog.of()` gives a `Catalog`: {by_await(shown)}")
    return [*lines, ""]


def by_await(items: list[ast.FunctionDef | ast.AsyncFunctionDef]) -> str:
    """Return names by how one has them: awaited, by `async for`, or as they are."""
    ways: dict[str, dict[str, None]] = {"awaited": {}, "by `async for`": {}, "as they are": {}}
    for item in items:
        marks = [ast.unparse(mark) for mark in item.decorator_list]
        if any(mark.endswith(".setter") for mark in marks):
            continue
        name = item.name if any("property" in mark for mark in marks) else f"{item.name}()"
        pieces = "AsyncIterator" in (ast.unparse(item.returns) if item.returns else "")
        awaited = isinstance(item, ast.AsyncFunctionDef) or item.name == "__await__"
        way = "by `async for`" if pieces else "awaited" if awaited else "as they are"
        ways[way].setdefault(SPECIAL.get(item.name, f"`{name}`"))
    return "; ".join(f"{way}: {', '.join(names)}" for way, names in ways.items() if names)


def module_body(place: str) -> list[str]:
    """Return what a module says of itself, and each of its public classes."""
    tree = parsed(place)
    lines = told(ast.get_docstring(tree) or "")
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and ast.get_docstring(node) and node.name != "Outputs":
            lines += [f"### {node.name}\n", *class_body(node, place)]
    for name in imported(tree):
        shown = find(place, name)
        if isinstance(shown, ast.ClassDef):
            lines += [f"### {name}\n", *class_body(shown, resolve(place, name))]
        elif isinstance(shown, ast.FunctionDef):
            lines += [
                f"### {name}\n",
                *code(signature(shown)),
                *told(ast.get_docstring(shown) or ""),
            ]
    return lines


def imported(tree: ast.Module) -> list[str]:
    """Return the names that a module has for its users and that are defined elsewhere, functions first."""
    listed: list[str] = []
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            listed = ast.literal_eval(node.value)
    defined = {node.name for node in tree.body if isinstance(node, ast.ClassDef | FUNCTIONS)}
    return sorted((n for n in listed if n not in defined), key=lambda name: not name.islower())


def class_body(node: ast.ClassDef, place: str) -> list[str]:
    """Return a class: how it is made, what it is, its members."""
    lines = told(ast.get_docstring(node) or "")
    made = constructor(node)
    if made:
        lines = [*code(made), *lines]
    found = list(members(node, place))
    for member in found:
        if not member.signature:
            lines.append(f"- `{member.name}`" + (f": {flat(member.doc)}" if member.doc else ""))
    if any(not member.signature for member in found):
        lines.append("")
    for member in found:
        if member.signature:
            lines += [f"#### `{node.name}.{member.name}`\n", *code(member.signature)]
            lines += told(member.doc)
    return lines


def constructor(node: ast.ClassDef) -> str:
    """Return how a class is called; empty where that is not for users."""
    if node.name in NOT_MADE:
        return ""
    for item in node.body:
        if isinstance(item, ast.FunctionDef) and item.name in ("__init__", "__new__"):
            return signature(item).replace(item.name, node.name, 1).removesuffix(" -> None")
    return ""


def members(node: ast.ClassDef, place: str) -> Iterator[Member]:
    """Give the public members in the order of the source; those of base classes of ours that are not
    defined anew and say what they are come last."""
    own = list(own_members(node))
    yield from own
    for base in bases(node, place):
        inherited = members(*base)
        yield from (m for m in inherited if m.doc and m.name not in {o.name for o in own})


def bases(node: ast.ClassDef, place: str) -> Iterator[tuple[ast.ClassDef, str]]:
    """Give the base classes that are ours, each with its module."""
    for name in map(ast.unparse, node.bases):
        found = resolve(place, name)
        defined = (
            [n.name for n in parsed(found).body if isinstance(n, ast.ClassDef)]
            if ours(found)
            else []
        )
        if name in defined:
            yield find_class(found, name), found


def ours(place: str) -> bool:
    """Whether a module is the package's."""
    return place.partition(".")[0] == "ledger"


def own_members(node: ast.ClassDef) -> Iterator[Member]:
    """Give the public members that a class defines itself and that say what they are."""
    for item, below in zip(node.body, [*node.body[1:], ast.Pass()], strict=True):
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            if is_public(item.target.id):
                yield Member(item.target.id, "", literal(below))
        elif isinstance(item, ast.FunctionDef):
            if item.name == "__init__":
                yield from assigned(item)
            yield from method(item)


def method(item: ast.FunctionDef) -> Iterator[Member]:
    """Give a method or property, if it is public, has a docstring and sets nothing."""
    doc = ast.get_docstring(item)
    marks = [ast.unparse(mark) for mark in item.decorator_list]
    if doc and is_public(item.name) and not any(mark.endswith(".setter") for mark in marks):
        is_property = any(mark.endswith("property") for mark in marks)
        yield Member(item.name, "" if is_property else signature(item), doc)


def assigned(init: ast.FunctionDef) -> Iterator[Member]:
    """Give the attributes that `__init__` sets and describes."""
    for item, below in zip(init.body, [*init.body[1:], ast.Pass()], strict=True):
        target = None
        if isinstance(item, ast.Assign):
            target = item.targets[0]
        elif isinstance(item, ast.AnnAssign):
            target = item.target
        if isinstance(target, ast.Attribute) and is_public(target.attr):
            yield Member(target.attr, "", literal(below))


def is_public(name: str) -> bool:
    """Whether a name of a class is for users."""
    return name == "__call__" or not (name.startswith("_") or name in INSIDE)


def literal(node: ast.stmt) -> str:
    """Return the text that stands as a statement of its own, or nothing."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        value = node.value.value
        return textwrap.dedent(value).strip() if isinstance(value, str) else ""
    return ""


def signature(node: ast.FunctionDef) -> str:
    """Return how a function is called, without `self`, a line for each argument when it is long."""
    given = [text for text in arguments(node.args) if text not in ("self", "cls")]
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    line = f"{node.name}({', '.join(given)}){returns}"
    if len(line) <= WIDTH:
        return line
    listed = "".join(f"    {text},\n" for text in given)
    return f"{node.name}(\n{listed}){returns}"


def arguments(given: ast.arguments) -> Iterator[str]:
    """Give each argument as it is written, `*` and `/` included."""
    places = [*given.posonlyargs, *given.args]
    defaults = [None] * (len(places) - len(given.defaults)) + list(given.defaults)
    for number, (argument, default) in enumerate(zip(places, defaults, strict=True), 1):
        yield written(argument, default)
        if number == len(given.posonlyargs):
            yield "/"
    if given.vararg or given.kwonlyargs:
        yield "*" + (written(given.vararg, None) if given.vararg else "")
    for argument, default in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        yield written(argument, default)
    if given.kwarg:
        yield "**" + written(given.kwarg, None)


def written(argument: ast.arg, default: ast.expr | None) -> str:
    """Return one argument with its type and default."""
    kind = f": {ast.unparse(argument.annotation)}" if argument.annotation else ""
    if default is None:
        return argument.arg + kind
    return f"{argument.arg}{kind}{' = ' if kind else '='}{ast.unparse(default)}"


def code(text: str) -> list[str]:
    """Return a block that is not run."""
    return ["```text", text, "```", ""]


def told(doc: str) -> list[str]:
    """Return a docstring as paragraphs, its parts (Args, Returns, ...) as a list."""
    lines: list[str] = []
    for paragraph in re.split(r"\n\s*\n", doc):
        if paragraph.startswith("    "):
            lines += code(textwrap.dedent(paragraph))
            continue
        first, *parts = PARTS.split(flat(paragraph))
        lines += [first, ""] if first else []
        for part in parts:
            name, _, rest = part.partition(":")
            lines.append(f"- **{name}**: {rest.strip()}")
        if parts:
            lines.append("")
    return lines


def flat(text: str) -> str:
    """Return a text as one line."""
    return " ".join(text.split())


def find(place: str, name: str) -> ast.stmt:
    """Return the definition of a name that a module has, or imports from another of ours."""
    found = resolve(place, name)
    for node in reversed(parsed(found).body):  # The last one: overloads stand before it.
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name:
            return node
    raise ValueError(f"{place} has no {name}")


def find_class(place: str, name: str) -> ast.ClassDef:
    """Return the definition of a class."""
    node = find(place, name)
    if not isinstance(node, ast.ClassDef):
        raise ValueError(f"{place}.{name} is no class")
    return node


def resolve(place: str, name: str) -> str:
    """Return the module that defines a name which a module has or imports."""
    if not ours(place):
        return place
    for node in parsed(place).body:
        if isinstance(node, ast.ImportFrom) and name in [a.asname or a.name for a in node.names]:
            return resolve(node.module or "", name)
    return place


def parsed(place: str) -> ast.Module:
    """Return the parsed source of a module of ours."""
    path = ROOT.joinpath(*place.split("."))
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.parse(path.read_text(encoding="utf-8"))
