// Checks of error messages, for edge tests.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "tensor/error.h"

/// `statement` throws weft::Error with `text` in its message.
#define EXPECT_ERROR(statement, text)                                                           \
  do {                                                                                          \
    try {                                                                                       \
      (void)(statement);                                                                        \
      ADD_FAILURE() << "nothing was thrown, wanted: " << (text);                                \
    } catch (const ::weft::Error& e) {                                                          \
      EXPECT_NE(std::string(e.what()).find(text), std::string::npos) << "thrown: " << e.what(); \
    }                                                                                           \
  } while (false)
