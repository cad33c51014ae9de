// A run that is saved under R replicas and resumed under R', with another batch size: together they
// deliver the pass, for every R and R' from 1 to 16.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "penstock/strategy.h"

namespace penstock {
namespace {

constexpr std::size_t kMost = 16;
constexpr std::uint64_t kSamples = 61;

Dataset data(bool stream, std::int64_t batch) {
  const Dataset all = Dataset::range(kSamples);
  return (stream ? all.filter([](std::int64_t) { return true; }, {.name = "all"})
                       .shuffle({.window = 7})
                 : all.shuffle({.seed = 7}))
      .batch(batch);
}

/// Takes up to `steps` steps of the epoch and adds their samples; the sizes of the shares differ by
/// at most one.
void take(Feed& feed, std::uint64_t steps, std::vector<std::uint64_t>& ids) {
  for (std::uint64_t i = 0; i < steps; ++i) {
    const auto step = feed.next();
    if (!step) return;
    const auto [least, most] = std::ranges::minmax(step->shares(), {}, &Batch::rows);
    ASSERT_LE(most.rows() - least.rows(), 1U);
    for (const Batch& share : step->shares())
      ids.insert(ids.end(), share.sample_id().begin(), share.sample_id().end());
  }
}

class Strategies {
 public:
  Strategies() {
    std::vector<std::string> devices;
    for (std::size_t r = 0; r < kMost; ++r) {
      devices.push_back("cpu:" + std::to_string(r));
      all_.push_back(std::make_unique<MirroredStrategy>(devices));
    }
  }
  MirroredStrategy& of(std::size_t replicas) { return *all_[replicas - 1]; }

 private:
  std::vector<std::unique_ptr<MirroredStrategy>> all_;
};

TEST(ElasticTest, APassSavedUnderAnyReplicasResumesUnderAnyOthers) {
  Strategies strategies;
  DistributeOptions options;
  options.loader.threads = 0;
  for (const bool stream : {false, true}) {
    std::vector<std::uint64_t> whole;
    Feed reference = strategies.of(1).distribute(data(stream, 8), options);
    take(reference, UINT64_MAX, whole);
    ASSERT_EQ(whole.size(), kSamples);
    for (std::size_t before = 1; before <= kMost; ++before)
      for (std::size_t after = 1; after <= kMost; ++after) {
        const std::uint64_t steps = (before + after) % 8;  // of the 8 of a pass
        const auto batch = static_cast<std::int64_t>(1 + (3 * before + after) % 20);
        std::vector<std::uint64_t> ids;
        Feed saved = strategies.of(before).distribute(data(stream, 8), options);
        take(saved, steps, ids);
        Feed resumed = strategies.of(after).distribute(data(stream, batch), options);
        resumed.restore(State::parse(saved.state().to_json()));
        take(resumed, UINT64_MAX, ids);
        ASSERT_EQ(ids, whole) << (stream ? "stream, " : "") << before << " to " << after
                              << " replicas after " << steps << " steps, then by " << batch;
        ASSERT_EQ(resumed.epoch(), 1U);
      }
  }
}

}  // namespace
}  // namespace penstock
