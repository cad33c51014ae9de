// The smaller parts: buckets, heartbeat, event files, progress, optimizer state, schedules.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/thread.h"
#include "gradient_buckets.h"
#include "heartbeat.h"
#include "nets.h"
#include "progress.h"
#include "tensorboard.h"

namespace penstock::train {
namespace {

using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(GradientBucketsTest, SumsAreMadeWhileABackwardPassGoesOn) {
  // Two replicas, a bucket for each layer. The first replica is done; in the second, the sum of the
  // last layer is there before the first layer's gradient is.
  std::vector<torch::nn::Sequential> nets;
  for (int r = 0; r < 2; ++r) {
    torch::manual_seed(1);
    nets.emplace_back(torch::nn::Linear(4, 4), torch::nn::Tanh(), torch::nn::Linear(4, 1));
  }
  GradientBuckets buckets({nets[0]->parameters(), nets[1]->parameters()}, nullptr, 80);
  std::vector<std::string> order;
  buckets.when_summed = [&](std::size_t bucket) { order.push_back(fmt::format("sum {}", bucket)); };
  buckets.begin();
  buckets.clear(0);
  buckets.clear(1);
  buckets.arm();
  const auto x = torch::ones({3, 4});
  nets[0]->forward(x).sum().backward();
  EXPECT_TRUE(order.empty());
  nets[1]->parameters()[0].register_hook([&](const torch::Tensor& grad) {
    order.emplace_back("gradient of the first layer");
    return grad;
  });
  nets[1]->forward(x).sum().backward();
  buckets.finish(0);
  buckets.finish(1);
  buckets.complete();
  ASSERT_GE(order.size(), 3U);
  EXPECT_THAT(order.front(), HasSubstr("sum 0"));
  EXPECT_NE(std::ranges::find(order, "gradient of the first layer"), order.end());
  EXPECT_NE(order.back(), "gradient of the first layer");
  buckets.adopt(0);
  buckets.adopt(1);
  for (std::size_t i = 0; i < nets[0]->parameters().size(); ++i)
    EXPECT_TRUE(torch::equal(nets[0]->parameters()[i].grad(), nets[1]->parameters()[i].grad()));
}

TEST(GradientBucketsTest, ParametersThatTookNoPartAndReplicasWithoutRowsCountAsZero) {
  std::vector<std::vector<torch::Tensor>> parameters;
  for (int r = 0; r < 3; ++r)
    parameters.push_back({torch::ones({2}).requires_grad_(), torch::ones({2}).requires_grad_()});
  GradientBuckets buckets(parameters, nullptr);
  for (int round = 0; round < 2; ++round) {
    buckets.begin();
    for (std::size_t r = 0; r < 3; ++r) buckets.clear(r);
    buckets.arm();
    (parameters[0][0] * 2).sum().backward();
    (parameters[2][0] * 3).sum().backward();
    for (std::size_t r = 0; r < 3; ++r) buckets.finish(r);
    buckets.complete();
    buckets.scale(0.5);
    for (std::size_t r = 0; r < 3; ++r) buckets.adopt(r);
    for (std::size_t r = 0; r < 3; ++r) {
      EXPECT_TRUE(torch::equal(parameters[r][0].grad(), torch::full({2}, 2.5)));
      EXPECT_TRUE(torch::equal(parameters[r][1].grad(), torch::zeros({2})));
    }
  }
}

TEST(HeartbeatTest, SilentRanksAreNamedAndOthersAreNot) {
  std::vector<RankSeen> seen(4);
  for (RankSeen& one : seen) one = {"sum of gradients", seconds(100), false};
  seen[2].last = seconds(91);
  EXPECT_TRUE(verdict_on(seen, 0, seconds(101), seconds(101)).lost);
  EXPECT_THAT(verdict_on(seen, 0, seconds(101), seconds(101)).text,
              AllOf(HasSubstr("rank 2 of 4 has sent no heartbeat for 10 s"),
                    Not(HasSubstr("rank 1")), Not(HasSubstr("rank 3"))));
  seen[1].left = true;
  EXPECT_THAT(verdict_on(seen, 0, seconds(101), seconds(101)).text,
              HasSubstr("rank 1 of 4 has left; its own output says why"));
  seen[1].left = false;
  seen[2].last = seconds(100);
  EXPECT_FALSE(verdict_on(seen, 3, seconds(101), seconds(101)).lost);
  EXPECT_THAT(verdict_on(seen, 3, seconds(101), seconds(101)).text,
              AllOf(HasSubstr("all ranks are alive"), HasSubstr("rank 0 is in sum of gradients")));
  EXPECT_THAT(verdict_on(seen, 3, seconds(140), seconds(101)).text,
              HasSubstr("this rank, 3 of 4, has no connection"));
}

TEST(HeartbeatTest, BeatsComeThroughAStoreAndAFarewellToo) {
  Mutex mutex;
  std::vector<std::string> store(2);
  const BeatStore shared{[&](std::uint32_t rank, const std::string& value) {
                           Lock lock(mutex);
                           store[rank] = value;
                         },
                         [&] {
                           Lock lock(mutex);
                           return store;
                         }};
  Heartbeat first(0, 2, shared);
  while (shared.read()[0].empty()) yield_thread();
  {
    Heartbeat second(1, 2, shared);
  }
  Lock lock(mutex);
  EXPECT_THAT(store[1], ::testing::EndsWith(" left"));
  EXPECT_THAT(store[0], ::testing::EndsWith(" the start"));
}

TEST(TensorBoardTest, RecordsHaveTheFormatOfEventFiles) {
  // Protobuf by hand: field 1 the time as eight bytes, field 3 the version as a run of bytes.
  const std::string event = version_event(1.5);
  EXPECT_EQ(event, std::string("\x09\x00\x00\x00\x00\x00\x00\xf8\x3f\x1a\x0d"
                               "brain.Event:2",
                               24));
  const std::string record = event_record(event);
  ASSERT_EQ(record.size(), 8 + 4 + event.size() + 4);
  EXPECT_EQ(record[0], 24);
  EXPECT_EQ(record.substr(12, event.size()), event);
}

TEST(ProgressTest, ABarSaysHowFarAndHowFast) {
  Scores scores;
  scores.loss = 0.5;
  scores.metrics = {{"accuracy", 0.75}};
  EXPECT_EQ(bar_text(5, 10, scores, 812, 3, 0.014),
            "5/10 [==========>         ]  loss 0.5000  accuracy 0.7500  812 samples/s  15 s left  "
            "input 1 %");
  EXPECT_EQ(bar_text(10, 10, scores, 812, 3, 0),
            "10/10 [====================]  loss 0.5000  accuracy 0.7500  812 samples/s  input 0 %");
  EXPECT_THAT(bar_text(5, std::nullopt, scores, 812, 3, 0), HasSubstr("5 steps  loss"));
}

TEST(OptimizerTest, WhatItRemembersComesBack) {
  for (const OptimizerSpec& spec :
       {sgd(0.1, {.momentum = 0.9}), adam(0.1), adamw(0.1), rmsprop(0.1, {.momentum = 0.5})}) {
    const auto trained = [&](bool through_a_file) {
      const auto value = torch::ones({3}).requires_grad_();
      std::vector<torch::Tensor> parameters{value};
      auto optimizer = spec.make(parameters);
      for (int i = 0; i < 6; ++i) {
        if (through_a_file && i == 3) {
          const auto state = optimizer_state(*optimizer, {"w"});
          optimizer = spec.make(parameters);
          restore_optimizer(*optimizer, {"w"}, decode_tensors("test", encode_tensors(state)));
        }
        value.mutable_grad() = torch::full({3}, 0.3 * (i + 1));
        optimizer->step();
      }
      return value.detach().clone();
    };
    EXPECT_TRUE(torch::equal(trained(false), trained(true))) << spec.name;
  }
}

TEST(OptimizerTest, SchedulesAreFunctionsOfTheUpdate) {
  const Schedule warm = warm_up(4, step_decay(1.0, 0.5, 10));
  EXPECT_DOUBLE_EQ(warm(0), 0.25);
  EXPECT_DOUBLE_EQ(warm(3), 1.0);
  EXPECT_DOUBLE_EQ(warm(10), 0.5);
  EXPECT_DOUBLE_EQ(warm(25), 0.25);
  const Schedule cosine = cosine_decay(1.0, 100, 0.1);
  EXPECT_DOUBLE_EQ(cosine(0), 1.0);
  EXPECT_NEAR(cosine(50), 0.55, 1e-12);
  EXPECT_NEAR(cosine(1000), 0.1, 1e-12);
}

TEST(LayersTest, AMaskBelongsToTheSampleAndTheUpdate) {
  MirroredStrategy strategy(cpus(1));
  Feed feed = strategy.distribute(Dataset::range(4).batch(4));
  const auto step = feed.next();
  DropoutImpl dropout(DropoutOptions(0.5));
  const auto masked = [&](std::uint64_t iteration) {
    torch::Tensor made;
    strategy.run(
        [&](Replica& replica, const Batch& share) {
          const ShareScope scope(replica, share, {.iteration = iteration});
          made = dropout.forward(torch::ones({4, 1000}, torch::kFloat64));
        },
        *step);
    return made;
  };
  const torch::Tensor first = masked(0);
  EXPECT_TRUE(torch::equal(first, masked(0)));
  EXPECT_FALSE(torch::equal(first, masked(1)));
  EXPECT_FALSE(torch::equal(first[0], first[1]));
  EXPECT_NEAR((first > 0).to(torch::kFloat64).mean().item<double>(), 0.5, 0.05);
  EXPECT_EQ(first.max().item<double>(), 2.0);
  dropout.eval();
  EXPECT_EQ(masked(0).min().item<double>(), 1.0);
}

TEST(LayersTest, BatchNormOnOneReplicaIsTorchs) {
  torch::manual_seed(4);
  const auto x = torch::randn({6, 3, 5, 5}, torch::kFloat64);
  BatchNorm ours(BatchNormOptions(3));
  torch::nn::BatchNorm2d theirs(3);
  ours->to(torch::kFloat64);
  theirs->to(torch::kFloat64);
  const auto a = x.clone().requires_grad_();
  const auto b = x.clone().requires_grad_();
  const auto weights = torch::randn({6, 3, 5, 5}, torch::kFloat64);
  const auto ya = ours->forward(a);
  const auto yb = theirs->forward(b);
  (ya * weights).sum().backward();
  (yb * weights).sum().backward();
  EXPECT_TRUE(torch::allclose(ya, yb, 1e-10, 1e-12));
  EXPECT_TRUE(torch::allclose(a.grad(), b.grad(), 1e-8, 1e-10));
  EXPECT_TRUE(torch::allclose(ours->running_mean, theirs->running_mean, 1e-10, 1e-12));
  EXPECT_TRUE(torch::allclose(ours->running_var, theirs->running_var, 1e-10, 1e-12));
  ours->eval();
  theirs->eval();
  EXPECT_TRUE(torch::allclose(ours->forward(x), theirs->forward(x), 1e-10, 1e-12));
}

}  // namespace
}  // namespace penstock::train
