#!/usr/bin/env bash
# Builds overhead_torch against the libtorch of a Python's torch package (once), and runs it.
#   bench/peers/overhead_torch.sh PYTHON [elements] [repetitions]
set -euo pipefail
cd "$(dirname "$0")/../.."

python=${1:?usage: overhead_torch.sh PYTHON [elements] [repetitions]}
shift
program=build/peers/overhead_torch
torch=$("$python" -c 'import importlib.util as u; print(u.find_spec("torch").submodule_search_locations[0])')
if [[ ! -x $program || bench/peers/overhead_torch.cpp -nt $program || $torch/version.py -nt $program ]]; then
  mkdir -p build/peers
  include=$torch/include
  # -O2 without -march, as PyTorch's own host code is built: the kernels inside choose by CPU themselves.
  ${CXX:-g++} -std=c++20 -O2 -DNDEBUG -w -isystem "$include" -isystem "$include/torch/csrc/api/include" \
    bench/peers/overhead_torch.cpp -o "$program" -L"$torch/lib" -Wl,-rpath,"$torch/lib" -Wl,--no-as-needed \
    -ltorch_cpu -lc10 >&2
fi
exec "$program" "$@"
