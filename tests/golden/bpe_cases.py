"""Writes data/bpe/: a small byte-level BPE trained by Hugging Face's tokenizers, and what it makes of various texts.

    python3 tests/golden/bpe_cases.py TEXT-FILE [FOLDER]

TEXT-FILE was Tiny Shakespeare (github.com/karpathy/char-rnn, data/tinyshakespeare/input.txt; public domain), of which
the first 12,000 bytes are the training text. Needs the package tokenizers, of any recent version.
"""
import json
import os
import sys

import tokenizers
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

TEXTS = [
    "",
    " ",
    "Hello, world!",
    "First Citizen:\nBefore we proceed any further, hear me speak.\n\nAll:\nSpeak, speak.",
    "I'm sure we'll go; they've said it's what you'd do, he'S not, don't, 'tis 'twas '' 'rebel've",
    "''s ' 's 'll 'LL ’s it’s",
    "  two blanks   three\n\n\nnewlines\t\ttabs \t mixed \n end  ",
    " \n \r\n a\r\nb\u000b\u000cc",
    "\u00a0nbsp\u00a0\u00a0x\u2003em \u3000 wide\u3000\u0085next\u2028line\u202f1\u205f\u1680",
    "zero\u200bwidth \ufeffbom\u180emongol\u001cfs\u001d \u001f\u0000nul",
    "1234 5 67,890.12 1st 2nd x86 v2.0 3D \u00bd \u00b2\u00b3 \u2167 \u0663\u0664\u0665 \u0967\u0968 \u3007\u3220 \u2460",
    "caf\u00e9 na\u00efve \u00c9t\u00e9 e\u0301 combining \u00aa\u00ba\u00b5 \u00d7\u00f7 \u00df\u1e9e",
    "\u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440! \u0395\u03bb\u03bb\u03b7\u03bd\u03b9\u03ba\u03ac \u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627",
    "\u65e5\u672c\u8a9e\u306e\u6587\u7ae0\u3067\u3059\u3002\u30ab\u30bf\u30ab\u30ca \ud55c\uad6d\uc5b4 \u0e20\u0e32\u0e29\u0e32\u0e44\u0e17\u0e22",
    "\u0939\u093f\u0928\u094d\u0926\u0940 \u0924\u092e\u093f\u0b34\u0bcd",
    "\U0001f600\U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f1e9\U0001f1ea ok\ufe0f \U00020000\U0001d400\U0001d7d8 \U0010ffff",
    "a_b __init__ C++ #include <x> a=b==c ->*&^%$#@!~`|\\ ... \u2014\u2014 \u201cq\u201d",
    "<|endoftext|> is text here",
    "the the the thethethe " * 20 + "speak" * 50,
    "!!!???...      ....   a",
]


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    folder = sys.argv[2] if len(sys.argv) > 2 else os.path.join(here, "data", "bpe")
    os.makedirs(folder, exist_ok=True)
    training = open(sys.argv[1], "rb").read()[:12000].decode()
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(
        [training],
        trainers.BpeTrainer(vocab_size=500, min_frequency=2, initial_alphabet=alphabet, show_progress=False))
    tokenizer.model.save(folder)
    cases = [{
        "text": text,
        "pieces": [piece for piece, _ in tokenizer.pre_tokenizer.pre_tokenize_str(text)],
        "ids": tokenizer.encode(text).ids
    } for text in TEXTS]
    made_with = f"tokenizers {tokenizers.__version__}"
    with open(os.path.join(folder, "cases.json"), "w") as file:
        json.dump({"made_with": made_with, "training": training, "cases": cases}, file, separators=(",", ":"))
        file.write("\n")


if __name__ == "__main__":
    main()
