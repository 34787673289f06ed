#!/usr/bin/env bash
# Include order, file lengths, the table of field cases, formatting. Only version 14 of clang-format judges: others break lines elsewhere.
set -euo pipefail
cd "$(dirname "$0")/.."

failed=0
scripts/check-includes.sh || failed=1
scripts/check-lengths.sh || failed=1
scripts/check-field-cases.sh || failed=1

format=$(command -v clang-format-14 || command -v clang-format || true)
if [[ -n $format && $("$format" --version) == *' 14.'* ]]; then
  git ls-files -co --exclude-standard -- '*.h' '*.cpp' '*.cu' '*.cuh' | xargs "$format" --dry-run -Werror || failed=1
else
  echo "skipped: formatting, since clang-format 14 is not here"
fi
exit $failed
