"""Golden cases of conv, pool, norm, softmax, embedding, dropout and loss."""
import torch
import torch.nn.functional as F

from golden_format import File, constant, distinct, integers, normal, positive, scaled, values


def conv():
    f = File("conv")
    def two(name, x, w, bias=True, **options):
        f.case(f"conv2d/{name}", lambda *a: F.conv2d(*a, **options), normal(*x), normal(*w), *([normal(w[0])] if bias else []))
    def one(name, x, w, bias=True, **options):
        f.case(f"conv1d/{name}", lambda *a: F.conv1d(*a, **options), normal(*x), normal(*w), *([normal(w[0])] if bias else []))
    two("plain", (2, 3, 6, 7), (4, 3, 3, 3))
    two("no_bias", (2, 3, 5, 5), (4, 3, 3, 3), bias=False)
    two("one_channel", (2, 1, 6, 6), (4, 1, 3, 3))
    two("pointwise", (2, 3, 4, 5), (4, 3, 1, 1))
    two("stride", (2, 3, 8, 7), (4, 3, 3, 2), stride=(2, 3))
    two("padding", (2, 3, 5, 4), (4, 3, 3, 3), padding=(1, 2))
    two("dilation", (2, 3, 8, 9), (4, 3, 3, 3), dilation=(2, 3))
    two("groups", (2, 4, 5, 5), (6, 2, 3, 3), groups=2)
    two("depthwise", (2, 4, 5, 5), (4, 1, 3, 3), groups=4, padding=1)
    two("everything", (2, 4, 9, 8), (6, 2, 3, 2), stride=(2, 1), padding=(2, 1), dilation=(1, 2), groups=2)
    f.case("conv2d/relu", lambda x, w, b: F.relu(F.conv2d(x, w, b)), normal(2, 3, 5, 5), normal(4, 3, 3, 3), normal(4))
    one("plain", (2, 3, 9), (4, 3, 3))
    one("no_bias", (2, 3, 9), (4, 3, 3), bias=False)
    one("stride", (2, 3, 11), (4, 3, 3), stride=2)
    one("padding", (2, 3, 6), (4, 3, 3), padding=2)
    one("dilation", (2, 3, 11), (4, 3, 3), dilation=3)
    one("groups", (2, 4, 7), (6, 2, 3), groups=2)
    one("everything", (2, 4, 12), (6, 2, 3), stride=2, padding=1, dilation=2, groups=2)
    return f


def pool():
    f = File("pool")
    f.case("max2d/plain", lambda x: F.max_pool2d(x, 2), distinct(2, 3, 6, 4))
    f.case("max2d/overlap", lambda x: F.max_pool2d(x, 3, stride=2, padding=1), distinct(2, 2, 7, 6))
    f.case("max2d/ceil", lambda x: F.max_pool2d(x, 3, stride=2, ceil_mode=True), distinct(2, 2, 6, 8))
    f.case("max2d/rectangle", lambda x: F.max_pool2d(x, (2, 3), stride=(1, 2)), distinct(1, 2, 5, 7))
    f.case("avg2d/plain", lambda x: F.avg_pool2d(x, 2), normal(2, 3, 6, 4))
    f.case("avg2d/padding_counts", lambda x: F.avg_pool2d(x, 3, stride=2, padding=1), normal(2, 2, 7, 6))
    f.case("avg2d/padding_left_out", lambda x: F.avg_pool2d(x, 3, stride=2, padding=1, count_include_pad=False), normal(2, 2, 7, 6))
    f.case("avg2d/ceil", lambda x: F.avg_pool2d(x, 3, stride=2, ceil_mode=True), normal(2, 2, 6, 8))
    f.case("avg2d/ceil_padding", lambda x: F.avg_pool2d(x, 3, stride=2, padding=1, ceil_mode=True), normal(2, 2, 6, 8))
    f.case("max1d/plain", lambda x: F.max_pool1d(x, 2), distinct(2, 3, 8))
    f.case("max1d/overlap", lambda x: F.max_pool1d(x, 3, stride=2, padding=1), distinct(2, 3, 8))
    f.case("max1d/ceil", lambda x: F.max_pool1d(x, 2, ceil_mode=True), distinct(2, 3, 7))
    f.case("avg1d/plain", lambda x: F.avg_pool1d(x, 2), normal(2, 3, 8))
    f.case("avg1d/padding_counts", lambda x: F.avg_pool1d(x, 3, stride=2, padding=1), normal(2, 3, 8))
    f.case("avg1d/ceil", lambda x: F.avg_pool1d(x, 2, ceil_mode=True), normal(2, 3, 7))
    f.case("global_avg/2d", lambda x: F.adaptive_avg_pool2d(x, 1).flatten(1), normal(2, 3, 4, 5))
    f.case("global_avg/1d", lambda x: F.adaptive_avg_pool1d(x, 1).flatten(1), normal(2, 3, 7))
    f.case("global_max/2d", lambda x: torch.amax(x, dim=(2, 3)), distinct(2, 3, 4, 5))
    f.case("global_max/1d", lambda x: torch.amax(x, dim=2), distinct(2, 3, 7))
    return f


