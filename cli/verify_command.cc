// `penstock verify`: decodes every image of a folder, on all cores, and says which are broken or
// odd. tested in tests/command_test.py
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <string>
#include <vector>

#include "base/io.h"
#include "base/json.h"
#include "base/printable.h"
#include "codec/codec.h"
#include "command.h"
#include "interrupt.h"
#include "penstock/penstock.h"

namespace penstock::cli {
namespace {

/// What was found out about one file.
struct Finding {
  bool looked = false;
  std::string broken;  // why it cannot be decoded; empty: it can
  std::string odd;     // what is unusual about it
  ImageInfo info;
};

/// What a file of this format is usually called; the first one is the usual one.
std::vector<std::string> extensions_of(ImageFormat format) {
  switch (format) {
    case ImageFormat::jpeg:
      return {"jpg", "jpeg"};
    case ImageFormat::png:
      return {"png"};
    case ImageFormat::webp:
      return {"webp"};
    case ImageFormat::bmp:
      return {"bmp"};
    case ImageFormat::pnm:
      return {"ppm", "pgm"};
    case ImageFormat::npy:
      return {"npy"};
  }
  return {};
}

std::string extension_of(const std::string& name) {
  std::string extension = name.substr(name.rfind('.') + 1);
  std::ranges::transform(extension, extension.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return extension;
}

std::string odd_of(const ImageInfo& info, const std::string& name) {
  std::vector<std::string> found;
  const std::vector<std::string> usual = extensions_of(info.format);
  if (std::ranges::find(usual, extension_of(name)) == usual.end())
    found.push_back(fmt::format("is {} by its content", image_format_name(info.format)));
  if (info.cmyk) found.emplace_back("CMYK");
  if (info.channels != 3) found.push_back(fmt::format("{} channel(s)", info.channels));
  if (info.bits == 16) found.emplace_back("16 bit");
  if (info.orientation != 1) found.push_back(fmt::format("turned (EXIF {})", info.orientation));
  return fmt::format("{}", fmt::join(found, ", "));
}

Finding look_at(const FolderIndex& folder, std::uint64_t file) {
  Finding finding;
  finding.looked = true;
  const std::string name = folder.name(file);
  const auto bytes =
      Io::real().read_whole(folder.root() + "/" + name, {.bytes_max = ImageLimits{}.bytes_max});
  if (!bytes) {
    finding.broken = bytes.failure().message;
    return finding;
  }
  const std::span<const std::byte> data(*bytes);
  auto info = probe_image(data);
  if (!info) {
    finding.broken = info.failure().message;
    return finding;
  }
  finding.info = *info;
  finding.odd = odd_of(*info, name);
  thread_local Scratch scratch;
  const Scratch::Frame frame(scratch);
  DecodeRequest request;
  request.channels = 0;
  if (const auto pixels = decode_image(data, *info, request, scratch); !pixels)
    finding.broken = pixels.failure().message;
  return finding;
}

struct VerifyCommand {
  std::string data;
  bool json = false;
  unsigned threads = 0;
};

/// Runs `look_at` for every file; each answer has a place of its own.
std::vector<Finding> look_at_all(const VerifyCommand& command, const FolderIndex& folder,
                                 Interrupt& interrupt) {
  std::vector<Finding> findings(folder.files());
  constexpr std::int64_t kTogether = 64;
  LoaderOptions options;
  if (command.threads > 0) options.threads = command.threads;
  Loader loader(Dataset::range(static_cast<std::int64_t>(folder.files()))
                    .map(
                        [&](std::int64_t file) {
                          const auto number = static_cast<std::uint64_t>(file);
                          findings[number] = look_at(folder, number);
                          return file;
                        },
                        {.name = "verify"})
                    .batch(kTogether),
                options);
  const Interrupt::Stops stops(interrupt, loader);
  std::uint64_t looked = 0;
  try {
    while (const auto batch = loader.next()) {
      looked += batch->rows();
      interrupt.reached(0, batch->step() + 1, looked);
    }
  } catch (const CancelledError&) {
    if (interrupt.signal() == 0) throw;
  }
  if (interrupt.signal() != 0) interrupt.leave();
  return findings;
}

struct Sizes {
  std::int64_t least_height = 0;
  std::int64_t least_width = 0;
  std::int64_t most_height = 0;
  std::int64_t most_width = 0;
};

Sizes sizes_of(const std::vector<Finding>& findings) {
  Sizes sizes;
  for (const Finding& finding : findings) {
    if (!finding.broken.empty()) continue;
    const ImageInfo& info = finding.info;
    if (sizes.most_height == 0) sizes = {info.height, info.width, info.height, info.width};
    sizes.least_height = std::min(sizes.least_height, info.height);
    sizes.least_width = std::min(sizes.least_width, info.width);
    sizes.most_height = std::max(sizes.most_height, info.height);
    sizes.most_width = std::max(sizes.most_width, info.width);
  }
  return sizes;
}

int tell(const VerifyCommand& command, const FolderIndex& folder,
         const std::vector<Finding>& findings) {
  std::map<std::string, std::uint64_t> formats;
  Json broken = Json::array();
  Json odd = Json::array();
  for (std::uint64_t file = 0; file < findings.size(); ++file) {
    const Finding& finding = findings[file];
    const std::string name = printable(folder.name(file));
    if (!finding.broken.empty()) {
      broken.push_back({{"file", name}, {"why", finding.broken}});
      continue;
    }
    ++formats[std::string(image_format_name(finding.info.format))];
    if (!finding.odd.empty()) odd.push_back({{"file", name}, {"what", finding.odd}});
  }
  const Sizes sizes = sizes_of(findings);
  if (command.json) {
    Json left_out = Json::array();
    for (const auto& part : folder.left_out())
      left_out.push_back({{"reason", part.reason}, {"count", part.count}, {"first", part.first}});
    fmt::print("{}\n", Json{{"files", folder.files()},
                            {"bytes", folder.bytes()},
                            {"broken", broken},
                            {"odd", odd},
                            {"formats", formats},
                            {"left_out", left_out},
                            {"smallest", {sizes.least_height, sizes.least_width}},
                            {"largest", {sizes.most_height, sizes.most_width}}}
                           .dump());
  } else {
    for (const Json& file : broken)
      fmt::print("broken  {}: {}\n", file["file"].get<std::string>(),
                 file["why"].get<std::string>());
    for (const Json& file : odd)
      fmt::print("odd     {}: {}\n", file["file"].get<std::string>(),
                 file["what"].get<std::string>());
    std::vector<std::string> counts;
    counts.reserve(formats.size());
    for (const auto& [format, count] : formats)
      counts.push_back(fmt::format("{} {}", count, format));
    fmt::print("{} files, {:.1f} MB: {} broken, {} odd; {}\n", folder.files(),
               static_cast<double>(folder.bytes()) / 1e6, broken.size(), odd.size(),
               fmt::join(counts, ", "));
    if (sizes.most_height > 0)
      fmt::print("height {} to {}, width {} to {}\n", sizes.least_height, sizes.most_height,
                 sizes.least_width, sizes.most_width);
    if (!folder.left_out().empty()) fmt::print("left out: {}\n", folder.left_out_text());
  }
  return broken.empty() ? kDone : kFailed;
}

}  // namespace

void add_verify(CLI::App& app, int& code) {
  auto command = std::make_shared<VerifyCommand>();
  CLI::App* const verb =
      app.add_subcommand("verify", "decode every image of a folder, name broken ones");
  verb->add_option("dir", command->data, "the folder")->required();
  verb->add_option("--threads", command->threads, "at most so many; default: all cores");
  verb->add_flag("--json", command->json, "one JSON object instead of lines");
  verb->callback([command, &code] {
    Interrupt interrupt;
    const FolderIndex folder = list_images(command->data, {.labels = false});
    code = tell(*command, folder, look_at_all(*command, folder, interrupt));
  });
}

}  // namespace penstock::cli
