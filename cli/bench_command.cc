// `penstock bench`: how fast the images of a folder become batches here, and where the time goes.
// tested in tests/command_test.py
#include <fmt/core.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>

#include "base/json.h"
#include "base/thread.h"
#include "command.h"
#include "interrupt.h"
#include "penstock/penstock.h"
#include "trace/phases.h"

namespace penstock::cli {
namespace {

using Clock = std::chrono::steady_clock;
using trace::Phase;

struct BenchCommand {
  std::string data;
  std::uint64_t batch = 64;
  std::uint64_t size = 224;
  std::string chain = "crop";
  std::uint64_t epochs = 1;
  unsigned threads = 0;
  bool json = false;
};

double seconds(Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

/// User and system time of this process.
double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto of = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return of(usage.ru_utime) + of(usage.ru_stime);
}

double peak_mb() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

image::Chain chain_of(const BenchCommand& command) {
  const auto size = static_cast<std::int64_t>(command.size);
  if (command.chain == "resize")
    return image::decode().resize(size, size).random_flip().random_brightness(0.125).to_float();
  return image::decode().random_resized_crop(size, size).random_flip().normalize().channels_first();
}

struct Totals {
  double wall = 0;
  double cpu = 0;
  double read = 0;
  double decode = 0;
  double image = 0;
};
Totals now(Clock::time_point start) {
  const auto phase = [](Phase of) { return static_cast<double>(trace::phase_total(of)) * 1e-9; };
  return {seconds(Clock::now() - start), cpu_seconds(), phase(Phase::read), phase(Phase::decode),
          phase(Phase::image)};
}

struct Result {
  std::uint64_t images = 0;
  std::uint64_t skipped = 0;
  double first_batch = 0;
  Totals spent;  // after the first batch
  unsigned threads = 1;
};

Result run(const BenchCommand& command, const FolderIndex& folder, Interrupt& interrupt) {
  LoaderOptions options;
  if (command.threads > 0) options.threads = command.threads;
  options.on_error = OnError::skip;
  options.skip_limit = UINT64_MAX;
  const auto start = Clock::now();
  Loader loader(Dataset::image_folder(folder)
                    .shuffle({.seed = 1})
                    .map(chain_of(command))
                    .batch(static_cast<std::int64_t>(command.batch)),
                options);
  const Interrupt::Stops stops(interrupt, loader);
  Result result;
  result.threads = command.threads > 0 ? command.threads : usable_cores();
  Totals before;
  std::uint64_t seen = 0;
  try {
    for (std::uint64_t epoch = 0; epoch < command.epochs; ++epoch)
      while (const auto batch = loader.next()) {
        seen += batch->rows();
        interrupt.reached(epoch, batch->step() + 1, seen);
        if (before.wall == 0) {
          before = now(start);
          result.first_batch = before.wall;
          continue;
        }
        result.images += batch->rows();
      }
  } catch (const CancelledError&) {
    if (interrupt.signal() == 0) throw;
  }
  if (interrupt.signal() != 0) interrupt.leave();
  const Totals after = now(start);
  result.spent = {after.wall - before.wall, after.cpu - before.cpu, after.read - before.read,
                  after.decode - before.decode, after.image - before.image};
  result.skipped = command.epochs * folder.files() - seen;
  return result;
}

/// What limits the speed, in one sentence.
std::string limit_of(const Result& result) {
  const Totals& spent = result.spent;
  const double busy = spent.cpu / std::max(1e-9, spent.wall * result.threads);
  const double rest = std::max(0.0, spent.cpu - spent.image - spent.read);
  if (busy < 0.7)
    return spent.read > spent.image
               ? fmt::format("reading: {} threads are busy {:.0f} % of the time", result.threads,
                             100 * busy)
               : fmt::format(
                     "other programs on this machine: {} threads get {:.0f} % of their cores",
                     result.threads, 100 * busy);
  const double resize = spent.image - spent.decode;
  if (spent.decode >= std::max({spent.read, resize, rest})) return "the decoder";
  if (resize >= std::max(spent.read, rest)) return "resize and color";
  return spent.read >= rest ? "reading files that are in memory" : "work outside the image ops";
}

void tell(const BenchCommand& command, const FolderIndex& folder, const Result& result) {
  const Totals& spent = result.spent;
  const double images = std::max<double>(1, static_cast<double>(result.images));
  const double rate = static_cast<double>(result.images) / std::max(1e-9, spent.wall);
  // Phases are measured in wall-clock time, so they may add up to more than the CPU time.
  const double whole = std::max(spent.cpu, spent.read + spent.image);
  const auto share = [whole](double part) {
    return whole > 0 ? std::clamp(part / whole, 0.0, 1.0) : 0.0;
  };
  const double read = share(spent.read);
  const double decode = share(spent.decode);
  const double resize = share(spent.image - spent.decode);
  const double rest = std::max(0.0, 1 - read - decode - resize);
  if (command.json) {
    fmt::print(
        "{}\n",
        Json{{"images", result.images},
             {"skipped", result.skipped},
             {"images_per_s", rate},
             {"cpu_ms_per_image", spent.cpu / images * 1e3},
             {"share", {{"read", read}, {"decode", decode}, {"resize", resize}, {"rest", rest}}},
             {"first_batch_s", result.first_batch},
             {"threads", result.threads},
             {"peak_mb", peak_mb()},
             {"limit", limit_of(result)}}
            .dump());
    return;
  }
  fmt::print("{} images, {:.1f} MB, {} threads, batches of {} at {} x {}\n", folder.files(),
             static_cast<double>(folder.bytes()) / 1e6, result.threads, command.batch, command.size,
             command.size);
  fmt::print("{:>10.0f} images/s\n{:>10.3f} ms CPU per image\n", rate, spent.cpu / images * 1e3);
  fmt::print("{:>10.1f} % read, {:.1f} % decode, {:.1f} % resize and color, {:.1f} % rest\n",
             100 * read, 100 * decode, 100 * resize, 100 * rest);
  fmt::print("{:>10.1f} ms to the first batch\n{:>10.0f} MB at most\n", result.first_batch * 1e3,
             peak_mb());
  if (result.skipped > 0)
    fmt::print("{:>10} images could not be decoded; `penstock verify` names them\n",
               result.skipped);
  fmt::print("limited by {}\n", limit_of(result));
}

}  // namespace

void add_bench(CLI::App& app, int& code) {
  auto command = std::make_shared<BenchCommand>();
  CLI::App* const verb = app.add_subcommand(
      "bench", "how fast a folder of images becomes batches, and what limits it");
  verb->add_option("dir", command->data, "the folder")->required();
  verb->add_option("--batch", command->batch, "images per batch")->check(whole_number(1, 1 << 20));
  verb->add_option("--size", command->size, "rows and columns of the result")
      ->check(whole_number(1, 1 << 14));
  verb->add_option("--chain", command->chain, "crop: random resized crop; resize: the whole image")
      ->check(CLI::IsMember({"crop", "resize"}));
  verb->add_option("--epochs", command->epochs, "passes over the folder")
      ->check(whole_number(1, 1 << 20));
  verb->add_option("--threads", command->threads, "maximum number of threads; default: all cores")
      ->check(whole_number(1, 1U << 16));
  verb->add_flag("--json", command->json, "print one JSON object instead of text");
  verb->callback([command, &code] {
    Interrupt interrupt;
    const FolderIndex folder = list_images(command->data, {.labels = false});
    tell(*command, folder, run(*command, folder, interrupt));
    code = kDone;
  });
}

}  // namespace penstock::cli
