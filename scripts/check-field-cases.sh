#!/usr/bin/env bash
# The rows of tests/field_cases.md: sorted by case, none twice, and each names a test that the sources have.
set -euo pipefail
cd "$(dirname "$0")/.."

table=tests/field_cases.md
failed=0
complain() { echo "$table: $1"; failed=1; }

rows=$(grep -E '^\| [0-9]+ ' "$table" || true)
sort -c -s -t '|' -k 2,2n <<<"$rows" 2>/dev/null || complain "rows are not sorted by case"
while read -r row; do [[ -z $row ]] || complain "twice: $row"; done < <(sort <<<"$rows" | uniq -d)
sources=$(find tests -name '*.cpp' -exec grep -hoE '^ *TEST(_F|_P)?\([A-Za-z0-9_]+, [A-Za-z0-9_]+\)' {} + || true)
while IFS='|' read -r _ number test _; do
  [[ -n $number ]] || continue
  name=${test#*: }
  name=${name%%\`*}
  [[ $sources == *"(${name%%.*}, ${name#*.})"* ]] || complain "case${number% }: there is no test $name"
done <<<"$rows"
exit $failed
