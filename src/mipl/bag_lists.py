"""A list of bags, as users have them, stacked: arrays, tensors, sparse matrices, frames; images in either layout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mipl.arrays import as_array, as_pandas, is_table
from mipl.candidates import bag_name
from mipl.errors import DataError, ParameterError
from mipl.instances import as_bag
from mipl.rows import check_columns, frame_features

__all__ = ["Channels", "StackedBags", "channels_last", "stack_bags"]

Channels = Literal["first", "last"]
#: Numbers of channels by which the end of a shape is known to be that of the channels: grey, colour, with transparency.
_CHANNELS = (1, 3, 4)


class StackedBags(NamedTuple):
    """What `Bags` holds, not checked yet."""

    instances: NDArray[Any]  #: (n, d), bag after bag
    offsets: NDArray[np.int64]  #: (m + 1,)
    instance_shape: tuple[int, ...]
    feature_names: list[str] | None


def stack_bags(
    bags: Sequence[Any],
    instance_shape: Sequence[int] | None = None,
    channels: Channels | None = None,
    bag_ids: Sequence[Any] | NDArray[Any] | None = None,
) -> StackedBags:
    """Stack m bags of the same features.

    Parameters
    ----------
    bags : sequence of m arrays (n_i, ...) or frames
        Arrays, sparse matrices, tensors or frames; the columns of frames name the features, and are matched by name.
    instance_shape : tuple of int, default=None
        The shape of an instance; None takes it from the arrays, else these are taken in the order that they have.
    channels : {"first", "last"}, default=None
        Where the channels of images (n_i, a, b, c) are. None: at the end that has 1, 3 or 4 entries. Channels that
        come first are moved to the end.
    bag_ids : sequence of m ids, default=None
        What errors call the bags; None counts them.
    """
    if channels not in (None, "first", "last"):
        raise ParameterError(f"channels={channels!r}; it must be 'first', 'last' or None")
    if len(bags) == 0:
        raise DataError("no bags: the list is empty; pass at least one (n_i, d) array")
    names: list[str] | None = None
    if any(map(is_table, bags)):
        names, bags = _from_frames(bags, bag_ids)
    arrays = [as_bag(as_array(bag, bag_name(i, bag_ids)), bag_name(i, bag_ids)) for i, bag in enumerate(bags)]
    shapes = [array.shape[1:] for array in arrays]
    for i, shape in enumerate(shapes):
        if shape != shapes[0]:
            raise DataError(
                f"{bag_name(i, bag_ids)} has instances of shape {shape}, {bag_name(0, bag_ids)} of shape {shapes[0]}; "
                "every bag must have the same features"
            )
    shape = shapes[0]
    if len(shape) == 3 and instance_shape is None:
        if (channels or _layout(shape)) == "first":
            arrays, shape = [np.moveaxis(array, 1, -1) for array in arrays], (*shape[1:], shape[0])
    elif channels is not None:
        raise DataError(
            f"channels={channels!r} is for colour images (n_i, height, width, channels) without instance_shape; these "
            f"are {shape if instance_shape is None else tuple(instance_shape)}"
        )
    offsets = np.concatenate([[0], np.cumsum([len(array) for array in arrays])])
    flat = np.concatenate([array.reshape(len(array), -1) for array in arrays])
    return StackedBags(flat, offsets, shape if instance_shape is None else tuple(instance_shape), names)


def channels_last(instances: NDArray[Any], shape: tuple[int, ...]) -> tuple[NDArray[Any], tuple[int, ...]]:
    """Instances (n, d) and their shape, with the channels moved to the end where they are clearly in front.

    >>> channels_last(np.zeros((2, 192)), (3, 8, 8))[1], channels_last(np.zeros((2, 192)), (8, 8, 3))[1]
    ((8, 8, 3), (8, 8, 3))
    """
    if len(shape) != 3 or shape[0] not in _CHANNELS or shape[-1] in _CHANNELS:
        return instances, shape
    turned = np.moveaxis(instances.reshape(-1, *shape), 1, -1)
    return turned.reshape(instances.shape), turned.shape[1:]


def _layout(shape: tuple[int, ...]) -> str:
    """Which end of the shape of an image holds its channels."""
    first, last = shape[0] in _CHANNELS, shape[-1] in _CHANNELS
    if first and last:  # of tiny images; colours are far more usual than the others
        first, last = shape[0] == 3, shape[-1] == 3
    if first == last:
        why = "neither end" if not {shape[0], shape[-1]} & set(_CHANNELS) else "both ends"
        raise DataError(
            f"instances of shape {shape} are (height, width, channels) or (channels, height, width): {why} could be "
            "1, 3 or 4 channels; pass channels='last' or channels='first' to Bags.from_list"
        )
    return "first" if first else "last"


def _from_frames(
    frames: Sequence[Any], bag_ids: Sequence[Any] | NDArray[Any] | None
) -> tuple[list[str], list[NDArray[np.float32]]]:
    """The feature names and the values (n_i, d) of bags that are frames; columns are matched by name."""
    wanted: Any = None
    arrays = []
    for i, table in enumerate(frames):
        who = bag_name(i, bag_ids)
        if not is_table(table):
            raise DataError(f"{who} is a {type(table).__name__}, others are frames; pass frames only, or arrays only")
        frame = as_pandas(table)
        wanted = frame.columns if wanted is None else wanted
        if not frame.columns.equals(wanted) and (other := set(frame.columns) ^ set(wanted)):
            raise DataError(
                f"{who} and {bag_name(0, bag_ids)} have different columns: {min(map(str, other))!r} is in one only"
            )
        try:
            if not frame.columns.equals(wanted):
                check_columns(frame, wanted)
                frame = frame[list(wanted)]
            arrays.append(frame_features(frame))
        except DataError as error:
            raise DataError(f"{who}: {error}") from error
    return [str(name) for name in wanted], arrays
