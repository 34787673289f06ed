// Tensors: views, dtypes, random numbers, values.
#include "tensor/tensor.h"

#include <gtest/gtest.h>

#include "tensor/kernels.h"
#include "tensor/view.h"

namespace weft {
namespace {

TEST(Tensor, ViewsShareStorageAndKeepValues) {
  const Tensor x = arange(24).reshape({2, 3, 4});
  EXPECT_EQ(x.permute({2, 0, 1}).select(0, 1).to_vector<int64_t>(), (std::vector<int64_t>{1, 5, 9, 13, 17, 21}));
  EXPECT_EQ(x.storage(), x.transpose(0, 2).storage());
  EXPECT_EQ(x.transpose(0, 1).reshape({6, 4}).select(0, 1).to_vector<int64_t>(), (std::vector<int64_t>{12, 13, 14, 15}));
}

}  // namespace
}  // namespace weft
