// Listing a folder of images or recordings.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/printable.h"
#include "codec/audio_header.h"
#include "codec/codec.h"
#include "penstock/error.h"
#include "source/folder_listing.h"

namespace penstock {
namespace {

using Kind = FolderEntry::Kind;

constexpr const char* kHidden = "hidden";
constexpr const char* kEmpty = "empty";
constexpr const char* kOtherExtension = "of another extension";
// With the plural of the files.
constexpr const char* kOutside = "{} outside the class folders";
constexpr const char* kNoFiles = "class folders without {}";
constexpr const char* kFolderLikeFile = "folders named like {}";
constexpr const char* kUnreadable = "folders that cannot be read";
constexpr const char* kBrokenLink = "broken links";
constexpr const char* kLink = "links";
constexpr const char* kLinkOut = "links that lead out of the folder";
constexpr const char* kLoop = "links to a folder above them";
constexpr const char* kSeen = "links to a folder that is listed already";
constexpr const char* kNeither = "neither files nor folders";

std::string lower(std::string_view text) {
  std::string small(text);
  for (char& letter : small)
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  return small;
}

class FolderWalk {
 public:
  FolderWalk(Io& io, FolderListing& listing, std::string real_root)
      : io_(io), listing_(listing), inside_(real_root == "/" ? real_root : real_root + "/") {}

  void run() {
    auto root = io_.look(inside_);
    if (root) above_.push_back({root->device, root->inode});
    const auto entries = sorted_entries("");
    if (!entries) throw_for(entries.failure());
    for (const FolderEntry& entry : *entries) {
      if (!wanted(entry, entry.name)) continue;
      if (!listing_.options.labels) {
        take(entry, entry.name);
      } else if (entry.kind == Kind::folder) {
        take_class(entry);
      } else {
        leave_out(is_wanted_file(entry.name) ? kOutside : kOtherExtension, entry.name);
      }
    }
    name_classes();
  }

  [[nodiscard]] std::uint64_t count_of(const char* reason) const {
    for (const auto& left : listing_.left_out)
      if (left.reason == words_of(reason)) return left.count;
    return 0;
  }

 private:
  struct Class {
    std::string name;
    std::size_t first;
    std::size_t end;
  };
  struct Place {
    std::uint64_t device;
    std::uint64_t inode;
    auto operator<=>(const Place&) const = default;
  };

  [[noreturn]] void throw_for(const Failure& failure) const {
    const std::string text = fmt::format("{}: {}", listing_.kind->folder_word, failure.message);
    if (failure.transient()) throw IoError(text);
    throw ConfigError(text);
  }

  /// Sorted by the relative names of everything below them: a folder is compared with its trailing
  /// slash.
  Result<std::vector<FolderEntry>> sorted_entries(const std::string& relative) {
    auto entries = io_.list(join_path(listing_.files.root(), relative));
    if (!entries) return entries;
    const auto key = [](const FolderEntry& entry) {
      return entry.kind == Kind::folder ? entry.name + '/' : entry.name;
    };
    std::ranges::sort(*entries, {}, key);
    return entries;
  }

  [[nodiscard]] std::string words_of(const char* reason) const {
    return fmt::format(fmt::runtime(reason), listing_.kind->plural);
  }

  void leave_out(const char* name, const std::string& relative) {
    constexpr std::size_t kFirstMax = 5;
    const std::string reason = words_of(name);
    auto found = std::ranges::find(listing_.left_out, reason, &FolderIndex::LeftOut::reason);
    if (found == listing_.left_out.end()) found = listing_.left_out.insert(found, {reason, 0, {}});
    ++found->count;
    if (found->first.size() < kFirstMax) found->first.push_back(printable(relative));
  }

  [[nodiscard]] bool is_wanted_file(std::string_view name) const {
    const std::size_t dot = name.rfind('.');
    if (dot == std::string_view::npos || dot == 0) return false;
    return std::ranges::binary_search(listing_.options.extensions, lower(name.substr(dot + 1)));
  }

  /// False for skipped entries: hidden names, odd types, links that are not followed.
  bool wanted(const FolderEntry& entry, const std::string& relative) {
    const char* reason = nullptr;
    if (entry.name.starts_with('.')) {
      reason = kHidden;
    } else if (entry.kind == Kind::broken) {
      reason = kBrokenLink;
    } else if (entry.kind == Kind::other) {
      reason = kNeither;
    } else if (entry.link) {
      reason = refused_link(entry, relative);
    }
    if (reason != nullptr) leave_out(reason, relative);
    return reason == nullptr;
  }

  const char* refused_link(const FolderEntry& entry, const std::string& relative) {
    if (listing_.options.follow_links == FollowLinks::never) return kLink;
    if (entry.kind == Kind::folder &&
        std::ranges::find(above_, Place{entry.device, entry.inode}) != above_.end())
      return kLoop;
    if (listing_.options.follow_links == FollowLinks::anywhere) return nullptr;
    const auto target = io_.real_path(join_path(listing_.files.root(), relative));
    if (!target) return kBrokenLink;
    return (*target).starts_with(inside_) ? nullptr : kLinkOut;
  }

  void take_class(const FolderEntry& entry) {
    seen_.clear();
    const std::size_t first = listing_.files.size();
    take_folder(entry, entry.name);
    if (listing_.files.size() > first) {
      classes_.push_back({entry.name, first, listing_.files.size()});
    } else {
      leave_out(kNoFiles, entry.name);
    }
  }

