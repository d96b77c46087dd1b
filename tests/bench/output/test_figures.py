import numpy as np
import pytest
from bench_results import WORSE, made, record

from mipl.bench.analysis import Results
from mipl.bench.output import draw
from mipl.bench.output.accuracy_figures import draw_against_time
from mipl.bench.output.figures import KINDS
from mipl.bench.suite import Suite
from mipl.errors import DataError


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "prior"])
def test_figures_are_drawn_as_png_and_svg_and_the_same_results_give_the_same_svg(tmp_path, kind):
    files = [tmp_path / "a.png", tmp_path / "a.svg"]
    assert draw(made(), kind, files) == files
    assert files[0].read_bytes().startswith(b"\x89PNG")
    svg = files[1].read_text()
    assert "good &amp; 100%_sure" in svg
    draw(made(), kind, [tmp_path / "b.svg"])
    assert (tmp_path / "b.svg").read_text() == svg


def test_accuracy_against_time_compares_methods_at_the_same_r():
    whole = draw_against_time(made()).axes[0]
    part = draw_against_time(made(lambda place: place.method == WORSE and place.r == 2)).axes[0]
    assert (whole.get_title(), part.get_title()) == ("digits", "digits, r = 1")
    heights = [[line.get_ydata()[0] for line in axes.lines] for axes in (whole, part)]
    assert heights[0] == pytest.approx([0.75, 0.75, 0.635])
    assert heights[1] == pytest.approx([0.8, 0.8, 0.685])


def test_the_prior_figure_has_a_line_for_each_alpha_eps(tmp_path):
    methods = [{"method": "PL-kNN", "label": str(a), "params": {"alpha_eps": a}} for a in (1e-4, 1e-3, 1e-2)]
    chosen = Suite(methods=methods, datasets=["digits"], r=[1, 2, 3], splits=2)
    rng = np.random.default_rng(0)
    draw(Results(chosen, [record(c, rng.random()) for c in chosen.cells().values()]), "prior", [tmp_path / "p.svg"])
    svg = (tmp_path / "p.svg").read_text()
    assert svg.count('id="line2d_') > 0
    with pytest.raises(DataError, match="no method of the suite sets alpha_eps"):
        draw(made(), "prior", [tmp_path / "p.svg"])


def test_ranks_need_methods_with_the_same_problems(tmp_path):
    with pytest.raises(DataError, match="at least 3 methods"):
        draw(made(lambda place: place.method == WORSE), "ranks", [tmp_path / "r.svg"])


def test_results_without_times_are_not_drawn_against_time(tmp_path):
    chosen = Suite(methods=["PL-kNN"], datasets=["digits"], splits=1)
    untimed = Results(chosen, [record(c, 0.5, fit_seconds=None) for c in chosen.cells().values()])
    with pytest.raises(DataError, match="do not say how long"):
        draw(untimed, "time", [tmp_path / "t.svg"])
