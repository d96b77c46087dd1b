"""The wheel, installed where the checkout is not on the path."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
def test_the_wheel_works_in_an_environment_of_its_own(tmp_path: Path):
    # A checkout on the path would pass for an installation.
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "wheel", "--no-deps", "--wheel-dir", str(tmp_path), str(ROOT)], check=True, env=clean)
    (wheel,) = tmp_path.glob("*.whl")
    inside = zipfile.ZipFile(wheel).namelist()
    assert {name.partition("/")[0].partition("-")[0] for name in inside} == {"mipl"}, (
        "only the package and its metadata"
    )
    (metadata,) = (name for name in inside if name.endswith("/METADATA"))
    assert "](docs/" not in zipfile.ZipFile(wheel).read(metadata).decode(), "links that lead nowhere on a package index"
    ours = (p for p in (ROOT / "src" / "mipl").rglob("*") if p.is_file() and "__pycache__" not in p.parts)
    assert {str(path.relative_to(ROOT / "src")) for path in ours} <= set(inside), "code, data and py.typed"
    venv.create(tmp_path / "env", with_pip=False)
    python = tmp_path / "env" / "bin" / "python"
    subprocess.run([*pip, "--python", str(python), "install", "--no-deps", str(wheel)], check=True, env=clean)
    (place,) = (tmp_path / "env" / "lib").glob("python*/site-packages")
    # The libraries of this environment come after the wheel; its editable mipl does not, as .pth files are not nested.
    (place / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")
    subprocess.run([str(python), str(ROOT / ".ci" / "smoke.py")], check=True, cwd=tmp_path, env=clean)


def test_every_extra_exists_and_repeats_the_bounds_of_the_core():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    assert {"cli", "plot", "dask", "excel", "docs", "dev", "all"} <= set(extras)
    assert set(extras["cli"] + extras["plot"]) <= set(project["dependencies"])
