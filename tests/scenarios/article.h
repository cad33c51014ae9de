#pragma once
// Shared by the articles' programs: devices, data whose samples contain their number, a tiny linear
// model in double, and fit as a loop over strategy.run.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "penstock/penstock.h"
#include "penstock/report_sink.h"

namespace penstock::scenario {

/// "cpu:0", "cpu:1", ...
std::vector<std::string> devices(std::size_t count);
inline constexpr std::size_t kReplicas[] = {1, 2, 3, 4, 8};

/// Collects the library's reports during its lifetime.
class Told {
 public:
  Told() {
    before_ = set_report_sink([this](const std::string& text) { texts.push_back(text); });
  }
  ~Told() { set_report_sink(before_); }
  Told(const Told&) = delete;
  Told& operator=(const Told&) = delete;
  std::vector<std::string> texts;

 private:
  ReportSink before_;
};

/// A generator of the numbers below `stop`; its length is unknown until it ends.
Dataset generator_of(std::int64_t stop);

/// Numbers of the samples in a share or in all shares, without padding. The numbers are the
/// elements themselves, or their field "id".
std::vector<std::int64_t> ids_of(const Batch& share);
std::vector<std::int64_t> ids_of(const Step& step);
std::vector<std::size_t> rows_of(const Step& step);
/// The rest of the epoch.
std::vector<std::int64_t> ids_of_epoch(Feed& feed);
/// first, first + 1, ... last - 1
std::vector<std::int64_t> numbers(std::int64_t first, std::int64_t last);
std::vector<std::int64_t> sorted(std::vector<std::int64_t> ids);

using Weights = std::vector<double>;

struct FitOptions {
  std::uint64_t epochs = 1;
  DistributeOptions distribute = {};
  bool adamw = false;  // changes the weights even if a gradient is zero
  Weights start = {};  // zeros by default
  /// Called before each epoch and after each step.
  std::function<void(Feed&)> before_epoch = {};
  std::function<void(Feed&, const Step&, const Weights&)> after_step = {};
};

/// The result of a fit. The loss of every sample is 1, so any other loss is a wrong weight.
struct Fit {
  Weights weights;
  std::uint64_t iterations = 0;  // of the optimizer
  std::vector<std::uint64_t> steps;
  std::vector<double> losses;
  std::vector<std::vector<std::int64_t>> ids;  // in the order of the steps, for each epoch
};

Fit fit(const Dataset& dataset, std::size_t replicas, const FitOptions& options = {});
/// The weights of one device, from plain loops over the steps' ids, without the library.
Weights by_hand(const std::vector<std::vector<std::int64_t>>& steps);
/// The steps 0 1 2 .. count-1 in batches.
std::vector<std::vector<std::int64_t>> steps_of(std::int64_t count, std::int64_t batch);
/// Fails the test if a weight is off by more than rounding.
void expect_weights(const Weights& got, const Weights& wanted, const std::string& where);

/// How a custom loop combines the gradients of the replicas.
enum class Loop : std::uint8_t {
  mean,          // each replica's mean, and reduce(mean)
  global_count,  // each replica's sum over the count of the step, and reduce(sum)
  averaged,      // like DDP: mean over rows of weight * loss, times loss_scale, averaged
};

/// How much each sample moved the model in an epoch, relative to the expected amount: 1 is right.
/// `count` samples are numbered from 0.
std::vector<double> influences(const Dataset& dataset, std::size_t replicas, Loop loop,
                               std::size_t count);

}  // namespace penstock::scenario
