// `penstock verify`: decodes every image of a folder, on all cores, and lists the broken and the
// unusual ones. tested in tests/command_test.py
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/printable.h"
#include "codec/codec.h"
#include "codec/decode_budget.h"
#include "command.h"
#include "interrupt.h"
#include "penstock/io.h"
#include "penstock/penstock.h"

namespace penstock::cli {
namespace {

/// What was found about one file.
struct Finding {
  bool looked = false;
  std::string unread;            // why it could not be read now; says nothing about the file itself
  std::string broken;            // why it cannot be decoded; empty if it can
  std::vector<std::string> odd;  // what is unusual about it
  ImageInfo info;
  [[nodiscard]] bool good() const { return unread.empty() && broken.empty(); }
};

std::string extension_of(const std::string& name) {
  std::string extension = name.substr(name.rfind('.') + 1);
  std::ranges::transform(extension, extension.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return extension;
}

std::vector<std::string> odd_of(const ImageInfo& info, const std::string& name) {
  std::vector<std::string> found;
  const std::span<const std::string_view> usual = image_extensions(info.format);
  if (std::ranges::find(usual, extension_of(name)) == usual.end())
    found.push_back(fmt::format("contains {} data", image_format_name(info.format)));
  if (info.cmyk) found.emplace_back("CMYK");
  if (info.channels != 3)
    found.push_back(fmt::format("{} channel{}", info.channels, info.channels == 1 ? "" : "s"));
  if (info.bits == 16) found.emplace_back("16 bit");
  if (info.orientation != 1) found.push_back(fmt::format("turned (EXIF {})", info.orientation));
  return found;
}

/// Reads and decodes; the caller handles lack of memory.
void decode_into(const FolderIndex& folder, const std::string& name, Finding& finding) {
  const auto bytes =
      Io::real().read_whole(folder.root() + "/" + name, {.bytes_max = ImageLimits{}.bytes_max});
  if (!bytes) {
    (bytes.failure().transient() ? finding.unread : finding.broken) = bytes.failure().message;
    return;
  }
  const std::span<const std::byte> data(*bytes);
  auto info = probe_image(data);
  if (!info) {
    finding.broken = info.failure().message;
    return;
  }
  finding.info = *info;
  finding.odd = odd_of(*info, name);
  DecodeBudget::Claim claim;
  const auto pixels =
      static_cast<std::uint64_t>(info->width) * static_cast<std::uint64_t>(info->height);
  if (!claim.add(DecodeBudget::process(), pixels * static_cast<std::uint64_t>(info->channels)))
    return;  // stopped by a signal
  Scratch scratch;
  DecodeRequest request;
  request.channels = 0;
  if (const auto decoded = decode_image(data, *info, request, scratch); !decoded)
    finding.broken = decoded.failure().message;
}

Finding look_at(const FolderIndex& folder, std::uint64_t file) {
  Finding finding;
  finding.looked = true;
  try {
    decode_into(folder, folder.name(file), finding);
  } catch (const std::bad_alloc&) {
    finding.unread = finding.info.width == 0 ? "out of memory"
                                             : fmt::format("out of memory for {} x {} pixels",
                                                           finding.info.width, finding.info.height);
  }
  return finding;
}

struct VerifyCommand {
  std::string data;
  bool json = false;
  bool all = false;
  unsigned threads = 0;
};

/// Runs `look_at` for every file; each result has its own slot.
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
    if (!finding.good()) continue;
    const ImageInfo& info = finding.info;
    if (sizes.most_height == 0) sizes = {info.height, info.width, info.height, info.width};
    sizes.least_height = std::min(sizes.least_height, info.height);
    sizes.least_width = std::min(sizes.least_width, info.width);
    sizes.most_height = std::max(sizes.most_height, info.height);
    sizes.most_width = std::max(sizes.most_width, info.width);
  }
  return sizes;
}

/// 1437 as 1,437.
std::string with_commas(std::uint64_t number) {
  std::string text = fmt::format("{}", number);
  for (std::size_t at = text.size(); at > 3;) text.insert(at -= 3, 1, ',');
  return text;
}

struct Named {
  std::string file;
  std::string what;
};

/// All findings, sorted by kind.
struct Report {
  std::map<std::string, std::uint64_t> formats;
  std::vector<Named> unread;
  std::vector<Named> broken;
  std::vector<Named> odd;
  /// Files by kind of oddity, in the order of first occurrence.
  std::vector<std::pair<std::string, std::vector<std::string>>> oddities;
  Sizes sizes;
};

Report report_of(const FolderIndex& folder, const std::vector<Finding>& findings) {
  Report report;
  report.sizes = sizes_of(findings);
  for (std::uint64_t file = 0; file < findings.size(); ++file) {
    const Finding& finding = findings[file];
    const std::string name = printable(folder.name(file));
    if (!finding.unread.empty()) report.unread.push_back({name, finding.unread});
    if (!finding.broken.empty()) report.broken.push_back({name, finding.broken});
    if (!finding.good()) continue;
    ++report.formats[std::string(image_format_name(finding.info.format))];
    if (finding.odd.empty()) continue;
    report.odd.push_back({name, fmt::format("{}", fmt::join(finding.odd, ", "))});
    for (const std::string& what : finding.odd) {
      auto group = std::ranges::find(report.oddities, what,
                                     [](const auto& each) -> const auto& { return each.first; });
      if (group == report.oddities.end()) group = report.oddities.insert(group, {what, {}});
      group->second.push_back(name);
    }
  }
  return report;
}

Json as_json(const std::vector<Named>& files, const char* key) {
  Json list = Json::array();
  for (const Named& each : files) list.push_back({{"file", each.file}, {key, each.what}});
  return list;
}

void tell_json(const FolderIndex& folder, const Report& report) {
  Json left_out = Json::array();
  for (const auto& part : folder.left_out())
    left_out.push_back({{"reason", part.reason}, {"count", part.count}, {"first", part.first}});
  const Sizes& sizes = report.sizes;
  fmt::print("{}\n", Json{{"files", folder.files()},
                          {"bytes", folder.bytes()},
                          {"unread", as_json(report.unread, "why")},
                          {"broken", as_json(report.broken, "why")},
                          {"odd", as_json(report.odd, "what")},
                          {"formats", report.formats},
                          {"left_out", left_out},
                          {"smallest", {sizes.least_height, sizes.least_width}},
                          {"largest", {sizes.most_height, sizes.most_width}}}
                         .dump());
}

void tell_odd(const Report& report, bool all) {
  if (all) {
    for (const Named& each : report.odd) fmt::print("odd     {}: {}\n", each.file, each.what);
    return;
  }
  for (const auto& [what, files] : report.oddities) {
    if (files.size() == 1)
      fmt::print("odd     {}: {}\n", files.front(), what);
    else
      fmt::print("odd     {} files: {}, for example {}\n", with_commas(files.size()), what,
                 files.front());
  }
}

void tell(const FolderIndex& folder, const Report& report, bool all) {
  for (const Named& each : report.unread) fmt::print("unread  {}: {}\n", each.file, each.what);
  for (const Named& each : report.broken) fmt::print("broken  {}: {}\n", each.file, each.what);
  tell_odd(report, all);
  std::vector<std::string> counts;
  counts.reserve(report.formats.size());
  for (const auto& [format, count] : report.formats)
    counts.push_back(fmt::format("{} {}", count, format));
  fmt::print(
      "{} files, {:.1f} MB: {} broken, {} odd{}; {}\n", folder.files(),
      static_cast<double>(folder.bytes()) / 1e6, report.broken.size(), report.odd.size(),
      report.unread.empty() ? "" : fmt::format(", {} that could not be read", report.unread.size()),
      fmt::join(counts, ", "));
  const Sizes& sizes = report.sizes;
  if (sizes.most_height > 0)
    fmt::print("height {} to {}, width {} to {}\n", sizes.least_height, sizes.most_height,
               sizes.least_width, sizes.most_width);
  if (!folder.left_out().empty()) fmt::print("left out: {}\n", folder.left_out_text());
}

}  // namespace

void add_verify(CLI::App& app, int& code) {
  auto command = std::make_shared<VerifyCommand>();
  CLI::App* const verb =
      app.add_subcommand("verify", "decode every image of a folder and list the broken ones");
  verb->add_option("dir", command->data, "the folder")->required();
  verb->add_option("--threads", command->threads, "maximum number of threads; default: all cores")
      ->check(whole_number(1, 1U << 16));
  verb->add_flag("--all", command->all, "one line per odd file instead of one per kind");
  verb->add_flag("--json", command->json, "print one JSON object instead of text");
  verb->callback([command, &code] {
    Interrupt interrupt;
    const FolderIndex folder = list_images(command->data, {.labels = false});
    const Report report = report_of(folder, look_at_all(*command, folder, interrupt));
    if (command->json)
      tell_json(folder, report);
    else
      tell(folder, report, command->all);
    code = report.broken.empty() && report.unread.empty() ? kDone : kFailed;
  });
}

}  // namespace penstock::cli
