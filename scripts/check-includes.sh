#!/usr/bin/env bash
# No file includes upward: tensor < autograd < nn < {optim, data, models} < parallel < train < apps. Includes in quotes
# are relative to the root. Only programs include <weft.h>.
set -euo pipefail
cd "$(dirname "$0")/.."

declare -A may_include=(
  [tensor]="tensor"
  [autograd]="tensor autograd"
  [nn]="tensor autograd nn"
  [optim]="tensor autograd nn optim"
  [data]="tensor data"
  [models]="tensor autograd nn models"
  [parallel]="tensor autograd nn optim data models parallel"
  [train]="tensor autograd nn optim data models parallel train"
)
failed=0
complain() { echo "$1"; failed=1; }

while IFS=: read -r file line include; do
  name=${include#*[\"<]}
  name=${name%%[\">]*}
  folder=${file%%/*}
  allowed=${may_include[$folder]:-}
  if [[ $include == *\"* && ! -e $name ]]; then
    complain "$file:$line: \"$name\" is not a path from the root"
  elif [[ -n $allowed && $name == weft.h ]]; then
    complain "$file:$line: <weft.h> is for programs; name the headers that $folder/ needs"
  elif [[ -n $allowed && $include == *\"* && " $allowed " != *" ${name%%/*} "* ]]; then
    complain "$file:$line: $folder/ may not include \"$name\"; it may include $allowed"
  fi
done < <(git ls-files -co --exclude-standard -- '*.h' '*.cpp' '*.cu' '*.cuh' '*.def' |
         xargs grep -nE '^[[:space:]]*#[[:space:]]*include' /dev/null)
exit $failed
