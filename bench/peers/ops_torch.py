"""The benchmarks of `bench/ops_bench` in PyTorch: the same names, sizes and values' ranges, one thread, CPU time.

    python3 bench/peers/ops_torch.py [--filter REGEX] [--min-time SECONDS]

Prints one line a benchmark: name, a tab, the median time of a call in microseconds. `bench/peers/compare_ops.py` runs it.
"""
import argparse
import re
import statistics
import time

import torch
import torch.nn.functional as F

M = 1 << 20


def floats(*sizes, low=-2.0, high=2.0, dtype=torch.float32):
    return torch.empty(sizes).uniform_(low, high).to(dtype)


def positive(*sizes):
    return floats(*sizes, low=0.3, high=2.5)


def ids(*sizes, count):
    return torch.randint(0, count, sizes)


def booleans(*sizes):
    return torch.randint(0, 2, sizes).bool()


def last(x):
    return x.contiguous(memory_format=torch.channels_last)


def optimizer():
    # Eight tensors of 1.2 million parameters together, as in the MNIST net.
    sizes = [(32, 1, 3, 3), (32,), (64, 32, 3, 3), (64,), (128, 9216), (128,), (10, 128), (10,)]
    params = [floats(*s) for s in sizes]
    for p in params:
        p.grad = floats(*p.shape)
    adam = torch.optim.AdamW(params, lr=1e-3, fused=True)
    return adam.step


def entry(make, run, gradient=True):
    return make, run, gradient


def unary(run, make=lambda: [floats(M)], gradient=True):
    return entry(make, run, gradient)


def binary(run, low=-2.0):
    return entry(lambda: [floats(M, low=low), floats(M, low=low)], run)


def image():
    return [last(floats(64, 64, 24, 24))]


def planes():
    return [floats(64, 64, 24, 24)]


def square():
    return [floats(1024, 1024)]


def tall():
    return [floats(4096, 256)]


def norm_inputs(*sizes, channels, channels_last=False):
    def make():
        x = floats(*sizes)
        return [last(x) if channels_last else x, positive(channels), floats(channels)]
    return make


def batch_norm(x, w, b):
    return F.batch_norm(x, None, None, w, b, training=True)


def rank(run, gradient=True):
    return entry(lambda: [floats(256, 4096, 1)], run, gradient)


def causal_attention(x):
    q, k, v = (part.transpose(1, 2) for part in x.unflatten(2, (3, 2, -1)).unbind(2))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)


def rotary(x):
    """Angles are made anew each time, as ours are."""
    pairs = x.shape[-1] // 2
    angles = torch.outer(torch.arange(x.shape[2]), 10000.0 ** (-torch.arange(pairs) / pairs))
    a, b, c, s = x[..., :pairs], x[..., pairs:], angles.cos(), angles.sin()
    return torch.cat([a * c - b * s, a * s + b * c], -1)


