"""The MNIST net for 20 steps of AdamW, in f64 and f32. Weights and batches come from formulas that the test has too."""
import numpy as np
import torch
import torch.nn.functional as F

from golden_format import File

STEPS = 20
BATCH = 16
SAMPLES = 8  # elements kept of each parameter


def mix(index, stream):
    """A 32-bit mixing hash of (index, stream), as uint32."""
    x = index.astype(np.uint32) * np.uint32(2654435761) + np.uint32(stream * 40503 & 0xFFFFFFFF)
    x ^= x >> np.uint32(16)
    x *= np.uint32(0x7FEB352D)
    x ^= x >> np.uint32(15)
    x *= np.uint32(0x846CA68B)
    x ^= x >> np.uint32(16)
    return x


def unit(count, stream):
    """Values in [0, 1) with 24 bits: exact in f32."""
    return (mix(np.arange(count), stream) >> np.uint32(8)).astype(np.float64) / 2**24


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(1, 32, 3)
        self.conv2 = torch.nn.Conv2d(32, 64, 3)
        self.fc1 = torch.nn.Linear(9216, 128)
        self.fc2 = torch.nn.Linear(128, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv2(F.relu(self.conv1(x)))), 2)
        return F.log_softmax(self.fc2(F.relu(self.fc1(x.flatten(1)))), -1)


def initialise(net):
    """Parameter number p, element i: uniform in ±1 / sqrt(fan-in) from stream p."""
    with torch.no_grad():
        p = 0
        for layer in (net.conv1, net.conv2, net.fc1, net.fc2):
            fan_in = layer.weight[0].numel()
            for parameter in (layer.weight, layer.bias):
                u = (2 * unit(parameter.numel(), p) - 1) / np.sqrt(fan_in)
                parameter.copy_(torch.from_numpy(u).reshape(parameter.shape))
                p += 1


def batch(step):
    """Noise with a bright band at the label's height."""
    labels = mix(np.arange(BATCH), 1000 + step) % np.uint32(10)
    pixels = unit(BATCH * 784, 100 + step).reshape(BATCH, 28, 28) * 0.5
    pixels += 0.5 * (np.arange(28)[None, :, None] * 10 // 28 == labels[:, None, None])
    pixels = (pixels - 0.1307) / 0.3081
    return torch.from_numpy(pixels[:, None]), torch.from_numpy(labels.astype(np.int64))


def mnist():
    f = File("mnist_net")
    for name, dtype in (("f64", torch.float64), ("f32", torch.float32)):
        net = Net().to(dtype)
        initialise(net)
        adam = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=0.01)
        losses = []
        for step in range(STEPS):
            x, y = batch(step)
            adam.zero_grad()
            loss = F.nll_loss(net(x.to(dtype)), y)
            loss.backward()
            adam.step()
            losses.append(loss.item())
        f.put(f"{name}/losses", np.array(losses))
        for key, p in net.named_parameters():
            values = p.detach().double().flatten()
            f.put(f"{name}/{key}/norm", values.norm())
            f.put(f"{name}/{key}/samples", values[[k * p.numel() // SAMPLES for k in range(SAMPLES)]])
        print(name, " ".join(f"{v:.4f}" for v in losses))
    return f


def files():
    return [mnist()]
