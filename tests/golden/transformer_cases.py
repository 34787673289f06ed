"""Golden cases of attention, rotary positions and the layers of Transformers. Layers take their parameters as inputs."""
import torch
import torch.nn.functional as F

from golden_format import File, constant, normal, scaled, values

WIDTH, HEADS, HIDDEN = 4, 2, 6


def weights(module):
    """Inputs for the parameters of a module, in its order."""
    return [scaled(0.5, 1 if key.startswith("norm") and key.endswith("weight") else 0, *p.shape)
            for key, p in module.named_parameters()]


def layer(make, call):
    """f(parameters…, tensors…) and the inputs of its parameters."""
    module = make().double()
    names = [key for key, _ in module.named_parameters()]

    def run(*arguments):
        state = dict(zip(names, arguments))
        return torch.func.functional_call(module, state, call(*arguments[len(names):]))
    return run, weights(module)


def mask(*rows):
    """True where a key may be attended to."""
    return values(list(rows))


def attention(causal=False):
    def run(q, k, v, open=None):
        allowed = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool)
        if causal:
            allowed = allowed.tril(k.shape[2] - q.shape[2])
        if open is not None:
            allowed = allowed & (open != 0)[:, None, None, :]
        return F.scaled_dot_product_attention(q, k, v, allowed, enable_gqa=k.shape[1] != q.shape[1])
    return run


def transformer():
    f = File("transformer")
    f.case("attention/plain", attention(), normal(2, 2, 5, 4), normal(2, 2, 7, 4), normal(2, 2, 7, 4))
    f.case("attention/causal", attention(True), normal(1, 2, 6, 3), normal(1, 2, 6, 3), normal(1, 2, 6, 3))
    f.case("attention/causal_more_keys", attention(True), normal(1, 2, 3, 4), normal(1, 2, 6, 4), normal(1, 2, 6, 4))
    f.case("attention/padding", attention(), normal(2, 1, 3, 4), normal(2, 1, 4, 4), normal(2, 1, 4, 4),
           mask([0, 1, 1, 1], [1, 0, 1, 0]))
    f.case("attention/groups", attention(True), normal(1, 4, 4, 2), normal(1, 2, 4, 2), normal(1, 2, 4, 2))

    def heads(call, **options):
        return layer(lambda: torch.nn.MultiheadAttention(WIDTH, HEADS, batch_first=True, **options), call)
    run, inputs = heads(lambda x: (x, x, x))
    f.case("heads/self", lambda *a: run(*a)[0], *inputs, normal(2, 5, WIDTH))
    run2, inputs2 = heads(lambda x, open: (x, x, x, open == 0))
    f.case("heads/padding", lambda *a: run2(*a)[0], *inputs2, normal(2, 3, WIDTH), mask([0, 1, 1], [1, 1, 1]))
    run3, inputs3 = heads(lambda x, memory: (x, memory, memory))
    f.case("heads/cross", lambda *a: run3(*a)[0], *inputs3, normal(2, 3, WIDTH), normal(2, 4, WIDTH))
    run4, inputs4 = heads(lambda x: (x, x, x), bias=False)
    f.case("heads/no_bias", lambda *a: run4(*a)[0], *inputs4, normal(1, 4, WIDTH))

    for name, options in {"post": {}, "pre_gelu": {"norm_first": True, "activation": "gelu"}}.items():
        def encoder():
            return torch.nn.TransformerEncoderLayer(WIDTH, HEADS, HIDDEN, 0.0, batch_first=True, **options)
        def decoder():
            return torch.nn.TransformerDecoderLayer(WIDTH, HEADS, HIDDEN, 0.0, batch_first=True, **options)
        f.case(f"encoder/{name}", *spread(layer(encoder, lambda x, open: (x, None, open == 0))), normal(2, 4, WIDTH),
               mask([1, 1, 1, 1], [0, 0, 1, 1]))
        later = torch.ones(4, 4, dtype=torch.bool).triu(1)
        f.case(f"decoder/{name}", *spread(layer(decoder, lambda x, memory: (x, memory, later))), normal(2, 4, WIDTH),
               normal(2, 3, WIDTH))

    def rotary(x, first, interleaved=False):
        """By complex numbers: each pair times e^(i · position · rate)."""
        pairs = x.shape[-1] // 2
        rates = 10000.0 ** (-torch.arange(pairs, dtype=torch.float64) / pairs)
        angles = (first + torch.arange(x.shape[2], dtype=torch.float64))[:, None] * rates
        turn = torch.polar(torch.ones_like(angles), angles)
        real, imaginary = (x[..., 0::2], x[..., 1::2]) if interleaved else (x[..., :pairs], x[..., pairs:])
        z = torch.complex(real, imaginary) * turn
        return torch.stack([z.real, z.imag], -1).flatten(-2) if interleaved else torch.cat([z.real, z.imag], -1)
    f.case("rotary/halves", lambda x: rotary(x, 0), normal(1, 2, 5, 6))
    f.case("rotary/interleaved", lambda x: rotary(x, 3, True), normal(2, 1, 4, 4))
    return f


def spread(pair):
    run, inputs = pair
    return [run, *inputs]


def files():
    return [transformer()]
