"""Nothing rots: links, names, warnings and figures of the documentation, against the files and the code.

That every Python block runs is checked in test_markdown.py; that the site builds without a warning by ``make docs``.
"""

from __future__ import annotations

import ast
import csv
import re
from collections import defaultdict
from importlib import import_module
from pathlib import Path

import pytest

import mipl

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
BUILT = ("_build", "generated", "auto_examples")
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *(p for p in sorted(DOCS.rglob("*.md")) if p.relative_to(DOCS).parts[0] not in BUILT),
]


def without_code(text: str) -> str:
    return re.sub(r"^```.*?^```[ ]*$|`[^`\n]*`", "", text, flags=re.DOTALL | re.MULTILINE)


def anchors(text: str) -> set[str]:
    """The anchors that headings get, on a forge and by MyST."""
    heads = re.findall(r"^#+ (.*)$", without_code(text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}


def broken_links(page: Path) -> list[str]:
    found = []
    for target in re.findall(r"\]\(([^)\s]+)\)", without_code(page.read_text(encoding="utf-8"))):
        name, _, anchor = target.partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        file = page if not name else page.parent / name
        if name.startswith("auto_examples/plot_"):  # a page of the gallery, made from a script
            file = DOCS / "examples" / f"{Path(name).name}.py"
        if not file.exists() or (anchor and anchor not in anchors(file.read_text(encoding="utf-8"))):
            found.append(target)
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_within_the_project_leads_somewhere(page: Path):
    assert broken_links(page) == []


def test_broken_links_are_found(tmp_path: Path):
    page = tmp_path / "a.md"
    page.write_text("# A b\n[x](#a-b) [y](#c) [z](b.md) `[code](c.md)` [w](https://example.org/)\n[v](a.md#a-b)")
    assert broken_links(page) == ["#c", "b.md"]


def test_links_of_examples_and_of_the_list_for_machines_lead_to_pages():
    pages = {p.relative_to(DOCS).with_suffix("").as_posix() for p in [*DOCS.rglob("*.md"), *DOCS.glob("*.rst")]}
    for script in DOCS.glob("examples/plot_*.py"):
        for name in re.findall(r":doc:`/([\w-]+)`", script.read_text(encoding="utf-8")):
            assert name in pages, f"{script.name}: {name}"
    for name in re.findall(r"\]\(([\w/-]+)\.html\)", (DOCS / "llms.txt").read_text(encoding="utf-8")):
        assert name in pages or name == "auto_examples/index", name


COMMAND = re.compile(
    r"python (-m pytest|benchmarks/|docs/)|mipl (bench|data)|\btests/[\w/]+\.py|results/[\w-]+\.csv|same command"
)


def tables_without_command(text: str) -> list[str]:
    """Headings of sections with a table of decimals where neither they nor a section around them has a command."""
    found, around = [], {}
    for part in re.split(
        r"^(?=#+ )", re.sub(r"^```python.*?^```[ ]*$", "", text, flags=re.DOTALL | re.MULTILINE), flags=re.MULTILINE
    ):
        head, level = part.partition("\n")[0], len(part) - len(part.lstrip("#"))
        around = {above: known for above, known in around.items() if above < level}
        around[level] = bool(COMMAND.search(part))
        if re.search(r"^\|.*(?<![\w.`=])\d*\.\d", part, re.MULTILINE) and not any(around.values()):
            found.append(head)
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_table_of_measured_numbers_has_its_command(page: Path):
    assert tables_without_command(page.read_text(encoding="utf-8")) == []


def test_a_table_without_its_command_is_found():
    table = "| a | 0.5 |\n"
    assert tables_without_command(f"# A\n## B\n{table}## C\n`python benchmarks/x.py`\n### D\n{table}") == ["## B"]
    assert tables_without_command("# A\n| `rank` | 12 |\n```python\n# | 0.5\n```\n") == []


def test_the_reference_has_every_public_name():
    listed = set(re.findall(r"^   (mipl\.[\w.]+)$", (DOCS / "api.rst").read_text(encoding="utf-8"), re.MULTILINE))
    public = {f"mipl.{name}" for name in mipl.__all__ if not name.startswith("__")}
    for module in ("bench", "checks", "datasets", "deep", "features", "io", "mil", "pll", "report", "scoring"):
        names = import_module(f"mipl.{module}").__all__
        public |= {f"mipl.{module}.{name}" for name in names if name != "SUFFIXES"}
    public.discard("mipl.scoring.label_free_score")  # listed as mipl.label_free_score
    assert public - listed == set()
    for name in listed:
        parent, _, attribute = name.rpartition(".")
        try:
            import_module(name)
        except ModuleNotFoundError:
            assert hasattr(import_module(parent), attribute), name


def test_the_reference_has_every_name_that_pages_and_examples_import():
    listed = set(re.findall(r"^   (mipl\.[\w.]+)$", (DOCS / "api.rst").read_text(encoding="utf-8"), re.MULTILINE))
    texts = [path.read_text(encoding="utf-8") for path in [*PAGES, *DOCS.glob("examples/*.py")]]
    imports = [
        found for text in texts for found in re.findall(r"^from (mipl[\w.]*) import ([\w, ]+)$", text, re.MULTILINE)
    ]
    names = {f"{module}.{name.strip()}" for module, several in imports for name in several.split(",")}
    assert len(names) > 10
    assert names - listed == set()


def calls(function: str) -> list[ast.Call]:
    found = []
    for file in sorted((ROOT / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == function:
                found.append(node)
    return found


def fixed_parts(node: ast.expr) -> list[str]:
    return [n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)]


def test_every_warning_has_its_cure():
    page = (DOCS / "troubleshooting.md").read_text(encoding="utf-8")
    quoted = re.findall(r"^\| `([^`]+)`", page, re.MULTILINE)
    warned = calls("warnings.warn")
    assert warned
    for call in warned:
        text = "".join(fixed_parts(call.args[0]))
        assert any(words in text for words in quoted), f"docs/troubleshooting.md does not explain: {text}"


def messages() -> list[str]:
    """The texts of the source, each with dots in place of what is put in."""
    found = []
    for file in sorted((ROOT / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                parts = [part.value if isinstance(part, ast.Constant) else "..." for part in node.values]
                found.append("".join(map(str, parts)))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node.value)
    return found


def test_every_error_that_is_explained_exists():
    page = (DOCS / "troubleshooting.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`.*?) \|", page.partition("## Common errors")[2], re.MULTILINE)
    quoted = [words for row in rows for words in re.findall(r"`([^`]+)`", row) if words != "NotFittedError"]
    assert len(quoted) > 40
    known = messages()
    parts = {words: [re.escape(part.strip(" ;")) for part in words.split("...")] for words in quoted}
    patterns = {words: re.compile(".*".join(filter(None, part)), re.DOTALL) for words, part in parts.items()}
    assert [words for words, pattern in patterns.items() if not any(map(pattern.search, known))] == []


def test_everything_that_check_says_has_its_cure():
    page = (DOCS / "troubleshooting.md").read_text(encoding="utf-8")
    kinds = {c.args[0].value for c in calls("Problem") if isinstance(c.args[0], ast.Constant)}
    assert len(kinds) > 10
    assert [kind for kind in sorted(kinds) if f"`{kind}`" not in page] == []


def test_the_accuracies_in_the_readme_are_those_of_the_stored_results():
    stored: dict[tuple[str, str, int], list[float]] = defaultdict(list)
    with (ROOT / "results" / "results.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["method"] == "BagGP" and "seed" in row["options"] and "groups" not in row["options"]:
                stored[row["dataset"], row["train_size"], int(row["r"])].append(float(row["accuracy"]))
    published: dict[tuple[str, str, int], dict[str, float]] = defaultdict(dict)
    with (ROOT / "src/mipl/bench/analysis/published.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            method = f"{row['method']} {row['group']}"
            published[row["dataset"], row["train_size"], int(row["r"])][method.strip()] = float(row["mean"])

    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("| | r | MNIST"))
    datasets = [name.strip().lower() for name in lines[start].strip("|").split("|")[2:]]
    name = ""
    for line in lines[start + 2 : start + 11]:
        first, r, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        name = first or name
        for dataset, cell in zip(datasets, cells, strict=True):
            key = (dataset, "0.5" if dataset == "newsgroups" else "0.7", int(r))
            if name == "BagGP":
                assert len(stored[key]) == 5
                expected = sum(stored[key]) / 5
            elif name.startswith("FastMIPL"):
                expected = published[key].get("FastMIPL", float("nan"))
            else:
                expected = max(mean for method, mean in published[key].items() if method != "FastMIPL")
            assert cell.rstrip("†") == (f"{expected:.3f}" if expected == expected else ""), (name, key)


def test_the_version_is_the_same_everywhere():
    cff = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(r"^version: (.*)$", cff, re.MULTILINE)[1] == mipl.__version__  # type: ignore[index]
    assert f"## {mipl.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
