"""A small net for some steps under torch.autocast on the CPU in bf16: logits, losses, the first and last gradients."""
import numpy as np
import torch
import torch.nn.functional as F

from golden_format import File, normal

STEPS = 4


class Net(torch.nn.Module):
    """Products in bf16, a sum of bf16 and f32 between them."""

    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(2, 8, 3, padding=1)
        self.fc1 = torch.nn.Linear(8 * 3 * 3, 16)
        self.fc2 = torch.nn.Linear(16, 16)
        self.fc3 = torch.nn.Linear(16, 5)

    def forward(self, x):
        h = F.max_pool2d(F.relu(self.conv(x)), 2)
        h = self.fc1(h.flatten(1)).float()
        h = h + self.fc2(F.relu(h))
        return self.fc3(torch.tanh(h))


def amp():
    f = File("amp")
    rng = f.rng("net")
    net = Net()
    with torch.no_grad():
        for name, p in net.named_parameters():
            fan_in = p[0].numel() if p.dim() > 1 else fan_in
            p.copy_(torch.from_numpy(normal(*p.shape)(rng) / np.sqrt(fan_in)))
            f.put(f"parameters/{name}", p)
    x = torch.from_numpy(normal(16, 2, 6, 6)(rng)).float()
    y = torch.from_numpy(rng.integers(0, 5, 16))
    f.put("data/x", x)
    f.put("data/y", y)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    for step in range(STEPS):
        sgd.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits = net(x)
            # in f32: PyTorch's CPU list rounds the logarithms of probabilities to bf16, its CUDA list and Weft do not
            loss = F.cross_entropy(logits.float(), y)
        assert logits.dtype == torch.bfloat16 and loss.dtype == torch.float32
        loss.backward()
        f.put(f"step{step}/logits", logits.float())
        f.put(f"step{step}/loss", loss)
        for name, p in net.named_parameters():
            assert p.grad.dtype == torch.float32
            if step in (0, STEPS - 1):
                f.put(f"step{step}/{name}", p.grad)
        sgd.step()
    return f


def files():
    return [amp()]