def norm():
    f = File("norm")

    def batch(training, momentum=0.1):
        def run(x, weight, bias, mean, var):
            mean, var = mean.clone(), var.clone()
            y = F.batch_norm(x, mean, var, weight, bias, training=training, momentum=momentum, eps=1e-5)
            return y, mean, var
        return run

    for name, shape in [("2d", (6, 3)), ("3d", (3, 4, 5)), ("4d", (2, 3, 4, 5))]:
        c = shape[1]
        statistics = constant(normal(c)), constant(positive(c))
        f.case(f"batch/training_{name}", batch(True), normal(*shape), normal(c), normal(c), *statistics)
        f.case(f"batch/eval_{name}", batch(False), normal(*shape), normal(c), normal(c), *statistics)
    f.case("batch/momentum", batch(True, 0.3), normal(5, 3), normal(3), normal(3), constant(normal(3)), constant(positive(3)))
    f.case("layer/last", lambda x, w, b: F.layer_norm(x, w.shape, w, b, 1e-5), normal(2, 3, 6), normal(6), normal(6))
    f.case("layer/two_dims", lambda x, w, b: F.layer_norm(x, w.shape, w, b, 1e-3), normal(4, 3, 5), normal(3, 5), normal(3, 5))
    f.case("group/2d", lambda x, w, b: F.group_norm(x, 2, w, b, 1e-5), normal(3, 6), normal(6), normal(6))
    f.case("group/4d", lambda x, w, b: F.group_norm(x, 3, w, b, 1e-5), normal(2, 6, 3, 4), normal(6), normal(6))
    f.case("group/instance", lambda x, w, b: F.group_norm(x, 4, w, b, 1e-5), normal(2, 4, 7), normal(4), normal(4))
    f.case("rms/last", lambda x, w: F.rms_norm(x, w.shape, w, 1e-5), normal(2, 3, 6), normal(6))
    f.case("rms/eps", lambda x, w: F.rms_norm(x, w.shape, w, 1e-2), normal(4, 5), normal(5))
    return f


def softmax():
    f = File("softmax")
    masked = values([[0.5, float("-inf"), 1.0, -2.0], [float("-inf"), float("-inf"), 3.0, float("-inf")]])
    for name, op in [("softmax", F.softmax), ("log_softmax", F.log_softmax)]:
        f.case(f"{name}/last", lambda x: op(x, -1), normal(3, 4, 5))
        f.case(f"{name}/middle", lambda x: op(x, 1), normal(3, 4, 5))
        f.case(f"{name}/first", lambda x: op(x, 0), normal(6, 3))
        f.case(f"{name}/large", lambda x: op(x, -1), scaled(50, 1000, 2, 6))
        f.case(f"{name}/masked", lambda x: op(x, -1), masked)
        f.case(f"{name}/one", lambda x: op(x, -1), normal(3, 1))
    return f


