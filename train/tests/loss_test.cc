#include <penstock/train/loss.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <penstock/error.h>
#include <penstock/train/metric.h>

#include "score_sums.h"

namespace penstock::train {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
namespace F = torch::nn::functional;

TEST(LossTest, MeansOfRowsAreTorchsMeans) {
  torch::manual_seed(1);
  const auto scores = torch::randn({7, 4}, torch::kFloat64);
  const auto labels = torch::randint(0, 4, {7}, torch::kInt64);
  const auto near = [](const torch::Tensor& a, const torch::Tensor& b) {
    EXPECT_NEAR(a.item<double>(), b.item<double>(), 1e-12);
  };
  near(cross_entropy().per_sample(scores, labels).mean(), F::cross_entropy(scores, labels));
  near(cross_entropy(0.1).per_sample(scores, labels.to(torch::kInt32)).mean(),
       F::cross_entropy(scores, labels, F::CrossEntropyFuncOptions().label_smoothing(0.1)));
  const auto target = torch::rand({7, 4}, torch::kFloat64);
  near(mean_squared_error().per_sample(scores, target).mean(), F::mse_loss(scores, target));
  near(mean_absolute_error().per_sample(scores, target).mean(), F::l1_loss(scores, target));
  near(huber(0.5).per_sample(scores, target).mean(),
       F::huber_loss(scores, target, F::HuberLossFuncOptions().delta(0.5)));
  near(binary_cross_entropy().per_sample(scores, target).mean(),
       F::binary_cross_entropy_with_logits(scores, target));
  EXPECT_EQ(mean_squared_error().per_sample(scores.narrow(1, 0, 1), target.select(1, 0)).numel(),
            7);
}

TEST(LossTest, ShapesThatWouldBeComparedAllWithAllAreRefused) {
  const auto output = torch::zeros({7, 3});
  EXPECT_THAT([&] { (void)mean_squared_error().per_sample(output, torch::zeros({7})); },
              ThrowsMessage<ConfigError>(AllOf(HasSubstr("[7, 3]"), HasSubstr("is Float[7]"))));
  EXPECT_THROW((void)cross_entropy().per_sample(torch::zeros({7}), torch::zeros({7})), ConfigError);
  EXPECT_THROW((void)cross_entropy().per_sample(output, torch::zeros({6}, torch::kInt64)),
               ConfigError);
  EXPECT_THROW((void)cross_entropy(1.5), ConfigError);
  for (const std::int64_t label : {-1, 3})
    EXPECT_THROW((void)cross_entropy().per_sample(output, torch::full({7}, label, torch::kInt64)),
                 std::out_of_range);
}

TEST(MetricTest, SumsOverPartsGiveTheValueOfTheWhole) {
  torch::manual_seed(2);
  const auto scores = torch::randn({30, 3}, torch::kFloat64);
  const auto labels = torch::randint(0, 3, {30}, torch::kInt64);
  const std::vector<Metric> metrics{accuracy(), top_k_accuracy(2), precision(1), recall(1)};
  const auto sums_of = [&](std::int64_t first, std::int64_t count) {
    ScoreSums sums;
    sums.samples = static_cast<double>(count);
    for (const Metric& metric : metrics)
      sums.metrics.push_back(
          metric_sums(metric, scores.narrow(0, first, count), labels.narrow(0, first, count), {}));
    return sums;
  };
  const Scores whole = sums_of(0, 30).scores(metrics);
  for (const std::int64_t cut : {1, 7, 29}) {
    ScoreSums parts = sums_of(0, cut);
    parts.add(sums_of(cut, 30 - cut));
    const Scores again = ScoreSums::parse(parts.to_json()).scores(metrics);
    for (std::size_t m = 0; m < metrics.size(); ++m)
      EXPECT_DOUBLE_EQ(whole.metrics[m].second, again.metrics[m].second) << metrics[m].name;
  }
  const auto called = scores.argmax(1);
  const double both = torch::logical_and(called == 1, labels == 1).sum().item<double>();
  EXPECT_DOUBLE_EQ(whole.metrics[2].second, both / (called == 1).sum().item<double>());
  EXPECT_DOUBLE_EQ(whole.metrics[3].second, both / (labels == 1).sum().item<double>());
}

TEST(MetricTest, PaddedRowsDoNotCount) {
  const auto scores = torch::tensor({{1.0, 0.0}, {0.0, 1.0}, {1.0, 0.0}});
  const auto labels = torch::tensor({0, 0, 0}, torch::kInt64);
  const auto mask = torch::tensor({1, 1, 0}, torch::kUInt8);
  EXPECT_EQ(metric_sums(accuracy(), scores, labels, mask)[0], 1.0);
}

}  // namespace
}  // namespace penstock::train
