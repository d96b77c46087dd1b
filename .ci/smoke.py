"""What an installed mipl must be able to do: run with its python, outside of the checkout."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import mipl


def main() -> None:
    """Load, fit, resolve, write, read and draw; then the command line."""
    installed = Path(mipl.__file__).parent
    assert "site-packages" in installed.parts, f"{installed} is no installation"
    assert (installed / "py.typed").exists()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        train, test = mipl.load("digits", r=1, seed=0).split(0.7, seed=0)
        model = mipl.make("SURE").fit(train)
        assert model.score(test) > 0.4, model.score(test)
        model.save(folder / "m.mipl")
        test.save(folder / "d.parquet")
        assert mipl.load(folder / "d.parquet").equals(test)
        assert (mipl.load_model(folder / "m.mipl").predict(test) == model.predict(test)).all()
        mipl.resolve(train, model).report(folder / "page.html")  # templates, styles and scripts are in the package
        assert mipl.bench.load_suite("quick").methods
        for words in (
            ["--version"],
            ["methods"],
            ["demo", "--method", "SURE", "--out", str(folder / "demo")],
            ["predict", str(folder / "m.mipl"), str(folder / "d.parquet"), "--out", str(folder / "p.csv")],
            ["bench", "table", "--help"],
        ):
            command = [str(Path(sys.executable).parent / "mipl"), *words]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        assert (folder / "p.csv").read_text().count("\n") == len(test) + 1
        assert (folder / "demo" / "resolved.png").stat().st_size > 1000
    print(f"mipl {mipl.__version__} in {installed}: works")


if __name__ == "__main__":
    main()
