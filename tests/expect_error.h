// EXPECT_ERROR(statement, "part of the message"): the statement throws weft::Error that says so.
#pragma once

#include <gtest/gtest.h>

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
