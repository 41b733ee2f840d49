"""A Python callable as a program: its inputs by name, its interface as data, its version.

A program has no memory. Its parameters are the inputs; what it returns is the output `result`.
Shapes are JSON Schema as functai writes them, so a program with the same fields continues a
conversation in either library. An annotation that says nothing, or that this page does not know, is
the shape `{}`: any JSON value.
"""

from __future__ import annotations

import functools
import inspect
import types
import typing
from collections.abc import Callable, Mapping
from inspect import BoundArguments
from typing import Any

import msgspec

from ledger.errors import Opaque, RecordInvalid
from ledger.records import canonical, kinds, values

ANSWER = "result"

_PLAIN: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    list: {"type": "array"},
    dict: {"type": "object"},
    None: {"type": "null"},
    types.NoneType: {"type": "null"},
}


class Description(msgspec.Struct, frozen=True):
    """A program as its `program` record describes it."""

    version: str
    """`sha256:` and 64 hex digits."""
    name: str
    module: str
    interface: dict[str, Any]
    fields: list[dict[str, Any]]
    answer: str
    """The output that is the answer."""

    def keys(self) -> dict[str, Any]:
        """Return the keys of the record, besides the common ones."""
        return {
            "version": self.version,
            "name": self.name,
            "program_kind": "module",
            "module": self.module,
            "interface": self.interface,
            "fields": self.fields,
            "answer": self.answer,
        }


