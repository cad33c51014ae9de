// Recordings through the op and through loaders, against plain arithmetic.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "base/json.h"
#include "base/temp_folder_for_tests.h"
#include "codec/audio_for_tests.h"
#include "codec/audio_resample.h"
#include "op/op.h"
#include "penstock/audio.h"
#include "penstock/loader.h"
#include "penstock/plan.h"

namespace penstock {
namespace {

using made::AudioBytes;
using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

#ifdef PENSTOCK_SNDFILE

Dataset file_of(const AudioBytes& bytes) {
  return Dataset::from_tensors(Sample(Tensor::bytes(made::audio_text(bytes))));
}
/// The options for an element that is the file itself.
audio::AudioOptions whole(audio::AudioOptions options) {
  options.path = "";
  return options;
}
Tensor run(const AudioBytes& file, const audio::AudioOptions& options) {
  return file_of(file).map(audio::decode(whole(options))).sample(0).tensor();
}
std::vector<float> values_of(const Tensor& tensor) {
  const auto values = tensor.values<float>();
  return {values.begin(), values.end()};
}
std::string refusal(const AudioBytes& file, const audio::AudioOptions& options = {}) {
  try {
    (void)run(file, options);
    return "accepted";
  } catch (const SampleError& error) {
    return error.what();
  }
}
std::vector<float> scaled(const std::vector<std::int16_t>& values) {
  std::vector<float> floats;
  for (const std::int16_t value : values) floats.push_back(static_cast<float>(value) / 32768.0F);
  return floats;
}

TEST(AudioDecodeTest, ARecordingOfAnyLengthIsDecodedWhole) {
  const made::RecordingOptions options{.frames = 1234};
  const Tensor tensor = run(made::wav(options), {});
  EXPECT_EQ(tensor.shape(), (Shape{1234}));
  EXPECT_EQ(values_of(tensor), scaled(made::audio_noise(options)));
  const Dataset dataset = file_of(made::wav()).map(audio::decode({.path = ""}));
  EXPECT_EQ(dataset.element_spec().text(), "f32[?]");
  EXPECT_EQ(run(made::wav({.frames = 0}), {}).shape(), (Shape{0}));
}

TEST(AudioDecodeTest, OneChannelIsTheMean) {
  const made::RecordingOptions options{.frames = 500, .channels = 3};
  const auto noise = made::audio_noise(options);
  const auto mean = values_of(run(made::wav(options), {}));
  ASSERT_EQ(mean.size(), 500U);
  for (std::size_t i = 0; i < mean.size(); ++i)
    ASSERT_NEAR(mean[i], (noise[3 * i] + noise[3 * i + 1] + noise[3 * i + 2]) / 3.0 / 32768, 1e-7);
}

TEST(AudioDecodeTest, ChannelsAreKeptOrCopiedButNotInvented) {
  const made::RecordingOptions stereo{.frames = 20, .channels = 2};
  const Tensor kept = run(made::wav(stereo), {.channels = 0});
  EXPECT_EQ(kept.shape(), (Shape{20, 2}));
  EXPECT_EQ(values_of(kept), scaled(made::audio_noise(stereo)));
  EXPECT_EQ(run(made::wav({.frames = 20}), {.channels = 0}).shape(), (Shape{20, 1}));
  const auto copied = values_of(run(made::wav({.frames = 20}), {.channels = 2}));
  const auto mono = scaled(made::audio_noise({.frames = 20}));
  for (std::size_t i = 0; i < mono.size(); ++i) {
    EXPECT_EQ(copied[2 * i], mono[i]);
    EXPECT_EQ(copied[2 * i + 1], mono[i]);
  }
  EXPECT_THAT(refusal(made::wav(stereo), {.channels = 3}), HasSubstr("has 2 channels, not 3"));
}

TEST(AudioDecodeTest, ACropIsThatPartOfTheWholeAndAShorterRecordingIsPadded) {
  const made::RecordingOptions options{.frames = 900};
  const auto all = scaled(made::audio_noise(options));
  for (const AudioBytes& file : {made::wav(options), made::flac(options)}) {
    const auto first = values_of(run(file, {.frames = 100, .crop = audio::AudioCrop::start}));
    EXPECT_EQ(first, std::vector<float>(all.begin(), all.begin() + 100));
    const auto middle = values_of(run(file, {.frames = 100, .crop = audio::AudioCrop::center}));
    EXPECT_EQ(middle, std::vector<float>(all.begin() + 400, all.begin() + 500));
    const auto padded = values_of(run(file, {.frames = 1000}));
    EXPECT_TRUE(std::equal(all.begin(), all.end(), padded.begin()));
    EXPECT_EQ(std::vector<float>(padded.begin() + 900, padded.end()), std::vector<float>(100));
    EXPECT_THAT(refusal(file, {.frames = 901, .pad = false}),
                HasSubstr("has 900 frames, 901 are needed"));
    EXPECT_EQ(values_of(run(file, {.frames = 900, .pad = false})), all);
  }
}

/// Every frame has its own value, so that a crop shows where it begins.
AudioBytes numbered(int frames) {
  std::vector<std::int16_t> values(static_cast<std::size_t>(frames));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int16_t>(i);
  return made::wav({.frames = frames}, values);
}
std::int64_t start_of(const float* crop, std::size_t frames) {
  const auto first = static_cast<std::int64_t>(crop[0] * 32768);
  for (std::size_t i = 0; i < frames; ++i)
    EXPECT_EQ(crop[i] * 32768, static_cast<float>(first + static_cast<std::int64_t>(i)));
  return first;
}

TEST(AudioDecodeTest, RandomCropsDependOnTheSampleAndTheEpochAlone) {
  const TempFolder folder;
  std::vector<std::string> paths;
  for (int i = 0; i < 40; ++i)
    paths.push_back(
        folder.write(std::to_string(i) + ".wav", made::audio_text(numbered(3000 + 10 * i))));
  const auto starts = [&](unsigned threads, std::int64_t batch, std::uint64_t seed) {
    Loader loader(audio_files(paths).map(audio::decode({.frames = 200, .seed = seed})).batch(batch),
                  {.threads = threads});
    std::vector<std::int64_t> all;
    for (int epoch = 0; epoch < 2; ++epoch)
      for (const Batch& each : loader) {
        const auto values = each.values<float>("audio");
        for (std::size_t row = 0; row < values.size() / 200; ++row)
          all.push_back(start_of(values.data() + 200 * row, 200));
      }
    return all;
  };
  const auto one = starts(1, 40, 0);
  ASSERT_EQ(one.size(), 80U);
  EXPECT_EQ(starts(4, 40, 0), one);
  EXPECT_EQ(starts(3, 7, 0), one);
  EXPECT_NE(starts(1, 40, 1), one);
  EXPECT_NE(std::vector(one.begin(), one.begin() + 40), std::vector(one.begin() + 40, one.end()));
  EXPECT_LE(*std::ranges::max_element(one), 3390 - 200);
  EXPECT_GT(*std::ranges::max_element(one), 2000);
  EXPECT_LT(*std::ranges::min_element(one), 800);
}

TEST(AudioDecodeTest, ACropOfAResampledRecordingIsThatPartOfResamplingAll) {
  if (!can_resample_audio()) GTEST_SKIP() << "without libsoxr";
  const made::RecordingOptions options{.frames = 120'000, .channels = 2, .rate = 44'100};
  for (const AudioBytes& file : {made::wav(options), made::flac(options)}) {
    const auto all = values_of(run(file, {.rate = 16'000}));
    ASSERT_EQ(all.size(), 43'538U);  // 120,000 * 16,000 / 44,100, rounded up
    const auto middle =
        values_of(run(file, {.rate = 16'000, .frames = 4000, .crop = audio::AudioCrop::center}));
    for (std::size_t i = 0; i < middle.size(); ++i)
      ASSERT_NEAR(middle[i], all[(all.size() - 4000) / 2 + i], 2e-6) << i;
    const auto both = values_of(run(file, {.rate = 16'000, .channels = 0}));
    for (std::size_t i = 0; i < all.size(); ++i)
      ASSERT_NEAR(all[i], (both[2 * i] + both[2 * i + 1]) / 2, 2e-6) << i;
  }
  EXPECT_EQ(values_of(run(made::wav({.rate = 16'000}), {.rate = 16'000})),
            scaled(made::audio_noise({})))
      << "the same rate changes nothing";
  EXPECT_EQ(run(made::wav({.frames = 0}), {.rate = 8000}).shape(), (Shape{0}));
  EXPECT_THAT(refusal(made::wav({.rate = 10}), {.rate = 16'000}), HasSubstr("has 10 Hz"));
}

TEST(AudioDecodeTest, ValuesThatAreNotNumbersFail) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const AudioBytes file =
      made::float_wav({.frames = 6}, {0, 1, 2, std::numeric_limits<float>::infinity(), nan, 0});
  EXPECT_THAT(refusal(file), HasSubstr("frame 3 of the recording is inf"));
  EXPECT_THAT(refusal(made::float_wav({.frames = 2}, {0, nan})), HasSubstr("frame 1"));
  EXPECT_EQ(values_of(run(file, {.frames = 3, .crop = audio::AudioCrop::start})),
            (std::vector<float>{0, 1, 2}));
}

TEST(AudioDecodeTest, LimitsAreCheckedBeforeMemoryIsAllocated) {
  AudioBytes file = made::flac({.frames = 5000});
  file[21] |= 0x0fU;  // more than 2^35 frames
  EXPECT_THAT(refusal(file), AllOf(HasSubstr("claims 64424"), HasSubstr("values_max")));
  EXPECT_THAT(refusal(file, {.frames = 100}), HasSubstr("ends or is damaged after 5000 of"));
  EXPECT_EQ(run(file, {.frames = 100, .crop = audio::AudioCrop::start}).shape(), (Shape{100}));
  EXPECT_THAT(refusal(made::wav({.frames = 101}), {.values_max = 100}),
              HasSubstr("101 frames of 1 channel(s), more than the limit of 100"));
  EXPECT_EQ(refusal(made::wav({.frames = 100}), {.values_max = 100}), "accepted");
  EXPECT_EQ(refusal(made::wav({.frames = 101}), {.frames = 100, .values_max = 100}), "accepted");
}

TEST(AudioDecodeTest, ABrokenFileIsNamedAndCanBeSkipped) {
  const TempFolder folder;
  AudioBytes cut = made::wav({.frames = 300});
  cut.resize(cut.size() - 200);
  const std::vector<std::string> paths{
      folder.write("a.wav", made::audio_text(made::wav({.frames = 300}))),
      folder.write("b.wav", made::audio_text(cut)), folder.write("c.wav", "not a recording"),
      folder.write("d.wav", made::audio_text(made::wav({.frames = 300})))};
  const Dataset dataset = audio_files(paths).map(audio::decode({.frames = 100})).batch(4);
  try {
    Loader loader(dataset);
    for (const Batch& batch : loader) (void)batch;
    FAIL() << "the broken file was not noticed";
  } catch (const SampleError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("b.wav"), HasSubstr("200 of 300 frames"),
                                    HasSubstr("sample 1"), HasSubstr("audio.decode")));
  }
  Loader loader(dataset, {.on_error = OnError::skip});
  for (const Batch& batch : loader) EXPECT_EQ(batch.rows(), 2U);
  EXPECT_EQ(loader.ledger().count(), 2U);
}

TEST(AudioDecodeTest, WrongOptionsThrowAtOnce) {
  const auto refused = [](const audio::AudioOptions& options, const std::string& words) {
    EXPECT_THAT([&] { (void)audio::decode(options); },
                ThrowsMessage<ConfigError>(AllOf(HasSubstr("audio.decode: "), HasSubstr(words))));
  };
  refused({.rate = -1}, "rate must be");
  refused({.rate = 1 << 21}, "rate must be");
  refused({.channels = -1}, "channels must be");
  refused({.channels = 1025}, "channels must be");
  refused({.frames = -5}, "frames must be");
  refused({.values_max = 0}, "values_max");
  refused({.channels = 2, .frames = 60, .values_max = 100}, "60 frames");
  EXPECT_THAT([] { (void)Dataset::range(3).map(audio::decode({.path = ""})); },
              ThrowsMessage<ConfigError>(HasSubstr("not the bytes of a file")));
  EXPECT_THAT([] { (void)Dataset::range(3).map(audio::decode()); },
              ThrowsMessage<ConfigError>(HasSubstr("no field \"audio\"")));
}

TEST(AudioDecodeTest, TheOpIsRecreatedFromItsArguments) {
  const auto op = audio::decode({.path = "x",
                                 .channels = 2,
                                 .frames = 9,
                                 .crop = audio::AudioCrop::center,
                                 .pad = false,
                                 .seed = 5,
                                 .values_max = 1000})
                      .op();
  const auto again = make_catalogued_op(op->word(), op->arguments());
  EXPECT_EQ(again->arguments(), op->arguments());
  EXPECT_EQ(again->describe(), op->describe());
  EXPECT_EQ(op->describe(), "audio.decode(x, channels=2, frames=9, crop=center)");
  EXPECT_THAT([] { make_catalogued_op("audio_decode", {{"path", ""}, {"crop", "left"}}); },
              ThrowsMessage<ConfigError>(HasSubstr("no crop \"left\"")));
}

TEST(AudioDecodeTest, APlanOfAFolderOrOfFilesIsCreatedAgain) {
  const TempFolder folder;
  std::vector<std::string> paths;
  for (const char* const name : {"a/1.wav", "b/2.wav", "b/3.wav"})
    paths.push_back(folder.write(name, made::audio_text(numbered(500))));
  const auto op = audio::decode({.frames = 100, .seed = 4});
  for (const Dataset& dataset : {audio_folder(folder.path(), {.with_path = true}).map(op).batch(3),
                                 audio_files(paths, {3, 1, 2}).map(op).batch(3)}) {
    const Plan plan(dataset);
    const Plan back = Plan::parse(plan.serialize(), {});
    EXPECT_EQ(back.digests(), plan.digests());
    EXPECT_EQ(back.explain(), plan.explain());
    const Batch one = run_block(plan, {.pass = 1, .step = 0, .first = 0, .count = 3});
    const Batch other = run_block(back, {.pass = 1, .step = 0, .first = 0, .count = 3});
    EXPECT_TRUE(std::ranges::equal(one.values<float>("audio"), other.values<float>("audio")));
    EXPECT_TRUE(
        std::ranges::equal(one.values<std::int64_t>("label"), other.values<std::int64_t>("label")));
  }
}

TEST(AudioDecodeTest, AFolderOfRecordingsHasClasses) {
  const TempFolder folder;
  folder.write("no/a.wav", made::audio_text(made::wav({.frames = 30})));
  folder.write("yes/b.FLAC", made::audio_text(made::flac({.frames = 50})));
  folder.write("yes/picture.png", "x");
  const Dataset dataset = audio_folder(folder.path(), {.with_path = true});
  EXPECT_EQ(dataset.element_spec().text(), "{audio: bytes[], label: i64[], path: string[]}");
  const Sample sample = dataset.map(audio::decode()).sample(1);
  EXPECT_EQ(sample["audio"].shape(), (Shape{50}));
  EXPECT_EQ(sample["label"].item<std::int64_t>(), 1);
  EXPECT_EQ(sample["path"].text(), "yes/b.FLAC");
  EXPECT_EQ(list_audio(folder.path()).class_names(), (std::vector<std::string>{"no", "yes"}));

  const TempFolder empty;
  empty.write("a.wav", "x");
  EXPECT_THAT([&] { (void)audio_folder(empty.path()); },
              ThrowsMessage<ConfigError>(AllOf(HasSubstr("audio_folder: "),
                                               HasSubstr("1 recordings but no class folder"))));
}

#else

TEST(AudioDecodeTest, WithoutLibsndfileTheOpThrows) {
  EXPECT_THAT([] { (void)audio::decode(); },
              ThrowsMessage<ConfigError>(HasSubstr("without libsndfile")));
}

#endif

}  // namespace
}  // namespace penstock
