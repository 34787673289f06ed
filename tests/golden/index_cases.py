"""Golden cases of index."""
import torch
import torch.nn.functional as F

from golden_format import File, distinct, integers, normal, values


def index():
    f = File("index")
    f.case("gather/first", lambda x, i: torch.gather(x, 0, i), normal(4, 3), integers(4, 6, 3))
    f.case("gather/last", lambda x, i: torch.gather(x, -1, i), normal(2, 3, 5), integers(5, 2, 3, 4))
    f.case("scatter_add/first", lambda x, i, s: x.scatter_add(0, i, s), normal(4, 3), integers(4, 6, 3), normal(6, 3))
    f.case("scatter_add/last", lambda x, i, s: x.scatter_add(1, i, s), normal(3, 4), integers(4, 3, 7), normal(3, 7))
    f.case("index_select/first", lambda x, i: x.index_select(0, i), normal(5, 3), values([4, 0, 0, 2]))
    f.case("index_select/middle", lambda x, i: x.index_select(1, i), normal(2, 5, 3), values([1, 1, 4]))
    f.case("index_add/first", lambda x, i, s: x.index_add(0, i, s), normal(4, 3), values([1, 3, 1]), normal(3, 3))
    f.case("index_add/last", lambda x, i, s: x.index_add(1, i, s), normal(3, 4), values([0, 2]), normal(3, 2))
    f.case("cat/first", lambda *x: torch.cat(x, 0), normal(2, 3), normal(1, 3), normal(4, 3))
    f.case("cat/last", lambda *x: torch.cat(x, -1), normal(2, 3, 1), normal(2, 3, 4))
    f.case("stack/first", lambda *x: torch.stack(x, 0), normal(2, 3), normal(2, 3), normal(2, 3))
    f.case("stack/last", lambda *x: torch.stack(x, -1), normal(2, 3), normal(2, 3))
    f.case("split/first", lambda x: torch.split(x, 2, 0), normal(5, 3))
    f.case("split/sizes", lambda x: torch.split(x, [1, 3, 2], 1), normal(2, 6))
    f.case("chunk", lambda x: torch.chunk(x, 3, 1), normal(2, 7))
    f.case("unbind", lambda x: torch.unbind(x, 1), normal(2, 3, 4))
    f.case("pad/last", lambda x: F.pad(x, (1, 2), value=0.5), normal(2, 3))
    f.case("pad/image", lambda x: F.pad(x, (1, 0, 2, 1)), normal(1, 2, 3, 4))
    f.case("masked_fill", lambda x, m: x.masked_fill(m.bool(), -1.5), normal(3, 4), integers(2, 3, 4))
    f.case("masked_fill/broadcast", lambda x, m: x.masked_fill(m.bool(), -1.5), normal(2, 3, 4), integers(2, 3, 1))
    f.case("topk/largest", lambda x: torch.topk(x, 3), distinct(3, 7))
    f.case("topk/smallest_first", lambda x: torch.topk(x, 2, dim=0, largest=False), distinct(5, 3))
    f.case("sort/rising", lambda x: torch.sort(x, -1), distinct(3, 6))
    f.case("sort/falling_first", lambda x: torch.sort(x, 0, descending=True), distinct(5, 2))
    f.case("flip", lambda x: torch.flip(x, (1,)), normal(2, 4))
    f.case("roll", lambda x: torch.roll(x, 2, 1), normal(2, 5))
    f.case("tril", lambda x: torch.tril(x, 1), normal(2, 4, 5))
    f.case("triu", lambda x: torch.triu(x, -1), normal(4, 4))
    f.case("one_hot", lambda i: F.one_hot(i, 5), integers(5, 2, 3))
    return f


def files():
    return [index()]
