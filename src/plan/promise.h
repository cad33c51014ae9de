#pragma once
// What a dataset promises about its samples, from its nodes alone. Plan::check compares a pass with
// it.

#include <cstdint>
#include <vector>

#include "graph/node.h"

namespace penstock {

struct Promise {
  struct Part {  // of the ids: where they end, and how often each of them comes at most
    std::uint64_t end;
    std::uint64_t times;
  };
  std::vector<Part> parts;
  std::uint64_t dropped = 0;  // by batches: how many times a sample does not come
  bool all = true;            // nothing else is left out: `times` is exact

  [[nodiscard]] std::uint64_t ids() const { return parts.empty() ? 0 : parts.back().end; }
  void multiply(std::uint64_t rounds) {
    const auto times = [rounds](std::uint64_t count) {
      std::uint64_t product = 0;
      return __builtin_mul_overflow(count, rounds, &product) ? kEndless : product;
    };
    for (Part& part : parts) part.times = times(part.times);
    dropped = times(dropped);
  }
  /// Adds the ids of `next` after its own.
  void append(const Promise& next) {
    const std::uint64_t first = ids();
    for (const Part& part : next.parts) parts.push_back({first + part.end, part.times});
    dropped += next.dropped;
    all = all && next.all;
  }
};

inline Promise promise_of(const Node& node, const Delivery& delivery) {
  return node.verb->promise(node, delivery);
}

}  // namespace penstock
