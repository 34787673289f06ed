#!/usr/bin/env bash
# The front door's answers to wrong usage, and that the checks of include order, file length and field cases find what they are for.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
failed=0
complain() { echo "$1"; failed=1; }

# refuses SENTENCE-PART ARGUMENT…: exit code 2, and one line on stderr that holds the part.
refuses() {
  local part=$1 status=0 message
  shift
  message=$("$root/weft" "$@" 2>&1 >/dev/null) || status=$?
  [[ $status == 2 && $message == *"$part"* && $message != *$'\n'* ]] || complain "weft $*: exit code $status, '$message'"
}
refuses "there is no command 'train'" train
refuses "there is no preset 'fast'" build fast
refuses "there is no preset 'fast'" test fast
refuses "one preset" build release debug
refuses "no arguments" setup now
[[ $("$root/weft" help) == *"./weft mnist"* ]] || complain "weft help does not name ./weft mnist"

tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

# ./weft mnist with a program that finds no data: Debian's package is installed, and the program gets its folder.
mkdir -p "$tree"/{fake,build/release/bin}
cp "$root/weft" "$tree"
touch "$tree/CMakePresets.json" "$tree/build/release/build.ninja"
fake() { printf '#!/bin/sh\n%s\n' "$2" >"$tree/$1"; chmod +x "$tree/$1"; }
for name in apt-cache dpkg-query; do fake "fake/$name" true; done
fake fake/sudo 'exec "$@"'
fake fake/ninja 'echo no work to do'
fake fake/apt-get "echo \"\$*\" >>'$tree/installed'"
fake build/release/bin/mnist 'case "$*" in *--data*) echo "ran $*" ;; *) exit 3 ;; esac'
ran=$(PATH=$tree/fake:$PATH WEFT_DATA='' WEFT_CACHE=$tree/cache "$tree/weft" mnist --epochs 1 | tail -n 1) || true
if [[ -e /usr/share/datasets/fashion-mnist ]]; then
  [[ $ran == '' ]] || complain "weft mnist ran twice with Fashion-MNIST there: $ran"
else
  [[ $ran == 'ran --epochs 1 --data /usr/share/datasets/fashion-mnist' && $(<"$tree/installed") == *dataset-fashion-mnist* ]] ||
    complain "weft mnist without data: $ran"
fi

((failed == 0)) || exit 1
command -v git >/dev/null || { echo "skipped: the checks list files with git, which is not here"; exit 77; }
mkdir -p "$tree"/{scripts,tensor,nn,data,optim,tests}
printf '| case | test |\n|---|---|\n' >"$tree/tests/field_cases.md"
cp "$root"/scripts/check-{includes,lengths,field-cases}.sh "$tree/scripts"
git -C "$tree" init -q

# finds CHECK TEXT FILE: the check complains about the file while it holds the text, and about nothing without it.
finds() {
  local found status=0
  "$tree/scripts/$1" >/dev/null || complain "$1 complains about a good tree"
  printf '%s\n' "$2" >"$tree/$3"
  found=$("$tree/scripts/$1") || status=$?
  [[ $status == 1 && $found == *"$3:"* ]] || complain "$1 misses $3: exit code $status, '$found'"
  rm "$tree/$3"
}
touch "$tree"/{weft.h,tensor/tensor.h,nn/linear.h,data/loader.h}
echo '#include "tensor/tensor.h"' >"$tree/nn/module.h"
finds check-includes.sh '#include "nn/linear.h"' tensor/bad.h
finds check-includes.sh '#  include "data/loader.h"' optim/bad.cpp
finds check-includes.sh '#include "module.h"' nn/bad.cpp
finds check-includes.sh '#include <weft.h>' nn/bad.cpp
finds check-lengths.sh "$(seq 601)" nn/long.cpp
finds check-field-cases.sh '| 7 | `nn_test: Linear.NoSuchTest` |' tests/field_cases.md
exit $failed
