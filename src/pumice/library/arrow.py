"""Columns as Arrow memory, over nanoarrow: one batch, whose buffers are those of NumPy arrays.

Source: the Arrow columnar format, version 1.4: validity bitmaps are least significant bit first, texts are offsets
into one buffer of UTF-8.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import nanoarrow as na
import numpy as np
import numpy.typing as npt
from nanoarrow.c_array_stream import CArrayStream

from pumice.library.column import Column, Kind

if TYPE_CHECKING:
    from nanoarrow.c_array import CArray
    from nanoarrow.c_schema import CSchema

_FORMATS = {Kind.TEXT: "u", Kind.COUNT: "l", Kind.NUMBER: "g", Kind.FLAG: "b"}
_INT32_MAX = 2**31 - 1
Mask = npt.NDArray[np.bool_]


def schema_of(columns: Sequence[Column]) -> CSchema:
    """Return the schema of a table. The metadata of a field has its ``unit`` and its ``description``."""
    struct = na.c_schema(na.struct({column.name: na.string() for column in columns}))
    return struct.modify(children=[_field(column) for column in columns])


def _field(column: Column) -> CSchema:
    return na.c_schema(na.string()).modify(
        name=column.name,
        format=_FORMATS[column.kind],
        nullable=True,
        metadata={"unit": column.unit, "description": column.about},
    )


def stream_of(columns: Sequence[Column], values: Mapping[str, Sequence[object]], length: int) -> CArrayStream:
    """Return a stream of one batch. Shape of each column: (length,)."""
    schema = schema_of(columns)
    children = [_array(column, values[column.name]) for column in columns]
    batch = na.c_array_from_buffers(schema, length, [None], null_count=0, children=children)
    return CArrayStream.from_c_arrays([batch], schema, validate=False)


def _array(column: Column, values: Sequence[object]) -> CArray:
    buffers: Sequence[npt.NDArray[np.generic] | bytes]
    if column.kind is Kind.TEXT:
        buffers, missing = _text_buffers(values)
    elif column.kind is Kind.FLAG:
        missing = np.zeros(len(values), dtype=np.bool_)  # no flag of ours is ever missing
        buffers = [_bits(np.array(values, dtype=np.bool_))]
    else:
        buffers, missing = _number_buffers(column.kind, values)
    null_count = int(missing.sum())
    validity = _bits(~missing) if null_count else None
    return na.c_array_from_buffers(_field(column), len(values), [validity, *buffers], null_count=null_count)


def _bits(mask: Mask) -> npt.NDArray[np.uint8]:
    return np.packbits(mask, bitorder="little")


def _number_buffers(
    kind: Kind, values: Sequence[object]
) -> tuple[list[npt.NDArray[np.generic]], npt.NDArray[np.bool_]]:
    if kind is Kind.COUNT and None not in values:
        return [np.array(values, dtype=np.int64)], np.zeros(len(values), dtype=np.bool_)
    numbers = np.array(values, dtype=np.float64)  # NumPy reads None as NaN, and no figure of ours is NaN
    missing = np.isnan(numbers)
    if kind is Kind.COUNT:
        return [np.where(missing, 0.0, numbers).astype(np.int64)], missing
    return [numbers], missing


def _text_buffers(values: Sequence[object]) -> tuple[list[npt.NDArray[np.generic] | bytes], Mask]:
    missing = np.fromiter((value is None for value in values), dtype=np.bool_, count=len(values))
    texts = ["" if value is None else str(value) for value in values]
    data = "".join(texts).encode()
    lengths = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
    if lengths.sum() != len(data):  # not all ASCII: characters are no bytes
        lengths = np.fromiter((len(each.encode()) for each in texts), dtype=np.int64, count=len(texts))
    offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])
    if offsets[-1] > _INT32_MAX:
        raise ValueError(f"found {offsets[-1]:,} bytes of text in one column, wanted at most {_INT32_MAX:,}")
    return [offsets.astype(np.int32), data], missing
