"""What a program's annotations say: a value's JSON form, its shape, and the way back.

A typed value is written by its declared type and read back to it, or it is refused before anything is
stored: what `write` returns reads back equal. msgspec does both directions; pydantic models, where
pydantic is installed, do them themselves. An annotation that says nothing (none, Any, object, text
that names nothing) takes every JSON value as it is. One that has no JSON form (bytes, a class of
somebody's own) makes the field opaque, and a conversation refuses it. msgspec knows no attachments: what
holds some is read here (`typed`), by its parts.

Shapes are JSON Schema as functai writes them, since a shape decides whether a program may continue.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import operator
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from ledger.errors import RecordInvalid
from ledger.records import values
from ledger.records.values import REFERENCE
from ledger.turns import callables
from ledger.turns.attachments import Attachment, lowered

_PLAIN: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    list: {"type": "array"},
    dict: {"type": "object"},
    types.NoneType: {"type": "null"},
}
_SILENT = callables.SAYS_NOTHING
_ATTACHMENT = {"type": "object", "required": [REFERENCE]}
Bind = Callable[[Any], Any]
"""Gives a recorded value with an `Attachment` for each reference in it."""


def as_it_is(value: Any) -> Any:
    """Return a recorded value with its references."""
    return value


class Field:
    """One input or output: its declared type, and how its values are written and read.

    Raises: Opaque-worthy ValueError with the reason when its values have no JSON form.
    """

    def __init__(self, annotation: Any) -> None:
        silent = annotation in _SILENT or isinstance(annotation, str)
        self.annotation = None if silent else annotation
        """None: any JSON value."""
        self.shape: dict[str, Any] = {} if silent else shape_of(annotation)
        if not silent and (reason := opaque(annotation)) is not None:
            raise ValueError(reason)
        self._typed = typed if not silent and holds(annotation) else _converted

    @property
    def type_name(self) -> str | None:
        """How the annotation is spelled, for people; None when it says nothing."""
        if self.annotation is None:
            return None
        return callables.spelled(self.annotation)

    def write(self, value: Any, path: str, given: list[Attachment] | None = None) -> Any:
        """Return a value's JSON form, which reads back equal.

        Args: given: takes the attachments in it, as `attachments.lowered`; None: none may stand in it.
        Raises: TypeError: it is not of the declared type. record-invalid: it would not come back.
        """
        if self.annotation is None:
            return lowered(value, path, given)
        found: dict[str, Attachment] = {}
        try:
            plain = _lists(_to_builtins(value, found))
            back = self._typed(plain, self.annotation, lambda inner: _restored(inner, found))
            again = _lists(_to_builtins(back, found))
            changed = back != value or again != plain
        except RecursionError:
            raise RecordInvalid(path=path, reason=values.TOO_DEEP) from None
        except (msgspec.ValidationError, TypeError, ValueError) as error:
            raise TypeError(
                f"{path} is not {self.type_name}: {_told(error, value, found)}"
            ) from None
        written = lowered(_restored(again, found), path, given)
        # A part of another type reads back equal, and is written otherwise: 2.5 for Decimal("2.5").
        if changed:
            raise RecordInvalid(path=path, reason=f"as {self.type_name} it would come back changed")
        return written

    def read(self, value: Any, bind: Bind = as_it_is) -> Any:
        """Return the typed value of a JSON form; as it is where it no longer fits the type."""
        if self.annotation is None:
            return bind(value)
        try:
            return self._typed(value, self.annotation, bind)
        except (msgspec.ValidationError, TypeError, ValueError):
            return bind(value)


def _told(error: Exception, value: Any, found: Mapping[str, Attachment]) -> str:
    """Return what is wrong with a value, for a person. Args: found: its attachments, which an error calls objects."""
    if isinstance(value, Attachment):
        return "it is an Attachment, which is taken where `ledger.Attachment` is declared"
    return f"{error}; an Attachment stands in it" if found else str(error)


def opaque(annotation: Any) -> str | None:
    """Say why values of an annotation have no JSON form; None: they have one."""
    seen: set[int] = set()
    todo = [annotation]
    reason = None
    while todo:
        found = todo.pop()
        if id(found) in seen:
            continue
        seen.add(id(found))
        if found in (bytes, bytearray, memoryview):
            return f"is {found.__name__}, which belongs in an attachment"
        if found in _SILENT or found in _PLAIN or found is Attachment or _is_model(found):
            continue
        todo += [inner for inner in _inside(found) if not isinstance(inner, str)]
        if not _known(found):
            reason = _why(found)  # A part that is not known either says better what it is.
    return reason


def _why(annotation: Any) -> str:
    name = getattr(annotation, "__name__", annotation)
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return f"is {name}, an enum whose values are neither all text nor all whole numbers"
    return f"is {name}, which has no JSON form"


def _known(annotation: Any) -> bool:
    """Say whether an annotation can be written and read, its parts aside: by msgspec, or by `typed`."""
    if holds(annotation):
        return _parted(annotation)
    if typing.get_origin(annotation) is typing.Literal:
        return all(map(is_plain, typing.get_args(annotation)))
    try:
        found = msgspec.inspect.type_info(annotation)
    except (TypeError, NameError, RecursionError):
        return False
    return not isinstance(found, msgspec.inspect.CustomType | msgspec.inspect.ExtType)


def _inside(annotation: Any) -> list[Any]:
    """Return the annotations inside one: arguments, and the fields of a class."""
    if typing.get_origin(annotation) is typing.Literal:
        return []
    inner = [a for a in typing.get_args(annotation) if a is not ...]
    return inner + [a for _, a in _members(annotation)]


def _members(annotation: Any) -> list[tuple[str, Any]]:
    """Return the named fields of a dataclass, Struct or TypedDict, with their annotations."""
    if not isinstance(annotation, type):
        return []
    is_struct = issubclass(annotation, msgspec.Struct)
    if not (is_struct or dataclasses.is_dataclass(annotation) or typing.is_typeddict(annotation)):
        return []
    try:
        hints = typing.get_type_hints(annotation)
    except (NameError, TypeError):
        hints = dict(annotation.__annotations__)
    return list(hints.items())


def shape_of(annotation: Any) -> dict[str, Any]:
    """Return the JSON Schema of an annotation; `{}` (any value) where it says nothing known here."""
    return _shape(annotation, ())


def _shape(annotation: Any, above: tuple[Any, ...]) -> dict[str, Any]:
    if annotation is None:
        return {"type": "null"}
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    inside = (*above, annotation)
    if isinstance(annotation, type) and not args:
        return _class_shape(annotation, above)
    if origin in (typing.Union, types.UnionType):
        return {"anyOf": [_shape(a, inside) for a in args]}
    if origin is typing.Literal:
        return _enum(list(args)) if all(map(is_plain, args)) else {}
    if origin is tuple and args and args[-1] is not ...:
        shapes = [_shape(a, inside) for a in args]
        count = len(shapes)
        return {"type": "array", "prefixItems": shapes, "minItems": count, "maxItems": count}
    if origin in (list, tuple) and args:
        return _with({"type": "array"}, "items", _shape(args[0], inside))
    if origin in (set, frozenset) and args:
        return {**_with({"type": "array"}, "items", _shape(args[0], inside)), "uniqueItems": True}
    if origin in (dict, Mapping) and len(args) == 2:
        return _with({"type": "object"}, "additionalProperties", _shape(args[1], inside))
    return {}


def _class_shape(annotation: type, above: tuple[Any, ...]) -> dict[str, Any]:
    if annotation in _PLAIN:
        return dict(_PLAIN[annotation])
    if annotation is Attachment:
        return dict(_ATTACHMENT)
    if issubclass(annotation, enum.Enum):
        members = [member.value for member in annotation]
        return _enum(members) if all(map(is_plain, members)) else {}
    members = _members(annotation)
    if not members or annotation in above:
        return {}
    inside = (*above, annotation)
    properties = {name: _shape(a, inside) for name, a in members}
    return {"type": "object", "properties": properties, "required": list(properties)}


def _enum(members: list[Any]) -> dict[str, Any]:
    found = {type(member) for member in members}
    only = found.pop() if len(found) == 1 else None
    return {"enum": members, **_PLAIN.get(only, {})}


def _with(shape: dict[str, Any], key: str, inner: dict[str, Any]) -> dict[str, Any]:
    return {**shape, key: inner} if inner else shape


def is_plain(value: Any) -> bool:
    """Say whether a value may stand in a shape: null, a truth value, a number or text, exactly."""
    if value is not None and type(value) not in (bool, int, float, str):
        return False
    try:
        values.check(value)
    except RecordInvalid:
        return False
    return True


# -- both directions -------------------------------------------------------------------------------


def _is_model(annotation: Any) -> bool:
    """Say whether an annotation is a pydantic model, without importing pydantic."""
    return isinstance(annotation, type) and hasattr(annotation, "__pydantic_validator__")


def _to_builtins(value: Any, found: dict[str, Attachment]) -> Any:
    """Return a value as JSON has it. Args: found: takes its attachments, by what stands for each."""

    def out(inner: Any) -> Any:
        if isinstance(inner, Attachment):
            found[inner.token] = inner
            return {REFERENCE: inner.token}
        if _is_model(type(inner)):
            return inner.model_dump(mode="json")
        raise TypeError(values.why_not(inner))

    return msgspec.to_builtins(value, str_keys=True, enc_hook=out)


def _restored(value: Any, found: Mapping[str, Attachment]) -> Any:
    """Return JSON with the attachments that stood in it. A token is random: no other dict has it."""
    if not found:
        return value
    if type(value) is dict:
        token = value.get(REFERENCE)
        if isinstance(token, str) and token in found:
            return found[token]
        return {key: _restored(inner, found) for key, inner in value.items()}
    return [_restored(inner, found) for inner in value] if type(value) is list else value


def _convert(value: Any, annotation: Any) -> Any:
    return msgspec.convert(value, annotation, str_keys=True, dec_hook=_model_in)


def _model_in(annotation: type, value: Any) -> Any:
    if _is_model(annotation):
        return annotation.model_validate(value)  # type: ignore[attr-defined]
    if annotation is object:
        return value
    raise TypeError(f"{annotation.__name__} has no JSON form")


def _lists(value: Any) -> Any:
    """Return plain data with its tuples as lists, as JSON has them."""
    if isinstance(value, dict):
        return {key: _lists(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_lists(inner) for inner in value]
    return value


# -- what holds attachments ------------------------------------------------------------------------


def holds(annotation: Any) -> bool:
    """Say whether attachments may stand in values of an annotation, as it says itself."""
    return _holds(annotation, ())


def _holds(annotation: Any, above: tuple[Any, ...]) -> bool:
    if annotation is Attachment:
        return True
    if any(annotation is outer for outer in above):
        return False
    return any(_holds(inner, (*above, annotation)) for inner in _inside(annotation))


def _parted(annotation: Any) -> bool:
    """Say whether `typed` can read what holds attachments: a union, list, tuple, dict, or class of fields."""
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (dict, Mapping):
        return len(args) == 2 and args[0] is str
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        return not annotation.__struct_config__.array_like
    return origin in (typing.Union, types.UnionType, list, tuple) or bool(_members(annotation))


def typed(value: Any, annotation: Any, bind: Bind) -> Any:
    """Return a JSON form as an annotation's type. Raises: ValidationError, TypeError, ValueError."""
    if not holds(annotation):
        return _converted(value, annotation, bind)
    if annotation is Attachment:
        return _attachment(bind(value))
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        return _of_union(value, args, bind)
    if origin in (dict, Mapping):
        return {key: typed(inner, args[1], bind) for key, inner in _a(dict, value).items()}
    if origin is list:
        return [typed(inner, args[0], bind) for inner in _a(list, value)]
    if origin is tuple and args[-1] is ...:
        return tuple(typed(inner, args[0], bind) for inner in _a(list, value))
    if origin is tuple:
        return tuple(typed(v, a, bind) for v, a in zip(_a(list, value), args, strict=True))
    return _of_class(_a(dict, value), annotation, bind)


