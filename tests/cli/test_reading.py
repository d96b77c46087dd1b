"""A model reads new files as its training files were read, unless the command line says otherwise."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

import mipl
from mipl.errors import DataError
from mipl.persistence import _digest

WORDS = ("--bag", "Aufnahme", "--candidates", "Art", "--label", "Wahrheit", "--decimal", ",", "--missing", "mean")
METHOD = ("-p", "n_landmarks=20", "-p", "cross_fit=0")  # its probabilities are of any size
CENTRE = {"ant": 0.0, "bee": 10.0, "cat": 20.0}


def birds(labels: list[str]) -> pd.DataFrame:
    """Bags of three instances around the centre of their class."""
    rng = np.random.default_rng(len(labels))
    values = np.repeat([CENTRE[name] for name in labels], 3)[:, None] + rng.normal(0, 0.1, (3 * len(labels), 2))
    names = {"Aufnahme": np.repeat([f"r{i}" for i in range(len(labels))], 3), "Art": np.repeat(labels, 3)}
    return pd.DataFrame({**names, "Wahrheit": np.repeat(labels, 3), "Breite": values[:, 0], "Höhe": values[:, 1]})


@pytest.fixture
def german(run, tmp_path: Path) -> pd.DataFrame:
    """m.mipl, fitted on a German spreadsheet with a missing value, and new.csv, which has nothing but the features.

    Given back is new.csv; in each of its bags an instance has no height.
    """
    train = birds(["ant", "bee", "cat"] * 8)
    train.loc[5, "Höhe"] = np.nan
    train.to_csv(tmp_path / "train.csv", sep=";", decimal=",", index=False)
    run("fit", "train.csv", *WORDS, *METHOD, "--out", "m.mipl", "--quiet")
    new = birds(["bee", "cat", "bee"]).drop(columns=["Art", "Wahrheit"])
    new.loc[[0, 4, 7], "Höhe"] = np.nan
    new.to_csv(tmp_path / "new.csv", sep=";", decimal=",", index=False)
    return new


def expected(tmp_path: Path, new: pd.DataFrame, **filled: float) -> np.ndarray:
    """What the model says of bags that were filled by hand."""
    flat = new.fillna(filled)[["Breite", "Höhe"]].to_numpy()
    return mipl.load_model(tmp_path / "m.mipl").predict_proba(mipl.Bags.from_flat(flat, new["Aufnahme"]))


def probabilities(path: Path) -> np.ndarray:
    return pd.read_csv(path)[["p(ant)", "p(bee)", "p(cat)"]].to_numpy()


@pytest.mark.parametrize(
    ("words", "out"),
    [
        (("predict", "m.mipl", "new.csv", "--out", "p.csv"), "p.csv"),
        (("predict", "m.mipl", "new.csv", "--out", "p.csv", "--missing", "mean"), "p.csv"),
        (("predict", "m.mipl", "new.csv", "--out", "p.csv", "--chunk", "2"), "p.csv"),
        (("predict", "m.mipl", "new.csv", "--out", "all/"), "all/new.csv"),
        (("explain", "m.mipl", "new.csv", "--out", "p.csv"), "p.csv"),
    ],
    ids=["predict", "mean", "chunks", "folder", "explain"],
)
def test_new_files_are_read_as_in_training_and_filled_with_the_means_of_training(run, german, tmp_path, words, out):
    told = run(*words).stderr
    remark = (
        "read as in training: bag='Aufnahme', candidates='Art', label='Wahrheit', decimal=',', missing='mean' of the"
    )
    assert told.count("read as in training") == told.count(remark) == 1
    means = [pd.read_csv(tmp_path / "train.csv", sep=";", decimal=",")["Höhe"].mean(), german["Höhe"].mean()]
    right, wrong = (expected(tmp_path, german, Höhe=mean) for mean in means)
    np.testing.assert_allclose(probabilities(tmp_path / out), right, atol=1e-5)
    assert np.abs(right - wrong).max() > 1e-3


def test_resolve_with_a_model_takes_its_columns_and_its_means(run, german, tmp_path):
    german.assign(Art="ant|bee|cat").to_csv(tmp_path / "new.csv", sep=";", decimal=",", index=False)
    run("resolve", "new.csv", "--model", "m.mipl", "--out", "p.csv")
    mean = mipl.load_model(tmp_path / "m.mipl").reading_["missing"]["Höhe"]
    np.testing.assert_allclose(probabilities(tmp_path / "p.csv"), expected(tmp_path, german, Höhe=mean), atol=1e-5)


def test_options_of_the_command_line_override_those_of_training(run, german, tmp_path):
    german.rename(columns={"Aufnahme": "rec"}).to_csv(tmp_path / "new.csv", index=False)
    told = run(
        "predict", "m.mipl", "new.csv", "--bag", "rec", "--decimal", ".", "--missing", "drop", "--out", "p.csv"
    ).stderr
    assert "read as in training: candidates='Art', label='Wahrheit'\n" in told
    np.testing.assert_allclose(probabilities(tmp_path / "p.csv"), expected(tmp_path, german.dropna()), atol=1e-5)
    assert "no column 'Aufnahme'" in run("predict", "m.mipl", "new.csv", code=2).stderr


def test_the_default_of_an_option_can_be_asked_for_too(run, animals, tmp_path):
    text = (tmp_path / "train.csv").read_text()
    (tmp_path / "train.csv").write_text(text.replace(",ant,", ",ant+bee,"))
    run("fit", "train.csv", "--candidates-sep", "+", "-m", "PL-kNN", "--out", "m.mipl", "--quiet")
    (tmp_path / "new.csv").write_text("bag_id,candidates,length,width\nx,bee+cat,10,10\n")
    found = json.loads(run("resolve", "new.csv", "--model", "m.mipl", "--json").stdout)
    assert found[0]["candidates"] == ["bee", "cat"]
    told = run("resolve", "new.csv", "--model", "m.mipl", "--candidates-sep", "|", code=2).stderr
    assert "read as in training" not in told
    assert "'bee+cat'" in told


@pytest.mark.parametrize(
    "written",
    [{"sep": ",", "decimal": "."}, {"sep": "\t", "decimal": ","}, {"sep": ",", "decimal": ","}],
    ids=["comma and point", "tab", "quoted commas"],
)
def test_a_new_file_may_have_another_separator_than_the_one_that_was_named(run, german, tmp_path, written):
    run("fit", "train.csv", *WORDS, "--sep", ";", *METHOD, "--out", "m.mipl", "--quiet")
    new = german.dropna()
    new.to_csv(tmp_path / "new.csv", index=False, **written)
    words = ("--decimal", ",") if written == {"sep": ",", "decimal": ","} else ()
    run("predict", "m.mipl", "new.csv", *words, "--out", "p.csv")
    np.testing.assert_allclose(probabilities(tmp_path / "p.csv"), expected(tmp_path, new), atol=1e-5)


@pytest.mark.parametrize("suffix", [".parquet", ".jsonl", ".csv", ".npz"])
def test_files_that_mipl_wrote_have_their_usual_columns(run, german, tmp_path, suffix):
    new = birds(["bee", "cat", "bee"]).drop(columns="Wahrheit")
    mipl.MIPLDataset.from_frame(new, bag="Aufnahme", candidates="Art").save(tmp_path / f"own{suffix}")
    found = json.loads(run("predict", "m.mipl", f"own{suffix}", "--json").stdout)["predictions"]
    assert {row["bag_id"]: row["predicted"] for row in found} == {"r0": "bee", "r1": "cat", "r2": "bee"}


def test_check_with_a_model_reads_as_it_does_and_asks_for_no_candidates(run, german, tmp_path):
    assert "Aufnahme" in run("check", "new.csv", code=1).stdout
    done = run("check", "new.csv", "--model", "m.mipl")
    assert "read as in training: bag='Aufnahme'" in done.stderr
    assert "the value is missing" in done.stdout
    assert "usable (1 note)" in done.stdout
    german.rename(columns={"Höhe": "Tiefe"}).to_csv(tmp_path / "new.csv", sep=";", decimal=",", index=False)
    assert "'Höhe', which the model was fitted with" in run("check", "new.csv", "--model", "m.mipl", code=1).stdout


def test_python_tells_the_options_and_reads_new_files_by_them(run, german, tmp_path):
    model = mipl.load_model(tmp_path / "m.mipl")
    mean = pd.read_csv(tmp_path / "train.csv", sep=";", decimal=",")["Höhe"].mean()
    assert {k: v for k, v in model.reading_.items() if k != "missing"} == {
        "bag": "Aufnahme", "candidates": "Art", "label": "Wahrheit", "decimal": ","
    }  # fmt: skip
    assert model.reading_["missing"]["Höhe"] == pytest.approx(mean)
    german.assign(Art="ant|bee|cat", Wahrheit="").to_csv(tmp_path / "new.csv", sep=";", decimal=",", index=False)
    ds = mipl.load(tmp_path / "new.csv", **model.reading_)
    np.testing.assert_allclose(model.predict_proba(ds), expected(tmp_path, german, Höhe=mean), atol=1e-6)
    told = json.loads(run("info", "m.mipl", "--json").stdout)["reading"]
    assert told == model.reading_
    assert "bag='Aufnahme', candidates='Art'" in run("info", "m.mipl").stdout


def test_a_data_set_hands_on_how_it_was_read_to_its_parts_and_to_pipelines(german, tmp_path):
    from sklearn.decomposition import PCA

    ds = mipl.load(tmp_path / "train.csv", bag="Aufnahme", candidates="Art", ignore=["Wahrheit"], missing="mean")
    train, _ = ds.split(0.5)
    plain = mipl.make("PL-kNN").fit(train)
    piped = mipl.make_pipeline(mipl.BagTransformer(PCA(1)), mipl.make("PL-kNN")).fit(ds[:12])
    piped.save(tmp_path / "p.mipl")
    assert plain.reading_ == mipl.load_model(tmp_path / "p.mipl").reading_ == ds.reading
    assert set(ds.reading) == {"bag", "candidates", "ignore", "missing"}
    assert mipl.make("PL-kNN").fit(ds.bags, ds.candidates).reading_ == {}
    assert mipl.make("PL-kNN").fit(mipl.load("digits")).reading_ == {}


def test_a_scan_hands_on_how_it_is_read_and_takes_means(run, german, tmp_path):
    train = pd.read_csv(tmp_path / "train.csv", sep=";", decimal=",").drop(columns="Wahrheit")
    train.to_parquet(tmp_path / "train.parquet")
    columns = {"bag": "Aufnahme", "candidates": "Art", "missing": {"Breite": 1.0, "Höhe": 2.0}}
    scan = mipl.scan(tmp_path / "train.parquet", **columns)
    assert scan.to_dataset().bags.instances[5, 1] == 2
    assert scan.sample(9).reading == scan.reading == columns
    model = mipl.BagGP(n_landmarks=20, cross_fit=0).fit(scan)
    assert model.reading_ == columns
    model.save(tmp_path / "m.mipl")
    german.to_parquet(tmp_path / "new.parquet")
    run("predict", "m.mipl", "new.parquet", "--out", "p.csv", "--chunk", 3)
    np.testing.assert_allclose(probabilities(tmp_path / "p.csv"), expected(tmp_path, german, Höhe=2), atol=1e-5)


def test_means_of_features_without_names_are_kept_by_their_numbers(run, tmp_path):
    (tmp_path / "train.csv").write_text("bag_id,candidates,f0,f1\na,x|y,1,2\na,,2,\nb,x,3,5\nc,y,6,8\n")
    run("fit", "train.csv", "--missing", "mean", "-m", "PL-kNN", "--out", "m.mipl", "--quiet")
    reading = mipl.load_model(tmp_path / "m.mipl").reading_
    assert reading == {"missing": {"0": 3.0, "1": 5.0}}
    (tmp_path / "new.csv").write_text("bag_id,candidates,f0,f1\nd,x|y,,1\ne,x,2,\n")
    assert mipl.load(tmp_path / "new.csv", **reading).bags.instances.tolist() == [[3, 1], [2, 5]]
    assert len(json.loads(run("predict", "m.mipl", "new.csv", "--json").stdout)["predictions"]) == 2


def test_images_are_cut_as_in_training_and_a_table_of_pixels_is_read_too(run, tmp_path):
    image = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(0)
    for folder, count in (("photos", 8), ("others", 3)):
        (tmp_path / folder).mkdir()
        for i in range(count):
            pixels = rng.integers(0, 100, (16, 24), np.uint8) + np.uint8(100 * (i % 2))
            image.fromarray(pixels).save(tmp_path / folder / f"{i}.png")
    rows = "".join(f"{i}.png,{'cat' if i % 2 else 'dog'}\n" for i in range(8))
    (tmp_path / "photos" / "names.csv").write_text(f"file,animal\n{rows}")
    words = ("--candidates", "animal", "--patch", 8)
    run("fit", "photos", *words, "-m", "PL-kNN", "-p", "n_neighbors=1", "--out", "m.mipl", "--quiet")
    done = run("predict", "m.mipl", "others", "--json")
    found = json.loads(done.stdout)["predictions"]
    assert [row["predicted"] for row in found] == ["dog", "cat", "dog"]
    ds = mipl.load(tmp_path / "others", patch=8, unlabelled=["cat", "dog"])
    ds.save(tmp_path / "pixels.parquet")
    again = json.loads(run("predict", "m.mipl", "pixels.parquet", "--json").stdout)["predictions"]
    assert [row["p(cat)"] for row in again] == [row["p(cat)"] for row in found]


def test_a_model_without_means_says_whose_mean_is_taken(run, animals, tmp_path):
    run("fit", "train.csv", "-m", "PL-kNN", "--out", "m.mipl", "--quiet")
    (tmp_path / "new.csv").write_text("bag_id,length,width\nx,10,10\nx,,10\n")
    told = run("predict", "m.mipl", "new.csv", "--missing", "mean").stderr
    assert "the model does not know the means of its training data" in told
    assert "read as in training" not in told


def _forge(path: Path, change) -> None:
    with safe_open(path, framework="numpy") as file:
        metadata, arrays = file.metadata(), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    header = json.loads(metadata["mipl_model"])
    change(header["model"]["state"])
    text = json.dumps(header)
    save_file(arrays, path, {**metadata, "mipl_model": text, "sha256": _digest(text, arrays)})


def test_a_model_without_the_record_works_as_before(run, animals, tmp_path):
    run("fit", "train.csv", "-m", "PL-kNN", "--out", "m.mipl", "--quiet")
    _forge(tmp_path / "m.mipl", lambda state: state.pop("reading_"))
    found = json.loads(run("predict", "m.mipl", "new.csv", "--json").stdout)["predictions"]
    assert {row["bag_id"]: row["predicted"] for row in found} == animals
    assert json.loads(run("info", "m.mipl", "--json").stdout)["reading"] == {}


@pytest.mark.parametrize(
    "record",
    [
        [],
        {"bag": 5},
        {"verify": False},
        {"features": [1]},
        {"sep": 7},
        {"patch": "x"},
        {"missing": {"$": "dict", "items": {"length": "x"}}},
        {"missing": {"$": "dict", "items": {"length": float("nan")}}},
    ],
)
def test_a_forged_record_is_refused_when_the_model_is_loaded(run, animals, tmp_path, record):
    run("fit", "train.csv", "-m", "PL-kNN", "--out", "m.mipl", "--quiet")
    items = {"$": "dict", "items": record} if isinstance(record, dict) else record
    _forge(tmp_path / "m.mipl", lambda state: state.update(reading_=items))
    with pytest.raises(DataError, match="how its files were read"):
        mipl.load_model(tmp_path / "m.mipl")
