"""Golden cases of recurrent layers: outputs, last states, and gradients of all inputs and parameters."""
import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from golden_format import File, normal, scaled, values

WIDTH = 3


def rnn():
    f = File("rnn")

    def layer(name, kind, *shape, lengths=None, **options):
        """Inputs: x, h_0, (c_0,) the parameters in the module's order, lengths where there are some."""
        options = {"batch_first": True, **options}
        module = kind(shape[-1], WIDTH, dtype=torch.float64, **options)
        names = [n for n, _ in module.named_parameters()]
        states = 2 if kind is torch.nn.LSTM else 1
        batch, steps = shape[:2] if options["batch_first"] else (shape[1], shape[0])
        ends = options.get("num_layers", 1) * (2 if options.get("bidirectional") else 1)

        def run(x, *rest):
            start = rest[0] if states == 1 else tuple(rest[:2])
            parameters = dict(zip(names, rest[states:]))
            if lengths is not None:
                x = pack_padded_sequence(x, rest[-1], batch_first=options["batch_first"], enforce_sorted=False)
            y, end = torch.func.functional_call(module, parameters, (x, start))
            if lengths is not None:
                y, _ = pad_packed_sequence(y, batch_first=options["batch_first"], total_length=steps)
            return (y, end) if states == 1 else (y, *end)

        inputs = [normal(*shape)] + [normal(ends, batch, WIDTH)] * states
        inputs += [scaled(0.5, 0, *p.shape) for _, p in module.named_parameters()]
        f.case(name, run, *inputs, *([values(lengths)] if lengths is not None else []))

    for prefix, kind in [("lstm", torch.nn.LSTM), ("gru", torch.nn.GRU)]:
        layer(f"{prefix}/plain", kind, 2, 4, 2)
        layer(f"{prefix}/time_first_no_bias", kind, 4, 2, 2, batch_first=False, bias=False)
        layer(f"{prefix}/two_layers_bidirectional", kind, 2, 3, 2, num_layers=2, bidirectional=True)
        layer(f"{prefix}/packed", kind, 4, 5, 2, lengths=[3, 5, 1, 4])
        layer(f"{prefix}/packed_two_layers_bidirectional", kind, 3, 4, 2, num_layers=2, bidirectional=True, lengths=[2, 4, 1])
    return f


def files():
    return [rnn()]
