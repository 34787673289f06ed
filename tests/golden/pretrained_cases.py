"""Tiny GPT-2 and BERT models of Hugging Face's `transformers` with random weights: their files' names and layouts, what
they compute, and the gradients of one loss. Weights are f32, as in files; all else is computed from them in f64."""
import numpy as np
import torch
import torch.nn.functional as F
import transformers

from golden_format import File

SAMPLES = 4  # elements kept of each gradient


def randomise(model, rng):
    """Normal weights of a size that makes every part count; around 1 for the weights of norms."""
    with torch.no_grad():
        for key, p in model.named_parameters():
            around = 1.0 if p.dim() == 1 and key.endswith("weight") else 0.0
            p.copy_(torch.from_numpy((rng.standard_normal(tuple(p.shape)) * 0.3 + around).astype(np.float32)))


def put_gradients(f, prefix, model):
    for key, p in model.named_parameters():
        if p.grad is None:
            continue
        gradient = p.grad.flatten()
        f.put(f"{prefix}/{key}/norm", gradient.norm())
        f.put(f"{prefix}/{key}/samples", gradient[[k * p.numel() // SAMPLES for k in range(SAMPLES)]])


class Weights(File):
    """A file of f32 weights under their own names."""

    def put_state(self, state):
        for key, value in state.items():
            self.tensors[key] = value.detach().numpy().astype(np.float32)


def gpt2():
    config = transformers.GPT2Config(vocab_size=37, n_positions=12, n_embd=16, n_layer=2, n_head=2, resid_pdrop=0,
                                     embd_pdrop=0, attn_pdrop=0)
    model = transformers.GPT2LMHeadModel(config).eval()
    rng = np.random.Generator(np.random.PCG64(2))
    randomise(model, rng)
    weights, f = Weights("gpt2_weights"), File("gpt2")
    weights.put_state({k: v for k, v in model.state_dict().items() if k != "lm_head.weight"})
    model.double()
    ids = torch.from_numpy(rng.integers(0, 37, (2, 9)))
    logits = model(ids).logits
    loss = F.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())
    loss.backward()
    f.put("all/ids", ids)
    f.put("all/logits", logits)
    f.put("all/loss", loss)
    put_gradients(f, "gradients", model.transformer)
    return [weights, f]


def bert():
    config = transformers.BertConfig(vocab_size=41, hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
                                     intermediate_size=24, max_position_embeddings=10, hidden_dropout_prob=0,
                                     attention_probs_dropout_prob=0)
    model = transformers.BertForPreTraining(config).eval()
    rng = np.random.Generator(np.random.PCG64(3))
    randomise(model, rng)
    weights, f = Weights("bert_weights"), File("bert")
    weights.put_state({k: v for k, v in model.state_dict().items() if not k.startswith("cls.predictions.decoder.")})
    model.double()
    ids = rng.integers(1, 41, (2, 8))
    ids[1, 5:] = 0
    labels = np.where(rng.random((2, 8)) < 0.5, ids, -100)
    labels[1, 5:] = -100
    ids, labels = torch.from_numpy(ids), torch.from_numpy(labels)
    types = torch.tensor([[0, 0, 0, 1, 1, 1, 1, 1], [0, 0, 1, 1, 1, 0, 0, 0]])
    mask = (ids != 0).long()
    out = model.bert(ids, attention_mask=mask, token_type_ids=types)
    f.put("all/hidden", out.last_hidden_state)
    f.put("all/pooled", out.pooler_output)
    logits = model(ids, attention_mask=mask, token_type_ids=types).prediction_logits
    loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten())
    loss.backward()
    for name, value in (("ids", ids), ("labels", labels), ("types", types), ("logits", logits), ("loss", loss)):
        f.put(f"all/{name}", value)
    put_gradients(f, "gradients", model)
    return [weights, f]


def sizes():
    """Parameters of the published models, printed for the tests that assert them."""
    with torch.device("meta"):
        for width, layers, heads in ((768, 12, 12), (1024, 24, 16), (1280, 36, 20), (1600, 48, 25)):
            config = transformers.GPT2Config(n_embd=width, n_layer=layers, n_head=heads)
            print("gpt2", width, sum(p.numel() for p in transformers.GPT2LMHeadModel(config).parameters()))
        for width, layers, heads in ((768, 12, 12), (1024, 24, 16)):
            config = transformers.BertConfig(hidden_size=width, num_hidden_layers=layers, num_attention_heads=heads,
                                             intermediate_size=4 * width)
            for pooler in (True, False):
                model = transformers.BertModel(config, add_pooling_layer=pooler)
                print("bert", width, pooler, sum(p.numel() for p in model.parameters()))
            print("masked", sum(p.numel() for p in transformers.BertForMaskedLM(config).parameters()))


def files():
    sizes()
    return gpt2() + bert()
