// EXPECT_ERROR(statement, "part of the message"): the statement throws weft::Error that says so. `error_of` gives the
// whole message.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "tensor/error.h"

#define EXPECT_ERROR(statement, part)                                                                   \
  do {                                                                                                  \
    try {                                                                                               \
      (void)(statement);                                                                                \
      ADD_FAILURE() << "did not throw: " #statement;                                                    \
    } catch (const ::weft::Error& error) {                                                              \
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << "thrown: " << error.what(); \
    }                                                                                                   \
  } while (false)

namespace weft {

/// The message of the weft::Error that f throws, or "no error".
inline std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace weft
