"""Writes data/*.safetensors: what PyTorch computes for small inputs, forward and backward, in f64.

    python3 tests/golden/generate.py [FOLDER]

Needs torch, numpy and transformers (any recent version; the files' metadata names the versions they were made with).
The files are committed, so nobody needs Python to build or test. bpe_cases.py makes data/bpe/, with another package.
"""
import os
import sys

import amp_cases
import index_cases
import math_cases
import mnist_cases
import nn_cases
import optim_cases
import pretrained_cases
import rnn_cases
import transformer_cases

if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(here, "data")
    os.makedirs(folder, exist_ok=True)
    total = 0
    for module in (math_cases, nn_cases, index_cases, optim_cases, mnist_cases, amp_cases, transformer_cases, pretrained_cases, rnn_cases):
        for file in module.files():
            size = file.write(folder)
            total += size
            print(f"{file.stem:12} {len(file.tensors):5} tensors {size:8} bytes")
    print(f"{total} bytes in all")