  void take(const FolderEntry& entry, const std::string& relative) {
    if (entry.kind == Kind::folder) {
      if (is_wanted_file(entry.name)) return leave_out(kFolderLikeFile, relative);
      return take_folder(entry, relative);
    }
    if (!is_wanted_file(entry.name)) return leave_out(kOtherExtension, relative);
    if (entry.bytes == 0) return leave_out(kEmpty, relative);
    listing_.files.add(relative, entry.bytes);
  }

  void take_folder(const FolderEntry& entry, const std::string& relative) {
    // A link may lead to a folder with more links. The files would multiply if a class followed two
    // links to the same folder, or a link to a folder above it.
    const Place place{entry.device, entry.inode};
    if (!seen_.insert(place).second && entry.link) return leave_out(kSeen, relative);
    const auto entries = sorted_entries(relative);
    if (!entries) {
      if (entries.failure().transient()) throw_for(entries.failure());
      return leave_out(kUnreadable, relative);
    }
    above_.push_back(place);
    for (const FolderEntry& each : *entries) {
      const std::string name = join_path(relative, each.name);
      if (wanted(each, name)) take(each, name);
    }
    above_.pop_back();
  }

  /// Labels follow the sorted names of the classes, which is not quite the order of the files:
  /// "a-b/x" comes before "a/x".
  void name_classes() {
    std::ranges::sort(classes_, {}, &Class::name);
    for (const Class& each : classes_) {
      const auto label = static_cast<std::int32_t>(listing_.class_names.size());
      for (std::size_t file = each.first; file < each.end; ++file)
        listing_.files.set_label(file, label);
      listing_.class_names.push_back(each.name);
    }
  }

  Io& io_;
  FolderListing& listing_;
  const std::string inside_;  // the prefix of real paths below the root
  std::vector<Place> above_;  // the folders from the root to here
  std::set<Place> seen_;  // the folders visited in this class, or in all if there are no classes
  std::vector<Class> classes_;
};

}  // namespace

const FileKind kImageFiles{.folder_word = "image_folder",
                           .list_word = "list_images",
                           .paths_word = "from_paths",
                           .field = "image",
                           .plural = "images",
                           .extensions = [] { return image_extensions(); }};
const FileKind kAudioFiles{.folder_word = "audio_folder",
                           .list_word = "list_audio",
                           .paths_word = "audio_files",
                           .field = "audio",
                           .plural = "recordings",
                           .extensions = audio_extensions};

FolderOptions normal_options(const FolderOptions& options, const FileKind& kind) {
  FolderOptions normal = options;
  if (normal.extensions.empty()) normal.extensions = kind.extensions();
  for (std::string& extension : normal.extensions) {
    extension = lower(extension);
    if (extension.starts_with('.')) extension.erase(0, 1);
    if (extension.empty() || extension.find_first_of("./") != std::string::npos)
      throw ConfigError(
          fmt::format("{}: \"{}\" is not an extension", kind.folder_word, printable(extension)), {},
          fmt::format("write it as \"{}\"", kind.extensions().front()));
  }
  std::ranges::sort(normal.extensions);
  const auto twice = std::ranges::unique(normal.extensions);
  normal.extensions.erase(twice.begin(), twice.end());
  return normal;
}

FolderListing list_folder(Io& io, const std::string& root, const FolderOptions& options,
                          const FileKind& kind) {
  if (root.empty() || root.find('\0') != std::string::npos)
    throw ConfigError(
        fmt::format("{}: \"{}\" is not the path of a folder", kind.folder_word, printable(root)),
        {}, fmt::format("pass the folder that contains the {}", kind.plural));
  FolderListing listing(root);
  listing.kind = &kind;
  listing.options = normal_options(options, kind);
  const auto real_root = io.real_path(root);
  if (!real_root)
    throw ConfigError(fmt::format("{}: {}", kind.folder_word, real_root.failure().message), {},
                      "check the path of the folder");
  FolderWalk walk(io, listing, *real_root);
  walk.run();
  if (listing.files.size() > 0) return listing;
  if (const std::uint64_t outside = walk.count_of(kOutside); outside > 0)
    throw ConfigError(
        fmt::format("{}: {} contains {} {} but no class folder with one", kind.folder_word,
                    printable(root), outside, kind.plural),
        {},
        fmt::format("create a folder for each class, or set the option labels to false for {} "
                    "without a label",
                    kind.plural));
  const std::string there = left_out_text(listing.left_out);
  throw ConfigError(
      fmt::format("{}: no {} in {}: {}", kind.folder_word, kind.plural, printable(root),
                  there.empty() ? "it is empty" : "there are only " + there),
      {},
      fmt::format("{} have one of the extensions {}", kind.plural,
                  fmt::join(listing.options.extensions, ", ")));
}

std::string left_out_text(const std::vector<FolderIndex::LeftOut>& left_out) {
  std::string text;
  for (const FolderIndex::LeftOut& left : left_out) {
    if (!text.empty()) text += ", ";
    text += fmt::format("{} {} ({}{})", left.count, left.reason, fmt::join(left.first, ", "),
                        left.count > left.first.size() ? ", ..." : "");
  }
  return text;
}

}  // namespace penstock
