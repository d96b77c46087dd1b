import ast
import hashlib
import textwrap

import pytest

from mipl.bench.suite.code_version import canonical, code_version

#: Code with every kind of statement and literal whose tree differs, or is written differently, between Pythons.
SOURCE = '''
"""Docstring."""
from __future__ import annotations
import a.b as c, d
from . import e
from .f import g as h
x: int = 1
y: list[int]
def f(a, /, b=1, *args: int, c, d=2.5, **kwargs) -> None:
    """Docstring."""
    global x
    return a @ b if c else -d
async def g(xs):
    async with xs as x, y:
        yield [i async for i in x if await i]
class C(Base, metaclass=M):
    """Docstring."""
    z = {"a": 1, **kwargs}, {1, 2}, (3,), [4, *rest], b"\\x00\\xff", 1e-300, 1j, ..., True, None, 10**400
    @property
    def p(self): return (yield)
match x:
    case {"k": [1, *_], **rest} | C(z=0) if y: pass
    case None | "s": pass
    case _: raise E from e
try:
    with open(f"{x!r:>{w}} a{{b}} {y=}" "tail" f"{z:%Y-%m}") as file: del file[1:2, ::3]
except* E as err:
    assert (n := 1), f''
else:
    lambda *a, k=0: not k
finally:
    for i, in u: break
    else: x += "\\u00e9\\U0001fae8\\ud800"
while a < b <= c is not d in e: continue
'''


def digest(source):
    return hashlib.sha256(canonical(ast.parse(source)).encode()).hexdigest()


def test_the_digest_is_the_same_under_every_python():
    # Computed once; 3.11, 3.12 and 3.13 give it, and a Python that does not would make all results outdated.
    assert digest(SOURCE) == "cf3cdf3f7aadb5af728ef009375c7c9f26b0d45eed1224858af3dd1f67983a9b"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x = 1  # one", "x = (1)"),
        ("f(a, b)", "f(\n    a,\n    b,\n)"),
        ("x = 'a' \"b\"", "x = 'ab'"),
        ('def f():\n    """Doc."""\n    return 1', "def f(): return 1"),
        ("f'a' 'b' f'{x}'", "f'ab{x}'"),
        ("x = u'a'", "x = 'a'"),
    ],
)
def test_layout_comments_and_docstrings_do_not_count(one, other):
    assert canonical(ast.parse(one)) == canonical(ast.parse(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x = (1,)", "x = (1)"),
        ("x = 1", "x = 1.0"),
        ("x = True", "x = 1"),
        ("x = 'a'", "x = b'a'"),
        ("x = None", "x = 'None'"),
        ("f(a=b)", "f(b=a)"),
        ("f(*a)", "f(**a)"),
        ("def f(a, *, b): pass", "def f(a, b): pass"),
        ("def f(a, /): pass", "def f(a): pass"),
        ("from . import a", "from .. import a"),
        ("if a:\n    b\nc", "if a:\n    b\n    c"),
        ("f'{x}'", "f'{x!r}'"),
        ("f'{x}'", "'{x}'"),
        ("x = {**a}", "x = {None: a}"),
        ("x", "del x"),
        ("async def f(): pass", "def f(): pass"),
        ("x = 0.1", "x = 0.1000000000000001"),
    ],
)
def test_what_changes_the_meaning_changes_the_digest(one, other):
    assert canonical(ast.parse(one)) != canonical(ast.parse(other))


def test_the_code_version_follows_imports_but_not_comments(tmp_path, monkeypatch):
    package = tmp_path / "made_up_package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "unrelated.py").write_text("x = 1\n")
    monkeypatch.syspath_prepend(tmp_path)

    def version(method, helper):
        (package / "method.py").write_text(textwrap.dedent(method))
        (package / "helper.py").write_text(helper)
        for cached in ("code_version", "_digest", "_source_file"):
            getattr(__import__("mipl.bench.suite.code_version", fromlist=[cached]), cached).cache_clear()
        return code_version("made_up_package.method")

    method = "def f():\n    from .helper import g\n    return g\n"
    base = version(method, "def g(): return 1\n")
    assert version(method, '"""Doc."""\n\ndef g():\n    """Doc."""\n    return 1  # one\n') == base
    assert version(method, "def g(): return 2\n") != base
    assert version(method.replace("return g", "return g()"), "def g(): return 1\n") != base
    (package / "unrelated.py").write_text("x = 2\n")
    assert version(method, "def g(): return 1\n") == base