def conv(n, c, h, o, k, channels_last=True, **options):
    def make():
        x, w = floats(n, c, h, h), floats(o, c // options.get("groups", 1), k, k)
        return ([last(x), last(w)] if channels_last else [x, w]) + [floats(o)]
    return entry(make, lambda x, w, b: F.conv2d(x, w, b, **options))


def conv_max(x, w, b):
    return F.max_pool1d(F.relu(F.conv1d(x.transpose(1, 2), w, b)), 2).amax(2)


def recurrent(op, gates, *states):
    """One layer in one direction, time first; from states of zeros."""
    def make():
        return [floats(*s, low=-0.1, high=0.1) for s in [(200, 64, 64), (gates * 64, 64), (gates * 64, 64), (gates * 64,), (gates * 64,)]]

    def run(x, *parameters):
        zeros = [torch.zeros(1, 64, 64) for _ in states]
        return op(x, zeros if len(zeros) > 1 else zeros[0], parameters, True, 1, 0.0, True, False, False)[0]
    return entry(make, run)


ENTRIES = {
    "neg": unary(torch.neg), "abs": unary(torch.abs), "square": unary(torch.square), "exp": unary(torch.exp),
    "log": unary(torch.log, lambda: [positive(M)]), "sqrt": unary(torch.sqrt, lambda: [positive(M)]),
    "rsqrt": unary(torch.rsqrt, lambda: [positive(M)]), "sin": unary(torch.sin), "cos": unary(torch.cos),
    "erf": unary(torch.erf), "sigmoid": unary(torch.sigmoid), "tanh": unary(torch.tanh), "gelu": unary(F.gelu),
    "gelu_tanh": unary(lambda x: F.gelu(x, approximate="tanh")), "silu": unary(F.silu), "softplus": unary(F.softplus),
    "relu": unary(F.relu), "leaky_relu": unary(lambda x: F.leaky_relu(x, 0.1)),
    "clamp": unary(lambda x: torch.clamp(x, -0.7, 1.1)), "pow/number": unary(lambda x: torch.pow(x, 3)),
    "affine": unary(lambda x: 1 - x * 3),
    "add": binary(torch.add), "sub": binary(torch.sub), "mul": binary(torch.mul), "div": binary(torch.div, 0.5),
    "pow": binary(torch.pow, 0.5), "maximum": binary(torch.maximum), "minimum": binary(torch.minimum),
    "where/large": entry(lambda: [booleans(M), floats(M), floats(M)], torch.where),
    "bias": entry(lambda: [floats(4096, 256), floats(256)], torch.add),
    "bias/columns": entry(lambda: [floats(4096, 256), floats(4096, 1)], torch.mul),
    "bias/channels_last": entry(lambda: image() + [floats(1, 64, 1, 1)], torch.add),
    "sum": unary(torch.sum), "sum/rows": unary(lambda x: x.sum(-1), tall), "sum/columns": unary(lambda x: x.sum(0, True), tall),
    "mean/large": unary(torch.mean), "mean/channels_last": unary(lambda x: x.mean((0, 2, 3)), image),
    "var/columns": unary(lambda x: x.var(0), tall), "var/rows": unary(lambda x: x.var(1, keepdim=True), tall),
    "norm": unary(torch.linalg.vector_norm), "logsumexp/large": unary(lambda x: x.logsumexp(1), square),
    "max/all": unary(torch.max), "max/rows": unary(lambda x: x.max(1).values, tall),
    "max/columns": unary(lambda x: x.max(0, keepdim=True).values, tall),
    "argmax/rows": unary(lambda x: x.argmax(1), square, False), "argmax/columns": unary(lambda x: x.argmax(0), square, False),
    "argmin/rows": unary(lambda x: x.argmin(1), square, False), "argmin/middle": unary(lambda x: x.argmin(1), square, False),
    "cumsum": unary(lambda x: x.cumsum(1), square),
    "softmax": unary(lambda x: x.softmax(1), lambda: [floats(2048, 256)]),
    "softmax/classes": unary(lambda x: x.softmax(1), lambda: [floats(512, 1000)]),
    "softmax/long_rows": unary(lambda x: x.softmax(1), lambda: [floats(64, 20000)]),
    "softmax/middle": unary(lambda x: x.softmax(1), lambda: [floats(16, 64, 1024)]),
    "log_softmax": unary(lambda x: x.log_softmax(1), lambda: [floats(2048, 256)]),
    "log_softmax/classes": unary(lambda x: x.log_softmax(1), lambda: [floats(512, 1000)]),
    "log_softmax/long_rows": unary(lambda x: x.log_softmax(1), lambda: [floats(64, 20000)], False),
    "attention/packed_causal": unary(causal_attention, lambda: [floats(8, 256, 384)]),
    "rotary": unary(rotary, lambda: [floats(4, 4, 256, 64)]),
    "layer_norm": entry(norm_inputs(2048, 256, channels=256), lambda x, w, b: F.layer_norm(x, (256,), w, b)),
    "layer_norm/wide": entry(norm_inputs(4096, 768, channels=768), lambda x, w, b: F.layer_norm(x, (768,), w, b)),
    "rms_norm": entry(lambda: [floats(2048, 256), positive(256)], lambda x, w: F.rms_norm(x, (256,), w, 1e-6)),
    "rms_norm/wide": entry(lambda: [floats(4096, 768), positive(768)], lambda x, w: F.rms_norm(x, (768,), w, 1e-6)),
    "group_norm": entry(norm_inputs(16, 64, 26, 26, channels=64), lambda x, w, b: F.group_norm(x, 2, w, b)),
    "batch_norm": entry(norm_inputs(64, 64, 26, 26, channels=64), batch_norm),
    "batch_norm/rows": entry(norm_inputs(4096, 256, channels=256), batch_norm),
    "batch_norm/channels_last": entry(norm_inputs(64, 64, 26, 26, channels=64, channels_last=True), batch_norm),
    "max_pool2d": unary(lambda x: F.max_pool2d(x, 2), planes), "avg_pool2d": unary(lambda x: F.avg_pool2d(x, 2), planes),
    "max_pool2d/overlap": unary(lambda x: F.max_pool2d(x, 3, 2, 1), planes),
    "max_pool2d/channels_last": unary(lambda x: F.max_pool2d(x, 2), image),
    "avg_pool2d/channels_last": unary(lambda x: F.avg_pool2d(x, 2), image),
    "max_pool1d": unary(lambda x: F.max_pool1d(x, 3, 2, 1), lambda: [floats(64, 256, 498)]),
    "global_max_pool": unary(lambda x: x.amax(2), lambda: [floats(64, 256, 249)]),
    "global_avg_pool": unary(lambda x: x.mean((2, 3)), lambda: [floats(64, 512, 14, 14)]),
    "conv1d_max/text": entry(lambda: [floats(*n, low=-0.1, high=0.1) for n in [(64, 400, 300), (256, 300, 3), (256,)]], conv_max),
    "lstm/text": recurrent(torch.lstm, 4, "h", "c"), "gru/text": recurrent(torch.gru, 3, "h"),
    "embedding": entry(lambda: [floats(20000, 64), ids(64, 200, count=20000)], lambda w, i: F.embedding(i, w)),
    "embedding/wide": entry(lambda: [floats(20000, 300), ids(25600, count=20000)], lambda w, i: F.embedding(i, w)),
    "gather/middle_dim": entry(lambda: [floats(4096, 256), ids(4096, 64, count=256)], lambda x, i: x.gather(1, i)),
    "scatter_add/middle_dim": entry(lambda: [floats(4096, 256), ids(4096, 64, count=256), floats(4096, 64)],
                                    lambda x, i, s: x.scatter_add(1, i, s)),
    "index_select/middle_dim": entry(lambda: [floats(64, 256, 64), ids(128, count=256)], lambda x, i: x.index_select(1, i)),
    "index_add/middle_dim": entry(lambda: [floats(64, 256, 64), ids(512, count=256), floats(64, 512, 64)],
                                  lambda x, i, s: x.index_add(1, i, s)),
    "cat": entry(lambda: [floats(256, 1024) for _ in range(3)], lambda a, b, c: torch.cat([a, b, c], 1)),
    "pad": unary(lambda x: F.pad(x, (1, 1, 1, 1)), lambda: [floats(64, 32, 28, 28)]),
    "masked_fill": entry(lambda: [floats(64, 256, 256), booleans(256, 256)], lambda x, m: x.masked_fill(m, -1.0)),
    "transpose": unary(lambda x: x.t().contiguous(), square),
    "topk/largest": rank(lambda x: x.topk(3, 1).values), "topk/smallest": rank(lambda x: x.topk(2, 1, largest=False).values),
    "topk/indices": rank(lambda x: x.topk(3, 1).indices, False), "sort/rising": rank(lambda x: x.sort(dim=1, stable=True).values),
    "sort/falling": rank(lambda x: x.sort(dim=1, descending=True, stable=True).values),
    "sort/indices": rank(lambda x: x.sort(dim=1, stable=True).indices, False),
    "cross_entropy": entry(lambda: [floats(64, 10), ids(64, count=10)], F.cross_entropy),
    "cross_entropy/classes": entry(lambda: [floats(512, 1000), ids(512, count=1000)], F.cross_entropy),
    "cross_entropy/many_classes": entry(lambda: [floats(2048, 8192), ids(2048, count=8192)], F.cross_entropy),
    "mse_loss": entry(lambda: [floats(M), floats(M)], F.mse_loss),
    "l1_loss": entry(lambda: [floats(M), floats(M, low=3, high=5)], F.l1_loss),
    "huber_loss": entry(lambda: [floats(M), floats(M)], lambda x, t: F.huber_loss(x, t, delta=0.7)),
    "bce_with_logits": entry(lambda: [floats(M), floats(M, low=0, high=1)], F.binary_cross_entropy_with_logits),
    "dropout": unary(lambda x: F.dropout(x, 0.3, True)),
    "matmul/matrices": entry(lambda: [floats(1024, 1024), floats(1024, 1024)], torch.matmul),
    "matmul/batched": entry(lambda: [floats(32, 128, 64), floats(32, 64, 128)], torch.matmul),
    "linear/bias": entry(lambda: [floats(64, 9216), floats(128, 9216), floats(128)], F.linear),
    "conv2d/plain": conv(64, 32, 26, 64, 3), "conv2d/one_channel_in": conv(64, 1, 28, 32, 3),
    "conv2d/pointwise": conv(32, 64, 28, 128, 1), "conv2d/stride": conv(32, 64, 28, 128, 3, stride=2, padding=1),
    "conv2d/large_kernel": conv(32, 16, 28, 32, 5, padding=2),
    "conv2d/depthwise_large": conv(32, 64, 28, 64, 3, padding=1, groups=64),
    "cast/bf16": unary(lambda x: x.bfloat16(), gradient=False),
    "copy/to_rows": unary(lambda x: x.contiguous(memory_format=torch.contiguous_format), image, False),
    "copy/to_channels_last": unary(last, planes, False),
}


def median_time(call, min_time):
    call(), call()
    start = time.thread_time()
    call()
    once = max(time.thread_time() - start, 1e-7)
    inner = max(1, int(1e-3 / once))  # a measurement of at least a millisecond
    times, end = [], time.thread_time() + min_time
    while time.thread_time() < end or len(times) < 3:
        start = time.thread_time()
        for _ in range(inner):
            call()
        times.append((time.thread_time() - start) / inner)
    return statistics.median(times)


def forward_backward(inputs, run):
    inputs = [x.requires_grad_() if x.is_floating_point() else x for x in inputs]
    dy = torch.ones_like(run(*inputs).detach())

    def call():
        for x in inputs:
            x.grad = None
        run(*inputs).backward(dy)
    return call


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--filter", default="")
    p.add_argument("--min-time", type=float, default=0.05)
    options = p.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    for name, (make, run, gradient) in ENTRIES.items():
        if re.search(options.filter, name + "/forward"):
            inputs = make()
            print(name + "/forward", median_time(lambda: run(*inputs), options.min_time) * 1e6, sep="\t", flush=True)
        if gradient and re.search(options.filter, name + "/forward_backward"):
            call = forward_backward(make(), run)
            print(name + "/forward_backward", median_time(call, options.min_time) * 1e6, sep="\t", flush=True)
    if re.search(options.filter, "adamw"):
        print("adamw", median_time(optimizer(), options.min_time) * 1e6, sep="\t", flush=True)


if __name__ == "__main__":
    main()
