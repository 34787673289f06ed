#!/usr/bin/env bash
# Whether the tests notice mistakes in GPU kernels: every barrier deleted in turn, shuffle masks of half a warp, atomics in
# two steps, checks of indices left out, bounds and indices off by one. A mutant is killed when the op cases that pass its
# place fail on the emulated device, in one order of threads or another, or under ThreadSanitizer or AddressSanitizer.
# Exit code 1 when one survives. Wants a configured release build.
#
#   tests/simt/mutants.sh [options]
#     --kind K     of barrier fence mask atomic guard bound index; may be given several times. Else the first five
#     --file F     a source of tensor/cuda (sort.cuh) to make mistakes in; may be given several times. Else all
#     --in F.cu    build only this source with them, of those that include such a file; may be given several times
#     --only P     only places whose "kind file text" matches the pattern, as for grep -E
#     --every N    one of N mutants
#     --cases P    only op cases and tests whose name matches the pattern, as for grep -E
#     --judges J   of plain thread address; else the first two, and the third for guards, bounds and indices
#     --list       what would be tried
#
# One build holds all mutants: mutants.awk writes a switch at each place, and mutant.h reads which one is on. It lies in
# build/release/mutants, with report.txt: a line a mutant, and what killed it.
set -euo pipefail
cd "$(dirname "$0")/../.."

root=$PWD build=$PWD/build/release work=$PWD/build/release/mutants
kinds=() judges=() files=() sources=() only='.' every=1 pattern='' list_only=0
while (($#)); do
  case $1 in
    --kind) kinds+=("$2"); shift 2 ;;
    --file) files+=("tensor/cuda/$(basename "$2")"); shift 2 ;;
    --in) sources+=("tensor/cuda/$(basename "$2")"); shift 2 ;;
    --only) only=$2; shift 2 ;;
    --every) every=$2; shift 2 ;;
    --cases) pattern=$2; shift 2 ;;
    --judges) read -ra judges <<<"$2"; shift 2 ;;
    --list) list_only=1; shift ;;
    *) echo "mutants: there is no option $1" >&2; exit 2 ;;
  esac