class Program:
    """A callable, its parameters mapped to the names its turns are recorded under.

    Args: function: a plain function or callable object. rename: parameter name -> recorded name.
    Raises: TypeError: it cannot be a program, or `rename` names no parameter of it.
    """

    def __init__(
        self, function: Callable[..., Any], *, rename: Mapping[str, str] | None = None
    ) -> None:
        check_returns(function)
        self.function = function
        self.signature = inspect.signature(function, eval_str=_evaluates(function))
        self._names, answer = _recorded_names(function, self.signature, dict(rename or {}))
        self.description = describe(function, self.signature, self._names, answer)

    @property
    def inputs(self) -> list[str]:
        """The recorded names of its inputs, in order."""
        return list(self._names.values())

    def parameter(self, name: str) -> bool:
        """Say whether a keyword names one of its parameters."""
        return name in self.signature.parameters

    def bind(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[BoundArguments, dict[str, Any]]:
        """Return the bound call and its inputs by recorded name, defaults included.

        Raises: TypeError naming the program and the input.
        """
        name = self.description.name
        unknown = next((k for k in kwargs if k not in self.signature.parameters), None)
        if unknown is not None:
            takes = ", ".join(self.signature.parameters) or "nothing"
            raise TypeError(f"{name} has no input {unknown!r}; it takes {takes}")
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{name}: {error}") from None
        bound.apply_defaults()
        return bound, {self._names[p]: value for p, value in bound.arguments.items()}

    def call(self, bound: BoundArguments) -> Any:
        """Run it once with a bound call; what it raises passes through."""
        return self.function(*bound.args, **bound.kwargs)


def describe(
    function: Callable[..., Any],
    signature: inspect.Signature,
    names: Mapping[str, str],
    answer: str,
) -> Description:
    """Return what a `program` record says of a callable."""
    inputs = [_input(parameter, names[name]) for name, parameter in signature.parameters.items()]
    output = _field(answer, signature.return_annotation)
    interface = {
        "description": inspect.getdoc(function) or "",
        "inputs": inputs,
        "outputs": [output],
    }
    return description(_name(function), _module(function), interface, _source(function))


def description(
    name: str, module: str, interface: dict[str, Any], source: str | None
) -> Description:
    """Return a program's description, its version made of what it is called, takes and does."""
    fields = [
        {
            "name": field["name"],
            "direction": direction,
            "purpose": "plain",
            "shape": {k: v for k, v in field["shape"].items() if k != "default"},
        }
        for direction, listed in (("input", "inputs"), ("output", "outputs"))
        for field in interface[listed]
    ]
    return Description(
        version=canonical.sha256([module, name, interface, source]),
        name=name,
        module=module,
        interface=interface,
        fields=fields,
        answer=fields[-1]["name"],
    )


def recorded(inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> Description:
    """Return the description of turns recorded without a program: named `recorded`, any values.

    Text under the one input `message` and the one output `result` is declared as text, as imported
    turns have it. Turns without an output have `result`, of any shape.
    Raises: record-invalid: a name that no field can have, or that is an input's and an output's.
    """
    _check_names(list(inputs), list(outputs))
    named = list(inputs) == ["message"] and list(outputs) == [ANSWER]
    text = named and all(type(v) is str for v in (*inputs.values(), *outputs.values()))
    shape: dict[str, Any] = {"type": "string"} if text else {}
    interface = {
        "description": "",
        "inputs": [{"name": name, "shape": shape} for name in inputs],
        "outputs": [{"name": name, "shape": shape} for name in outputs or [ANSWER]],
    }
    return description("recorded", "ledger", interface, None)


def check_returns(function: Callable[..., Any]) -> None:
    """Refuse what does not return its answer when it is called. Raises: TypeError."""
    if not callable(function):
        raise TypeError(f"a program is a callable, not {type(function).__name__}")
    plain = inspect.unwrap(_named(function))
    for test, what in (
        (inspect.iscoroutinefunction, "an async function"),
        (inspect.isasyncgenfunction, "an async generator"),
        (inspect.isgeneratorfunction, "a generator"),
    ):
        if test(plain) or test(getattr(plain, "__call__", None)):  # noqa: B004
            raise TypeError(f"{_name(function)} is {what}; a program here is a plain function")


def of_record(record: kinds.Program) -> Description:
    """Return the description that a log holds of a program."""
    return Description(
        version=record.version,
        name=record.name,
        module=record.module or "",
        interface=kinds.payload(record.interface, record.seq) or {},
        fields=kinds.payload(record.fields, record.seq) or [],
        answer=record.answer,
    )


def version_of(function: Callable[..., Any]) -> str:
    """Return the version of a merging program: the hash of its name and source."""
    return canonical.sha256([_name(function), _source(function)])


def name_of(function: Callable[..., Any]) -> str:
    """Return the name a callable is recorded under."""
    return _name(function)


def shape_of(annotation: Any) -> dict[str, Any]:
    """Return the JSON Schema of an annotation; `{}` (any value) when it says nothing known here."""
    if isinstance(annotation, type | None) and annotation in _PLAIN:
        return dict(_PLAIN[annotation])
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        return {"anyOf": [shape_of(a) for a in args]}
    if origin is typing.Literal and all(map(_is_plain, args)):
        shape: dict[str, Any] = {"enum": list(args)}
        kinds = {type(a) for a in args}
        if len(kinds) == 1 and (kind := kinds.pop()) in _PLAIN:
            shape.update(_PLAIN[kind])
        return shape
    if origin is list and args:
        return _with({"type": "array"}, "items", shape_of(args[0]))
    if origin is dict and len(args) == 2 and args[0] is str:
        return _with({"type": "object"}, "additionalProperties", shape_of(args[1]))
    return {}


def _with(shape: dict[str, Any], key: str, inner: dict[str, Any]) -> dict[str, Any]:
    return {**shape, key: inner} if inner else shape


def _is_plain(value: Any) -> bool:
    """Say whether a value may stand in a shape: null, a truth value, a number or text, exactly."""
    if value is not None and type(value) not in (bool, int, float, str):
        return False
    try:
        values.check(value)
    except RecordInvalid:
        return False
    return True


def _input(parameter: inspect.Parameter, name: str) -> dict[str, Any]:
    field = _field(name, parameter.annotation)
    if parameter.default is not parameter.empty:
        field["optional"] = True
        if _is_plain(parameter.default):
            field["shape"] = {**field["shape"], "default": parameter.default}
    return field


def _field(name: str, annotation: Any) -> dict[str, Any]:
    if annotation is inspect.Signature.empty:
        return {"name": name, "shape": {}}
    return {"name": name, "shape": shape_of(annotation), "type": _type_name(annotation)}


def _type_name(annotation: Any) -> str:
    if isinstance(annotation, type) and not typing.get_args(annotation):
        return annotation.__name__
    return str(annotation).replace("typing.", "")


def _recorded_names(
    function: Callable[..., Any], signature: inspect.Signature, rename: dict[str, str]
) -> tuple[dict[str, str], str]:
    name = _name(function)
    names: dict[str, str] = {}
    for parameter in signature.parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise Opaque(
                program=name, field=str(parameter), reason="stands for inputs without a name"
            )
        names[parameter.name] = rename.pop(parameter.name, parameter.name)
    answer = rename.pop(ANSWER, ANSWER)
    if rename:
        raise TypeError(f"rename: {name} has no parameter {next(iter(rename))!r}")
    fields = [*names.values(), answer]
    for field in fields:
        if fields.count(field) > 1:
            raise TypeError(f"{name}: two of its fields would be called {field!r}; use rename")
        if not _is_field_name(field):
            raise TypeError(f"{name}: {field!r} cannot name a field; use rename")
    return names, answer


def _check_names(inputs: list[str], outputs: list[str]) -> None:
    for side, names in (("inputs", inputs), ("outputs", outputs)):
        for name in names:
            if not _is_field_name(name):
                reason = "a field is named by ASCII letters, digits and _, no digit first"
                raise RecordInvalid(path=f"{side}[{ascii(name)[:60]}]", reason=reason)
    both = next((name for name in outputs or [ANSWER] if name in inputs), None)
    if both is not None:
        reason = "an input and an output of one turn have different names"
        raise RecordInvalid(path=f"inputs.{both}", reason=reason)


def _is_field_name(name: str) -> bool:
    return name.isidentifier() and name.isascii()


def _named(function: Any) -> Any:
    return _named(function.func) if isinstance(function, functools.partial) else function


def _name(function: Any) -> str:
    function = _named(function)
    return str(getattr(function, "__name__", None) or type(function).__name__)


def _module(function: Any) -> str:
    function = _named(function)
    return str(getattr(function, "__module__", None) or type(function).__module__)


def _source(function: Any) -> str | None:
    function = _named(function)
    try:
        return inspect.getsource(inspect.unwrap(function))
    except (OSError, TypeError):
        pass
    try:
        return inspect.getsource(type(function))
    except (OSError, TypeError):
        return None


def _evaluates(function: Callable[..., Any]) -> bool:
    """Whether annotations given as text can be evaluated; if not, they say nothing."""
    try:
        inspect.signature(function, eval_str=True)
    except Exception:
        return False
    return True
