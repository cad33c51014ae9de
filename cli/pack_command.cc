// `penstock pack`: writes a dataset of files as TFRecord, tar or Arrow files. tested in
// tests/command_test.py
#include <fmt/core.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/printable.h"
#include "command.h"
#include "input.h"
#include "interrupt.h"
#include "penstock/penstock.h"

namespace penstock::cli {
namespace {

struct PackCommand {
  std::string in;
  std::string out;
  std::string format = "tfrecord";
  std::string shard_size;
  std::string encode;
  std::vector<std::int64_t> resize;
  std::uint64_t shards = 0;
  int quality = 90;
  unsigned threads = 0;
  bool skip_errors = false;
  bool json = false;
};

/// "256MB" as bytes.
std::uint64_t bytes_of(const std::string& text) {
  static const std::pair<const char*, std::uint64_t> kUnits[] = {
      {"GB", 1'000'000'000}, {"MB", 1'000'000},   {"KB", 1'000}, {"GiB", 1ULL << 30},
      {"MiB", 1ULL << 20},   {"KiB", 1ULL << 10}, {"B", 1},      {"", 1}};
  std::size_t digits = 0;
  while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9') ++digits;
  for (const auto& [unit, bytes] : kUnits) {
    if (digits == 0 || digits > 12 || text.substr(digits) != unit) continue;
    const std::uint64_t size = std::stoull(text.substr(0, digits)) * bytes;
    if (size > 0) return size;
  }
  throw ConfigError(fmt::format("pack: \"{}\" is not a size", printable(text)), {},
                    "write it as --shard-size 256MB");
}

/// The field with encoded images: "image", or what a tar file calls it.
std::string image_field(const ElementSpec& spec) {
  for (const char* name : {"image", "jpg", "jpeg", "png", "webp"}) {
    const auto field = spec.find(name);
    if (field && spec.fields[*field].dtype == Dtype::bytes) return name;
  }
  throw ConfigError(fmt::format("pack: there is no image among the fields {}", spec.text()), {},
                    "leave out --resize and --encode");
}

/// Images are decoded only if their pixels change.
Dataset with_images(Dataset dataset, const PackCommand& command) {
  if (command.resize.empty() && command.encode.empty()) return dataset;
  const std::string field = image_field(dataset.element_spec());
  image::Chain chain = image::decode({.field = field});
  if (!command.resize.empty()) chain = chain.resize(command.resize[0], command.resize[1]);
  const std::string format = command.encode.empty() ? "jpeg" : command.encode;
  return dataset.map(chain).map(
      image::encode({.format = format, .quality = command.quality, .field = field}));
}

class Progress {
 public:
  explicit Progress(Interrupt& interrupt) : interrupt_(interrupt) {}
  void operator()(std::uint64_t done, std::optional<std::uint64_t>) {
    interrupt_.reached(0, 0, done);
    if (interrupt_.signal() != 0) throw CancelledError("pack: interrupted");
  }

 private:
  Interrupt& interrupt_;
};

WriteRecordsOptions options_of(const PackCommand& command, Interrupt& interrupt) {
  WriteRecordsOptions options;
  options.format = command.format;
  options.shards = command.shards;
  if (!command.shard_size.empty()) options.shard_bytes = bytes_of(command.shard_size);
  if (command.threads > 0) options.loader.threads = command.threads;
  if (command.skip_errors) options.loader.on_error = OnError::skip;
  options.loader.while_waiting = [&interrupt] {
    if (interrupt.signal() != 0) throw CancelledError("pack: interrupted");
  };
  options.progress = Progress(interrupt);
  return options;
}

void run_pack(const PackCommand& command, int& code) {
  Interrupt interrupt;
  const auto began = std::chrono::steady_clock::now();
  WrittenRecords written;
  try {
    written = write_records(with_images(open_input(command.in), command), command.out,
                            options_of(command, interrupt));
  } catch (const CancelledError&) {
    if (interrupt.signal() == 0) throw;
    fmt::print(stderr, "pack: the complete files stay; the same command continues\n");
    interrupt.leave();
  }
  const double took =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  if (command.json) {
    fmt::print("{}\n", Json{{"files", written.files},
                            {"samples", written.samples},
                            {"bytes", written.bytes},
                            {"skipped", written.skipped},
                            {"found", written.found}}
                           .dump());
  } else {
    fmt::print("{} samples in {} file{}, {:.1f} MB, {:.1f} s{}{}\n", written.samples,
               written.files.size(), written.files.size() == 1 ? "" : "s",
               static_cast<double>(written.bytes) / 1e6, took,
               written.found > 0 ? fmt::format("; {} were there", written.found) : "",
               written.skipped > 0 ? fmt::format("; {} samples skipped", written.skipped) : "");
  }
  code = written.skipped > 0 ? kFailed : kDone;
}

}  // namespace

void add_pack(CLI::App& app, int& code) {
  auto command = std::make_shared<PackCommand>();
  CLI::App* const verb =
      app.add_subcommand("pack", "write a dataset as TFRecord, tar or Arrow files");
  verb->add_option("in", command->in,
                   "a folder of images, a saved dataset, or files: TFRecord, tar, CSV, JSON lines, "
                   "text, npy, npz (a path, or a pattern in quotes)")
      ->required();
  verb->add_option("out", command->out, "the folder for the files; created if needed")->required();
  verb->add_option("--format", command->format, "tfrecord (default), tar or arrow")
      ->check(CLI::IsMember({"tfrecord", "tar", "arrow"}));
  auto* const shards =
      verb->add_option("--shards", command->shards, "number of files, of equal numbers of samples")
          ->check(whole_number(1, 1U << 20));
  verb->add_option("--shard-size", command->shard_size,
                   "about how large each file becomes, as in 256MB (the default)")
      ->excludes(shards);
  verb->add_option("--resize", command->resize, "decode images, and resize them: HEIGHT WIDTH")
      ->expected(2)
      ->check(whole_number(1, 65'535));
  verb->add_option("--encode", command->encode, "encode images anew: jpeg or png")
      ->check(CLI::IsMember({"jpeg", "png"}));
  verb->add_option("--quality", command->quality, "of a jpeg; default 90")
      ->check(whole_number(1, 100));
  verb->add_option("--threads", command->threads, "maximum number of threads; default: all cores")
      ->check(whole_number(1, 1U << 16));
  verb->add_flag("--skip-errors", command->skip_errors,
                 "leave out samples that fail and list them; the exit code is then 1");
  verb->add_flag("--json", command->json, "print one JSON object instead of text");
  verb->callback([command, &code] { run_pack(*command, code); });
}

}  // namespace penstock::cli
