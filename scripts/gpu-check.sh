#!/usr/bin/env bash
# Everything that a GPU must be asked, within 6 minutes, on a machine with one: op tests, gradients, training against the
# CPU, compute-sanitizer, cuDNN's plans and its description of the device, benchmarks. Goes on after a failure; exit code 1
# when anything failed. At most 8 files of results go to OUT, or $OUT, or build/gpu-check.
#
#   scripts/gpu-check.sh [options] [OUT]
#     --build        builds the release preset first; else what lies in build/release is run as it is
#     --pack FILE    only writes programs, their libraries and the MNIST data (of $WEFT_DATA) as a .tar.gz, for a machine
#                    that has a driver, cuBLAS and cuDNN but cannot build
#     --packed FILE  runs what such a file holds
#     --dry-run      runs every step on the emulated device, with small sizes; no figure of it means anything
#     --seconds N    in all, 350 where left out
# shellcheck disable=SC2317  # steps are functions that another shell calls
set -euo pipefail
root=$(realpath "$(dirname "$0")/..")

device=cuda build=0 pack='' packed='' seconds=350 out=${OUT:-}
while (($#)); do
  case $1 in
    --build) build=1; shift ;;
    --pack) pack=$(realpath -m "$2"); shift 2 ;;
    --packed) packed=$(realpath "$2"); shift 2 ;;
    --dry-run) device=simt; shift ;;
    --seconds) seconds=$2; shift 2 ;;
    -*) echo "gpu-check: there is no option $1" >&2; exit 2 ;;
    *) out=$1; shift ;;
  esac
done
out=$(realpath -m "${out:-$root/build/gpu-check}")
programs=(ops_test optim_test mnist train ops_bench gpu_facts)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# ---- where the programs are ----
if ((build)); then "$root/weft" build release; fi
folder=$root/build/release
# Libraries that a program wants beside those of C, C++ and CUDA.
needed() { ldd "$@" | awk '$3 ~ /^\// {print $3}' | sort -u | grep -vE '/(libc|libm|libdl|librt|libpthread|libresolv|libstdc[+]{2}|libgcc_s|ld-linux.*|libcudnn.*|libcublas.*|libnv.*)[.]so'; }
if [[ -n $pack ]]; then
  mkdir -p "$scratch/pack/bin" "$scratch/pack/data"
  for program in "${programs[@]}"; do cp "$folder/bin/$program" "$scratch/pack/bin"; done
  cp "$folder"/libweft.so "$folder"/libweft_cuda.so "$scratch/pack"
  needed "$scratch"/pack/bin/* "$folder"/libweft_cuda.so | grep -v '/libweft' | xargs -I{} cp -L {} "$scratch/pack"
  find "$scratch/pack" -type f -exec strip --strip-debug {} + 2>/dev/null || true
  if [[ -n ${WEFT_DATA:-} ]]; then cp -rL "$WEFT_DATA"/mnist "$scratch/pack/data/" || true; fi
  tar -C "$scratch/pack" -czf "$pack" .
  echo "packed $(du -h "$pack" | cut -f 1) into $pack"
  exit
fi
if [[ -n $packed ]]; then
  folder=$scratch/run
  mkdir -p "$folder"
  tar -C "$folder" -xzf "$packed"
  export LD_LIBRARY_PATH=$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  if [[ -d $folder/data/mnist ]]; then export WEFT_DATA=$folder/data; fi
fi
for program in "${programs[@]}"; do
  [[ -x $folder/bin/$program ]] || { echo "gpu-check: $folder/bin/$program is not there; --build builds it" >&2; exit 2; }
done

# cuBLAS and cuDNN where the plug-in does not find them by itself: the toolkit's folder, or those of Python's packages.
add_libraries() {
  local candidate site
  site=$(python3 -c 'import sysconfig; print(sysconfig.get_path("purelib"))' 2>/dev/null || true)
  for candidate in "${CUDA_HOME:-/usr/local/cuda}"/lib64 "$site"/nvidia/*/lib; do
    if compgen -G "$candidate/lib*.so*" >/dev/null; then export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$candidate; fi
  done
}
if [[ $device == cuda ]] && ldd "$folder/libweft_cuda.so" | grep 'not found' >/dev/null; then add_libraries; fi

