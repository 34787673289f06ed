// EXPECT_ADDRESS_SANITIZER(f, words), EXPECT_THREAD_SANITIZER(f, words): f(false) ends its process with a report that
// has the words, and f(true) ends well. Elsewhere the test is skipped, and says what it wants.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kAddressSanitizer = true;
#else
inline constexpr bool kAddressSanitizer = false;
#endif
#if defined(__SANITIZE_THREAD__)
inline constexpr bool kThreadSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = false;
#endif

#define EXPECT_SANITIZER(present, name, f, words)                                         \
  do {                                                                                    \
    if (!(present)) GTEST_SKIP() << "skipped: wants " name;                               \
    GTEST_FLAG_SET(death_test_style, "threadsafe");                                       \
    EXPECT_EXIT((f(false), std::exit(0)), [](int status) { return status != 0; }, words); \
    f(true);                                                                              \
  } while (false)
#define EXPECT_ADDRESS_SANITIZER(f, words) EXPECT_SANITIZER(kAddressSanitizer, "AddressSanitizer", f, words)
#define EXPECT_THREAD_SANITIZER(f, words) EXPECT_SANITIZER(kThreadSanitizer, "ThreadSanitizer", f, words)
