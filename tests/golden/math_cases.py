"""Golden cases of copy, elementwise, reduce and matmul."""
import torch
import torch.nn.functional as F

from golden_format import File, constant, distinct, integers, normal, positive, scaled, values


def copy():
    f = File("copy")
    f.case("cast/f32", lambda x: x.float().double(), lambda rng: rng.standard_normal((3, 4)))
    f.case("cast/f16", lambda x: x.half().double(), constant(normal(4, 6)))
    f.case("cast/bf16", lambda x: x.bfloat16().double(), constant(normal(4, 6)))
    f.case("cast/i64", lambda x: x.to(torch.int64), constant(values([-2.7, -1.0, -0.5, 0.0, 0.5, 1.5, 2.999])))
    f.case("cast/bool", lambda x: x.bool(), constant(values([0.0, -0.0, 0.25, -3.0])))
    f.case("transpose", lambda x: x.transpose(0, 2).contiguous(), normal(2, 3, 4))
    f.case("permute", lambda x: x.permute(2, 0, 1).clone(), normal(2, 3, 4))
    f.case("expand", lambda x: x.expand(4, 3, 5) * 2, normal(3, 1))
    f.case("reshape", lambda x: x.t().reshape(2, 6), normal(3, 4))
    f.case("narrow", lambda x: x.narrow(1, 1, 3), normal(2, 5))
    f.case("select", lambda x: x.select(1, 2), normal(2, 5, 3))
    return f


def elementwise():
    f = File("elementwise")
    for name, op in [("add", torch.add), ("sub", torch.sub), ("mul", torch.mul), ("div", torch.div),
                     ("maximum", torch.maximum), ("minimum", torch.minimum)]:
        f.case(f"{name}/same", op, normal(3, 4), normal(3, 4))
        f.case(f"{name}/broadcast", op, normal(4, 1, 3), normal(5, 1))
    f.case("maximum/ties", torch.maximum, values([1.0, 2.0, 3.0]), values([1.0, 3.0, 2.0]))
    f.case("minimum/ties", torch.minimum, values([1.0, 2.0, 3.0]), values([1.0, 3.0, 2.0]))
    f.case("pow/tensor", torch.pow, positive(4, 1, 3), normal(5, 1))
    f.case("pow/zero_base", torch.pow, values([0.0, 0.0, 0.0]), values([2.0, 1.0, 3.0]))
    f.case("pow/cube", lambda x: x ** 3, normal(3, 5))
    f.case("pow/square_root", lambda x: x ** 0.5, positive(3, 5))
    f.case("pow/inverse", lambda x: x ** -1.5, positive(3, 5))
    f.case("affine", lambda x: 1 - x * 3, normal(3, 5))
    f.case("divide_number", lambda x: 2 / x, positive(3, 5))
    for name, op in [("neg", torch.neg), ("square", torch.square), ("exp", torch.exp), ("sin", torch.sin),
                     ("cos", torch.cos), ("erf", torch.erf), ("sigmoid", torch.sigmoid), ("tanh", torch.tanh),
                     ("gelu", F.gelu), ("gelu_tanh", lambda x: F.gelu(x, approximate="tanh")), ("silu", F.silu),
                     ("softplus", F.softplus)]:
        f.case(name, op, scaled(2, 0, 4, 9))
    for name, op in [("log", torch.log), ("sqrt", torch.sqrt), ("rsqrt", torch.rsqrt)]:
        f.case(name, op, positive(4, 7))
    edges = values([-3.0, -1.0, -0.5, 0.0, 0.25, 0.75, 1.5, 4.0])  # the kinks are among them
    f.case("abs", torch.abs, edges)
    f.case("relu", F.relu, edges)
    f.case("leaky_relu", lambda x: F.leaky_relu(x, 0.1), edges)
    f.case("clamp", lambda x: torch.clamp(x, -0.5, 0.75), edges)
    f.case("sign", torch.sign, constant(edges))
    f.case("where", lambda c, a, b: torch.where(c.bool(), a, b), integers(2, 4, 3), normal(4, 3), normal(3))
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        f.case(name, getattr(torch, name), constant(values([[1.0, 2.0, 3.0], [2.0, 2.0, -1.0]])),
               constant(values([2.0, 2.0, 3.0])))
    return f


