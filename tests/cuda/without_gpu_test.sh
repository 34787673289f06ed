#!/usr/bin/env bash
# What a machine is told that cannot run on a GPU, each case with its own sentence, and that the CPU works in all of them:
#   without_gpu_test.sh PROBE LIBWEFT FAKE_DRIVER STUB_PLUGIN HAS_CUDA
# FAKE_DRIVER stands in for libcuda.so.1; STUB_PLUGIN is a plug-in whose library is missing.
set -euo pipefail
probe=$1 library=$2 driver=$3 stub=$4 has_cuda=$5

if ldconfig -p | grep -q 'libcuda\.so\.1'; then
  echo "skipped: this machine has the NVIDIA driver"
  exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0

# expect SENTENCE: asking for a CUDA device says so, and nothing else stops.
expect() {
  local output status=0
  output=$(LD_LIBRARY_PATH=$folder "$probe" cuda 2>&1) || status=$?
  if ((status != 2)) || [[ $output != *"no CUDA device: $1"* || $output != *'cpu: 3'* ]]; then
    printf 'wanted exit code 2 and "%s", got %d and:\n%s\n' "$1" "$status" "$output"
    failed=1
  fi
}

output=$(LD_LIBRARY_PATH=$folder "$probe")
if [[ $output != 'cpu: 3' ]]; then
  echo "a run on the CPU opened CUDA: $output"
  failed=1
fi
if [[ $has_cuda == 0 ]]; then
  expect 'this build has no part for it'
  exit $failed
fi
expect 'the NVIDIA driver is not installed (libcuda.so.1 was not found)'
cp "$driver" "$folder/libcuda.so.1"
expect 'the driver is there, but finds no GPU'
FAKE_DRIVER=old expect 'the NVIDIA driver is older than CUDA'
cp "$stub" "$folder/libweft_cuda.so"
expect 'the library libweft_absent.so is missing; install it, or name its folder in LD_LIBRARY_PATH'
rm "$folder/libweft_cuda.so"
cp -L "$library" "$folder/"
expect 'libweft_cuda.so is not where libweft.so is'
exit $failed
