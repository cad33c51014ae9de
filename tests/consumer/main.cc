// A program of another project: exits with 0 if every sample is delivered once.
#include <penstock/penstock.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace ps = penstock;

namespace {

/// The files of the disk, counted.
class CountingIo final : public ps::Io {
 public:
  ps::Result<ps::Bytes> read(const std::string& path, std::uint64_t offset,
                             std::uint64_t length) override {
    ++reads;
    return real().read(path, offset, length);
  }
  ps::Result<ps::Bytes> read_whole(const std::string& path, const ps::WholeFile& wanted) override {
    ++reads;
    return real().read_whole(path, wanted);
  }
  ps::Result<std::string> read_text(const std::string& path, std::uint64_t bytes_max) override {
    return real().read_text(path, bytes_max);
  }
  ps::Result<std::vector<ps::FolderEntry>> list(const std::string& folder) override {
    return real().list(folder);
  }
  ps::Result<ps::FolderEntry> look(const std::string& path) override { return real().look(path); }
  ps::Result<std::string> real_path(const std::string& path) override {
    return real().real_path(path);
  }
  ps::Result<void> append(const std::string& path, const std::string& text) override {
    return real().append(path, text);
  }
  ps::Result<void> publish(const std::string& path, std::string_view content) override {
    return real().publish(path, content);
  }

  std::atomic<int> reads = 0;
};

bool every_sample_comes_once() {
  ps::Loader loader(ps::Dataset::range(103).shuffle({.seed = 7}).batch(16));
  std::set<std::int64_t> seen;
  std::uint64_t rows = 0;
  for (const ps::Batch& batch : loader) {
    rows += batch.rows();
    for (const std::int64_t value : batch.values<std::int64_t>()) seen.insert(value);
  }
  return rows == 103 && seen.size() == 103 && *seen.begin() == 0 && *seen.rbegin() == 102;
}

/// `folder` has two images and a text: the sink hears of the text, the Io reads the images.
bool files_and_reports_are_injected(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder / "cat");
  for (const char* name : {"1.png", "2.png", "notes.txt"})
    std::ofstream(folder / "cat" / name) << name;

  std::string reports;
  const ps::ReportSink before =
      ps::set_report_sink([&reports](const std::string& text) { reports += text; });
  const ps::Dataset images = ps::Dataset::image_folder(folder.string()).batch(2);
  ps::set_report_sink(before);
  if (reports.find("notes.txt") == std::string::npos) return false;

  CountingIo io;
  ps::VirtualClock clock;
  ps::Loader loader(images, {.clock = &clock, .io = &io});
  const auto batch = loader.next();
  if (!batch || batch->rows() != 2 || io.reads != 2) return false;
  return batch->row(0)["image"].text() == "1.png";
}

bool time_stands_still() {
  ps::VirtualClock clock;
  clock.advance(std::chrono::seconds(3));
  ps::Clock& any = clock;
  return any.now() == std::chrono::seconds(3);
}

bool a_strategy_takes_a_coordinator() {
  ps::LocalGroup group(1);
  const std::unique_ptr<ps::Coordinator> rank = group.join(0);
  ps::MirroredStrategy strategy({"cpu:0", "cpu:1"}, {.coordinator = rank.get()});
  ps::Feed feed = strategy.distribute(ps::Dataset::range(10).batch(5));
  std::uint64_t samples = 0;
  while (const auto step = feed.next()) {
    const auto counts = strategy.run(
        [](ps::Replica&, const ps::Batch& share) {
          return static_cast<std::int64_t>(share.valid_count());
        },
        *step);
    samples += static_cast<std::uint64_t>(strategy.reduce(ps::Reduce::sum, counts));
  }
  return samples == 10 && rank->sum(2.5) == 2.5;
}

}  // namespace

int main() {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() /
      ("penstock_consumer_" +
       std::to_string(std::chrono::steady_clock::now().time_since_epoch().count()));
  struct Check {
    const char* name;
    bool passed;
  };
  int failures = 0;
  for (const Check& check :
       {Check{"every sample comes once", every_sample_comes_once()},
        Check{"files and reports are injected", files_and_reports_are_injected(folder)},
        Check{"time stands still", time_stands_still()},
        Check{"a strategy takes a coordinator", a_strategy_takes_a_coordinator()}})
    if (!check.passed) {
      std::printf("failed: %s\n", check.name);
      ++failures;
    }
  std::filesystem::remove_all(folder);
  return failures;
}
