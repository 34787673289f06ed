// More sizes for the benchmark of single ops: those that networks have, and that the op cases do not.
#pragma once

#include "tests/ops/op_case.h"

namespace weft::testing {

/// Entries of which only `name`, `run`, `gradient`, `bench` and `flops` are set.
OpCases more_sizes();

}  // namespace weft::testing
