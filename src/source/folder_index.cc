// The index of a folder of images or recordings, and its file:
//
//   8 bytes "pstkfix1"; then numbers as 8 bytes, little end first, and texts as a number and bytes
//   labels (0 or 1), follow_links (0, 1, 2)
//   count and texts: extensions, classes
//   count of files; the bytes of all their names; for each file: bytes of its name, size, label + 1
//   the digest of all that
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/bytes_taker.h"
#include "base/digest.h"
#include "base/printable.h"
#include "penstock/audio.h"
#include "penstock/error.h"
#include "source/folder_listing.h"

namespace penstock {
namespace {

constexpr std::string_view kMagic = "pstkfix1";
constexpr std::uint64_t kFilesMax = 1ULL << 32;
constexpr std::uint64_t kIndexBytesMax = 1ULL << 34;  // some 100 M files

std::uint64_t digest_of(std::string_view bytes) {
  Digest digest;
  digest.add(bytes);
  return digest.value();
}

/// Whether a name is below the root and has no dots or empty parts.
bool is_relative_name(std::string_view name) {
  if (name.empty() || name.find('\0') != std::string_view::npos) return false;
  while (true) {
    const std::size_t slash = name.find('/');
    const std::string_view part = name.substr(0, slash);
    if (part.empty() || part == "." || part == "..") return false;
    if (slash == std::string_view::npos) return true;
    name.remove_prefix(slash + 1);
  }
}

bool strictly_ascending(const std::vector<std::string>& texts) {
  return std::ranges::adjacent_find(texts, std::greater_equal<>()) == texts.end();
}

Failure garbled(const std::string& what) {
  return Failure{fmt::format("the index is garbled: {}", what)};
}

/// Adds the files; returns an error text if they are invalid.
std::optional<std::string> take_files(BytesTaker& taker, FolderListing& listing) {
  const std::uint64_t count = taker.number(kFilesMax);
  std::string_view names = taker.text(taker.number(UINT64_MAX));
  if (!taker.good() || taker.left() != count * 3 * sizeof(std::uint64_t))
    return "it is truncated, or too long";
  listing.files.reserve(count, names.size());
  const std::size_t classes = listing.class_names.size();
  std::vector<bool> seen(classes);
  std::string_view before;
  for (std::uint64_t file = 0; file < count; ++file) {
    const std::uint64_t length = taker.number(names.size());
    const std::string_view name = names.substr(0, length);
    names.remove_prefix(length);
    const std::uint64_t bytes = taker.number(UINT64_MAX - 1);
    const std::uint64_t label = taker.number(classes);  // 0: none
    if (!taker.good() || !is_relative_name(name) || name <= before)
      return fmt::format("file {} has an invalid name", file);
    if ((label == 0) == listing.options.labels) return fmt::format("file {} has no label", file);
    if (label > 0) {
      if (!name.starts_with(listing.class_names[label - 1] + "/"))
        return fmt::format("file {} is in another class", file);
      seen[label - 1] = true;
    }
    before = name;
    listing.files.add(name, bytes, static_cast<std::int32_t>(label) - 1);
  }
  if (count == 0 || !names.empty() || std::ranges::find(seen, false) != seen.end())
    return "a name without a file";
  return std::nullopt;
}

}  // namespace

std::string encode_listing(const FolderListing& listing) {
  std::string bytes(kMagic);
  put(bytes, listing.options.labels ? 1 : 0);
  put(bytes, static_cast<std::uint64_t>(listing.options.follow_links));
  put(bytes, listing.options.extensions);
  put(bytes, listing.class_names);
  const FileTable& files = listing.files;
  std::string names;
  for (std::size_t file = 0; file < files.size(); ++file) names += files.name(file);
  bytes.reserve(bytes.size() + names.size() + files.size() * 3 * sizeof(std::uint64_t) + 64);
  put(bytes, files.size());
  put(bytes, std::string_view(names));
  for (std::size_t file = 0; file < files.size(); ++file) {
    put(bytes, files.name(file).size());
    put(bytes, files.bytes(file));
    put(bytes, static_cast<std::uint64_t>(files.label(file) + 1));
  }
  put(bytes, digest_of(bytes));
  return bytes;
}

Result<FolderListing> decode_listing(std::string_view bytes, const std::string& root) {
  if (!bytes.starts_with(kMagic))
    return Failure{"this is not the index of a folder, or one of another version of penstock"};
  if (bytes.size() < kMagic.size() + sizeof(std::uint64_t)) return garbled("it is truncated");
  std::uint64_t digest = 0;
  std::memcpy(&digest, bytes.data() + bytes.size() - sizeof digest, sizeof digest);
  bytes.remove_suffix(sizeof digest);
  if (digest != digest_of(bytes)) return garbled("its content does not match its checksum");
  BytesTaker taker(bytes.substr(kMagic.size()));
  FolderListing listing(root);
  listing.options.labels = taker.number(1) == 1;
  listing.options.follow_links = static_cast<FollowLinks>(taker.number(2));
  listing.options.extensions = taker.texts();
  listing.class_names = taker.texts();
  if (!taker.good() || !strictly_ascending(listing.options.extensions) ||
      !strictly_ascending(listing.class_names) ||
      listing.class_names.empty() == listing.options.labels ||
      std::ranges::any_of(listing.class_names, [](const std::string& name) {
        return !is_relative_name(name) || name.find('/') != std::string::npos;
      }))
    return garbled("its classes");
  if (const auto wrong = take_files(taker, listing)) return garbled(*wrong);
  return listing;
}

namespace {

/// The first file in which two listings of a folder differ, as text.
std::optional<std::string> difference(const FileTable& then, const FileTable& now) {
  const std::size_t both = std::min(then.size(), now.size());
  for (std::size_t file = 0; file < both; ++file) {
    if (then.name(file) < now.name(file))
      return fmt::format("{} is missing", printable(then.path(file)));
    if (then.name(file) > now.name(file))
      return fmt::format("{} is new", printable(now.path(file)));
    if (then.bytes(file) != now.bytes(file))
      return fmt::format("{} has {} bytes, the index says {}", printable(now.path(file)),
                         now.bytes(file), then.bytes(file));
  }
  if (then.size() > both) return fmt::format("{} is missing", printable(then.path(both)));
  if (now.size() > both) return fmt::format("{} is new", printable(now.path(both)));
  return std::nullopt;
}

FolderListing load_listing(const std::string& file, const std::string& root,
                           const FileKind& kind = kImageFiles) {
  const std::string remedy = fmt::format("write it with {}(root).save(file)", kind.list_word);
  const auto bytes = Io::real().read_whole(file, {.bytes_max = kIndexBytesMax});
  if (!bytes) {
    const std::string text = fmt::format("the index of a folder: {}", bytes.failure().message);
    if (bytes.failure().transient()) throw IoError(text);
    throw ConfigError(text, {}, remedy);
  }
  auto listing =
      decode_listing({reinterpret_cast<const char*>((*bytes).data()), (*bytes).size()}, root);
  if (!listing)
    throw ConfigError(fmt::format("{}: {}", printable(file), listing.failure().message), {},
                      remedy);
  listing->kind = &kind;
  return std::move(*listing);
}

}  // namespace

FolderIndex FolderIndex::load(const std::string& file, const std::string& root) {
  return FolderIndex(std::make_shared<const FolderListing>(load_listing(file, root)));
}

void FolderIndex::save(const std::string& file) const {
  if (const auto done = Io::real().publish(file, encode_listing(*listing_)); !done)
    throw IoError(fmt::format("the index of {}: {}", printable(root()), done.failure().message));
}

void FolderIndex::check() const {
  const FolderListing now = list_folder(Io::real(), root(), listing_->options, *listing_->kind);
  if (const auto differs = difference(listing_->files, now.files))
    throw ConfigError(fmt::format("{} differs from its index: {}", printable(root()), *differs), {},
                      "list it again, and save the new index");
}

const std::string& FolderIndex::root() const {
  return listing_->files.root();
}
std::uint64_t FolderIndex::files() const {
  return listing_->files.size();
}
std::uint64_t FolderIndex::bytes() const {
  return listing_->files.bytes_total();
}
std::string FolderIndex::name(std::uint64_t file) const {
  if (file >= files())
    throw ConfigError(fmt::format("file {} of {} in {}", file, files(), printable(root())));
  return std::string(listing_->files.name(file));
}
const std::vector<std::string>& FolderIndex::class_names() const {
  return listing_->class_names;
}
std::vector<std::uint64_t> FolderIndex::class_files() const {
  std::vector<std::uint64_t> counts(listing_->class_names.size());
  for (std::size_t file = 0; file < listing_->files.size(); ++file)
    if (const std::int32_t label = listing_->files.label(file); label >= 0)
      ++counts[static_cast<std::size_t>(label)];
  return counts;
}
const std::vector<FolderIndex::LeftOut>& FolderIndex::left_out() const {
  return listing_->left_out;
}
std::string FolderIndex::left_out_text() const {
  return penstock::left_out_text(listing_->left_out);
}

FolderIndex list_files_of(const FileKind& kind, const std::string& root,
                          const FolderOptions& options) {
  if (options.index.empty())
    return FolderIndex(
        std::make_shared<const FolderListing>(list_folder(Io::real(), root, options, kind)));
  FolderListing listing = load_listing(options.index, root, kind);
  FolderOptions& had = listing.options;
  const bool asked = !options.extensions.empty();
  if (had.labels != options.labels || had.follow_links != options.follow_links ||
      (asked && had.extensions != normal_options(options, kind).extensions))
    throw ConfigError(fmt::format("{} was written with other extensions, follow_links or labels",
                                  printable(options.index)),
                      {}, "list the folder again with these, and save the new index");
  had.bytes_max = options.bytes_max;
  return FolderIndex(std::make_shared<const FolderListing>(std::move(listing)));
}

FolderIndex list_images(const std::string& root, const FolderOptions& options) {
  return list_files_of(kImageFiles, root, options);
}

FolderIndex list_audio(const std::string& root, const FolderOptions& options) {
  return list_files_of(kAudioFiles, root, options);
}

}  // namespace penstock
