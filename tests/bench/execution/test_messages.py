import os

import pytest

from mipl.bench.execution.messages import MessageReader, StrayOutputError, send


@pytest.fixture
def pipe():
    reading, writing = os.pipe()
    yield MessageReader(reading), writing
    os.close(reading)
    os.close(writing)


def test_a_message_arrives_whole_whatever_the_pieces(pipe):
    reader, writing = pipe
    send(writing, {"id": "a", "error": "owl\udcff\n"})
    assert reader.wait(0)
    assert reader.read() == {"id": "a", "error": "owl\udcff\n"}
    os.write(writing, b'{"id": ')
    assert reader.read() is None  # and does not wait for the rest
    assert not reader.is_empty()
    os.write(writing, b'"b"}\n')
    assert reader.read() == {"id": "b"}
    assert reader.is_empty()


@pytest.mark.parametrize(
    "stray",
    [
        b"hello\n",
        b"\xff\xfe\n",
        b"3\n",
        b"[]\n",
        b'stray{"id": "a"}\n',
        b'{"id": "a"}\nmore',
        b"{" * 60_000 + b"\n",
        b"[" * 60_000 + b"\n",
    ],
)
def test_anything_else_is_refused(pipe, stray):
    reader, writing = pipe
    os.write(writing, stray)
    with pytest.raises(StrayOutputError):
        reader.read()


def test_the_end_of_the_pipe_is_no_message():
    reading, writing = os.pipe()
    os.close(writing)
    with pytest.raises(EOFError):
        MessageReader(reading).read()
    os.close(reading)
