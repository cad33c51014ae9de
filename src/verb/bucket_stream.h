#pragma once
// Buckets of a stream, whose lengths are known only when its samples arrive.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "graph/node.h"
#include "penstock/dataset.h"
#include "penstock/padding.h"
#include "verb/lengths.h"

namespace penstock {

/// Lengths from `low` to below `high`.
struct Bucket {
  std::uint64_t low = 0;
  std::uint64_t high = UINT64_MAX;
  std::int64_t size = 1;  // samples of a step
};

struct StreamBuckets {
  std::vector<Bucket> buckets;  // ascending, without gaps; at least one
  LengthRule rule;
  std::optional<Tail> tail = {};
  std::shared_ptr<const Padding> padding = {};  // null: rows keep their sizes
  std::optional<std::uint64_t> window = {};     // samples for which one waits at most
};

Dataset add_stream_buckets(const Dataset& input, StreamBuckets settings);

/// How the steps of buckets of a stream are padded; null for another node, or if they are not.
const Padding* stream_padding_of(const Node& leaf);

}  // namespace penstock
