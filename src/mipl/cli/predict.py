"""``mipl predict``: classify the bags of a file with a saved model."""

from __future__ import annotations

from mipl.cli.answers import FileArgument, ModelArgument, OutOption, hand_over
from mipl.cli.output import JsonOption, QuietOption, working

__all__ = ["predict"]


def predict(
    model: ModelArgument,
    file: FileArgument,
    out: OutOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Predict the label of every bag, with the probability of each class."""
    from mipl.io.tables import check_table_path
    from mipl.loading import load
    from mipl.persistence import load_model
    from mipl.resolving import explain

    if out is not None:
        check_table_path(out)
    loaded, dataset = load_model(model), load(file)
    with working(f"predicting {len(dataset):,} bags", quiet or json):
        found = explain(loaded, dataset, instances=False)
    answer = {"bags": len(found), "accuracy": found.accuracy, "predictions": found.rows()} if json else None
    hand_over(found, answer, out, quiet)
