#pragma once
// Internal checks. A failed one throws InternalError with both values: the run stops, the host
// process continues.

#include <fmt/format.h>

#include "penstock/error.h"

#define PENSTOCK_CHECK_OP(left, op, right)                                                        \
  do {                                                                                            \
    const auto& check_left = (left);                                                              \
    const auto& check_right = (right);                                                            \
    if (!(check_left op check_right)) [[unlikely]]                                                \
      throw ::penstock::InternalError(fmt::format("{}:{}: {} " #op " {} does not hold: {} vs {}", \
                                                  __FILE__, __LINE__, #left, #right, check_left,  \
                                                  check_right));                                  \
  } while (false)
#define PENSTOCK_CHECK_EQ(left, right) PENSTOCK_CHECK_OP(left, ==, right)
#define PENSTOCK_CHECK_LE(left, right) PENSTOCK_CHECK_OP(left, <=, right)
#define PENSTOCK_CHECK_LT(left, right) PENSTOCK_CHECK_OP(left, <, right)
#define PENSTOCK_CHECK(condition)                                                  \
  do {                                                                             \
    if (!(condition)) [[unlikely]]                                                 \
      throw ::penstock::InternalError(                                             \
          fmt::format("{}:{}: {} does not hold", __FILE__, __LINE__, #condition)); \
  } while (false)
