from itertools import pairwise

import numpy as np
import pytest
from bench_results import WORSE, made, record
from matplotlib.backends.backend_agg import FigureCanvasAgg

from mipl.bench.analysis import Results
from mipl.bench.output import draw
from mipl.bench.output.accuracy_figures import draw_against_prior, draw_against_time
from mipl.bench.output.figures import KINDS
from mipl.bench.output.overview_figure import draw_overview
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


def test_the_prior_figure_has_a_line_for_each_alpha_eps_and_each_other_method(tmp_path):
    methods = [{"method": "PL-kNN", "label": str(a), "params": {"alpha_eps": a}} for a in (1e-4, 1e-3, 1e-2)]
    methods.append({"method": "BagGP"})
    chosen = Suite(methods=methods, datasets=["digits"], r=[1, 2, 3], splits=2)
    rng = np.random.default_rng(0)
    results = Results(chosen, [record(c, rng.random()) for c in chosen.cells().values()])
    lines = {line.get_label() for line in draw_against_prior(results).axes[0].lines}
    assert {"αε = 10⁻⁴", "αε = 10⁻³", "αε = 10⁻²", "BagGP"} <= lines
    draw(results, "prior", [tmp_path / "p.svg"])
    assert (tmp_path / "p.svg").read_text().count('id="line2d_') > 0
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


def overlapping_ticks(axes) -> bool:
    renderer = axes.figure.canvas.get_renderer()
    low, high = axes.get_xlim()
    shown = [t for t in axes.get_xticklabels(which="both") if t.get_text() and low <= t.get_position()[0] <= high]
    extents = sorted((t.get_window_extent(renderer) for t in shown), key=lambda extent: extent.x0)
    assert len(extents) > 1
    return any(a.x1 >= b.x0 for a, b in pairwise(extents))


@pytest.mark.parametrize(
    "seconds", [(250, 310), (0.9, 1.1), (3, 28), (0.01, 600), (1e-3, 1e5), (42, 42), (60, 480)], ids=str
)
def test_ticks_of_seconds_do_not_overprint_whatever_the_fits_took(seconds):
    chosen = Suite(methods=["PL-kNN", "SURE"], datasets=["digits"], splits=1)
    took = dict(zip(("PL-kNN", "SURE"), seconds, strict=True))
    records = [record(c, 0.5, fit_seconds=float(took[place.method])) for place, c in chosen.cells().items()]
    figure = draw_against_time(Results(chosen, records))
    FigureCanvasAgg(figure).draw()
    assert not overlapping_ticks(figure.axes[0])


def test_the_overview_has_a_row_per_method_and_the_best_on_top():
    figure = draw_overview(made())
    FigureCanvasAgg(figure).draw()
    axes = figure.axes[0]
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert set(names) == {m.name for m in made().suite.methods}
    reached = {(round(line.get_ydata()[0]), line.get_xdata()[0]) for line in axes.lines if line.get_marker() == "o"}
    means = {(names.index(s.method), s.accuracy.mean) for s in made().summaries.values()}
    assert reached == means
    first = [next(s.accuracy.mean for s in made().summaries.values() if (s.method, s.r) == (name, 1)) for name in names]
    assert first == sorted(first, reverse=True)
    bold = [label.get_text() for label in axes.get_yticklabels() if label.get_weight() == "bold"]
    assert bold == [made().suite.reference]


def test_titles_of_many_data_sets_do_not_run_into_each_other():
    labels = [f"{name}, {scale}" for name in ("Birdsong", "SIVAL") for scale in ("min-max", "z-scores", "raw")]
    datasets = [{"load": "digits", "label": label, "train_size": 0.3 + 0.1 * i} for i, label in enumerate(labels)]
    chosen = Suite(methods=["PL-kNN"], datasets=datasets, r=[1], splits=2)
    figure = draw_overview(Results(chosen, [record(c, 0.5) for c in chosen.cells().values()]))
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    boxes = [axes.title.get_window_extent(canvas.get_renderer()) for axes in figure.axes]
    assert len(boxes) == 6
    assert all(left.x1 < right.x0 for left, right in pairwise(boxes))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "prior"])
def test_methods_and_data_sets_may_have_any_name(tmp_path, kind):
    names = ["$\\frac{$", "\x1b[31mred", "W" * 90]
    methods = [{"method": "PL-kNN", "label": name, "params": {"n_neighbors": k + 1}} for k, name in enumerate(names)]
    data = [{"load": "digits", "label": "$\\frac{$"}, {"load": "digits", "label": "\x1b[0m", "train_size": 0.7}]
    chosen = Suite(methods=methods, datasets=data, r=[1, 2], splits=3, reference=names[0])
    rng = np.random.default_rng(0)
    draw(Results(chosen, [record(c, rng.random()) for c in chosen.cells().values()]), kind, [tmp_path / "x.svg"])
    svg = (tmp_path / "x.svg").read_text()
    assert "frac{$" in svg
    assert "\x1b" not in svg
