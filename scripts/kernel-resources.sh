#!/usr/bin/env bash
# Registers, static shared memory, stack and spills of every GPU kernel for sm_90, as the compiler says. One line a kernel
# and file, with the largest figures of its instantiations. Exit code 1 where a kernel spills. Needs no GPU.
#
#   scripts/kernel-resources.sh [--all] [FILE.cu…]     --all: one line an instantiation
#
# What the compiler said is kept in build/release/resources until a file under tensor/ changes.
set -euo pipefail
root=$(realpath "$(dirname "$0")/..")
build=build/release kept=$root/build/release/resources all=0
files=()
for argument in "$@"; do
  case $argument in
    --all) all=1 ;;
    -*) echo "kernel-resources: there is no option $argument" >&2; exit 2 ;;
    *) files+=("$(realpath -- "$argument")") ;;
  esac
done
cd "$root"
[[ -f $build/compile_commands.json ]] || { echo "kernel-resources: configure first: cmake --preset release" >&2; exit 2; }

# The compile commands of kernels by nvcc, one a line, for sm_90 alone and without the host's half.
commands() {
  sed -n 's/^ *"command": "\(.*-x cu -c .*\.cu\) -o .*",$/\1/p' "$build/compile_commands.json" | sed 's/\\"/"/g' |
    sed 's/ --generate-code=[^ ]*//g; s/ -Werror=[^ ]*//; s/ -Xptxas=[^ ]*//g; s/-x cu -c /-arch=sm_90 -cubin -Xptxas=-v -x cu /'
}

# compile COMMAND: the compiler's words go to <stem>.txt.
compile() {
  local source=${1##* } result
  result=$kept/$(basename "$source" .cu).txt
  [[ -f $result && -z $(find tensor -newer "$result" -print -quit) ]] && return
  if ! (cd "$build" && bash -c "$1 -o '$result.cubin'") >"$result.new" 2>&1; then
    cat "$result.new" >&2
    return 1
  fi
  rm -f "$result.cubin"
  mv "$result.new" "$result"
}
export -f compile
export build kept

mapfile -t wanted < <(commands)
if ((${#files[@]})); then
  chosen=()
  for file in "${files[@]}"; do
    found=0
    for command in "${wanted[@]}"; do
      if [[ ${command##* } == "$file" ]]; then chosen+=("$command") found=1; fi
    done
    ((found)) || { echo "kernel-resources: no kernels are built from $file" >&2; exit 2; }
  done
  wanted=("${chosen[@]}")
fi
((${#wanted[@]})) || { echo "kernel-resources: this build has no CUDA part" >&2; exit 2; }
mkdir -p "$kept"
# shellcheck disable=SC2016  # for the inner shell
printf '%s\0' "${wanted[@]}" | xargs -0 -n 1 -P "$(nproc)" bash -c 'compile "$0"'

# One line a compiled kernel: file, name, registers, shared bytes, stack bytes, spilled bytes (stores and loads).
figures() {
  local command source
  for command in "${wanted[@]}"; do
    source=${command##* }
    awk -v file="$(basename "$source")" '
      /Compiling entry function/ {split($0, part, "\047"); name = part[2]; stack = spill = shared = 0}
      /bytes stack frame/ {stack = $1; spill = $5 + $9}
      /Used [0-9]+ registers/ {
        for (i = 1; i <= NF; ++i) {
          if ($i == "Used") registers = $(i + 1)
          if ($i == "smem," || $i == "smem") shared = $(i - 2)
        }
        print file, name, registers, shared, stack, spill
      }' "$kept/$(basename "$source" .cu).txt"
  done
}

figures | c++filt | awk -v all="$all" '
  {
    file = $1; spill = $NF; stack = $(NF - 1); shared = $(NF - 2); registers = $(NF - 3)
    sub(/^[^ ]+ /, ""); sub(/( [0-9]+){4}$/, ""); sub(/^void /, "")
    gsub(/weft::(cuda_kernels|functors)::|\(anonymous namespace\)::|weft::/, "")
    name = $0
    if (!all) sub(/[<(].*/, "", name)
    else {  # the parameters say nothing that the name does not; they begin at the parenthesis of depth 0
      depth = 0
      for (i = length(name); i > 0; --i) {
        c = substr(name, i, 1)
        depth += c == ")" ? 1 : c == "(" ? -1 : 0
        if (c == "(" && depth == 0) {name = substr(name, 1, i - 1); break}
      }
    }
    key = file SUBSEP name
    if (!(key in count)) order[++keys] = key
    ++count[key]; ++total
    if (registers > r[key]) r[key] = registers
    if (shared > sh[key]) sh[key] = shared
    if (stack > st[key]) st[key] = stack
    if (spill > sp[key]) sp[key] = spill
    if (spill > 0) ++spilling
    if (registers > most) {most = registers; where = name}
  }
  END {
    row = "%-24s %6s %9s %7s %6s %8s  %s\n"
    printf row, "file", "built", "registers", "shared", "stack", "spilled", "kernel"
    for (k = 1; k <= keys; ++k) {
      key = order[k]
      split(key, part, SUBSEP)
      printf row, part[1], count[key], r[key], sh[key] + 0, st[key] + 0, sp[key] + 0, part[2]
    }
    printf "%d kernels for sm_90, at most %d registers (%s), %d with spills\n", total, most, where, spilling
    exit spilling > 0
  }'