# ---- steps ----
mkdir -p "$out"
rm -f "$out"/{summary,machine,tests,sanitizer,training}.txt "$out"/{facts,description,bench}.json
failed=0
export WEFT_TEST_DEVICE=$device device folder scratch out

# step NAME SECONDS FILE COMMAND…: the output goes behind what FILE holds. Exit code 77 is a step that had to be left out.
step() {
  local name=$1 limit=$2 file=$out/$3 start=$SECONDS left=$((seconds - SECONDS)) status=0 result note
  shift 3
  printf '\n==== %s: %s\n' "$name" "$*" >>"$file"
  if ((left < 5)); then
    result=skipped note='no time is left'
  else
    ((limit < left)) || limit=$left
    timeout -k 5 "$limit" bash -c '"$@"' step "$@" >"$scratch/step" 2>&1 || status=$?
    note=$(grep -v '^ *$' "$scratch/step" | tail -n 1 | cut -c -100) || true
    case $status in
      0) result=ok ;;
      77) result=skipped note=$(sed -n 's/^skipped: //p' "$scratch/step") ;;
      124 | 137) result=failed note="ended after $limit s" ;;
      *) result=failed note=$(grep -E 'FAILED|rror|too far|no ' "$scratch/step" | tail -n 1 | cut -c -100) || true ;;
    esac
    cat "$scratch/step" >>"$file"
  fi
  [[ $result != failed ]] || failed=1
  printf '%-12s %-8s %4d s  %s\n' "$name" "$result" $((SECONDS - start)) "$note" | tee -a "$out/summary.txt"
}

machine() {
  uname -srm
  grep -m 1 'model name' /proc/cpuinfo
  nproc
  nvidia-smi || echo "no nvidia-smi"
  ldd "$folder/libweft_cuda.so" 2>&1 | grep -E 'cu(da|blas|dnn)|not found|No such' || true
}

facts() {
  "$folder/bin/gpu_facts" "$device" "$out/description.json" >"$out/facts.json" || return 1
  sed -n 's/^  "device": "\(.*\)",/\1/p' "$out/facts.json"
}

# tests PROGRAM FILTER: tests on the device; a filter that matches none is a mistake of this script.
tests() {
  "$folder/bin/$1" --gtest_brief=1 --gtest_filter="$2" | tee "$scratch/tests"
  ((PIPESTATUS[0] == 0)) || return 1
  if grep -q '^\[=*\] 0 tests' "$scratch/tests"; then
    echo "no tests match $2"
    return 1
  fi
}

# A number of a result that mnist wrote.
number() { sed -n "s/^ *\"$2\": \([-0-9.e+]*\).*/\1/p" "$1"; }

# mnist_run NAME [OPTION…]
mnist_run() {
  local name=$1
  shift
  "$folder/bin/mnist" --seed 1 --epochs 1 --result "$scratch/$name.json" "${mnist_options[@]}" "$@"
}
# mnist_like_cpu NAME POINTS PART [OPTION…]: accuracy within so many points of the CPU's, loss within this part of it.
mnist_like_cpu() {
  local name=$1 points=$2 part=$3 accuracy loss
  shift 3
  read -ra mnist_options <<<"$mnist_text"
  if [[ ! -f $scratch/cpu.json ]]; then
    mnist_run cpu --device cpu || {
      local status=$?
      ((status != 3)) || { echo "skipped: no MNIST data; name their folder in WEFT_DATA"; return 77; }
      return "$status"
    }
  fi
  mnist_run "$name" --device "$device" "$@" || return
  for key in test_accuracy train_loss; do
    echo "$key: cpu $(number "$scratch/cpu.json" "$key"), $device $(number "$scratch/$name.json" "$key")"
  done
  accuracy=$(number "$scratch/cpu.json" test_accuracy) loss=$(number "$scratch/cpu.json" train_loss)
  awk -v a="$accuracy" -v b="$(number "$scratch/$name.json" test_accuracy)" -v points="$points" -v part="$part" \
    -v x="$loss" -v y="$(number "$scratch/$name.json" train_loss)" -v rate="$(number "$scratch/$name.json" samples_per_second)" '
    function far(p, q, most) {return p == "" || q == "" || p - q > most || q - p > most}
    BEGIN {
      bad = far(a, b, points) || far(x, y, part * x)
      printf "accuracy %s (cpu %s), loss %s (cpu %s), %d samples/s%s\n", b, a, y, x, rate, bad ? ": too far apart" : ""
      exit bad
    }'
}

