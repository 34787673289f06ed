// The vector math functions against the C library in double, and the floating-point mode of the threads.
#include "tensor/cpu/math.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <limits>
#include <vector>

#include "tensor/threads.h"
#include "tests/expect_error.h"

namespace weft {
namespace {

/// Largest error in units in the last place over [low, high].
template <class F, class G>
double worst_ulp(F f, G reference, double low, double high) {
  double worst = 0;
  const int n = 200'000;
  for (int i = 0; i <= n; ++i) {
    const auto x = static_cast<float>(low + (high - low) * i / n);
    const double wanted = reference(static_cast<double>(x)), got = static_cast<double>(f(x));
    const double ulp = std::fmax(std::ldexp(1.0, std::ilogb(wanted) - 23),
                                 static_cast<double>(std::numeric_limits<float>::min()) * 0x1p-23);
    if (wanted != 0) worst = std::fmax(worst, std::fabs(got - wanted) / ulp);
  }
  return worst;
}

TEST(Math, StaysWithinFourUlp) {
  EXPECT_LE(worst_ulp([](float x) { return math::exp(x); }, [](double x) { return std::exp(x); }, -87, 88), 4);
  EXPECT_LE(worst_ulp([](float x) { return math::log(x); }, [](double x) { return std::log(x); }, 1e-6, 20), 4);
  EXPECT_LE(worst_ulp([](float x) { return math::tanh(x); }, [](double x) { return std::tanh(x); }, -10, 10), 4);
  EXPECT_LE(
      worst_ulp([](float x) { return math::sigmoid(x); }, [](double x) { return 1 / (1 + std::exp(-x)); }, -80, 80), 4);
  EXPECT_LE(worst_ulp([](float x) { return math::erf(x); }, [](double x) { return std::erf(x); }, -5, 5), 4);
  EXPECT_LE(worst_ulp([](float x) { return math::log1p_unit(x); }, [](double x) { return std::log1p(x); }, 0, 1), 4);
  for (const double high : {4.0, 100.0, static_cast<double>(math::kSinLimit)}) {
    EXPECT_LE(worst_ulp([](float x) { return math::sin(x); }, [](double x) { return std::sin(x); }, -high, high), 4);
    EXPECT_LE(worst_ulp([](float x) { return math::cos(x); }, [](double x) { return std::cos(x); }, -high, high), 4);
  }
}

TEST(Math, EndsAreExact) {
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(math::exp(-infinity), 0.0f);
  EXPECT_EQ(math::exp(infinity), infinity);
  EXPECT_EQ(math::exp(0.0f), 1.0f);
  EXPECT_EQ(math::log(0.0f), -infinity);
  EXPECT_EQ(math::log(infinity), infinity);
  EXPECT_EQ(math::log(1.0f), 0.0f);
  EXPECT_TRUE(std::isnan(math::log(-1.0f)));
  EXPECT_EQ(math::tanh(infinity), 1.0f);
  EXPECT_EQ(math::erf(-infinity), -1.0f);
  EXPECT_EQ(math::sigmoid(-infinity), 0.0f);
  EXPECT_EQ(math::log1p_unit(1e-30f), 1e-30f);
  for (float (*f)(float) : {static_cast<float (*)(float)>(math::exp), static_cast<float (*)(float)>(math::log),
                            static_cast<float (*)(float)>(math::tanh), static_cast<float (*)(float)>(math::erf)})
    EXPECT_TRUE(std::isnan(f(nan)));
}

#ifdef __SSE2__
TEST(Threads, DenormalsAreFlushedInsideAndRestoredOutside) {
  volatile float tiny = std::numeric_limits<float>::min();
  auto halves_to_zero = [&] { return tiny * 0.5f == 0.0f; };
  ASSERT_FALSE(halves_to_zero());
  {
    const FlushDenormals flush;
    EXPECT_TRUE(halves_to_zero());
    std::atomic<int> flushed = 0, pieces = 0;
    parallel_for(2 * num_threads(), 1, [&](int64_t, int64_t) {
      ++pieces;
      flushed += halves_to_zero();
    });
    EXPECT_EQ(flushed, pieces);
  }
  EXPECT_FALSE(halves_to_zero());
  set_flush_denormals(false);
  {
    const FlushDenormals idle;
    EXPECT_FALSE(halves_to_zero());
  }
  set_flush_denormals(true);
}
#endif

TEST(Threads, EveryPieceComesOnce) {
  for (const int64_t n : {0, 1, 7, 1000}) {
    std::vector<std::atomic<int>> seen(static_cast<size_t>(n));
    parallel_for(n, 3, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];
    });
    for (const auto& count : seen) EXPECT_EQ(count, 1);
  }
  EXPECT_ERROR(set_num_threads(0), "must be at least 1, got 0");
}

}  // namespace
}  // namespace weft
