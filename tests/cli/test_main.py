"""What all commands share: light imports, one line for a user's error, Ctrl-C, versions and silence."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest
from bench_runs import PATIENCE, heed_interrupts
from evidence_model import EvidenceModel
from sklearn.exceptions import NotFittedError

import mipl
from mipl.cli import main

HEAVY = ("torch", "matplotlib", "dask", "sklearn", "pyarrow", "pandas", "scipy")


@pytest.fixture
def break_fit(monkeypatch):
    """Let every method's fit raise an error."""

    def with_error(error: BaseException) -> None:
        class Broken(EvidenceModel):
            def fit(self, *_: object, **__: object) -> None:
                raise error

        monkeypatch.setattr("mipl.registry.make", lambda *_, **__: Broken())

    return with_error


def test_import_and_help_stay_light():
    for program in ("import mipl", "import mipl.cli"):
        loaded = subprocess.run(
            [sys.executable, "-c", f"import sys; {program}; print([m for m in {HEAVY} if m in sys.modules])"],
            capture_output=True,
            text=True,
            check=True,
        )
        assert loaded.stdout.strip() == "[]", program


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("fit", "none.parquet", "--out", "m.mipl"), "mipl: no such file: none.parquet"),
        (("data", "build", "mnits", "--out", "x.npz"), "mipl: unknown data set 'mnits'; the data sets are digits"),
        (("data", "build", "digits", "--out", "x.xls"), "mipl: cannot tell the format of x.xls"),
        (("data", "show", "digits", "--out", "x.csv"), "mipl: cannot tell the format of x.csv; its suffix must be one"),
        (("fit", "digits", "--method", "SVM", "--out", "m.mipl"), "mipl: unknown method 'SVM'; the methods are"),
        (("fit", "digits", "-m", "PL-kNN", "-p", "k", "--out", "m.mipl"), "mipl: cannot read the parameter 'k'"),
        (
            ("fit", "digits", "-m", "PL-kNN", "-p", "speed=9", "-o", "m"),
            "mipl: PL-kNN has no parameter 'speed'; did you mean 'embed'?",
        ),
        (("fit", "digits", "-m", "SURE", "-p", "lam=-1", "-o", "m.mipl"), "mipl: The 'lam' parameter of SURE must"),
        (
            ("fit", "digits", "-p", "n_landmarks=abc", "-o", "m.mipl"),
            "mipl: The 'n_landmarks' parameter of BagGP must be an int",
        ),
        (("fit", "digits", "-p", "device=cuda", "-o", "m.mipl"), "mipl: device='cuda' is not available"),
        (("predict", "none.mipl", "digits"), "mipl: no such model file: none.mipl"),
        (("explain", "none.mipl", "digits"), "mipl: no such model file: none.mipl"),
        (("resolve", "digits", "--model", "none.mipl"), "mipl: no such model file: none.mipl"),
    ],
)
def test_a_users_error_is_one_line_and_code_2(run, tmp_path, words, message):
    done = run(*words, code=2)
    assert done.stderr.startswith(message)
    assert len(done.stderr.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "error",
    [
        mipl.ParameterError("lam=-1 is not positive"),
        mipl.UnavailableError("device='cuda' is not available on this machine; use device='cpu'"),
        mipl.MIPLError("something of ours"),
        mipl.DataError("bag 3 is empty"),
        NotFittedError("this EvidenceModel is not fitted yet"),
        PermissionError(13, "Permission denied", "x.csv"),
    ],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("words", [("fit", "digits", "--out", "m.mipl"), ("resolve", "digits"), ("demo",)])
def test_every_kind_of_error_that_a_method_may_raise_is_one_line_and_code_2(run, break_fit, error, words):
    break_fit(error)
    assert run(*words, "--quiet", code=2).stderr == f"mipl: {error}\n"


def test_a_bug_is_not_hidden(run, break_fit, monkeypatch):
    break_fit(TypeError("a bug"))
    monkeypatch.setattr(sys, "argv", ["mipl", "fit", "digits", "--out", "m.mipl"])
    with pytest.raises(TypeError, match="a bug"):
        main()


def test_debug_shows_the_traceback_and_ends_with_the_same_code(run):
    told = run("fit", "none\x1b2J.parquet", "--out", "m.mipl", "--debug", code=2).stderr
    assert told.startswith("Traceback (most recent call last):")
    assert "in read_raw" in told
    assert r"mipl.errors.DataError: no such file: none\x1b2J.parquet" in told
    assert "\x1b" not in told


def test_ctrl_c_ends_with_one_line_and_code_130(run, break_fit, tmp_path):
    break_fit(KeyboardInterrupt())
    assert run("fit", "digits", "--out", "m.mipl", code=130).stderr == "mipl: stopped\n"
    assert list(tmp_path.iterdir()) == []


def test_a_signal_to_the_program_ends_it_with_code_130(tmp_path):
    program = (
        "import sys, time, mipl.loading\n"
        "def wait(*_):\n"
        "    print('waiting', flush=True)\n"
        "    time.sleep(600)\n"
        "mipl.loading.load_with_ids = wait\n"
        "sys.argv = ['mipl', 'resolve', 'digits']\n"
        "from mipl.cli import main\n"
        "main()\n"
    )
    words = [sys.executable, "-c", program]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(words, cwd=tmp_path, preexec_fn=heed_interrupts, **pipes) as started:
        assert started.stdout.readline() == "waiting\n"
        started.send_signal(signal.SIGINT)
        _, told = started.communicate(timeout=PATIENCE)
    assert (started.returncode, told) == (130, "mipl: stopped\n")


def test_the_installed_program_ends_with_code_2_on_a_users_error(tmp_path):
    words = [sys.executable, "-m", "mipl", "fit", "none.parquet", "--out", "m.mipl"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "mipl: no such file: none.parquet\n")


def test_version_and_missing_words(run):
    assert run("--version").stdout == f"mipl {mipl.__version__}\n"
    assert "--out" in run("fit", "digits", code=2).stderr


@pytest.mark.parametrize(
    "words",
    [
        ("fit", "digits", "--out", "none/m.mipl"),
        ("resolve", "digits", "--out", "none/x.csv"),
        ("resolve", "digits", "--out", "x.xls"),
        ("predict", "m.mipl", "digits", "--out", "none/x.csv"),
        ("explain", "m.mipl", "digits", "--out", "none/x.csv"),
        ("data", "build", "digits", "--out", "none/x.npz"),
        ("data", "show", "digits", "--out", "none/x.png"),
    ],
    ids=" ".join,
)
def test_a_file_that_cannot_be_written_is_refused_before_anything_is_read_or_computed(run, monkeypatch, words):
    def never(*_: object, **__: object) -> None:
        pytest.fail("the data were read first")

    monkeypatch.setattr("mipl.loading.load", never)
    monkeypatch.setattr("mipl.loading.load_with_ids", never)
    monkeypatch.setattr("mipl.persistence.load_model", never)
    assert words[-1] in run(*words, code=2).stderr


def test_the_demo_refuses_a_folder_that_it_cannot_make_before_it_computes(run, monkeypatch, tmp_path):
    monkeypatch.setattr("mipl.loading.load", lambda *_, **__: pytest.fail("the data were read first"))
    (tmp_path / "file").touch()
    assert "File exists" in run("demo", "--out", "file", code=2).stderr
    (tmp_path / "out" / "model.mipl").mkdir(parents=True)
    assert "it is a folder" in run("demo", "--out", "out", code=2).stderr