def embedding():
    f = File("embedding")
    f.case("plain", lambda w, ids: F.embedding(ids, w), normal(7, 4), integers(7, 5))
    f.case("two_dims", lambda w, ids: F.embedding(ids, w), normal(7, 4), integers(7, 3, 6))
    f.case("padding", lambda w, ids: F.embedding(ids, w, padding_idx=2), normal(5, 3), integers(5, 4, 6))
    return f


def dropout():
    f = File("dropout")
    f.case("keep_all", lambda x: F.dropout(x, 0.0, True), normal(3, 4))
    f.case("drop_all", lambda x: F.dropout(x, 1.0, True), normal(3, 4))
    f.case("eval", lambda x: F.dropout(x, 0.5, False), normal(3, 4))
    return f


def loss():
    f = File("loss")
    reductions = ("mean", "sum", "none")
    ignored = values([1, 4, 0, 1, 2, 1])
    for r in reductions:
        f.case(f"nll/{r}", lambda x, t: F.nll_loss(x, t, reduction=r), normal(6, 5), integers(5, 6))
        f.case(f"nll/weight_ignore_{r}", lambda x, t, w: F.nll_loss(x, t, w, ignore_index=1, reduction=r),
               normal(6, 5), ignored, constant(positive(5)))
        ce = F.cross_entropy
        f.case(f"cross_entropy/{r}", lambda x, t: ce(x, t, reduction=r), normal(6, 5), integers(5, 6))
        f.case(f"cross_entropy/ignore_{r}", lambda x, t: ce(x, t, ignore_index=1, reduction=r), normal(6, 5), ignored)
        f.case(f"cross_entropy/weight_{r}", lambda x, t, w: ce(x, t, w, reduction=r),
               normal(6, 5), integers(5, 6), constant(positive(5)))
        f.case(f"cross_entropy/smoothing_{r}", lambda x, t: ce(x, t, label_smoothing=0.1, reduction=r),
               normal(6, 5), integers(5, 6))
        f.case(f"cross_entropy/everything_{r}",
               lambda x, t, w: ce(x, t, w, ignore_index=1, label_smoothing=0.2, reduction=r),
               normal(6, 5), ignored, constant(positive(5)))
        f.case(f"cross_entropy/image_{r}", lambda x, t: ce(x, t, ignore_index=0, reduction=r),
               normal(2, 4, 3, 2), integers(4, 2, 3, 2))
        bce = F.binary_cross_entropy_with_logits
        targets = constant(lambda rng: rng.integers(0, 5, (4, 3)) / 4)
        f.case(f"bce_with_logits/{r}", lambda x, t: bce(x, t, reduction=r), scaled(3, 0, 4, 3), targets)
        f.case(f"bce_with_logits/weights_{r}", lambda x, t, w, p: bce(x, t, w, reduction=r, pos_weight=p),
               normal(4, 3), targets, constant(positive(4, 3)), constant(positive(3)))
        f.case(f"mse/{r}", lambda x, t: F.mse_loss(x, t, reduction=r), normal(4, 3), normal(4, 3))
        f.case(f"l1/{r}", lambda x, t: F.l1_loss(x, t, reduction=r), normal(4, 3), normal(4, 3))
        f.case(f"huber/{r}", lambda x, t: F.huber_loss(x, t, delta=0.75, reduction=r), normal(4, 3), normal(4, 3))
    f.case("bce_with_logits/large", lambda x, t: F.binary_cross_entropy_with_logits(x, t),
           values([-800.0, 800.0, -50.0, 50.0]), constant(values([0.0, 1.0, 1.0, 0.0])))
    return f


def files():
    return [conv(), pool(), norm(), softmax(), embedding(), dropout(), loss()]
