"""Copies to a CUDA device, what its card is fast at, and products in full precision."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import array_api_compat as compat
import numpy as np

if TYPE_CHECKING:
    import torch

SENT_BYTES = 2**20
"""Arrays of at least so many bytes go to a CUDA device through pinned memory."""

PINNED_BYTES = 2**25
"""Bytes of a pinned buffer."""


class Sender:
    """Copies NumPy arrays to a CUDA device: through two pinned buffers in turn, on a stream of its own.

    While one buffer is on its way, the other is filled; and computing on the device goes on meanwhile.
    """

    def __init__(self, device: torch.device) -> None:
        import torch

        self.device, self.stream, self.lock = device, torch.cuda.Stream(device), threading.Lock()
        self.buffers = [torch.empty(PINNED_BYTES, dtype=torch.uint8).pin_memory() for _ in range(2)]
        self.sent = [torch.cuda.Event() for _ in range(2)]

    def __call__(self, x: np.ndarray) -> tuple[torch.Tensor, Callable[[], None]]:
        """(x on the device, what to call before it is used on_device)."""
        import torch

        x = np.ascontiguousarray(x)
        if not x.flags.writeable:  # torch warns about memory it could write to: nobody will
            interface = dict(x.__array_interface__, data=(x.__array_interface__["data"][0], False))
            x = np.asarray(type("Writable", (), {"__array_interface__": interface, "owner": x})())
        source = torch.from_numpy(x)
        flat = source.view(-1).view(torch.uint8)
        with self.lock, torch.cuda.stream(self.stream):
            on_device = torch.empty(source.shape, dtype=source.dtype, device=self.device)
            target = on_device.view(-1).view(torch.uint8)
            for k, start in enumerate(range(0, len(flat), PINNED_BYTES)):
                part = flat[start : start + PINNED_BYTES]
                buffer, sent = self.buffers[k % 2][: len(part)], self.sent[k % 2]
                sent.synchronize()
                buffer.copy_(part)
                target[start : start + len(part)].copy_(buffer, non_blocking=True)
                sent.record(self.stream)
            arrived = torch.cuda.Event()
            arrived.record(self.stream)

        def ready() -> None:
            now = torch.cuda.current_stream(self.device)
            now.wait_event(arrived)
            on_device.record_stream(now)

        return on_device, ready


sender = functools.cache(Sender)


@functools.cache
def fast_at_float64(device: torch.device) -> bool:
    """Whether a CUDA device multiplies in float64 at the rate of float32: the cards made for data centres do."""
    import torch

    return torch.cuda.get_device_capability(device) in ((8, 0), (9, 0), (10, 0))


@contextlib.contextmanager
def full_products(a: object) -> Iterator[None]:
    """Products of float32 tensors on a CUDA device are made in float32, whatever the user allows: TF32 has ten bits.
    Those of halves are added up in float32."""
    if not compat.is_torch_array(a) or not a.is_cuda or a.dtype.itemsize not in (2, 4):
        yield
        return
    import torch

    matmul = torch.backends.cuda.matmul
    name, full = ("fp32_precision", "ieee") if hasattr(matmul, "fp32_precision") else ("allow_tf32", False)
    if a.dtype.itemsize == 2:
        name, full = "allow_fp16_reduced_precision_reduction", False
    before = getattr(matmul, name)
    setattr(matmul, name, full)
    try:
        yield
    finally:
        setattr(matmul, name, before)
