// Batches of samples of similar lengths, composed of other verbs: the samples of each bucket are
// selected, shuffled and batched, and the steps of all buckets are joined and shuffled.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "verb/concatenate.h"
#include "verb/select.h"
#include "verb/shuffle.h"

namespace penstock {
namespace {

void check_boundaries(const char* word, const std::vector<std::int64_t>& boundaries) {
  for (std::size_t i = 0; i < boundaries.size(); ++i)
    if (boundaries[i] < 1 || (i > 0 && boundaries[i] <= boundaries[i - 1]))
      throw ConfigError(fmt::format("{}: boundary {} is {}{}", word, i, boundaries[i],
                                    i == 0 ? "" : fmt::format(", after {}", boundaries[i - 1])),
                        {}, "boundaries are lengths from 1 on, each above the one before");
}

struct Bucket {
  LengthRange range;
  std::int64_t size = 1;  // samples of a step
};

Dataset join(const char* word, const Dataset& input, const std::vector<Bucket>& buckets,
             const BucketOptions& options) {
  refuse_if_batched(input, word, fmt::format("put {} in the place of batch()", word));
  const std::optional<ShuffleOptions> shuffled = whole_shuffle(*input.node());
  const Dataset samples = shuffled ? Dataset(input.node()->inputs.front()) : input;
  const auto lengths = std::make_shared<LengthCell>();
  std::vector<Dataset> parts;
  for (const Bucket& bucket : buckets) {
    auto range = std::make_shared<LengthRange>(bucket.range);
    range->field = options.field;
    range->lengths = lengths;
    Dataset part = add_select(samples, {.range = std::move(range)});
    if (shuffled) part = part.shuffle(*shuffled);
    part = options.padding ? part.padded_batch(bucket.size, {*options.padding, options.tail,
                                                             options.drop_remainder})
                           : part.batch(bucket.size, {options.tail, options.drop_remainder});
    parts.push_back(part);
  }
  const Dataset all = join_all(parts, true);
  return shuffled ? all.shuffle(*shuffled) : all;
}

}  // namespace

Dataset Dataset::bucket_by_length(const std::vector<std::int64_t>& boundaries,
                                  const std::vector<std::int64_t>& batch_sizes,
                                  const BucketOptions& options) const {
  check_boundaries("bucket_by_length", boundaries);
  if (batch_sizes.size() != boundaries.size() + 1)
    throw ConfigError(fmt::format("bucket_by_length: {} boundaries and {} batch sizes",
                                  boundaries.size(), batch_sizes.size()),
                      {}, "pass one batch size more than boundaries: the last for longer samples");
  std::vector<Bucket> buckets;
  std::uint64_t low = 0;
  for (std::size_t i = 0; i < batch_sizes.size(); ++i) {
    const std::uint64_t high =
        i < boundaries.size() ? static_cast<std::uint64_t>(boundaries[i]) : UINT64_MAX;
    buckets.push_back({{"", low, high}, batch_sizes[i]});
    low = high;
  }
  return join("bucket_by_length", *this, buckets, options);
}

Dataset Dataset::batch_by_tokens(std::int64_t max_tokens, const BucketOptions& options,
                                 std::vector<std::int64_t> boundaries) const {
  constexpr std::int64_t kTokensMax = std::int64_t{1} << 40;
  if (max_tokens < 1 || max_tokens > kTokensMax)
    throw ConfigError(fmt::format("batch_by_tokens: max_tokens must be from 1 to {}, got {}",
                                  kTokensMax, max_tokens));
  check_boundaries("batch_by_tokens", boundaries);
  if (boundaries.empty()) {
    for (std::int64_t end = 9; end <= max_tokens; end += std::max<std::int64_t>(1, end / 4))
      boundaries.push_back(end);
    boundaries.push_back(max_tokens + 1);
  }
  if (boundaries.back() - 1 > max_tokens)
    throw ConfigError(fmt::format("batch_by_tokens: a sample of the last boundary's length, {}, "
                                  "does not fit into {} tokens",
                                  boundaries.back() - 1, max_tokens),
                      {}, "leave out boundaries above max_tokens");
  std::vector<Bucket> buckets;
  std::uint64_t low = 0;
  for (const std::int64_t end : boundaries) {
    const auto high = static_cast<std::uint64_t>(end);
    buckets.push_back({{"", low, high, static_cast<std::uint64_t>(boundaries.back())},
                       max_tokens / std::max<std::int64_t>(1, end - 1)});
    low = high;
  }
  return join("batch_by_tokens", *this, buckets, options);
}

}  // namespace penstock
