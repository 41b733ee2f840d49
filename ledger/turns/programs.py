"""A Python callable as a program: its inputs by name, its interface as data, its version.

A program has no memory. Its parameters are the inputs; what it returns is the output `result`, or,
where it is annotated to return a NamedTuple, an output for each of its fields, the last one being the
answer. Values go by their declared types (`turns.types`). A program with the same fields continues a
conversation in either library, and so does one of another kind (`turns.callables`): an answer that is
awaited, or given in pieces of text, is the same output.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache
from inspect import BoundArguments
from typing import Any, NamedTuple

import msgspec

from ledger.errors import Opaque, RecordInvalid
from ledger.records import canonical, kinds, values
from ledger.turns import callables, declaring
from ledger.turns.attachments import Attachment
from ledger.turns.callables import name_of as name_of
from ledger.turns.declaring import Declared as Declared
from ledger.turns.declaring import declared as declared
from ledger.turns.types import Bind, Field, as_it_is, is_plain

ANSWER = callables.RESULT
REQUEST_ID = "request_id"
"""The keyword that every send takes for itself."""


class Description(msgspec.Struct, frozen=True, dict=True):
    """A program as its `program` record describes it."""

    version: str
    """`sha256:` and 64 hex digits."""
    name: str
    module: str
    interface: dict[str, Any]
    fields: list[dict[str, Any]]
    answer: str
    """The output that is the answer."""

    @cached_property
    def interface_hash(self) -> str:
        """What tells its interface from another, as events name it."""
        return canonical.sha256(self.interface)

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

    Args: function: a function, an async function, a generator of text, an async one; an object that
    is called as one; a partial of one. rename: parameter or output -> recorded name; it counts before
    what the function declares (`ledger.program`).
    Raises: TypeError: it cannot be a program, or `rename` or its declaration names nothing of it.
    conversation-opaque: values of a field have no JSON form.
    """

    def __init__(
        self, function: Callable[..., Any], *, rename: Mapping[str, str] | None = None
    ) -> None:
        if not callable(function):
            raise TypeError(f"a program is a callable, not {type(function).__name__}")
        self.function = function
        self.kind: callables.Kind = callables.kind_of(function)
        """What calling it gives: an answer, something to await, pieces, pieces to await."""
        self.signature = callables.signature_of(function)
        answer = callables.answer_of(function, self.signature.return_annotation)
        self._joined = answer.joined
        self._fields = fields = _fields(function, self.signature, answer.annotation)
        said = declared(function)
        declaring.check(function, said, fields.outputs)
        own = {*self.signature.parameters, *fields.outputs}
        renamed = {name: to for name, to in said.rename.items() if name in own}
        self._names, self._outputs = _recorded_names(
            function, self.signature, list(fields.outputs), {**renamed, **(rename or {})}
        )
        recorded = {**self._names, **self._outputs}
        self.settings: tuple[str, ...] = said.settings
        """The names of the settings that are recorded where they are given, beside `lm`."""
        self.keep = {recorded[name]: kept for name, kept in said.keep.items() if name in own}
        """What it declares of its fields, by recorded name: whether a store may keep them."""
        self.description = describe(function, self.signature, fields, self._names, self._outputs)

    @property
    def inputs(self) -> list[str]:
        """The recorded names of its inputs, in order."""
        return list(self._names.values())

    def parameter(self, name: str) -> bool:
        """Say whether a keyword names one of its parameters."""
        return name in self.signature.parameters

    def check_sendable(self) -> None:
        """Refuse a program whose inputs a send cannot give: it takes a keyword of that name itself.

        A helper may have any. `settings` is taken by `tries` alone, which can give it by its place.
        Raises: TypeError.
        """
        parameter = self.signature.parameters.get(REQUEST_ID)
        if parameter is not None and parameter.kind is not parameter.POSITIONAL_ONLY:
            raise TypeError(
                f"{self.description.name} has a parameter {REQUEST_ID!r}, which sends take themselves: "
                "it would never be given; call it otherwise, or make it positional-only"
            )

    def bind(
        self,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        given: list[Attachment] | None = None,
    ) -> tuple[BoundArguments, dict[str, Any]]:
        """Return the bound call, and its inputs as they are recorded, by name, defaults included.

        Args: given: takes the attachments in them, to be kept before they are recorded; None: there
        may be none.
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
            self._names[p]: self._fields.inputs[p].write(value, f"inputs.{self._names[p]}", given)
            for p, value in bound.arguments.items()
        }
        return bound, written

    def write_input(self, parameter: str, value: Any) -> Any:
        """Return a value of an input as it would be recorded. Raises: record-invalid naming the path."""
        return self._fields.inputs[parameter].write(value, f"inputs.{self._names[parameter]}", [])

    def read_inputs(self, inputs: Mapping[str, Any], attached: Bind = as_it_is) -> dict[str, Any]:
        """Return those of recorded inputs that it takes, by parameter. Args: attached: as for `rebind`."""
        return {
            parameter: self._fields.inputs[parameter].read(inputs[name], attached)
            for parameter, name in self._names.items()
            if name in inputs
        }

    def recorded_as(self, parameter: str) -> str:
        """Return the name that a parameter is recorded under."""
        return self._names[parameter]

    def positional(self, args: tuple[Any, ...]) -> dict[str, Any]:
        """Return what is given by its place, by parameter. Raises: TypeError: there are too many."""
        try:
            return dict(self.signature.bind_partial(*args).arguments)
        except TypeError as error:
            raise TypeError(f"{self.description.name}: {error}") from None

    def spread(self, given: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return what is given by name as a call takes it: by its place what no keyword can name."""
        named = dict(given)
        placed = []
        for name, parameter in self.signature.parameters.items():
            if parameter.kind is not parameter.POSITIONAL_ONLY:
                break
            if name not in named and parameter.default is parameter.empty:
                break  # Whoever binds them says what is missing.
            placed.append(named.pop(name, parameter.default))
        return tuple(placed), named

    def rebind(self, inputs: Mapping[str, Any], attached: Bind = as_it_is) -> BoundArguments:
        """Return the bound call of recorded inputs, as the types that are declared; defaults for those that lack.

        Args: attached: gives a recorded value with its attachments.
        Raises: TypeError: an input without a default is not recorded.
        """
        given = self.read_inputs(inputs, attached)
        empty = self.signature.bind_partial()
        for name, parameter in self.signature.parameters.items():
            if name in given:
                empty.arguments[name] = given[name]
            elif parameter.default is parameter.empty:
                raise TypeError(f"{self.description.name}: input {name!r} is not recorded")
        empty.apply_defaults()
        return empty

    def outputs(self, value: Any, given: list[Attachment] | None = None) -> dict[str, Any]:
        """Return what the function returned as it is recorded, by name.

        Args: given: as for `bind`.
        Raises: record-invalid naming the path: it is not what the function declares.
        """
        names, whole = list(self._fields.outputs), self._fields.whole
        parts = value if whole is not None else (value,)
        if not isinstance(parts, tuple) or len(parts) != len(names):
            what = f"{callables.spelled(whole)}({', '.join(names)}), or a tuple of these"
            found = callables.spelled(type(parts))
            reason = f"an answer of {self.description.name} is {what}, not {found}"
            raise RecordInvalid(path="outputs", reason=reason)
        written = {}
        for name, part in zip(names, parts, strict=True):
            path = f"outputs.{self._outputs[name]}"
            try:
                written[self._outputs[name]] = self._fields.outputs[name].write(part, path, given)
            except TypeError as error:
                reason = str(error).removeprefix(f"{path} ")
                raise RecordInvalid(path=path, reason=reason) from error
        return written

    def answer(self, value: Any, attached: Bind = as_it_is) -> Any:
        """Return a recorded answer as the type that the function declares. Args: attached: as for `rebind`."""
        last = list(self._fields.outputs)[-1]
        return self._fields.outputs[last].read(value, attached)

    def returned(self, answer: Any, outputs: Mapping[str, Any], attached: Bind = as_it_is) -> Any:
        """Return a recorded answer and outputs as what the function returned: one value, or its NamedTuple."""
        whole = self._fields.whole
        if whole is None:
            return self.answer(answer, attached)
        read = {
            name: field.read(outputs.get(self._outputs[name]), attached)
            for name, field in self._fields.outputs.items()
        }
        return whole(**read)

    def call(self, bound: BoundArguments) -> Any:
        """Call it once with a bound call; what it raises passes through.

        Returns: by its kind, what it returned, a coroutine, a generator or an async generator.
        """
        return self.function(*bound.args, **bound.kwargs)

    def streamed(self, text: str, returned: Any = None) -> Any:
        """Return what a generator answered: what it returned, or its joined pieces where it returned
        nothing and does not declare to.

        Args: text: its pieces, joined. returned: what it returned; None for an async generator.
        """
        return text if returned is None and self._joined else returned

    def settings_to_record(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Return those of a turn's settings that are recorded: `lm` that is text, and the declared.

        Raises: record-invalid naming `settings.<name>`: it cannot be kept exactly.
        """
        kept = {name: settings[name] for name in self.settings if name in settings}
        kept.pop("lm", None)  # Every reader takes it for text: anything else is no model's name.
        if isinstance(settings.get("lm"), str):
            kept["lm"] = settings["lm"]
        for name, value in kept.items():
            values.check(value, f"settings.{name}", references=False)
        return kept


class Fields(NamedTuple):
    """The declared types of a program, by the names that its source has."""

    inputs: dict[str, Field]
    outputs: dict[str, Field]
    whole: Any
    """The NamedTuple of its outputs that it returns; None: it returns its one output."""


def _fields(function: Callable[..., Any], signature: inspect.Signature, returned: Any) -> Fields:
    name = name_of(function)
    inputs = {
        parameter.name: _field(name, parameter.name, parameter.annotation)
        for parameter in signature.parameters.values()
    }
    several = callables.outputs_of(returned)
    outputs = {n: _field(name, n, a) for n, a in (several or {ANSWER: returned}).items()}
    return Fields(inputs, outputs, whole=returned if several is not None else None)


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
    return description(
        name_of(function), callables.module_of(function), interface, callables.source_of(function)
    )


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
    return _recorded(tuple(inputs), tuple(outputs), text)


@lru_cache(maxsize=256)
def _recorded(inputs: tuple[str, ...], outputs: tuple[str, ...], text: bool) -> Description:
    shape: dict[str, Any] = {"type": "string"} if text else {}
    interface = {
        "description": "",
        "inputs": [{"name": name, "shape": dict(shape)} for name in inputs],
        "outputs": [{"name": name, "shape": dict(shape)} for name in outputs or (ANSWER,)],
    }
    return description("recorded", "ledger", interface, None)


def check_returns(function: Callable[..., Any]) -> None:
    """Refuse a merging program that says its answer in pieces. Raises: TypeError."""
    if not callable(function):
        raise TypeError(f"a program is a callable, not {type(function).__name__}")
    what = _OTHER_KINDS.get(callables.kind_of(function))
    if what is not None:
        raise TypeError(
            f"{name_of(function)} is {what}; a merging program returns its answer (it may be async)"
        )


_OTHER_KINDS: dict[str, str] = {
    "generator": "a generator",
    "async-generator": "an async generator",
}


def of_record(record: kinds.Program) -> Description:
    """Return the description that a log holds of a program."""
    return Description(
        version=record.version,
        name=record.name,
        module=record.module or "",
        interface=kinds.mapping(record.interface, record.seq),
        fields=kinds.mappings(record.fields, record.seq),
        answer=record.answer,
    )


def version_of(function: Callable[..., Any]) -> str:
    """Return the version of a merging program: the hash of its name and source."""
    return canonical.sha256([name_of(function), callables.source_of(function)])


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
    name = name_of(function)
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
