"""``mipl explain``: what a saved model sees in the bags of a file, down to the instance behind each label."""

from __future__ import annotations

from dataclasses import replace

from mipl.cli.answers import InstancesOption, ModelArgument, OutOption, hand_over
from mipl.cli.files import FilesArgument, Reading, reads_files
from mipl.cli.output import JsonOption, QuietOption, working

__all__ = ["explain"]


@reads_files
def explain(
    model: ModelArgument,
    file: FilesArgument,
    reading: Reading,
    out: OutOption = None,
    instances: InstancesOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Label every bag among all classes of the model, and name the instance that the label comes from."""
    from mipl.io.tables import check_table_path
    from mipl.persistence import load_model
    from mipl.resolving import explain as explain_bags

    for path in (out, instances):
        if path is not None:
            check_table_path(path)
    loaded = load_model(model)
    data = reading.load(file, quiet or json, unlabelled=loaded.classes_.tolist())
    with working(f"explaining {len(data.dataset):,} bags", quiet or json):
        found = replace(explain_bags(loaded, data.dataset), instance_ids=data.instance_ids)
    if instances is not None:
        found.save_instances(instances)
    hand_over(found, found.rows() if json else None, out, quiet)
