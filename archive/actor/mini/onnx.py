"""Reads the stored tensors out of an ONNX file with nothing but numpy.

Here: just enough of the protobuf wire format to find a model's initializers. Never here: the graph, running
it, or what a tensor means (that is encoder.py).

Sources: the wire format is protobuf's ("Encoding" in its documentation); the field numbers are those of
onnx.proto3: ModelProto.graph = 7, GraphProto.initializer = 5, TensorProto.dims = 1, data_type = 2, name = 8,
raw_data = 9.
"""

from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

Tensor = npt.NDArray[Any]

GRAPH, INITIALIZER = 7, 5
DIMS, DATA_TYPE, NAME, RAW_DATA = 1, 2, 8, 9

# TensorProto.DataType, as far as a model of this kind stores it.
DTYPES: dict[int, type[np.generic]] = {
    1: np.float32,
    2: np.uint8,
    3: np.int8,
    6: np.int32,
    7: np.int64,
    9: np.bool_,
    10: np.float16,
}


def read_tensors(data: bytes) -> dict[str, Tensor]:
    """The initializers of an ONNX model, by name; read-only views into `data`, nothing is copied.

    Only tensors kept as raw bytes are returned (the exporters write all of them so). Raises ValueError or
    IndexError for bytes that are not such a file; the caller has checked its hash before.
    """
    tensors: dict[str, Tensor] = {}
    for number, span in _fields(data, 0, len(data)):
        if number == GRAPH and isinstance(span, range):
            for inner, tensor_span in _fields(data, span.start, span.stop):
                if inner == INITIALIZER and isinstance(tensor_span, range):
                    name, tensor = _tensor(data, tensor_span)
                    tensors[name] = tensor
    return tensors


def _tensor(data: bytes, span: range) -> tuple[str, Tensor]:
    shape: list[int] = []
    dtype, name, raw = 0, "", range(0)
    for number, value in _fields(data, span.start, span.stop):
        if isinstance(value, range):
            if number == DIMS:  # repeated integers may come packed into one field
                shape += _packed(data, value)
            elif number == NAME:
                name = data[value.start : value.stop].decode()
            elif number == RAW_DATA:
                raw = value
        elif number == DIMS:
            shape.append(value)
        elif number == DATA_TYPE:
            dtype = value
    flat: Tensor = np.frombuffer(data, DTYPES[dtype], prod(shape), raw.start)
    return name, flat.reshape(shape)


def _fields(data: bytes, at: int, end: int) -> Iterator[tuple[int, int | range]]:
    """(field number, value): an integer, or where a length-delimited value lies. Fixed-width ones are passed over."""
    while at < end:
        key, at = _varint(data, at)
        number, wire_type = key >> 3, key & 7
        if wire_type == 0:
            value, at = _varint(data, at)
            yield number, value
        elif wire_type == 2:
            length, at = _varint(data, at)
            yield number, range(at, at + length)
            at += length
        elif wire_type in (1, 5):
            at += 8 if wire_type == 1 else 4
        else:
            raise ValueError(f"not a protobuf message: wire type {wire_type} at byte {at}")


def _packed(data: bytes, span: range) -> list[int]:
    values: list[int] = []
    at = span.start
    while at < span.stop:
        value, at = _varint(data, at)
        values.append(value)
    return values


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at
