"""Messages of a type with every field at its least value."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import inspect

__all__ = ["smallest"]

_LEAST: dict[type, Any] = {
    inspect.IntType: 0,
    inspect.FloatType: 0.0,
    inspect.StrType: "",
    inspect.BytesType: b"",
    inspect.BoolType: False,
    inspect.AnyType: None,
    inspect.NoneType: None,
    inspect.DictType: {},
}


def smallest(kind: type[msgspec.Struct]) -> list[Any]:
    """Messages of type `kind`, one for each kind of record that its fields may hold.

    Numbers are 0, texts and collections empty, and what may be missing is.
    """
    return [msgspec.convert(values, kind) for values in _values(inspect.type_info(kind))]


def _values(info: inspect.Type) -> Iterator[Any]:
    match info:
        case inspect.StructType():
            fields = [field for field in info.fields if field.required]
            for values in itertools.product(*(_values(field.type) for field in fields)):
                yield _record(info, dict(zip([field.encode_name for field in fields], values, strict=True)))
        case inspect.UnionType():
            records = [each for each in info.types if isinstance(each, inspect.StructType)]
            for each in records or info.types[:1]:
                yield from _values(each)
        case inspect.TupleType():
            yield [next(_values(each)) for each in info.item_types]
        case inspect.LiteralType():
            yield info.values[0]
        case inspect.EnumType():
            yield next(iter(info.cls)).value
        case _:
            yield _LEAST.get(type(info), [])


def _record(info: inspect.StructType, fields: dict[str, Any]) -> Any:
    if info.array_like:
        return [*([] if info.tag is None else [info.tag]), *fields.values()]
    return fields | ({} if info.tag_field is None else {info.tag_field: info.tag})
