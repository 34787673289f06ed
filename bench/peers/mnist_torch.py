"""The MNIST job of `bench/train` in PyTorch, with the settings that are best for it; prints one JSON line.

    python3 bench/peers/mnist_torch.py --threads 2 --data FOLDER

The same net, loss, optimizer and batches as ours. The images lie in memory as one tensor and batches are slices of it, so
no loader costs anything. `samples_per_second` is the median over blocks of steps, after the warm-up.
"""
import argparse
import gzip
import os
import struct
import sys

import measure


# The defaults are what was best with torch 2.15 on 2 cores with AVX-512, CPU time of a step on one thread: channels-last
# 65-80 ms (else 74-90); fused AdamW 64-71 (foreach 74-76, single 71-78); the ReLU after the pool 65-80 (before it 92);
# torch.compile 73, level with eager, after 6 s of compiling. Flushing denormals makes no difference here.
def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--data", help="folder with the IDX files; noise of the same shape where it is left out")
    p.add_argument("--lr", type=float, default=1e-3)
    p.add_argument("--channels-last", action=argparse.BooleanOptionalAction, default=True)
    p.add_argument("--compile", action=argparse.BooleanOptionalAction, default=False)
    p.add_argument("--optimizer", choices=["fused", "foreach", "single"], default="fused", help="kind of AdamW step")
    p.add_argument("--pool-first", action=argparse.BooleanOptionalAction, default=True,
                   help="the second ReLU after the pool, as in our net: the same values, a quarter of the work")
    p.add_argument("--flush-denormals", action=argparse.BooleanOptionalAction, default=True)
    p.add_argument("--seed", type=int, default=0)
    measure.add_arguments(p, steps=200, block=20, warmup=20)
    return p.parse_args()


def read_idx(folder, name):
    for spelling in (name, name.replace("-idx", ".idx")):
        for suffix, opener in (("", open), (".gz", gzip.open)):
            path = os.path.join(folder, spelling + suffix)
            if os.path.exists(path):
                with opener(path, "rb") as f:
                    _, _, kind, dims = struct.unpack("4B", f.read(4))
                    assert kind == 8, f"{path}: not bytes"
                    sizes = struct.unpack(f">{dims}I", f.read(4 * dims))
                    values = torch.empty(sizes, dtype=torch.uint8)
                    f.readinto(values.numpy())  # no second copy in memory
                    return values
    sys.exit(f"mnist_torch: no {name} in {folder}")


def main(options):
    torch.manual_seed(options.seed)
    torch.set_num_threads(options.threads)
    torch.set_flush_denormal(options.flush_denormals)
    if options.data:
        images, labels = read_idx(options.data, "train-images-idx3-ubyte"), read_idx(options.data, "train-labels-idx1-ubyte")
    else:
        images, labels = torch.randint(0, 256, (60000, 28, 28), dtype=torch.uint8), torch.randint(0, 10, (60000,))
    images, labels = images.unsqueeze(1), labels.long()

    relu, pool = torch.nn.ReLU(inplace=True), torch.nn.MaxPool2d(2)
    net = torch.nn.Sequential(
        torch.nn.Conv2d(1, 32, 3), relu, torch.nn.Conv2d(32, 64, 3), *((pool, relu) if options.pool_first else (relu, pool)),
        torch.nn.Flatten(), torch.nn.Linear(9216, 128), relu, torch.nn.Linear(128, 10))
    layout = torch.channels_last if options.channels_last else torch.contiguous_format
    net = net.to(memory_format=layout)
    adam = torch.optim.AdamW(net.parameters(), lr=options.lr, fused=options.optimizer == "fused",
                             foreach=options.optimizer == "foreach")

    def loss_of(x, y):
        return torch.nn.functional.cross_entropy(net(x), y)

    if options.compile:
        loss_of = torch.compile(loss_of)
    batches = len(images) // options.batch

    def step(i):
        at = i % batches * options.batch
        x = images[at:at + options.batch].float().mul_(1 / (255 * 0.3081)).sub_(0.1307 / 0.3081)
        adam.zero_grad(set_to_none=True)
        loss = loss_of(x.to(memory_format=layout), labels[at:at + options.batch])
        loss.backward()
        adam.step()
        return loss

    measure.measure("mnist", step, options, IMPORTED, torch.__version__)


if __name__ == "__main__":
    parsed = arguments()
    import torch
    IMPORTED = measure.peak_memory()
    main(parsed)
