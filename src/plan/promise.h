#pragma once
// What the nodes of a dataset promise about its samples. Plan::check compares a pass with it.

#include <cstdint>
#include <vector>

#include "graph/node.h"

namespace penstock {

struct Promise {
  struct Part {  // a range of ids: its end, and how often each id comes at most
    std::uint64_t end;
    std::uint64_t times;
  };
  std::vector<Part> parts;
  std::uint64_t dropped = 0;  // by batches: deliveries that are dropped
  bool all = true;            // nothing else is dropped: `times` is exact

  [[nodiscard]] std::uint64_t ids() const { return parts.empty() ? 0 : parts.back().end; }
  void multiply(std::uint64_t rounds) {
    const auto times = [rounds](std::uint64_t count) {
      std::uint64_t product = 0;
      return __builtin_mul_overflow(count, rounds, &product) ? kEndless : product;
    };
    for (Part& part : parts) part.times = times(part.times);
    dropped = times(dropped);
  }
  /// Appends the ids of `next`.
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
