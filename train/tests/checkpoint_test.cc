#include <penstock/train/checkpoint.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/temp_folder_for_tests.h"
#include "heard.h"
#include "nets.h"

namespace penstock::train {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(SafetensorsTest, TensorsComeBackAsTheyWere) {
  const NamedTensors saved{{"w", torch::randn({3, 4})},
                           {"half", torch::randn({5}).to(torch::kBFloat16)},
                           {"wide", torch::randn({2, 2}, torch::kFloat64)},
                           {"scalar", torch::tensor(std::int64_t{7})},
                           {"flags", torch::tensor({true, false})},
                           {"none", torch::empty({0, 3})}};
  const NamedTensors loaded = decode_tensors("test", encode_tensors(saved));
  ASSERT_EQ(loaded.size(), saved.size());
  for (const auto& [name, value] : saved) {
    const auto found =
        std::ranges::find_if(loaded, [&](const auto& one) { return one.first == name; });
    ASSERT_NE(found, loaded.end()) << name;
    EXPECT_TRUE(torch::equal(found->second, value)) << name;
    EXPECT_EQ(found->second.scalar_type(), value.scalar_type());
  }
}

TEST(SafetensorsTest, BytesThatAreCutOrChangedAreRefusedAndNeverReadOutside) {
  const std::string bytes = encode_tensors({{"w", torch::ones({3, 4})}, {"b", torch::zeros({4})}});
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_THROW((void)decode_tensors("cut", bytes.substr(0, size)), StateError) << size;
  std::mt19937_64 random(5);
  int read = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string changed = bytes;
    for (int n = 0; n < 3; ++n)
      changed[random() % 200 % changed.size()] = static_cast<char>(random());
    try {
      (void)decode_tensors("changed", changed);
      ++read;
    } catch (const StateError&) {
    }
  }
  EXPECT_GT(read, 0);  // a changed name or value is not seen here; the checksum sees it
}

std::string with_header(const std::string& header) {
  const std::uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + header;
}

TEST(SafetensorsTest, AbsurdShapesOfTensorsWithoutValuesAreAStateError) {
  for (const char* const shape :
       {"[0, 9223372036854775807, 9223372036854775807]", "[9223372036854775807, 0, 3]",
        "[0, 4294967296, 4294967296, 4294967296]"})
    EXPECT_THROW(
        (void)decode_tensors(
            "absurd",
            with_header(fmt::format(
                R"({{"w": {{"dtype": "F32", "shape": {}, "data_offsets": [0, 0]}}}})", shape))),
        StateError)
        << shape;
}

Checkpoint some(std::uint64_t iteration) {
  Checkpoint made;
  made.model = {{"w", torch::full({4}, static_cast<double>(iteration))}};
  made.data = "{}";
  made.sums = "{}";
  made.history = "[]";
  made.optimizer_name = "sgd";
  made.iteration = iteration;
  return made;
}

TEST(CheckpointTest, TheNewestWholeOneIsUsedAndATornOneIsNamed) {
  const TempFolder folder;
  for (const std::uint64_t iteration : {10, 20, 30})
    save_checkpoint(folder.path("c"), some(iteration), 2);
  EXPECT_FALSE(fs::exists(folder.path("c/step-0000000010")));  // only two are kept
  EXPECT_EQ(load_checkpoint(*newest_checkpoint(folder.path("c"))).iteration, 30U);

  const std::string torn = folder.path("c/step-0000000030/model.safetensors");
  fs::resize_file(torn, fs::file_size(torn) - 1);
  const Heard heard;
  EXPECT_EQ(load_checkpoint(*newest_checkpoint(folder.path("c"))).iteration, 20U);
  EXPECT_THAT(heard.text(), AllOf(HasSubstr("step-0000000030"), HasSubstr("not used"),
                                  HasSubstr("model.safetensors")));
  fs::remove(folder.path("c/step-0000000020/files.json"));
  EXPECT_THAT([&] { (void)newest_checkpoint(folder.path("c")); },
              ThrowsMessage<StateError>(HasSubstr("none of the 2 checkpoints")));
  EXPECT_EQ(newest_checkpoint(folder.path("nowhere")), std::nullopt);
}

TEST(CheckpointTest, ByteByByteWhateverIsChangedIsSeen) {
  const TempFolder folder;
  const std::string path = save_checkpoint(folder.path("c"), some(3));
  for (const auto& entry : fs::directory_iterator(path)) {
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string whole((std::istreambuf_iterator<char>(in)), {});
    in.close();
    for (std::size_t at = 0; at < whole.size(); at += 7) {
      std::string changed = whole;
      changed[at] = static_cast<char>(changed[at] ^ 1);
      std::ofstream(entry.path(), std::ios::binary) << changed;
      try {
        const Checkpoint loaded = load_checkpoint(path);
        EXPECT_EQ(loaded.iteration, 3U) << entry.path() << " " << at;
        EXPECT_EQ(entry.path().filename(), "files.json");  // white space and the like
      } catch (const StateError&) {
      }
    }
    std::ofstream(entry.path(), std::ios::binary) << whole;
  }
}

