"""A Python callable as a program: its inputs by name, its interface as data, its version.

A program has no memory. Its parameters are the inputs; what it returns is the output `result`, or,
where it is annotated to return a NamedTuple, an output for each of its fields, the last one being the
answer. Values go by their declared types (`turns.types`). A program with the same fields continues a
conversation in either library.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from inspect import BoundArguments
from typing import Any, NamedTuple, get_type_hints

import msgspec

from ledger.errors import Opaque, RecordInvalid
from ledger.records import canonical, kinds
from ledger.turns.types import Field, is_plain

ANSWER = "result"


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
        fields = _fields(function, self.signature)
        self._names, self._outputs = _recorded_names(
            function, self.signature, list(fields.outputs), dict(rename or {})
        )
        self._fields = fields
        self.description = describe(function, self.signature, fields, self._names, self._outputs)

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
        """Return the bound call, and its inputs as they are recorded, by name, defaults included.

        Raises: TypeError naming the program and the input. record-invalid naming the path.
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
        written = {
            self._names[p]: self._fields.inputs[p].write(value, f"inputs.{self._names[p]}")
            for p, value in bound.arguments.items()
        }
        return bound, written

    def outputs(self, value: Any) -> dict[str, Any]:
        """Return what the function returned as it is recorded, by name.

        Raises: record-invalid naming the path: it is not what the function declares.
        """
        given = value if self._fields.several else (value,)
        names = list(self._fields.outputs)
        if not isinstance(given, tuple) or len(given) != len(names):
            what = ", ".join(names)
            raise RecordInvalid(path="outputs", reason=f"{self.description.name} returns {what}")
        written = {}
        for name, part in zip(names, given, strict=True):
            path = f"outputs.{self._outputs[name]}"
            try:
                written[self._outputs[name]] = self._fields.outputs[name].write(part, path)
            except TypeError as error:
                raise RecordInvalid(path=path, reason=str(error)) from error
        return written

    def answer(self, value: Any) -> Any:
        """Return a recorded answer as the type that the function declares."""
        last = list(self._fields.outputs)[-1]
        return self._fields.outputs[last].read(value)

    def call(self, bound: BoundArguments) -> Any:
        """Run it once with a bound call; what it raises passes through."""
        return self.function(*bound.args, **bound.kwargs)


class Fields(NamedTuple):
    """The declared types of a program, by the names that its source has."""

    inputs: dict[str, Field]
    outputs: dict[str, Field]
    several: bool
    """Whether what it returns is a tuple of its outputs."""


def _fields(function: Callable[..., Any], signature: inspect.Signature) -> Fields:
    name = _name(function)
    inputs = {
        parameter.name: _field(name, parameter.name, parameter.annotation)
        for parameter in signature.parameters.values()
    }
    returned = signature.return_annotation
    if isinstance(returned, type) and issubclass(returned, tuple) and hasattr(returned, "_fields"):
        hints = get_type_hints(returned)
        outputs = {n: _field(name, n, hints.get(n, Any)) for n in returned._fields}
        return Fields(inputs, outputs, several=True)
    return Fields(inputs, {ANSWER: _field(name, ANSWER, returned)}, several=False)


def _field(program: str, name: str, annotation: Any) -> Field:
    try:
        return Field(annotation)
    except ValueError as error:
        raise Opaque(program=program, field=name, reason=str(error)) from None


def describe(
    function: Callable[..., Any],
    signature: inspect.Signature,
    fields: Fields,
    names: Mapping[str, str],
    outputs: Mapping[str, str],
) -> Description:
    """Return what a `program` record says of a callable."""
    interface = {
        "description": inspect.getdoc(function) or "",
        "inputs": [
            _input(parameter, names[name], fields.inputs[name])
            for name, parameter in signature.parameters.items()
        ],
        "outputs": [_output(outputs[name], field) for name, field in fields.outputs.items()],
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


def _input(parameter: inspect.Parameter, name: str, field: Field) -> dict[str, Any]:
    told = _output(name, field)
    if parameter.default is not parameter.empty:
        told["optional"] = True
        if is_plain(parameter.default):
            told["shape"] = {**told["shape"], "default": parameter.default}
    return told


def _output(name: str, field: Field) -> dict[str, Any]:
    told: dict[str, Any] = {"name": name, "shape": dict(field.shape)}
    return told if field.type_name is None else {**told, "type": field.type_name}


def _recorded_names(
    function: Callable[..., Any],
    signature: inspect.Signature,
    returned: list[str],
    rename: dict[str, str],
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the recorded names of the parameters, and those of the outputs."""
    name = _name(function)
    names: dict[str, str] = {}
    for parameter in signature.parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise Opaque(
                program=name, field=str(parameter), reason="stands for inputs without a name"
            )
        names[parameter.name] = rename.pop(parameter.name, parameter.name)
    outputs = {output: rename.pop(output, output) for output in returned}
    if rename:
        raise TypeError(f"rename: {name} has no parameter {next(iter(rename))!r}")
    fields = [*names.values(), *outputs.values()]
    for field in fields:
        if fields.count(field) > 1:
            raise TypeError(f"{name}: two of its fields would be called {field!r}; use rename")
        if not _is_field_name(field):
            raise TypeError(f"{name}: {field!r} cannot name a field; use rename")
    return names, outputs


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
