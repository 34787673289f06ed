"""Recording of golden cases and the file format they are kept in."""
import json
import struct
import sys
import zlib

import numpy as np
import torch

torch.set_num_threads(1)
torch.use_deterministic_algorithms(True)


def normal(*shape):
    """Standard normal values, representable in f32 so that an f32 run starts from the same numbers."""
    return lambda rng: rng.standard_normal(shape).astype(np.float32).astype(np.float64)


def scaled(factor, offset, *shape):
    """Normal values of another deviation and mean, representable in f32."""
    return lambda rng: (rng.standard_normal(shape) * factor + offset).astype(np.float32).astype(np.float64)


def positive(*shape):
    """Uniform in [0.5, 2), representable in f32."""
    return lambda rng: rng.uniform(0.5, 2, shape).astype(np.float32).astype(np.float64)


def distinct(*shape):
    """A random order of values 0.125 apart around 0: no ties, none by rounding either."""
    def make(rng):
        count = int(np.prod(shape))
        return (rng.permutation(count).reshape(shape) - count // 2) * 0.125
    return make


def integers(count, *shape):
    """Indices in [0, count)."""
    return lambda rng: rng.integers(0, count, shape)


def values(array):
    """Just these."""
    return lambda rng: np.array(array)


class constant:
    """An input without a gradient."""

    def __init__(self, make):
        self.make = make

    def __call__(self, rng):
        return self.make(rng)


class File:
    """One data file: the cases of a stem."""

    def __init__(self, stem):
        self.stem = stem
        self.tensors = {}

    def rng(self, name):
        """Each case draws from its own generator: a new case leaves the others as they are."""
        return np.random.Generator(np.random.PCG64(zlib.crc32(f"{self.stem}/{name}".encode())))

    def put(self, key, value):
        if isinstance(value, torch.Tensor):
            value = value.detach().numpy()
        value = np.asarray(value)
        value = value.astype(np.float64 if value.dtype.kind == "f" else np.int64)
        assert key not in self.tensors, key
        self.tensors[key] = np.array(value, order="C")

    def case(self, name, f, *inputs):
        """Runs f on the inputs; keeps inputs in<i>, results out<i>, upstream gradients dy<i>, gradients grad<i>."""
        rng = self.rng(name)
        arguments = []
        for i, make in enumerate(inputs):
            x = torch.from_numpy(np.array(make(rng)))
            self.put(f"{name}/in{i}", x)
            arguments.append(x.clone())
        wanted = [i for i, x in enumerate(arguments) if x.is_floating_point() and not isinstance(inputs[i], constant)]
        for i in wanted:
            arguments[i].requires_grad_()
        outputs = f(*arguments)
        if not isinstance(outputs, (tuple, list)):
            outputs = [outputs]
        differentiable, upstream = [], []
        for i, y in enumerate(outputs):
            self.put(f"{name}/out{i}", y)
            if y.requires_grad:
                dy = normal(*y.shape)(rng)
                self.put(f"{name}/dy{i}", dy)
                differentiable.append(y)
                upstream.append(torch.from_numpy(np.array(dy)))
        if differentiable:
            leaves = [arguments[i] for i in wanted]
            for i, gradient in zip(wanted, torch.autograd.grad(differentiable, leaves, upstream, allow_unused=True)):
                if gradient is not None:
                    self.put(f"{name}/grad{i}", gradient)

    def write(self, folder):
        """safetensors: header length (u64, little endian), JSON header, raw little-endian data."""
        header = {"__metadata__": {"generator": "tests/golden/generate.py", "version": VERSION, "torch": torch.__version__,
                                   "numpy": np.__version__, "python": sys.version.split()[0]}}
        data = b""
        for key, value in self.tensors.items():
            raw = value.astype(value.dtype.newbyteorder("<")).tobytes()
            header[key] = {"dtype": {"f8": "F64", "f4": "F32", "i8": "I64"}[value.dtype.str[1:]], "shape": list(value.shape),
                           "data_offsets": [len(data), len(data) + len(raw)]}
            data += raw
        text = json.dumps(header, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 8)
        with open(f"{folder}/{self.stem}.safetensors", "wb") as out:
            out.write(struct.pack("<Q", len(text)) + text + data)
        return 8 + len(text) + len(data)


VERSION = "1"