TEST(CheckpointTest, ASaveThatFailsIsToldOnceAndTrainingGoesOn) {
  const TempFolder folder;
  const std::string where = folder.path("c");
  Model model(small_net());
  model.compile({.optimizer = sgd(0.01), .loss = mean_squared_error()});
  const auto data = points(64).batch(16);
  (void)model.fit(data, {.callbacks = {checkpoints(where)}, .show = Show::nothing});
  const auto before = newest_checkpoint(where);
  ASSERT_TRUE(before);
  const Heard heard;
  // Nothing can be written there, as on a disk that is full.
  const History history = model.fit(
      data, {.epochs = 2, .callbacks = {checkpoints("/proc/nowhere")}, .show = Show::nothing});
  EXPECT_TRUE(history.complete);
  EXPECT_THAT(heard.text(), AllOf(HasSubstr("training continues"), HasSubstr("/proc/nowhere")));
  EXPECT_EQ(heard.text().find("training continues"), heard.text().rfind("training continues"));
  EXPECT_EQ(load_checkpoint(*before).iteration, 4U);
}

TEST(CheckpointTest, ACheckpointOfAnotherModelListsWhatDiffers) {
  const TempFolder folder;
  Model model(small_net());
  model.compile({.optimizer = sgd(0.01), .loss = mean_squared_error()});
  (void)model.fit(points(32).batch(16),
                  {.callbacks = {checkpoints(folder.path("c"))}, .show = Show::nothing});
  torch::nn::Sequential other(torch::nn::Linear(5, 3), torch::nn::Linear(3, 1));
  other->to(torch::kFloat64);
  Model wrong(other);
  wrong.compile({.optimizer = sgd(0.01), .loss = mean_squared_error()});
  EXPECT_THAT(
      [&] {
        (void)wrong.fit(points(32).batch(16), {.resume = folder.path("c"), .show = Show::nothing});
      },
      ThrowsMessage<StateError>(
          AllOf(HasSubstr("missing [0.weight"), HasSubstr("unexpected [first.bias"))));
}

/// Trains until `stop_after` updates, leaves, and goes on with `later` replicas.
struct Outcome {
  torch::Tensor weights;
  History history;
};
Outcome trained(std::size_t replicas, std::size_t later, std::uint64_t stop_after,
                const std::string& folder, bool torch_dropout) {
  const auto net = [&] {
    torch::manual_seed(11);
    if (torch_dropout) {
      torch::nn::Sequential made(torch::nn::Linear(5, 8), torch::nn::Dropout(0.4),
                                 torch::nn::Linear(8, 1));
      made->to(torch::kFloat64);
      return Network(made);
    }
    return Network(small_net(true, true));
  };
  Outcome run;
  for (const bool first : {true, false}) {
    const bool whole = stop_after == 0;
    if (first && whole) continue;
    MirroredStrategy strategy(cpus(first ? replicas : later));
    Model model(net(), {.strategy = &strategy});
    CompileOptions options{.optimizer = adam(1e-2), .loss = mean_squared_error()};
    options.metrics = {mean_absolute_error_metric()};
    options.sync_batch_norm = !torch_dropout;
    model.compile(options);
    FitOptions fit{.epochs = 3, .show = Show::nothing};
    fit.validation = points(21).batch(8);
    fit.callbacks = {checkpoints(folder, {.every_steps = 1})};
    if (!whole) fit.resume = folder;
    if (first)
      fit.callbacks.push_back(hooks({.on_step_end = [&](Training& training, const Scores&) {
        if (training.iteration() == stop_after) training.stop("enough");
      }}));
    run.history = model.fit(points(103).shuffle({.seed = 3}).batch(16), fit);
    run.weights = weights(model.network());
  }
  return run;
}

TEST(ResumeTest, GoesOnBitForBitFromAnyStep) {
  for (const bool torch_dropout : {false, true}) {
    const TempFolder whole_folder;
    const Outcome whole = trained(1, 1, 0, whole_folder.path("c"), torch_dropout);
    const std::vector<std::uint64_t> stops = torch_dropout
                                                 ? std::vector<std::uint64_t>{6, 20}
                                                 : std::vector<std::uint64_t>{1, 7, 10, 14};
    for (const std::uint64_t stop : stops) {
      const TempFolder folder;
      const Outcome resumed = trained(1, 1, stop, folder.path("c"), torch_dropout);
      EXPECT_TRUE(torch::equal(whole.weights, resumed.weights)) << stop;
      ASSERT_EQ(resumed.history.epochs.size(), 3U);
      for (std::size_t e = 0; e < 3; ++e) {
        const EpochLog& a = whole.history.epochs[e];
        const EpochLog& b = resumed.history.epochs[e];
        EXPECT_EQ(a.steps, b.steps);
        EXPECT_EQ(a.train.samples, b.train.samples);
        EXPECT_EQ(a.train.loss, b.train.loss);
        EXPECT_EQ(a.train.metrics, b.train.metrics);
        EXPECT_EQ(a.validation->loss, b.validation->loss);
      }
    }
  }
}

TEST(ResumeTest, GoesOnExactlyOnAnotherNumberOfReplicas) {
  const TempFolder whole_folder;
  const Outcome whole = trained(1, 1, 0, whole_folder.path("c"), false);
  for (const auto& [replicas, later] :
       {std::pair<std::size_t, std::size_t>{3, 3}, {2, 4}, {4, 1}, {1, 8}}) {
    const TempFolder folder;
    const Outcome resumed = trained(replicas, later, 10, folder.path("c"), false);
    EXPECT_LE(difference(whole.weights, resumed.weights), 1e-9) << replicas << " " << later;
    EXPECT_EQ(resumed.history.iterations, 21U);
    for (const EpochLog& log : resumed.history.epochs) EXPECT_EQ(log.train.samples, 103U);
  }
}

}  // namespace
}  // namespace penstock::train
