# Writes a kernel source with a switch at every place where mutants.sh makes a mistake; the list of switches goes to `list`,
# one a line: number, kind, file, line, text. Numbers follow on `first`.
#   awk -v name=tensor/cuda/x.cu -v first=1 -v list=FILE -v kinds=' barrier mask ' -f mutants.awk x.cu >copy
# Kinds: barrier (deleted), fence (deleted), mask (half a warp), atomic (in two steps), guard (of an index; left out),
# bound (off by one), index (off by one). Bounds and indices are those of device code.

# The place of the parenthesis or bracket that closes the one at i; 0 where the line has none.
function close_of(s, i,    depth, c) {
  for (depth = 0; i <= length(s); ++i) {
    c = substr(s, i, 1)
    if (c ~ /[(\[{]/) ++depth
    else if (c ~ /[)\]}]/ && --depth == 0) return i
  }
  return 0
}

# The end of the first argument of a call whose parenthesis is at i.
function argument_end(s, i,    depth, c) {
  for (depth = 0; i <= length(s); ++i) {
    c = substr(s, i, 1)
    if (c ~ /[(\[{]/) ++depth
    else if (c ~ /[)\]}]/ && --depth == 0) return i
    else if (c == "," && depth == 1) return i
  }
  return 0
}

function site(kind,    text) {
  text = code
  gsub(/^ +| +$/, "", text)
  print number + 1 "\t" kind "\t" name "\t" NR "\t" text >> list
  return ++number
}
function wanted(kind) { return index(kinds, " " kind " ") }
function insert(at, text) { inserted[at] = inserted[at] text }
function close_at(at, text) { inserted[at] = text inserted[at] }
function wrap(from, to, opening) { insert(from, opening); close_at(to + 1, ")") }

# Where `pattern` begins behind place i; 0 where it does not. `found` is its length.
function next_match(pattern, i) {
  if (!match(substr(code, i + 1), pattern)) return 0
  found = RLENGTH
  return i + RSTART
}

function barriers(    i, open, end, call, kind) {
  for (i = 0; (i = next_match("__(syncthreads|syncwarp|threadfence)(_or|_and|_count|_block|_system)?[(]", i));) {
    call = substr(code, i, found)
    kind = call ~ /fence/ ? "fence" : "barrier"
    if (!wanted(kind)) continue
    open = i + found - 1
    end = close_of(code, open)
    if (call ~ /_(or|and|count)/)
      wrap(i, end, "(::simt::mutant(" site(kind) ") ? static_cast<int>" substr(code, open, end - open + 1) " : ")
    else
      wrap(i, end, "(::simt::mutant(" site(kind) ") ? void() : ")
  }
}

function masks(    i, open) {
  for (i = 0; (i = next_match("__(shfl|shfl_up|shfl_down|shfl_xor|ballot|any|all|match_any)_sync[(]", i));) {
    open = i + found - 1
    wrap(open + 1, argument_end(code, open) - 1, "::simt::mutant_mask(" site("mask") ") & (")
  }
}

function atomics(    i) {
  for (i = 0; (i = next_match("atomic[A-Z][A-Za-z]*[(]", i));) {
    for (gone = 0; gone < 6; ++gone) removed[i + gone] = 1  # "atomic"
    insert(i, "::simt::torn_")
    insert(i + found, site("atomic") ", ")
  }
}

# A call of an IndexCheck, and 0 <= i < size in the forms that the kernels write it.
function guards(    i, end, place, size) {
  place = "[A-Za-z_][A-Za-z_0-9.]*"
  size = "(static_cast<[A-Za-z_0-9]+>[(][^()]*[)]|" place "(\\[[^]]*\\])?)"
  for (i = 0; checks != "" && (i = next_match("(^|[^A-Za-z_0-9.])(" checks ")[(]", i));) {
    end = close_of(code, i + found - 1)
    if (substr(code, i, 1) !~ /[A-Za-z_]/) ++i
    if (end) wrap(i, end, "(::simt::mutant(" site("guard") ") || ")
  }
  for (i = 0; (i = next_match(place " >= 0 && " place " < " size, i)); i += found)
    wrap(i, i + found - 1, "(::simt::mutant(" site("guard") ") || ")
  for (i = 0; (i = next_match(place " < 0 [|][|] " place " >= " size, i)); i += found) {
    insert(i, "(!::simt::mutant(" site("guard") ") && (")
    close_at(i + found, "))")
  }
}

function bounds(    i, negative) {
  for (i = body - 1; (i = next_match(" (<|>=|<=) ", i)); i += found - 1)
    insert(i + found, (substr(code, i, found) ~ /<=/ ? "-" : "") "::simt::mutant(" site("bound") ") + ")
}

function indices(    i, end, declared) {
  declared = 0
  if (match(code, /^ *(__shared__ |const |static |alignas[(][0-9]+[)] )*[A-Za-z_][A-Za-z_0-9:<>, ]* [*&]?[A-Za-z_0-9]+\[/) &&
      code !~ /^ *(return|else|case) /) {
    declared = index(code, " = ")
    if (!declared) return
  }
  for (i = (declared > body - 1 ? declared : body - 1); (i = next_match("[A-Za-z_0-9)\\]]\\[", i));) {
    end = close_of(code, i + 1)
    if (end > i + 2) wrap(i + 2, end - 1, "::simt::mutant(" site("index") ") + (")
  }
}

BEGIN {number = first - 1}
{
  at = match($0, /(^| )\/\//)
  code = at ? substr($0, 1, at - 1) : $0
  comment = at ? substr($0, at) : ""
  split("", inserted)
  split("", removed)
  if (match(code, /IndexCheck [a-z_]+/)) {
    check = substr(code, RSTART + 11, RLENGTH - 11)
    if (index("|" checks "|", "|" check "|") == 0) checks = checks (checks == "" ? "" : "|") check
  }

  # Where device code begins and ends: from the function's opening brace on. `body` is its first place in this line.
  body = device && opened ? 1 : 0
  if (!device && code ~ /__(global|device)__/) {device = 1; opened = 0; start = depth; head = ""}
  for (i = 1; i <= length(code); ++i) {
    c = substr(code, i, 1)
    if (device && !opened) head = head c
    if (c == "{") {
      ++depth
      if (device && !opened) {opened = 1; body = i; constant = head ~ /(^|[^f]) *constexpr /}
    } else if (c == "}") {
      --depth
      if (device && opened && depth == start) device = 0
    } else if (c == ";" && device && !opened) {
      device = 0
    }
  }

  if (code !~ /^ *#/ && code !~ /__device__ .*(IndexCheck|atomic)/) {
    if (wanted("barrier") || wanted("fence")) barriers()
    if (wanted("mask")) masks()
    if (wanted("atomic")) atomics()
    if (body && !constant && code !~ /constexpr|static_assert|^ *template/) {
      if (wanted("guard")) guards()
      if (wanted("bound")) bounds()
      if (wanted("index")) indices()
    }
  }
  out = ""
  for (i = 1; i <= length(code) + 1; ++i) out = out inserted[i] (i in removed ? "" : substr(code, i, 1))
  print out comment
}
