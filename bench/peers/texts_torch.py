"""The jobs cnn and lstm of `bench/train` in PyTorch, on random ids; prints one JSON line.

    python3 bench/peers/texts_torch.py --job cnn --threads 2

The same nets, loss, optimizer and batches as ours. `samples_per_second` is the median over blocks of steps, after the warm-up.
"""
import argparse

import measure


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--job", choices=["cnn", "lstm"], default="cnn")
    p.add_argument("--length", type=int, default=400)
    p.add_argument("--sparse-embeddings", action="store_true", help="nn.Embedding(sparse=True) with SparseAdam for it")
    p.add_argument("--optimizer", choices=["fused", "foreach", "single"], default="fused", help="kind of AdamW step")
    p.add_argument("--flush-denormals", action=argparse.BooleanOptionalAction, default=True)
    p.add_argument("--seed", type=int, default=0)
    measure.add_arguments(p, steps=20, block=4, warmup=4)
    return p.parse_args()


VOCABULARY, TEXTS = 20000, 6400


def nets(options):
    nn = torch.nn

    class Cnn(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(VOCABULARY, 300, sparse=options.sparse_embeddings)
            self.conv, self.pool = nn.Conv1d(300, 256, 3), nn.MaxPool1d(2)
            self.fc1, self.fc2, self.drop = nn.Linear(256, 256), nn.Linear(256, 1), nn.Dropout(0.2)

        def forward(self, ids):
            x = self.drop(self.embedding(ids)).transpose(1, 2)
            x = self.pool(torch.relu(self.conv(x))).amax(dim=2)
            return self.fc2(self.drop(torch.relu(self.fc1(x)))).squeeze(1)

    class Lstm(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(VOCABULARY, 128, sparse=options.sparse_embeddings)
            self.lstm = nn.LSTM(128, 64, bidirectional=True, batch_first=True)
            self.fc, self.drop = nn.Linear(128, 1), nn.Dropout(0.3)

        def forward(self, ids):
            _, (h, _) = self.lstm(self.drop(self.embedding(ids)))
            return self.fc(self.drop(torch.cat([h[0], h[1]], 1))).squeeze(1)

    return {"cnn": Cnn, "lstm": Lstm}


def main(options):
    torch.manual_seed(options.seed)
    torch.set_num_threads(options.threads)
    torch.set_flush_denormal(options.flush_denormals)
    ids = torch.randint(1, VOCABULARY, (TEXTS, options.length))
    labels = torch.randint(0, 2, (TEXTS,)).float()
    net = nets(options)[options.job]()
    sparse = [net.embedding.weight] if options.sparse_embeddings else []
    dense = [p for p in net.parameters() if all(p is not s for s in sparse)]
    optimizers = [torch.optim.AdamW(dense, lr=1e-3, fused=options.optimizer == "fused", foreach=options.optimizer == "foreach")]
    if sparse:
        optimizers.append(torch.optim.SparseAdam(sparse, lr=1e-3))

    def step(i):
        at = i * options.batch % (TEXTS - options.batch + 1)
        for optimizer in optimizers:
            optimizer.zero_grad(set_to_none=True)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(net(ids[at:at + options.batch]), labels[at:at + options.batch])
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
        return loss

    measure.measure(options.job, step, options, IMPORTED, torch.__version__)


if __name__ == "__main__":
    parsed = arguments()
    import torch
    IMPORTED = measure.peak_memory()
    main(parsed)
