"""Numbers as other libraries hold them, brought to NumPy: sparse matrices of SciPy, tensors of torch, tables."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mipl.errors import DataError

__all__ = ["as_array", "as_pandas", "is_hugging_face", "is_sparse", "is_table", "is_tensor", "unwrapped"]

#: A sparse matrix with more entries is refused: 8 GiB in single precision.
_MOST_DENSE = 2**31


def as_array(value: Any, what: str) -> NDArray[Any]:
    """A NumPy array of what a user passes as numbers; sparse matrices become dense, tensors leave graph and device.

    Parameters
    ----------
    value : array-like, sparse matrix or tensor
        Nested lists, NumPy arrays, SciPy's sparse matrices and arrays, torch's tensors, and whatever else NumPy reads.
    what : str
        What an error calls it, e.g. ``"bag 3"``.
    """
    if is_sparse(value):
        return _from_sparse(value, what)
    if is_tensor(value):
        value = _from_tensor(value, what)
    _check_unmasked(value, what)
    try:
        return np.asarray(value)
    except DataError:  # bags are no array, and say so themselves
        raise
    except ValueError as error:
        raise DataError(f"{what} is ragged: its instances differ in length") from error
    except (TypeError, RuntimeError) as error:
        raise DataError(
            f"{what} is a {type(value).__name__} that NumPy cannot read ({error}); convert it to a NumPy array first"
        ) from error


def is_sparse(value: Any) -> bool:
    """Whether a value is one of SciPy's sparse matrices or arrays."""
    sparse = sys.modules.get("scipy.sparse")  # who has one has imported it
    return sparse is not None and sparse.issparse(value)


def is_tensor(value: Any) -> bool:
    """Whether a value is a tensor of torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def is_table(value: Any) -> bool:
    """Whether a value is a table with named columns: of pandas, polars, pyarrow or Hugging Face's `datasets`."""
    kind = type(value)  # asking a lazy frame itself for its columns would compute them
    library = kind.__module__.partition(".")[0]
    return (library in ("pandas", "polars", "pyarrow") and hasattr(kind, "columns")) or is_hugging_face(value)


def is_hugging_face(value: Any) -> bool:
    """Whether a value is a `Dataset` of Hugging Face's `datasets`; one that streams is none."""
    return type(value).__module__.partition(".")[0] == "datasets" and hasattr(type(value), "with_format")


def as_pandas(table: Any) -> Any:
    """A pandas frame of a table; tables of polars and pyarrow are converted."""
    if hasattr(table, "to_pandas"):
        return table.to_pandas()
    if not hasattr(table, "iloc"):
        lazy = "; pass frame.collect()" if hasattr(table, "collect") else ""
        raise DataError(
            f"expected a frame of pandas or polars or a table of pyarrow, not a {type(table).__name__}{lazy}"
        )
    return table


def unwrapped(value: Any) -> Any:
    """The NumPy array in a sparse matrix, tensor, frame or column; any other value as it is."""
    if is_sparse(value):
        return value.toarray()
    if is_tensor(value):
        return as_array(value, "the tensor")
    _check_unmasked(value, "the array")
    return np.asarray(value.to_numpy()) if hasattr(value, "to_numpy") else value


def _check_unmasked(value: Any, what: str) -> None:
    """Refuse masked entries, under which NumPy would find some number."""
    if np.ma.is_masked(value):
        raise DataError(f"{what} has masked entries; fill them in, or leave out what they belong to")


def _from_sparse(matrix: Any, what: str) -> NDArray[Any]:
    if matrix.dtype.kind not in "fiub":
        raise DataError(f"{what} is of type {matrix.dtype}, not real numbers")
    entries = int(np.prod(matrix.shape))
    if entries > _MOST_DENSE:
        raise DataError(
            f"{what} is a sparse matrix {matrix.shape}, which takes {4 * entries / 2**30:.0f} GiB as the dense array "
            "that bags are; reduce its columns first, for example by scikit-learn's TruncatedSVD(100)"
        )
    dense: NDArray[Any] = matrix.toarray()
    return dense


def _from_tensor(tensor: Any, what: str) -> NDArray[Any]:
    torch = sys.modules["torch"]
    if tensor.device.type == "meta":
        raise DataError(f"{what} is a tensor on the device 'meta', which holds no numbers")
    dense = tensor.detach().to_dense() if tensor.layout != torch.strided else tensor.detach()
    # NumPy has no bfloat16 and no float8; bags are float32 in any case.
    single = dense.is_floating_point() and dense.dtype != torch.float64
    array: NDArray[Any] = (dense.float() if single else dense).cpu().numpy()
    return array
