#!/usr/bin/env bash
# Files over 600 lines fail; those over 400 are listed, as candidates for two files.
set -euo pipefail
cd "$(dirname "$0")/.."

git ls-files -co --exclude-standard -- '*.h' '*.cpp' '*.cu' '*.cuh' '*.def' '*.sh' '*.cmake' '*CMakeLists.txt' weft |
  xargs wc -l | awk '$2 == "total" || $1 <= 400 {next}
    {print $2 ": " $1 " lines" ($1 > 600 ? ", more than 600" : "")}
    $1 > 600 {failed = 1}
    END {exit failed}'
