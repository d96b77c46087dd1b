"""``mipl explain``: what a saved model sees in the bags of a file, down to the instance behind each label."""

from __future__ import annotations

from mipl.cli.answers import FileArgument, ModelArgument, OutOption, hand_over
from mipl.cli.output import JsonOption, QuietOption, working

__all__ = ["explain"]


def explain(
    model: ModelArgument,
    file: FileArgument,
    out: OutOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Label every bag among all classes of the model, and name the instance that the label comes from."""
    from mipl.io.tables import check_table_path
    from mipl.loading import load
    from mipl.persistence import load_model
    from mipl.resolving import explain as explain_bags

    if out is not None:
        check_table_path(out)
    loaded, dataset = load_model(model), load(file)
    with working(f"explaining {len(dataset):,} bags", quiet or json):
        found = explain_bags(loaded, dataset)
    hand_over(found, found.rows() if json else None, out, quiet)