# sanitizer TOOL FILTER
sanitizer() {
  local tool
  tool=$(command -v compute-sanitizer || ls "${CUDA_HOME:-/usr/local/cuda}/bin/compute-sanitizer" 2>/dev/null || true)
  [[ -n $tool ]] || { echo "skipped: no compute-sanitizer here"; return 77; }
  [[ $device == cuda ]] || { echo "skipped: compute-sanitizer wants a GPU"; return 77; }
  "$tool" --tool "$1" --error-exitcode 9 "$folder/bin/ops_test" --gtest_brief=1 --gtest_filter="$2"
}

throughput() {
  local options
  for options in "$@"; do
    # shellcheck disable=SC2086  # options are words
    "$folder/bin/train" --device "$device" $options || return
  done
}

bench() {
  "$folder/bin/ops_bench" --device="$device" --benchmark_min_time=0.01 --benchmark_out="$out/bench.json" \
    --benchmark_out_format=json "$@"
}

# tiny_data FOLDER: images and labels of noise in MNIST's format, for dry runs.
tiny_data() {
  local set count octal
  mkdir -p "$1"
  for set in train:32 t10k:16; do
    count=${set#*:}
    octal=$(printf '\\0\\0\\0\\%o' "$count")
    { printf '\0\0\10\3%b\0\0\0\34\0\0\0\34' "$octal"; head -c $((count * 784)) /dev/urandom; } >"$1/${set%:*}-images-idx3-ubyte"
    { printf '\0\0\10\1%b' "$octal"; for ((i = 0; i < count; ++i)); do printf '%b' "\\$((i % 8))"; done; } >"$1/${set%:*}-labels-idx1-ubyte"
  done
}
export -f machine facts tests number mnist_run mnist_like_cpu sanitizer throughput bench

# Kernels with shared memory, shuffles and atomics.
stems=(softmax layer_norm batch_norm sum mean var topk scatter_add embedding cross_entropy max_pool matmul)
small() { local IFS=:; echo "${stems[*]/#/All/OpReferenceTest.*/}" | sed 's/:/*:/g; s/$/*/'; }
if [[ $device == cuda ]]; then
  export mnist_text='--batch 128'
  all_ops='All/*:*Device*-*OpDifferencesTest*' optimizers='*Device*' gradients='All/OpDifferencesTest*' sanitized=$(small)
  rates=('--steps 300' '--steps 200 --batch 1024' '--steps 200 --batch 1024 --amp bf16') bench_options=()
else
  tiny_data "$scratch/data"
  export mnist_text="--batch 16 --data $scratch/data"
  all_ops='All/*/relu:All/*/softmax*-*OpDifferencesTest*' optimizers='DeviceSteps.ClipAsTheyStep' gradients='All/OpDifferencesTest.*/relu' sanitized=none
  rates=('--steps 1 --block 1 --warmup 0 --batch 2') bench_options=('--benchmark_filter=^relu/forward')
fi

step machine 15 machine.txt machine
step facts 40 machine.txt facts
step ops 90 tests.txt tests ops_test "$all_ops"
step optimizers 20 tests.txt tests optim_test "$optimizers"
step mnist 60 training.txt mnist_like_cpu f32 0.7 0.1
step mnist-bf16 30 training.txt mnist_like_cpu bf16 1.0 0.2 --amp bf16
step mnist-graphs 30 training.txt mnist_like_cpu graphs 0.7 0.1 --cuda-graphs
step throughput 40 training.txt throughput "${rates[@]}"
step gradients 60 tests.txt tests ops_test "$gradients"
step memcheck 60 sanitizer.txt sanitizer memcheck "$sanitized"
step bench 60 training.txt bench "${bench_options[@]}"
step racecheck 45 sanitizer.txt sanitizer racecheck "$sanitized"

printf '\n'
cat "$out/summary.txt"
echo "results are in $out"
exit $failed