def reduce():
    f = File("reduce")
    for name, op in [("sum", torch.sum), ("mean", torch.mean), ("logsumexp", torch.logsumexp),
                     ("max", torch.amax), ("min", torch.amin)]:
        make = distinct if name in ("max", "min") else normal
        f.case(f"{name}/all", lambda x: op(x, dim=(0, 1, 2)), make(3, 4, 5))
        f.case(f"{name}/last", lambda x: op(x, dim=-1), make(3, 4, 5))
        f.case(f"{name}/outer_keepdim", lambda x: op(x, dim=(0, 2), keepdim=True), make(3, 4, 5))
        f.case(f"{name}/middle", lambda x: op(x, dim=1), make(3, 4, 5))
    # Among equals the first wins, as in torch.max; torch.amax would share.
    f.case("max/ties", lambda x: torch.max(x, dim=1).values, values([[1.0, 3.0, 3.0, 2.0], [5.0, 5.0, 5.0, 5.0]]))
    f.case("max/with_index", lambda x: torch.max(x, dim=1), distinct(3, 4, 5))
    f.case("min/with_index", lambda x: torch.min(x, dim=-1, keepdim=True), distinct(3, 4, 5))
    f.case("prod/all", torch.prod, normal(2, 3))
    f.case("prod/last", lambda x: torch.prod(x, dim=-1), normal(4, 5))
    f.case("prod/zeros", lambda x: torch.prod(x, dim=-1), values([[2.0, 0.0, 3.0], [0.0, 1.5, 0.0], [-1.0, 2.0, 4.0]]))
    for correction in (0, 1):
        f.case(f"var/all_correction{correction}", lambda x: torch.var(x, dim=(0, 1, 2), correction=correction), normal(3, 4, 5))
        f.case(f"var/last_correction{correction}", lambda x: torch.var(x, dim=-1, correction=correction), normal(3, 4, 5))
        f.case(f"var/outer_keepdim_correction{correction}",
               lambda x: torch.var(x, dim=(0, 2), correction=correction, keepdim=True), normal(3, 4, 5))
    f.case("deviation/all", lambda x: torch.std(x), normal(3, 4))
    f.case("deviation/last", lambda x: torch.std(x, dim=-1, correction=0), normal(3, 4))
    f.case("var/offset", lambda x: torch.var(x, dim=-1, correction=0), scaled(1, 1000, 2, 9))
    for name, op in [("argmax", torch.argmax), ("argmin", torch.argmin)]:
        f.case(f"{name}/last", lambda x: op(x, dim=-1), constant(distinct(3, 4, 5)))
        f.case(f"{name}/first_keepdim", lambda x: op(x, dim=0, keepdim=True), constant(distinct(3, 4, 5)))
    for name, op in [("any", torch.any), ("all", torch.all)]:
        f.case(f"{name}/last", lambda x: op(x.bool(), dim=-1),
               values([[0, 0, 0], [0, 1, 0], [1, 1, 1], [1, 0, 1]]))
        f.case(f"{name}/all", lambda x: op(x.bool()), values([[0, 1], [1, 1]]))
    f.case("norm/infinity", lambda x: torch.linalg.vector_norm(x, float("inf"), dim=-1), normal(3, 4))
    f.case("norm/zero", lambda x: torch.linalg.vector_norm(x, dim=-1), values([[0.0, 0.0], [3.0, 4.0]]))
    for order in (1.0, 2.0, 3.0):
        f.case(f"norm/order{order:.0f}_all", lambda x: torch.linalg.vector_norm(x, order), normal(3, 4))
        f.case(f"norm/order{order:.0f}_last", lambda x: torch.linalg.vector_norm(x, order, dim=-1), normal(3, 4))
    f.case("cumsum/last", lambda x: torch.cumsum(x, -1), normal(3, 6))
    f.case("cumsum/first", lambda x: torch.cumsum(x, 0), normal(4, 3))
    f.case("logsumexp/large", lambda x: torch.logsumexp(x, -1), scaled(100, 1000, 2, 5))
    return f


def matmul():
    f = File("matmul")
    f.case("plain", torch.matmul, normal(4, 5), normal(5, 3))
    f.case("batched", torch.matmul, normal(2, 4, 5), normal(2, 5, 3))
    f.case("batch_broadcast", torch.matmul, normal(2, 1, 4, 5), normal(3, 5, 2))
    f.case("shared_right", torch.matmul, normal(3, 4, 5), normal(5, 2))
    f.case("shared_left", torch.matmul, normal(4, 5), normal(3, 5, 2))
    f.case("transposed_left", lambda a, b: torch.matmul(a.transpose(-1, -2), b), normal(2, 5, 4), normal(2, 5, 3))
    f.case("transposed_right", lambda a, b: torch.matmul(a, b.transpose(-1, -2)), normal(2, 4, 5), normal(2, 3, 5))
    f.case("transposed_both", lambda a, b: torch.matmul(a.t(), b.t()), normal(5, 4), normal(3, 5))
    f.case("one_row", torch.matmul, normal(1, 7), normal(7, 1))
    f.case("vector_left", torch.matmul, normal(5), normal(2, 5, 3))
    f.case("vector_right", torch.matmul, normal(2, 4, 5), normal(5))
    f.case("linear/bias", F.linear, normal(6, 5), normal(3, 5), normal(3))
    f.case("linear/no_bias", F.linear, normal(6, 5), normal(3, 5))
    f.case("linear/three_dims", F.linear, normal(2, 4, 5), normal(3, 5), normal(3))
    f.case("linear/relu", lambda x, w, b: F.relu(F.linear(x, w, b)), normal(6, 5), normal(3, 5), normal(3))
    return f


def files():
    return [copy(), elementwise(), reduce(), matmul()]
