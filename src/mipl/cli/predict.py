"""``mipl predict``: classify the bags of files with a saved model."""

from __future__ import annotations

from dataclasses import replace

from mipl.cli.answers import InstancesOption, ModelArgument, OutOption, hand_over
from mipl.cli.files import FilesArgument, Reading, reads_files
from mipl.cli.output import JsonOption, QuietOption, working

__all__ = ["predict"]


@reads_files
def predict(
    model: ModelArgument,
    file: FilesArgument,
    reading: Reading,
    out: OutOption = None,
    instances: InstancesOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Predict the label of every bag, with the probability of each class; the bags need no candidates."""
    from mipl.io.tables import check_table_path
    from mipl.persistence import load_model
    from mipl.resolving import explain

    for path in (out, instances):
        if path is not None:
            check_table_path(path)
    loaded = load_model(model)
    data = reading.load(file, quiet or json, unlabelled=loaded.classes_.tolist())
    with working(f"predicting {len(data.dataset):,} bags", quiet or json):
        found = explain(loaded, data.dataset, instances=instances is not None)
    found = replace(found, instance_ids=data.instance_ids)
    if instances is not None:
        found.save_instances(instances)
        found = replace(found, instance_probabilities=None)
    answer = {"bags": len(found), "accuracy": found.accuracy, "predictions": found.rows()} if json else None
    hand_over(found, answer, out, quiet)
