"""BibTeX of methods, against the references in their docstrings."""

from __future__ import annotations

import inspect
import re
from importlib import import_module

import pytest

import mipl
from mipl.registry import class_path


def field(entry: str, name: str) -> str:
    return re.sub(r"[{}]", "", re.search(rf"^  {name}\s*= {{(.*)}},$", entry, re.MULTILINE)[1])  # type: ignore[index]


def plain(text: str) -> str:
    return " ".join(text.split()).lower()


@pytest.mark.parametrize("name", [name for name in mipl.methods() if name != "BagGP"])
def test_a_method_is_cited_by_the_reference_of_its_docstring(name: str):
    module, _, attribute = class_path(name).partition(":")
    documented = plain(inspect.getdoc(getattr(import_module(module), attribute)).partition("References\n")[2])
    entry = mipl.cite(name)
    assert plain(field(entry, "title")) in documented
    assert field(entry, "year") in documented
    authors = field(entry, "author").removesuffix(" and others").split(" and ")
    assert len(authors) == len(re.split(r", (?=[a-z])", documented.partition(". " + plain(field(entry, "title")))[0]))
    for author in authors:
        assert author.partition(",")[0].lower().replace('\\"u', "ü") in documented


@pytest.mark.parametrize("name", mipl.methods())
def test_the_braces_of_an_entry_are_balanced_and_its_name_is_found_in_any_case(name: str):
    entry = mipl.cite(name)
    assert entry.startswith("@")
    assert entry.count("{") == entry.count("}")
    assert mipl.cite(name.lower()) == entry


def test_an_estimator_is_cited_as_its_method_is():
    from mipl.pll import SURE

    assert mipl.cite(mipl.make("PL-kNN", embed="maxmin")) == mipl.cite("PL-kNN")
    assert mipl.cite(SURE()) == mipl.cite("SURE")
    assert mipl.cite(mipl.make("MIPLGP-naive")) == mipl.cite("MIPLGP")


def test_the_library_is_cited_with_its_version():
    assert mipl.__version__ in mipl.cite()
    assert mipl.cite("BagGP") == mipl.cite()


def test_an_unknown_method_is_an_error_that_lists_the_known_ones():
    with pytest.raises(mipl.ParameterError, match=r"'oracle'.*PL-kNN"):
        mipl.cite("oracle")
