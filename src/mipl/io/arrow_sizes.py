"""How much memory the record batches of Arrow's format declare, before one of them is expanded.

A compressed buffer begins with its length in full, so a few bytes may declare any size. pyarrow does not tell these
lengths; they are read here from the messages themselves (FlatBuffers: the tables ``Message`` and ``RecordBatch`` of
Arrow's format specification).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pyarrow as pa

__all__ = ["declared_bytes"]

_FILE_START = 8  #: "ARROW1" and two zeros; the stream format follows
_RECORD_BATCH, _DICTIONARY = 3, 2
#: fields of the tables by their number
_MESSAGE_TYPE, _MESSAGE_HEADER = 1, 2
_BATCH_BUFFERS, _BATCH_COMPRESSION = 2, 3
_DICTIONARY_BATCH = 1


def declared_bytes(data: pa.Buffer, is_file: bool) -> Iterator[int]:
    """The bytes of each record batch and dictionary of a file or stream.

    Parameters
    ----------
    data : pyarrow.Buffer
        The whole file.
    is_file : bool
        Whether it is of the file format and not a stream.
    """
    source = pa.BufferReader(data.slice(_FILE_START) if is_file else data)
    reader = pa.ipc.MessageReader.open_stream(source)
    while True:
        try:
            message = reader.read_next_message()
        except StopIteration:
            return
        if message.body is not None and message.type in ("record batch", "dictionary"):
            yield _declared(bytes(message.metadata), message.body)


def _declared(metadata: bytes, body: pa.Buffer) -> int:
    root = struct.unpack_from("<I", metadata)[0]
    batch = _table(metadata, root, _MESSAGE_HEADER)
    kind = metadata[_place(metadata, root, _MESSAGE_TYPE)]
    if kind == _DICTIONARY:
        batch = _table(metadata, batch, _DICTIONARY_BATCH)
    elif kind != _RECORD_BATCH:
        return 0
    if not _field(metadata, batch, _BATCH_COMPRESSION):
        return int(body.size)
    buffers = _table(metadata, batch, _BATCH_BUFFERS)
    count = struct.unpack_from("<I", metadata, buffers)[0]
    content = memoryview(body)
    total = 0
    for offset, length in struct.iter_unpack("<qq", metadata[buffers + 4 : buffers + 4 + 16 * count]):
        if length >= 8:
            full = struct.unpack_from("<q", content, offset)[0]
            total += length - 8 if full == -1 else full  # -1: it is stored as it is
            if full < -1:
                raise ValueError(f"a buffer declares {full} bytes")
    return total


def _field(data: bytes, table: int, number: int) -> int:
    """Where a field of a table lies, counted from the table; 0 where it is absent."""
    vtable = table - struct.unpack_from("<i", data, table)[0]
    entry = 4 + 2 * number
    return (
        int(struct.unpack_from("<H", data, vtable + entry)[0])
        if entry < struct.unpack_from("<H", data, vtable)[0]
        else 0
    )


def _place(data: bytes, table: int, number: int) -> int:
    offset = _field(data, table, number)
    if not offset:
        raise ValueError("a message lacks one of its fields")
    return table + offset


def _table(data: bytes, table: int, number: int) -> int:
    """Where the table or vector that a field refers to begins."""
    place = _place(data, table, number)
    return place + int(struct.unpack_from("<I", data, place)[0])