done
((${#kinds[@]})) || kinds=(barrier fence mask atomic guard)
((${#sources[@]})) || sources=(tensor/cuda/*.cu)
((${#files[@]})) || mapfile -t files < <(printf '%s\n' tensor/cuda/*.cu tensor/cuda/*.cuh)
jobs=$(nproc)
programs=(ops_test optim_test)
mkdir -p "$work"

# ---- the switches ----
rm -rf "$work/source" "$work/sites"
mkdir -p "$work/source/tensor/cuda"
: >"$work/sites"
for file in "${files[@]}"; do
  awk -v name="$file" -v first=$(($(wc -l <"$work/sites") + 1)) -v list="$work/sites" \
    -v kinds=" ${kinds[*]} " -f tests/simt/mutants.awk "$file" >"$work/source/$file"
done
only=$only awk -F '\t' -v every="$every" \
  '$2 " " $3 " " $5 ~ ENVIRON["only"] && n++ % every == 0' "$work/sites" >"$work/wanted"
if ((list_only)); then
  cut -f 2- "$work/wanted"
  exit
fi
[[ -s $work/wanted ]] || { echo "mutants: none of these kinds in these files" >&2; exit 2; }
# Only files with a wanted switch are built anew.
for file in "${files[@]}"; do
  cut -f 3 "$work/wanted" | grep -xF "$file" >/dev/null || rm "$work/source/$file"
done

ninja -C "$build" weft_simt "${programs[@]}" >"$work/build.log" || { cat "$work/build.log" >&2; exit 1; }

# ---- plug-ins with all switches: plain, and for each sanitizer ----
((${#judges[@]})) || { judges=(plain thread); [[ " ${kinds[*]} " != *' '@(guard|bound|index)' '* ]] || judges+=(address); }
export judges_text="${judges[*]}" programs_text="${programs[*]}"
objects=()  # of sources that are, or include, a file with switches
prefix=tests/simt/CMakeFiles/weft_simt.dir/__/__
for source in "${sources[@]}"; do
  object=$prefix/$source.o
  [[ -f $build/$object ]] || continue
  for file in $(cd "$work/source" && ls tensor/cuda/*); do
    if [[ $file == "$source" ]] || ninja -C "$build" -t deps "$object" | grep "/$file\$" >/dev/null; then  # not -q, which ends before ninja does
      objects+=("$object")
      break
    fi
  done
done

# compile JUDGE OBJECT, with the options that the object was built with.
compile() {
  local judge=$1 object=$2 source=${2#"$prefix"/} command out
  source=${source%.o} out=$work/$judge/$(basename "$source").o
  command=$(ninja -C "$build" -t commands "$object" | tail -n 1)
  command=${command% -MD *}
  [[ -f $work/source/$source ]] && source=$work/source/$source || source=$root/$source
  [[ $judge == plain ]] || command+=" -fsanitize=$judge -g1"
  # A command begins with the compiler, ccache before it where that is used.
  command=${command/ -D/ -I"$work/source" -include "$root/tests/simt/mutant.h" -D}
  (cd "$build" && bash -c "$command -w -o '$out' -c '$source'") || { echo "mutants: $source does not build with switches" >&2; return 1; }
}
# link JUDGE
link() {
  local command object
  command=$(ninja -C "$build" -t commands libweft_simt.so | tail -n 1)
  for object in "${objects[@]}"; do command=${command/" $object"/" $work/$1/$(basename "$object")"}; done
  (cd "$build" && bash -c "${command/ -o libweft_simt.so/ -o $work/$1/libweft_simt.so}")
}
export -f compile
export build work root prefix
for judge in "${judges[@]}"; do
  rm -rf "${work:?}/$judge"
  mkdir -p "$work/$judge"
done
# shellcheck disable=SC2016  # for the inner shell, here and below
for judge in "${judges[@]}"; do printf '%s\0' "${objects[@]/#/$judge }"; done |
  xargs -0 -P "$jobs" -I{} bash -c 'compile ${1% *} ${1#* }' _ {}
for judge in "${judges[@]}"; do link "$judge"; done
built=$SECONDS

# ---- running ----
library() { g++ -print-file-name="lib$1.so"; }
# ops JUDGE ORDER CASES [VARIABLE=VALUE…]: tests on the plug-in of a judge, up to the first program that fails. A case is
# PROGRAM:TEST, where an op case stands for its tests.
ops() {
  local judge=$1 order=$2 cases=$3 preload='' program filter
  shift 3
  case $judge in
    thread) preload=$(library tsan) ;;
    address) preload=$(library asan) ;;
  esac
  for program in $programs_text; do
    [[ $'\n'$cases == *$'\n'"$program":* ]] || continue
    filter=$(sed -n "s/^$program://p" <<<"$cases" | sed '/[.]/!s|^|All/*/|' | paste -sd :)
    env "$@" SIMT_ORDER="$order" WEFT_TEST_DEVICE=simt OMP_NUM_THREADS=1 LD_LIBRARY_PATH="$work/$judge" LD_PRELOAD="$preload" \
      TSAN_OPTIONS=halt_on_error=1 ASAN_OPTIONS=detect_leaks=0 \
      timeout 200 "$build/bin/$program" --gtest_brief=1 --gtest_fail_fast --gtest_filter="$filter-*OpDifferencesTest*" 2>&1 || return
  done
}
# reach CASE: the switches that a case passes, and how long it takes.
reach() {
  local file=$work/reached/$1 status=0
  ops plain forward "$1" SIMT_REACHED="$file" >"$file.log" || status=$?
  if ((status)); then
    echo "mutants: $1 fails by itself, and is left out" >&2
    rm -f "$file"
  else
    sed -n 's/.*ran[.] (\([0-9]*\) ms total).*/\1/p' "$file.log" >"$file.ms"
  fi
}
# fails NUMBER JUDGE ORDER CASES: whether the tests fail with the mutant, and do not without it.
fails() {
  local status=0 alone alone_status=0
  [[ " $judges_text " == *" $2 "* ]] || return 1
  ops "$2" "$3" "$4" SIMT_MUTANT="$1" >"$work/logs/$1" || status=$?
  ((status)) || return 1
  alone=$work/alone/$(sha1sum <<<"$2 $3 $4" | cut -c 1-40)
  if [[ ! -f $alone ]]; then
    ops "$2" "$3" "$4" SIMT_MUTANT=0 >"$alone.log" || alone_status=$?
    echo $alone_status >"$alone"
  fi
  if [[ $(<"$alone") != 0 ]]; then
    echo "mutants: fail without a mutant as well, $2 $3: ${4//$'\n'/ }" >&2
    return 1
  fi
  verdict="killed: $3"
  [[ $2 == plain ]] || verdict="killed: $2 sanitizer, $3"
  ((status != 124)) || verdict+=", hangs"
}
# judge NUMBER: who kills the mutant, tried first with a few cheap cases, then with all that pass its place.
judge() {
  local verdict cases few
  cases=$(cat "$work/passes/$1" 2>/dev/null || true)
  verdict='not reached'
  if [[ -n $cases ]]; then
    few=$(<"$work/few/$1")
    fails "$1" plain forward "$few" || fails "$1" plain reverse "$few" || fails "$1" plain random "$few" ||
      fails "$1" thread forward "$few" || fails "$1" address forward "$few" ||
      fails "$1" plain forward "$cases" || fails "$1" plain reverse "$cases" || fails "$1" plain random "$cases" ||
      fails "$1" thread reverse "$cases" || fails "$1" address reverse "$cases" || verdict=survives
  fi
  echo "$verdict" >"$work/verdicts/$1"
}
export -f ops library reach fails judge

rm -rf "$work"/{reached,passes,few,verdicts,logs,alone}
mkdir -p "$work"/{reached,passes,few,verdicts,logs,alone}
# shellcheck disable=SC2016
for program in "${programs[@]}"; do
  WEFT_TEST_DEVICE=simt "$build/bin/$program" --gtest_list_tests --gtest_filter='All/*:*Device*-*OpDifferencesTest*' |
    awk -v program="$program:" '/^[^ ]/ {suite = $1} /^  / {split($1, part, "/"); print program (part[2] != "" ? part[2] : suite $1)}'
done | sort -u | grep -E "$pattern" | xargs -P "$jobs" -I{} bash -c 'reach "$1"' _ {}
# The cases of each switch, cheap ones first, and which of them are cheap: up to 8, of 2 seconds together.
for times in "$work"/reached/*.ms; do
  case=${times%.ms}
  [[ ! -f $case ]] || awk -v name="${case##*/}" -v ms="$(<"$times")" '{print $1, ms, name}' "$case"
done | sort -n -k 1,1 -k 2,2 | awk -v folder="$work/" '
  $1 != last {last = $1; count = spent = 0}
  {print $3 >> (folder "passes/" $1); close(folder "passes/" $1)}
  count == 0 || (count < 8 && spent + $2 < 2000) {++count; spent += $2; print $3 >> (folder "few/" $1); close(folder "few/" $1)}'
measured=$SECONDS
# shellcheck disable=SC2016
cut -f 1 "$work/wanted" | xargs -P "$jobs" -I{} bash -c 'judge "$1"' _ {} 2>"$work/messages"
grep '^mutants: ' "$work/messages" >&2 || true  # not that a mutant crashed

# ---- the report ----
while IFS=$'\t' read -r number kind file place text; do
  printf '%s\t%s\t%s:%s\t%s\n' "$(<"$work/verdicts/$number")" "$kind" "$file" "$place" "$text"
done <"$work/wanted" >"$work/report.txt"
grep -v '^killed' "$work/report.txt" | tr '\t' ' ' | sed 's/^/  /' || true
awk -F '\t' '
  {++all[$2]; if ($1 ~ /^killed/) ++killed[$2]; else if ($1 ~ /^survives/) ++alive[$2]; else ++unseen[$2]}
  END {
    for (kind in all) printf "%-8s %4d mutants, %4d killed, %d survive, %d not reached\n", kind, all[kind], killed[kind], alive[kind], unseen[kind]
  }' "$work/report.txt" | sort
echo "built in $built s, cases without mutants $((measured - built)) s, mutants $((SECONDS - measured)) s"
! grep -qv '^killed' "$work/report.txt"
