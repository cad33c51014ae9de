// The image workloads of the peers beside it, through penstock's public API; prints one line of
// JSON with the same figures. penstock_images W1|W2 DIR [--plain FILE]
//   W1  DIR/$PNG/CLASS/*.png: resize to 64 x 64, flip, brightness, f32 in [0, 1], batches of 64
//   W2  DIR/photos/CLASS/*.jpg, four times: random resized crop to 224 x 224, flip, normalize, CHW
// With --plain the random ops are off and the first images' floats are written to FILE.
#include <fmt/core.h>
#include <penstock/penstock.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include "penstock/io.h"

namespace {

namespace ps = penstock;
using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto of = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return of(usage.ru_utime) + of(usage.ru_stime);
}

double status_mb(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(field))
      return std::strtod(line.c_str() + field.size() + 1, nullptr) / 1024;
  return 0;
}

/// Seconds since this process was started, as in the peers' harness: what a user waits for.
double age() {
  std::ifstream stat("/proc/self/stat");
  std::string text((std::istreambuf_iterator<char>(stat)), std::istreambuf_iterator<char>());
  std::istringstream fields(text.substr(text.rfind(')') + 2));
  std::string field;
  for (int i = 0; i < 20; ++i) fields >> field;  // the 22nd of all: ticks from boot to the start
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9 -
         std::strtod(field.c_str(), nullptr) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

ps::Dataset dataset(const std::string& workload, const std::string& root, bool plain) {
  if (workload == "W1") {
    const auto chain = ps::image::decode().resize(64, 64);
    const char* const half = std::getenv("PNG");
    const auto files =
        ps::Dataset::image_folder(root + "/" + (half != nullptr ? half : "png_photos"));
    if (plain) return files.map(chain.to_float()).batch(64);
    return files.shuffle({.seed = 1})
        .map(chain.random_flip().random_brightness(0.125).to_float())
        .batch(64);
  }
  const auto files = ps::Dataset::image_folder(root + "/photos");
  if (plain)
    return files
        .map(
            ps::image::decode().center_crop(224, 224).resize(160, 160).normalize().channels_first())
        .batch(64);
  return files.repeat(4)
      .shuffle({.seed = 1})
      .map(ps::image::decode()
               .random_resized_crop(224, 224)
               .random_flip()
               .normalize()
               .channels_first())
      .batch(64);
}

int write_plain(const std::string& workload, const std::string& root, const char* file) {
  ps::Loader loader(dataset(workload, root, true), {.threads = 2});
  std::ofstream out(file, std::ios::binary);
  for (int i = 0; i < 4; ++i)
    if (const auto batch = loader.next()) {
      const auto values = batch->values<float>("image");
      out.write(reinterpret_cast<const char*>(values.data()),
                static_cast<std::streamsize>(values.size_bytes()));
    }
  return out ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "usage: {} W1|W2 DIR [--plain FILE]\n", argv[0]);
    return 2;
  }
  const std::string workload = argv[1];
  if (argc == 5 && std::strcmp(argv[3], "--plain") == 0)
    return write_plain(workload, argv[2], argv[4]);
  const auto start = Clock::now();
  const ps::Dataset images = dataset(workload, argv[2], false);
  const double listed = since(start);
  ps::Loader loader(images, {.threads = 2});
  double first = 0;
  double cpu = 0;
  std::uint64_t items = 0;
  double sum = 0;
  std::uint64_t touched = 0;
  Clock::time_point steady;
  while (const auto batch = loader.next()) {
    const auto values = batch->values<float>("image");
    for (std::size_t i = 0; i < values.size(); i += 1024, ++touched)
      sum += static_cast<double>(values[i]);  // every page, as for the peers
    if (first == 0) {
      first = age();
      cpu = cpu_seconds();
      steady = Clock::now();
      continue;
    }
    items += batch->rows();
  }
  const double took = since(steady);
  fmt::print(
      "{{\"peer\": \"penstock\", \"workload\": \"{}\", \"items_per_s\": {:.1f}, "
      "\"cpu_ms_per_item\": {:.4f}, \"rss_mb\": {:.1f}, \"first_batch_s\": {:.4f}, "
      "\"index_s\": {:.4f}, \"epoch_mean\": {:.4f}}}\n",
      workload, static_cast<double>(items) / took,
      (cpu_seconds() - cpu) / static_cast<double>(items) * 1e3, status_mb("VmHWM"), first, listed,
      sum / static_cast<double>(touched));
  return 0;
}