def _of_union(value: Any, arms: tuple[Any, ...], bind: Bind) -> Any:
    plain = [arm for arm in arms if not holds(arm)]
    if not isinstance(bind(value), Attachment) and plain:
        try:
            return typed(value, functools.reduce(operator.or_, plain), bind)
        except (msgspec.ValidationError, TypeError, ValueError):
            pass
    for arm in arms:
        try:
            if holds(arm):
                return typed(value, arm, bind)
        except (msgspec.ValidationError, TypeError, ValueError):
            continue
    raise ValueError("it is none of its types")


def _of_class(value: dict[str, Any], cls: Any, bind: Bind) -> Any:
    names = {name: name for name, _ in _members(cls)}
    if issubclass(cls, msgspec.Struct):
        names = {field.name: field.encode_name for field in msgspec.structs.fields(cls)}
    given = {
        name: typed(value[names[name]], annotation, bind)
        for name, annotation in _members(cls)
        if names.get(name) in value
    }
    required: frozenset[str] = getattr(cls, "__required_keys__", frozenset())
    if lacking := required - given.keys():
        raise ValueError(f"it lacks {', '.join(sorted(lacking))}")
    return cls(**given)


def _attachment(value: Any) -> Attachment:
    if not isinstance(value, Attachment):
        raise ValueError(f"an attachment is a ledger.Attachment, not {type(value).__name__}")
    return value


def _a(kind: type, value: Any) -> Any:
    if not isinstance(value, kind):
        raise ValueError(f"expected {kind.__name__}, got {type(value).__name__}")
    return value


def _converted(value: Any, annotation: Any, bind: Bind) -> Any:
    """Return a JSON form as a type that says nothing of attachments; they may stand in plain lists and dicts."""
    found = _convert(value, annotation)
    return bind(found) if type(found) in (dict, list) else found
