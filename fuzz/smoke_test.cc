// Every fuzz target over its seeds and over files that differ from them a little: a fixed number
// of runs, the same each time, without libFuzzer. What fails aborts, and says where it was.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>

#include "fuzz/audio_seeds.h"
#include "fuzz/image_seeds.h"
#include "fuzz/litdata_seeds.h"
#include "fuzz/mds_seeds.h"
#include "fuzz/npy_seeds.h"
#include "fuzz/rows_seeds.h"
#include "fuzz/tar_seeds.h"
#include "fuzz/tfrecord_seeds.h"

// tests/CMakeLists.txt gives each target's function a name of its own.
extern "C" {
int fuzz_state(const std::uint8_t* data, std::size_t size);
int fuzz_plan(const std::uint8_t* data, std::size_t size);
int fuzz_folder_index(const std::uint8_t* data, std::size_t size);
int fuzz_megatron(const std::uint8_t* data, std::size_t size);
int fuzz_image(const std::uint8_t* data, std::size_t size);
int fuzz_png(const std::uint8_t* data, std::size_t size);
int fuzz_jpeg(const std::uint8_t* data, std::size_t size);
int fuzz_audio(const std::uint8_t* data, std::size_t size);
int fuzz_tfrecord(const std::uint8_t* data, std::size_t size);
int fuzz_tar(const std::uint8_t* data, std::size_t size);
int fuzz_compressed(const std::uint8_t* data, std::size_t size);
int fuzz_npy(const std::uint8_t* data, std::size_t size);
int fuzz_litdata(const std::uint8_t* data, std::size_t size);
int fuzz_mds(const std::uint8_t* data, std::size_t size);
int fuzz_rows(const std::uint8_t* data, std::size_t size);
int fuzz_csv(const std::uint8_t* data, std::size_t size);
int fuzz_jsonl(const std::uint8_t* data, std::size_t size);
int fuzz_trace(const std::uint8_t* data, std::size_t size);
}

namespace penstock::fuzz {
namespace {

constexpr int kVariants = 500;

std::string running;  // which input, for the handler

void say_where(int) {
  (void)!write(STDERR_FILENO, running.data(), running.size());
}

/// The committed files of a target and those that are made for it.
Seeds seeds_of(const std::string& target) {
  Seeds seeds;
  const std::filesystem::path folder = std::filesystem::path(PENSTOCK_FUZZ_CORPUS) / target;
  if (std::filesystem::is_directory(folder)) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      std::ifstream in(entry.path(), std::ios::binary);
      seeds.push_back(
          {target, entry.path().filename(), Values(std::istreambuf_iterator<char>(in), {})});
    }
  }
  for (Seeds made : {image_seeds(), audio_seeds(), tfrecord_seeds(), tar_seeds(), npy_seeds(),
                     rows_seeds(), mds_seeds(), litdata_seeds()})
    for (Seed& seed : made)
      if (seed.target == target) seeds.push_back(std::move(seed));
  std::ranges::sort(seeds, {}, &Seed::name);
  return seeds;
}

/// Cut, repeated in part, joined with another, or with some bytes changed.
Values changed(const Values& file, const Values& other, std::mt19937& draw) {
  Values out = file;
  const auto at = [&draw](const Values& from) {
    return static_cast<std::ptrdiff_t>(draw() % (from.size() + 1));
  };
  switch (draw() % 6) {
    case 0:
      out.resize(static_cast<std::size_t>(at(file)));
      break;
    case 1:
      out.insert(out.begin() + at(out), file.begin() + at(file), file.end());
      break;
    case 2:
      out.resize(static_cast<std::size_t>(at(file)));
      out.insert(out.end(), other.begin() + at(other), other.end());
      break;
    default:
      for (unsigned i = 0, count = 1 + draw() % 4; i < count && !out.empty(); ++i) {
        std::uint8_t& byte = out[draw() % out.size()];
        byte = static_cast<std::uint8_t>(draw() % 2 == 0 ? draw() : byte ^ 1U << draw() % 8U);
      }
  }
  return out;
}

void run_all(const std::string& target, int (*run)(const std::uint8_t*, std::size_t)) {
  const Seeds seeds = seeds_of(target);
  ASSERT_FALSE(seeds.empty());
  auto* const before = std::signal(SIGABRT, say_where);
  std::mt19937 draw(1);  // NOLINT: the same each time
  for (std::size_t i = 0; i < seeds.size(); ++i) {
    for (int variant = 0; variant <= kVariants; ++variant) {
      running =
          fmt::format("fuzz target {}, seed {}, variant {}\n", target, seeds[i].name, variant);
      const Values& file = seeds[i].file;
      const Values input =
          variant == 0 ? file : changed(file, seeds[draw() % seeds.size()].file, draw);
      run(input.data(), input.size());
    }
  }
  std::signal(SIGABRT, before);
}

TEST(FuzzSmokeTest, States) {
  run_all("state", fuzz_state);
}
TEST(FuzzSmokeTest, Plans) {
  run_all("plan", fuzz_plan);
}
TEST(FuzzSmokeTest, IndexesOfFolders) {
  run_all("folder_index", fuzz_folder_index);
}
TEST(FuzzSmokeTest, IndexesOfTokenFiles) {
  run_all("megatron", fuzz_megatron);
}
TEST(FuzzSmokeTest, ImagesOfEveryFormat) {
  run_all("image", fuzz_image);
}
TEST(FuzzSmokeTest, PngAsLibpngReadsIt) {
  run_all("png", fuzz_png);
}
TEST(FuzzSmokeTest, RegionsOfJpeg) {
  run_all("jpeg", fuzz_jpeg);
}
TEST(FuzzSmokeTest, FoldersOfRows) {
  run_all("rows", fuzz_rows);
}
TEST(FuzzSmokeTest, Recordings) {
  run_all("audio", fuzz_audio);
}
TEST(FuzzSmokeTest, TfrecordFilesAndExamples) {
  run_all("tfrecord", fuzz_tfrecord);
}
TEST(FuzzSmokeTest, TarFiles) {
  run_all("tar", fuzz_tar);
}
TEST(FuzzSmokeTest, LitDataChunksAndTheirIndex) {
  run_all("litdata", fuzz_litdata);
}

TEST(FuzzSmokeTest, MdsShardsAndTheirIndex) {
  run_all("mds", fuzz_mds);
}
TEST(FuzzSmokeTest, CompressedFiles) {
  run_all("compressed", fuzz_compressed);
}
TEST(FuzzSmokeTest, ArraysOfNumPy) {
  run_all("npy", fuzz_npy);
}
TEST(FuzzSmokeTest, CsvFilesAsTheyWereWritten) {
  run_all("csv", fuzz_csv);
}
TEST(FuzzSmokeTest, JsonLinesByBothParsers) {
  run_all("jsonl", fuzz_jsonl);
}
TEST(FuzzSmokeTest, TracesOfRuns) {
  run_all("trace", fuzz_trace);
}

}  // namespace
}  // namespace penstock::fuzz
