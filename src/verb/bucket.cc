// Batches of samples of similar lengths, composed of other verbs: the samples of each bucket are
// selected, shuffled and batched, and the steps of all buckets are joined and shuffled.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "op/op.h"
#include "verb/bucket_stream.h"
#include "verb/concatenate.h"
#include "verb/row_lengths.h"
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

LengthRule rule_of(const BucketOptions& options) {
  if (!options.length) return {options.field};
  if (!options.field.empty())
    throw ConfigError("bucket_by_length: a field and a function for the length are both set");
  MapOptions map;
  map.name = "length";
  map.spec = ElementSpec::single(Dtype::i64);
  return {{},
          make_sample_op({false,
                          [length = options.length](const Sample& sample, Rng&) {
                            return Sample(Tensor::scalar(length(sample)));
                          }},
                         map)};
}

/// The padding of one bucket.
std::optional<Padding> padding_for(const Bucket& bucket, const BucketOptions& options) {
  std::optional<Padding> padding = options.padding;
  if (!padding || !options.pad_to_boundary || bucket.high == UINT64_MAX) return padding;
  const auto longest = static_cast<std::int64_t>(bucket.high - 1);
  padding->all.length = longest;
  for (auto& [path, rule] : padding->fields) rule.length = longest;
  return padding;
}

Dataset of_stream(const Dataset& input, const std::vector<Bucket>& buckets,
                  const BucketOptions& options) {
  if (options.pad_to_boundary)
    throw ConfigError("bucket_by_length: the steps of a stream cannot be padded to the boundary",
                      {}, "pad to a multiple, or use indexed data");
  StreamBuckets settings{buckets, rule_of(options), options.tail, nullptr, options.window};
  check_length_field("bucket_by_length", settings.rule, input.element_spec());
  if (options.drop_remainder) settings.tail = Tail::drop;
  if (options.padding) settings.padding = std::make_shared<const Padding>(*options.padding);
  return add_stream_buckets(input, std::move(settings));
}

/// Lengths from `refused` on are an error.
Dataset join(const char* word, const Dataset& input, const std::vector<Bucket>& buckets,
             const BucketOptions& options, std::uint64_t refused = UINT64_MAX) {
  refuse_if_batched(input, word, fmt::format("put {} in the place of batch()", word));
  if (options.drop_remainder && options.tail && *options.tail != Tail::drop)
    throw ConfigError(fmt::format("{}: drop_remainder and another tail policy are both set", word));
  if (options.pad_to_boundary && !options.padding)
    throw ConfigError(fmt::format("{}: pad_to_boundary, but rows are not padded", word));
  if (input.streamed()) return of_stream(input, buckets, options);
  if (options.window)
    throw ConfigError(fmt::format("{}: window is for streams; this data is indexed", word), {},
                      "leave it out: every step but the last of a bucket is full");
  const LengthRule rule = rule_of(options);
  check_length_field(word, rule, input.element_spec());
  const std::optional<ShuffleOptions> shuffled = whole_shuffle(*input.node());
  const Dataset samples = shuffled ? Dataset(input.node()->inputs.front()) : input;
  const auto lengths = std::make_shared<LengthCell>();
  std::vector<Dataset> parts;
  for (const Bucket& bucket : buckets) {
    Dataset part = add_select(samples, {.range = std::make_shared<const LengthRange>(LengthRange{
                                            rule, bucket.low, bucket.high, refused, lengths})});
    if (shuffled) part = part.shuffle(*shuffled);
    const std::optional<Padding> padding = padding_for(bucket, options);
    part = padding
               ? part.padded_batch(bucket.size, {*padding, options.tail, options.drop_remainder})
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
    buckets.push_back({low, high, batch_sizes[i]});
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
    buckets.push_back({low, high, max_tokens / std::max<std::int64_t>(1, end - 1)});
    low = high;
  }
  return join("batch_by_tokens", *this, buckets, options,
              static_cast<std::uint64_t>(boundaries.back()));
}

}  // namespace penstock
