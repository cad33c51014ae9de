// tested in src/verb/bucket_test.cc
#include "verb/bucket_padding.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "verb/batch.h"
#include "verb/select.h"
#include "verb/shuffle.h"

namespace penstock {
namespace {

/// One bucket: a select by length, possibly shuffled, and batched.
struct PaddedBucket {
  const Selection* selection = nullptr;
  std::optional<ShuffleOptions> shuffle;
  const FieldPadding* rule = nullptr;
};

std::optional<PaddedBucket> padded_bucket(const Node& leaf) {
  const Padding* const padding = padding_of(leaf);
  if (padding == nullptr) return std::nullopt;
  PaddedBucket bucket;
  bucket.shuffle = whole_shuffle(leaf.input());
  const Node& samples = bucket.shuffle ? leaf.input().input() : leaf.input();
  const auto* const select = samples.as<Select>();
  if (select == nullptr) return std::nullopt;
  bucket.selection = &select->selection();
  const LengthRange* const range = bucket.selection->range.get();
  if (range == nullptr || range->rule.measure || !bucket.selection->chosen) return std::nullopt;
  bucket.rule = padding->of(range->rule.field);
  if (bucket.rule == nullptr) return std::nullopt;
  return bucket;
}

struct PaddingCount {
  double tokens = 0;
  double places = 0;  // of tokens, in padded rows
  bool all = true;    // false: of some steps
};

/// Adds the steps of a bucket, at most about `samples_max` samples of them.
void count_padding(const PaddedBucket& bucket, const Groups& groups, const CompileOptions& options,
                   std::uint64_t samples_max, PaddingCount& count) {
  const auto lengths =
      bucket.selection->range->lengths->get([] { return std::shared_ptr<const Lengths>(); });
  if (!lengths) return;
  // The same choice and order of the numbers of the samples.
  Dataset numbers =
      add_select(Dataset::range(static_cast<std::int64_t>(lengths->of.size())), *bucket.selection);
  if (bucket.shuffle) numbers = numbers.shuffle(*bucket.shuffle);
  const StagePtr order = compile_samples(*numbers.node(), options);
  const std::uint64_t every = groups.delivered() / samples_max + 1;
  const double weight = static_cast<double>(every);
  if (every > 1) count.all = false;
  Scratch scratch;
  for (std::uint64_t step = 0; step < groups.steps(); step += every) {
    std::vector<std::uint64_t> positions(groups.size(step));
    for (std::size_t i = 0; i < positions.size(); ++i)
      positions[i] = (groups.first(step) + i) % groups.count;
    std::vector<std::uint64_t> ids(positions.size());
    order->identify({{}, positions}, ids.data(), scratch);
    std::uint64_t longest = 0;
    for (const std::uint64_t id : ids) {
      longest = std::max<std::uint64_t>(longest, lengths->of[id]);
      count.tokens += weight * lengths->of[id];
    }
    const auto multiple = static_cast<std::uint64_t>(bucket.rule->multiple_of);
    if (bucket.rule->length) longest = static_cast<std::uint64_t>(*bucket.rule->length);
    const std::uint64_t width = (longest + multiple - 1) / multiple * multiple;
    count.places += weight * static_cast<double>(width * ids.size());
  }
}

}  // namespace

std::optional<std::string> padding_sentence(const Node& buckets, const CompileOptions& options) {
  constexpr std::uint64_t kSamplesMax = 16384;  // of all buckets: every plan pays for this
  const std::uint64_t samples_max = std::max<std::uint64_t>(1, kSamplesMax / buckets.inputs.size());
  PaddingCount count;
  for (const NodePtr& leaf : buckets.inputs) {
    if (!leaf->is_leaf()) return std::nullopt;
    const auto bucket = padded_bucket(*leaf);
    const auto groups = leaf->groups(options.tail);
    if (!bucket || !groups || groups->count == kEndless) return std::nullopt;
    if (groups->count > 0) count_padding(*bucket, *groups, options, samples_max, count);
  }
  if (count.places == 0) return std::nullopt;
  return fmt::format("buckets: {}{:.2f} % of the first pass is padding, with one process",
                     count.all ? "" : "about ", 100 * (1 - count.tokens / count.places));
}

}  // namespace penstock
