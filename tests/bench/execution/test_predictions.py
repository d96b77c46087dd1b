import numpy as np
import pytest

from mipl.bench.execution.predictions import checked_classes, checked_numbers, checked_probabilities


@pytest.mark.parametrize("given", [[0, 2, 1], np.array([0.0, 2.0, 1.0]), np.array([0, 2, 1], dtype=object)])
def test_classes_come_back_as_integers(given):
    found = checked_classes(given, 3, 3)
    assert found.tolist() == [0, 2, 1]
    assert np.issubdtype(found.dtype, np.integer)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ([0, np.nan, np.nan], r"gave nan for test bag 1 and 1 more; the classes are the numbers 0 to 1"),
        ([0, None, 1], "gave None for test bag 1;"),
        ([0, 1, -1], "gave -1 for test bag 2;"),
        ([2, 1, 0], "gave 2 for test bag 0;"),
        ([0, 0.5, 1], "gave 0.5 for test bag 1;"),
        (["owl", "wren", "owl"], "gave 'owl' for test bag 0 and 2 more;"),
        (["1", "0", "1"], "gave '1' for test bag 0 and 2 more;"),
        ([b"1", b"0", b"1"], "gave b'1' for test bag 0 and 2 more;"),
        (np.zeros(3) + 1j, "of type complex128, which are no numbers"),
        (np.zeros(3, "M8[s]"), "which are no numbers"),
        (np.zeros(3, [("a", "i4")]), "which are no numbers"),
        (np.ma.masked_array([0, 1, 0], [False, True, False]), "masked entries"),
        ([0, 1], r"shape \(2,\) for 3 bags"),
        ([[0], [1], [1]], r"shape \(3, 1\) for 3 bags"),
        (None, r"shape \(\) for 3 bags"),
    ],
)
def test_what_is_no_class_is_refused_with_the_bag_and_the_reason(given, reason):
    with pytest.raises(ValueError, match=reason):
        checked_classes(given, 3, 2)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ([[0.5, 0.5], [np.nan, 1.0]], "predict_proba gave NaN in row 1"),
        ([[0.5, 0.5], [np.inf, 0.0]], r"outside \[0, 1\] in row 1"),
        ([[1.5, -0.5], [1.0, 0.0]], r"outside \[0, 1\] in row 0"),
        ([[0.5, 0.4], [0.5, 0.4]], "do not sum to one in row 0 and 1 more"),
        ([[1.0], [1.0]], r"shape \(2, 1\) where \(2, 2\) is due"),
        (np.eye(2) + 0j, "of type complex128"),
    ],
)
def test_what_are_no_probabilities_is_refused_with_the_row_and_the_reason(given, reason):
    with pytest.raises(ValueError, match=reason):
        checked_probabilities(given, (2, 2), "predict_proba")


def test_probabilities_and_numbers_pass_unchanged():
    proba = np.array([[0.25, 0.75], [1.0, 0.0]], dtype=np.float32)
    assert checked_probabilities(proba, (2, 2), "predict_proba") is proba
    assert checked_numbers([[3, 4]], (1, 2), "resolve").tolist() == [[3.0, 4.0]]
