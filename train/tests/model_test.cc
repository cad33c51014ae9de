#include <penstock/train/model.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/temp_folder_for_tests.h"
#include "base/thread.h"
#include "nets.h"
#include "penstock/loader.h"
#include "penstock/report_sink.h"

namespace penstock::train {
namespace {

using ::testing::AllOf;
using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

const FitOptions kQuiet{.show = Show::nothing};

TEST(ModelTest, PredictionsAreInTheOrderOfTheDatasetAndAsMany) {
  for (const std::size_t replicas : {1U, 3U, 4U}) {
    MirroredStrategy strategy(cpus(replicas));
    const auto net = small_net();
    Model model(net, {.strategy = &strategy});
    const Dataset plain = points(103);
    Loader loader(plain.batch(103), {.shares = Shares{}});
    const auto all = loader.next();
    const torch::NoGradGuard no_grad;
    const torch::Tensor wanted = Network(net).forward({tensor_of(*all, "x")});
    for (const Dataset& data :
         {plain.batch(16), plain.shuffle({.seed = 3}).batch(16), plain.batch(200)}) {
      const torch::Tensor given = model.predict(data);
      EXPECT_EQ(given.size(0), 103);
      EXPECT_LE(difference(wanted, given), 1e-12);
    }
    EXPECT_LE(difference(wanted, model.predict(plain.batch(16), {.loader = {.tail = Tail::pad}})),
              1e-12);
  }
}

TEST(ModelTest, ANetworkThatIsNotCloneableIsMadeByAFunction) {
  struct PlainImpl : torch::nn::Module {
    PlainImpl() : layer(register_module("layer", torch::nn::Linear(5, 1))) {
      layer->to(torch::kFloat64);
    }
    torch::Tensor forward(const torch::Tensor& x) { return layer->forward(x); }
    torch::nn::Linear layer;
  };
  MirroredStrategy strategy(cpus(2));
  const CompileOptions options{.optimizer = sgd(0.1), .loss = mean_squared_error()};
  Model refused(std::make_shared<PlainImpl>(), {.strategy = &strategy});
  EXPECT_THAT([&] { refused.compile(options); },
              ThrowsMessage<ConfigError>(AllOf(HasSubstr("Cloneable"), HasSubstr("function"))));
  Model model([] { return std::make_shared<PlainImpl>(); }, {.strategy = &strategy});
  model.compile(options);
  EXPECT_TRUE(model.fit(points(33).batch(8), kQuiet).complete);
  model.mirrored().check_equal();
}

TEST(ModelTest, BadLabelsNameTheSampleBeforeTheKernelReadsOutside) {
  std::vector<std::int64_t> labels(40, 1);
  labels[13] = 9;
  const Dataset data = Dataset::from_tensor_slices(Sample::dict(
      {{"x", Tensor::of(std::span<const float>(std::vector<float>(40 * 5, 0.5F)), {40, 5})},
       {"y", Tensor::of(labels)}}));
  MirroredStrategy strategy(cpus(2));
  Model model(torch::nn::Sequential(torch::nn::Linear(5, 3)), {.strategy = &strategy});
  model.compile({.loss = cross_entropy()});
  EXPECT_THAT([&] { (void)model.fit(data.batch(8), kQuiet); },
              ThrowsMessage<SampleError>(AllOf(HasSubstr("label 9"), HasSubstr("3 classes"),
                                               HasSubstr("sample 13"), HasSubstr("step 1"))));
}

TEST(ModelTest, ALossThatIsNoNumberStopsWithItsSamplesOrIsSkipped) {
  const Dataset data = points(64).map([](const Sample& in) {
    const bool bad = in["x"].values<double>()[0] > 1.2;
    return Sample::dict({{"x", in["x"]}, {"y", bad ? Tensor::scalar(std::nan("")) : in["y"]}});
  });
  for (const std::size_t replicas : {1U, 3U}) {
    MirroredStrategy strategy(cpus(replicas));
    Model model(small_net(), {.strategy = &strategy});
    CompileOptions options{.optimizer = sgd(0.01), .loss = mean_squared_error()};
    model.compile(options);
    EXPECT_THAT([&] { (void)model.fit(data.batch(16), kQuiet); },
                ThrowsMessage<SampleError>(
                    AllOf(HasSubstr("not a number"), HasSubstr("sample "), HasSubstr("step "))));
    EXPECT_TRUE(torch::isfinite(weights(model.network())).all().item<bool>());

    options.on_nan = OnNan::skip;
    Model going(small_net(), {.strategy = &strategy});
    going.compile(options);
    std::string told;
    const ReportSink before = set_report_sink([&](const std::string& text) { told += text; });
    const History history = going.fit(data.batch(8), kQuiet);
    set_report_sink(before);
    EXPECT_TRUE(history.complete);
    EXPECT_GT(history.epochs[0].skipped_steps, 0U);
    EXPECT_EQ(history.iterations + history.epochs[0].skipped_steps, 8U);
    EXPECT_TRUE(std::isfinite(history.epochs[0].train.loss));
    EXPECT_THAT(told, HasSubstr("the step is skipped"));
    EXPECT_TRUE(torch::isfinite(weights(going.network())).all().item<bool>());
  }
}

TEST(ModelTest, ShapesThatDoNotFitAreTold) {
  Model model(torch::nn::Sequential(torch::nn::Linear(7, 1)));
  model.compile({.loss = mean_squared_error()});
  EXPECT_THAT([&] { (void)model.fit(points(32, 5, Dtype::f32).batch(8), kQuiet); },
              ThrowsMessage<ConfigError>(AllOf(HasSubstr("forward failed"), HasSubstr("[8, 5]"))));
}

TEST(ModelTest, FieldsThatDoNotSayWhatTheyAreAreListed) {
  const Dataset data = Dataset::range(9).map([](const Sample& in) {
    return Sample::dict({{"a", in.tensor()}, {"b", in.tensor()}, {"c", in.tensor()}});
  });
  Model model(small_net());
  model.compile({.loss = mean_squared_error()});
  EXPECT_THAT([&] { (void)model.fit(data.batch(3), kQuiet); },
              ThrowsMessage<ConfigError>(HasSubstr("the dataset has [a, b, c]")));
}

TEST(ModelTest, WhatIsMissingIsAskedFor) {
  Model model(small_net());
  EXPECT_THAT([&] { (void)model.fit(points(8).batch(4), kQuiet); },
              ThrowsMessage<ConfigError>(HasSubstr("not compiled")));
  EXPECT_THROW(model.compile({.accumulate = 0}), ConfigError);
  EXPECT_THROW((void)sgd(-1), ConfigError);
  EXPECT_THROW((void)adam(std::nan("")), ConfigError);
  EXPECT_THAT([] { (void)torch_device("cuda:7"); },
              ThrowsMessage<ConfigError>(AllOf(HasSubstr("cuda:7"), HasSubstr("GPUs"))));
  model.compile({.loss = mean_squared_error()});
  FitOptions none = kQuiet;
  EXPECT_THAT([&] { (void)model.fit(points(8).take(0).batch(4), none); },
              ThrowsMessage<ConfigError>(HasSubstr("empty")));
}

TEST(ModelTest, ValidationIsAFreshExactPassEachTime) {
  for (const std::size_t replicas : {1U, 4U}) {
    MirroredStrategy strategy(cpus(replicas));
    Model model(small_net(), {.strategy = &strategy});
    model.compile({.optimizer = sgd(0.05), .loss = mean_squared_error()});
    FitOptions options{.epochs = 3, .show = Show::nothing};
    options.validation = points(37).batch(8);
    const History history = model.fit(points(64).batch(16), options);
    for (const EpochLog& log : history.epochs) EXPECT_EQ(log.validation->samples, 37U);
    EXPECT_NEAR(history.epochs.back().validation->loss, model.evaluate(points(37).batch(5)).loss,
                1e-12);
    EXPECT_THAT([&] { (void)model.evaluate(points(37).batch(8), {.steps = 9}); },
                ThrowsMessage<ConfigError>(AllOf(HasSubstr("9 steps"), HasSubstr("has 5"))));
  }
}

TEST(ModelTest, EpochsOfStepsGoOnOverPassesAndInitialEpochCounts) {
  Model model(small_net());
  model.compile({.optimizer = sgd(0.05), .loss = mean_squared_error()});
  FitOptions options{.epochs = 3, .show = Show::nothing};
  options.steps_per_epoch = 5;
  History history = model.fit(points(103).batch(16), options);  // 7 steps in a pass
  EXPECT_EQ(history.iterations, 15U);
  for (const EpochLog& log : history.epochs) EXPECT_EQ(log.steps, 5U);
  options.steps_per_epoch.reset();
  options.initial_epoch = 2;
  history = model.fit(points(103).batch(16), options);
  ASSERT_EQ(history.epochs.size(), 1U);
  EXPECT_EQ(history.epochs[0].epoch, 2U);
}

TEST(ModelTest, CallbacksSeeStepsAndEpochsAndMayStop) {
  const TempFolder folder;
  Model model(small_net());
  model.compile({.optimizer = sgd(1e-9), .loss = mean_squared_error()});
  FitOptions options{.epochs = 50, .show = Show::nothing};
  options.validation = points(20).batch(8);
  int steps = 0;
  std::vector<double> rates;
  options.callbacks = {
      early_stopping({.patience = 2, .min_change = 1e-3}), csv_log(folder.path("log.csv")),
      json_log(folder.path("log.json")),
      learning_rate([](std::uint64_t epoch) { return 1e-9 * static_cast<double>(epoch + 1); }),
      hooks({.on_step_end = [&](Training&, const Scores&) { ++steps; },
             .on_epoch_end = [&](Training& training,
                                 const EpochLog&) { rates.push_back(training.learning_rate()); }})};
  const History history = model.fit(points(40).batch(16), options);
  EXPECT_FALSE(history.complete);
  EXPECT_THAT(history.ended_by, HasSubstr("early stopping: val_loss"));
  EXPECT_EQ(history.epochs.size(), 3U);
  EXPECT_EQ(steps, 9);
  EXPECT_THAT(rates, ElementsAre(DoubleEq(1e-9), DoubleEq(2e-9), DoubleEq(3e-9)));
  std::ifstream csv(folder.path("log.csv"));
  std::string line;
  int lines = 0;
  while (std::getline(csv, line)) ++lines;
  EXPECT_EQ(lines, 4);
  EXPECT_THAT(
      [&] {
        FitOptions wrong{.show = Show::nothing};
        wrong.callbacks = {early_stopping({.watch = "val_accuracy"})};
        (void)model.fit(points(40).batch(16), wrong);
      },
      ThrowsMessage<ConfigError>(AllOf(HasSubstr("val_accuracy"), HasSubstr("validation"))));
}

TEST(ModelTest, AnInterruptEndsAfterTheStepAndWhatWasSavedGoesOn) {
  const TempFolder folder;
  std::atomic<int> interrupt{0};
  Model model(small_net());
  model.compile({.optimizer = sgd(0.05), .loss = mean_squared_error()});
  FitOptions options{.epochs = 4, .show = Show::nothing};
  options.interrupt = &interrupt;
  options.callbacks = {checkpoints(folder.path("c")),
                       hooks({.on_step_end = [&](Training& training, const Scores&) {
                         if (training.iteration() == 9) interrupt = 2;
                       }})};
  const History history = model.fit(points(103).batch(16), options);
  EXPECT_EQ(history.ended_by, "interrupted");
  EXPECT_FALSE(history.complete);
  const Checkpoint saved = load_checkpoint(*newest_checkpoint(folder.path("c")));
  EXPECT_EQ(saved.iteration, history.iterations);
  EXPECT_EQ(saved.step, saved.iteration - 7);
}

TEST(ModelTest, AnInterruptDuringValidationSavesAndTheResumedRunEndsTheEpoch) {
  const TempFolder folder;
  std::atomic<int> interrupt{0};
  std::atomic<bool> seen{false};
  const auto fit = [&](bool interrupted) {
    Model model(small_net());
    model.compile({.optimizer = sgd(0.05), .loss = mean_squared_error()});
    FitOptions options{.epochs = 2, .show = Show::nothing};
    options.callbacks = {checkpoints(folder.path("c"))};
    options.resume = folder.path("c");
    options.validation = points(21).batch(8);
    if (interrupted) {
      options.interrupt = &interrupt;
      options.loader.while_waiting = [&] { seen = interrupt.load() != 0; };
      // The signal comes while validation waits for its first batch.
      options.validation = points(21)
                               .map([&](const Sample& sample) {
                                 interrupt = 2;
                                 while (!seen) yield_thread();
                                 return sample;
                               })
                               .batch(8);
    }
    return model.fit(points(103).batch(16), options);
  };
  const History first = fit(true);
  EXPECT_EQ(first.ended_by, "interrupted");
  EXPECT_TRUE(first.epochs.empty());
  const Checkpoint saved = load_checkpoint(newest_checkpoint(folder.path("c")).value());
  EXPECT_EQ(saved.iteration, 7U);
  EXPECT_TRUE(saved.epoch_done);
  const History second = fit(false);
  EXPECT_TRUE(second.complete);
  ASSERT_EQ(second.epochs.size(), 2U);
  EXPECT_EQ(second.epochs[0].train.samples, 103U);
  EXPECT_EQ(second.epochs[0].validation->samples, 21U);
}

TEST(ModelTest, EarlyStoppingWithoutPatienceEndsAtTheFirstEpochThatIsNotBetter) {
  Model model(small_net());
  model.compile({.optimizer = sgd(0.01), .loss = mean_squared_error()});
  FitOptions options{.epochs = 3, .show = Show::nothing};
  options.callbacks = {early_stopping({.watch = "loss", .patience = 0})};
  const History history = model.fit(points(103).batch(16), options);
  ASSERT_GE(history.epochs.size(), 2U);
  EXPECT_LT(history.epochs[1].train.loss, history.epochs[0].train.loss);
}

TEST(ModelTest, SkippedSamplesLeaveTheMeanExact) {
  // One sample in ten cannot be made: the mean is over those that can.
  const auto trained = [](std::size_t replicas, bool filtered) {
    MirroredStrategy strategy(cpus(replicas));
    Model model(small_net(), {.strategy = &strategy});
    model.compile({.optimizer = sgd(0.05), .loss = mean_squared_error()});
    FitOptions options{.show = Show::nothing};
    options.loader.on_error = OnError::skip;
    options.loader.skip_limit = 100;
    const auto bad = [](const Sample& in) { return in["x"].values<double>()[0] > 1.2; };
    const Dataset all = points(103);
    const Dataset some = all.map([bad](const Sample& in) {
      if (bad(in)) throw std::runtime_error("broken");
      return in;
    });
    const History history =
        model.fit(filtered ? all.select([bad](const Sample& in) { return !bad(in); }).batch(200)
                           : some.batch(200),
                  options);
    EXPECT_EQ(history.iterations, 1U);
    return weights(model.network());
  };
  const torch::Tensor wanted = trained(1, true);
  for (const std::size_t replicas : {1U, 3U, 8U})
    EXPECT_LE(difference(wanted, trained(replicas, false)), 1e-12) << replicas;
}

TEST(ModelTest, Bf16TrainsAndModelsByNameRun) {
  const Dataset pictures =
      Dataset::range(12)
          .map([](const Sample& in, Rng& rng) {
            std::vector<float> pixels(3 * 33 * 33);
            for (float& pixel : pixels) pixel = static_cast<float>(rng.normal());
            return Sample::dict({{"image", Tensor::of(std::span<const float>(pixels), {3, 33, 33})},
                                 {"label", Tensor::scalar(in.tensor().item<std::int64_t>() % 3)}});
          })
          .batch(6);
  MirroredStrategy strategy(cpus(2));
  for (const char* const name : {"linear", "cnn", "resnet18"}) {
    Model model(model_named(name, 3, {33, 33}), {.strategy = &strategy});
    CompileOptions options{.optimizer = adam(1e-3), .metrics = {accuracy(), top_k_accuracy(2)}};
    options.bf16 = true;
    options.sync_batch_norm = std::string(name) == "resnet18";
    model.compile(options);
    const History history = model.fit(pictures, kQuiet);
    EXPECT_TRUE(std::isfinite(history.epochs[0].train.loss)) << name;
    EXPECT_EQ(history.iterations, 2U);
    model.mirrored().check_equal();
  }
  EXPECT_THROW((void)model_named("vgg", 3, {33, 33}), ConfigError);
}

TEST(ModelTest, TorchsDropoutOnSeveralReplicasIsWarnedAbout) {
  std::string told;
  const ReportSink before = set_report_sink([&](const std::string& text) { told += text; });
  MirroredStrategy strategy(cpus(2));
  Model model(torch::nn::Sequential(torch::nn::Linear(5, 8), torch::nn::Dropout(0.5),
                                    torch::nn::Linear(8, 1)),
              {.strategy = &strategy});
  model.compile({.loss = mean_squared_error()});
  set_report_sink(before);
  EXPECT_THAT(told, AllOf(HasSubstr("dropout"), HasSubstr("penstock::train::Dropout")));
  torch::nn::Sequential norm(torch::nn::Linear(5, 8), torch::nn::BatchNorm1d(8));
  EXPECT_THAT([&] { (void)sync_batch_norm(*norm); },
              ThrowsMessage<ConfigError>(HasSubstr("penstock::train::BatchNorm")));
}

TEST(ModelTest, CopiesThatDifferAreNoticed) {
  MirroredStrategy strategy(cpus(3));
  Model model(small_net(), {.strategy = &strategy});
  model.compile({.optimizer = sgd(0.05), .loss = mean_squared_error()});
  model.mirrored().check_equal();
  {
    const torch::NoGradGuard no_grad;
    model.mirrored().copy(2).module().parameters()[0].add_(1e-3);
  }
  EXPECT_THAT([&] { model.mirrored().check_equal(); },
              ThrowsMessage<InternalError>(HasSubstr("replica 2 differ")));
}

}  // namespace
}  // namespace penstock::train
