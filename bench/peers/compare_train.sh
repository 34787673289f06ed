#!/usr/bin/env bash
# A training job in Weft and in PyTorch, in turn, and one table: medians of the runs, their ratio, [min–max], peak memory.
#   bench/peers/compare_train.sh PYTHON [--job mnist|cnn|lstm] [--data FOLDER] [--threads "1 2"] [--runs 5] [--steps N]
# PYTHON is one that has torch (see README.md here). Run it on an idle machine, after `./weft build`.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
fail() { echo "compare_train: $1" >&2; exit 2; }

(($# >= 1)) || fail "wants a Python that has torch, as in: $0 ~/torch/bin/python"
python=$1
shift
job=mnist data=() threads="1 2" runs=5 steps=
while (($#)); do
  (($# >= 2)) || fail "$1 wants a value"
  case $1 in
    --job) job=$2 ;;
    --data) data=(--data "$2") ;;
    --threads) threads=$2 ;;
    --runs) runs=$2 ;;
    --steps) steps=$2 ;;
    *) fail "there is no option $1 (--job, --data, --threads, --runs, --steps)" ;;
  esac
  shift 2
done
ours=$here/../../build/release/bin/train
[[ -x $ours ]] || fail "build first: ./weft build"

# Steps of texts take longer, so there are fewer of them.
if [[ $job == mnist ]]; then
  peer=(mnist_torch.py) sizes=(--steps "${steps:-200}")
else
  peer=(texts_torch.py --job "$job") sizes=(--steps "${steps:-20}" --block 4 --warmup 4)
fi

field() { sed -n "s/.*\"$1\": *\([0-9.]*\).*/\1/p"; }
# Median, least and greatest of the numbers on standard input.
spread() { sort -n | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)], v[1], v[NR]}'; }

for count in $threads; do
  log=$(mktemp -d)
  trap 'rm -rf "$log"' EXIT
  for ((run = 0; run < runs; ++run)); do
    "$ours" --job "$job" --threads "$count" "${sizes[@]}" "${data[@]}" >>"$log/weft"
    "$python" "$here/${peer[0]}" "${peer[@]:1}" --threads "$count" "${sizes[@]}" "${data[@]}" >>"$log/pytorch"
  done
  read -r our_rate our_min our_max < <(field samples_per_second <"$log/weft" | spread)
  read -r their_rate their_min their_max < <(field samples_per_second <"$log/pytorch" | spread)
  our_memory=$(field peak_memory_bytes <"$log/weft" | spread | cut -d' ' -f1)
  their_memory=$(field peak_memory_bytes <"$log/pytorch" | spread | cut -d' ' -f1)
  libraries=$(field memory_after_import_bytes <"$log/pytorch" | spread | cut -d' ' -f1)
  awk -v t="$count" -v a="$our_rate" -v a0="$our_min" -v a1="$our_max" -v b="$their_rate" -v b0="$their_min" -v b1="$their_max" \
      -v m="$our_memory" -v n="$their_memory" -v l="$libraries" 'BEGIN {
    printf "threads %d   weft %.0f [%.0f–%.0f]   pytorch %.0f [%.0f–%.0f] samples/s   ratio %.2f   peak memory %.0f and %.0f MB (%.0f of them after import)\n",
           t, a, a0, a1, b, b0, b1, a / b, m / 1e6, n / 1e6, l / 1e6}'
  rm -rf "$log"
done
"$python" -c 'import torch; print("torch", torch.__version__)'
