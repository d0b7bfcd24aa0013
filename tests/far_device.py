"""A simulated device, for machines without a GPU: tensors with the label of another device.

Their values are stored on the CPU, and every operation runs there; but torch, and the code under test, see a device
called ``far``. Operations on tensors of two devices are refused, as on a GPU. Operations that the host would have to
wait for on a GPU are counted: reading values, and sizes that depend on values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils import backend_registration
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

DEVICE = "far"
#: Whether this version of torch supports backends in Python.
AVAILABLE = hasattr(backend_registration, "_setup_privateuseone_for_python_backend")
# Once: pytest imports this file a second time under another name when it collects doctests.
if AVAILABLE and not hasattr(torch.Tensor, f"is_{DEVICE}"):
    backend_registration._setup_privateuseone_for_python_backend(DEVICE)

aten = torch.ops.aten
#: Operations whose result, or its size, the host has to wait for.
WAITING = {"_local_scalar_dense", "nonzero", "masked_select", "_unique2", "unique_consecutive", "unique_dim"}
WAITING |= {"repeat_interleave", "bincount", "equal", "is_nonzero", "_coalesce"}
_TRANSFERS = {aten._to_copy.default, aten.copy_.default, aten.lift_fresh.default, aten._copy_from.default}


class DeviceMixError(RuntimeError):
    """An operation on tensors of two devices."""


class FarTensor(Tensor):
    """A tensor with values on the CPU and the label of another device."""

    here: Tensor

    @staticmethod
    def __new__(cls, here: Tensor) -> FarTensor:  # noqa: PYI034 - `Self` came with Python 3.11
        options: dict[str, Any] = {"dtype": here.dtype, "layout": here.layout, "device": torch.device(DEVICE, 0)}
        if here.layout == torch.strided:
            options |= {"strides": here.stride(), "storage_offset": here.storage_offset()}
        made = Tensor._make_wrapper_subclass(cls, here.size(), **options)  # type: ignore[attr-defined]
        made.here = here
        return made  # type: ignore[no-any-return]

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return f"FarTensor({self.here})"

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise DeviceMixError(f"{func} outside of far_away()")


class FarAway(TorchDispatchMode):
    """Runs operations on the CPU, and labels their results."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        tensors = [value for value in tree_flatten((args, kwargs))[0] if isinstance(value, Tensor)]
        far = [value for value in tensors if isinstance(value, FarTensor)]
        near = [value for value in tensors if not isinstance(value, FarTensor)]
        name = func.overloadpacket.__name__
        wanted = kwargs.get("device")
        if wanted is not None and torch.device(wanted).type == DEVICE:
            kwargs["device"] = torch.device("cpu")
        goes_far = bool(far) if wanted is None else torch.device(wanted).type == DEVICE
        # A single number may come from the host; it is an argument of the kernel.
        if far and func not in _TRANSFERS and any(value.dim() > 0 for value in near):
            raise DeviceMixError(f"{name}: {[(str(value.device), list(value.shape)) for value in tensors]}")
        if far:
            self._count(func, name, args, kwargs, goes_far)
        found = func(*tree_map(_here, args), **tree_map(_here, kwargs))
        if name.endswith("_") and not name.endswith("__") and found is not None:  # in place, unlike __rshift__
            return args[0]
        given = {id(value.here): value for value in far}
        return tree_map(lambda value: _there(value, given) if goes_far else value, found)

    def _count(self, func: Any, name: str, args: Any, kwargs: Any, goes_far: bool) -> None:
        by_mask = name in ("index", "index_put", "index_put_", "_index_put_impl_") and any(
            mask is not None and mask.dtype == torch.bool for mask in args[1]
        )
        known_size = name == "repeat_interleave" and kwargs.get("output_size") is not None
        if (name in WAITING and not known_size) or by_mask or not goes_far:
            self.waits[f"{name} by mask" if by_mask else name] += 1


class _OutOfReach(TorchFunctionMode):
    """Handles what a dispatch mode does not see: ``torch.tensor(…, device=…)`` and ``tolist``."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if func is torch.tensor and torch.device(kwargs.get("device") or "cpu").type == DEVICE:
            return func(*args, **{**kwargs, "device": "cpu"}).to(DEVICE)
        if func is Tensor.tolist and isinstance(args[0], FarTensor):
            return args[0].cpu().tolist()
        return func(*args, **kwargs)


@contextmanager
def far_away() -> Iterator[FarAway]:
    """Enables the device, and counts what the host waits for."""
    with FarAway() as mode, _OutOfReach():
        yield mode


def _here(value: Any) -> Any:
    return value.here if isinstance(value, FarTensor) else value


def _there(value: Any, given: dict[int, FarTensor]) -> Any:
    if not isinstance(value, Tensor) or isinstance(value, FarTensor):
        return value
    return given[id(value)] if id(value) in given else FarTensor(value)
