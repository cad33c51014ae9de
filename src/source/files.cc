// Sources whose samples are files: folders and paths of images and recordings, and list_files.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/json.h"
#include "base/printable.h"
#include "penstock/error.h"
#include "source/find_files.h"
#include "source/folder_listing.h"
#include "source/glob.h"
#include "source/source.h"

namespace penstock {
namespace {

ElementSpec file_spec(const FileKind& kind, bool label, bool path) {
  std::vector<FieldSpec> fields{{std::string(kind.field), Dtype::bytes, {}}};
  if (label) fields.push_back({"label", Dtype::i64, {}});
  if (path) fields.push_back({"path", Dtype::string, {}});
  return ElementSpec::dict(std::move(fields));
}

std::string digest_of(const FileTable& files) {
  Digest digest;
  files.identify(digest);
  return digest.text();
}

/// Encoded files with their labels.
class EncodedFiles : public Source {
 public:
  EncodedFiles(const FileKind& kind, std::shared_ptr<const FileTable> files, bool label, bool path)
      : kind_(kind),
        files_(std::move(files)),
        spec_(file_spec(kind, label, path)),
        label_(label),
        path_(path),
        digest_(digest_of(*files_)) {}

  [[nodiscard]] std::uint64_t size() const override { return files_->size(); }
  [[nodiscard]] const ElementSpec& spec() const override { return spec_; }
  void identify(Digest& digest) const override { digest.add(digest_); }
  [[nodiscard]] std::string file_of(std::uint64_t number) const override {
    return number < files_->size() ? files_->path(number) : "";
  }
  [[nodiscard]] std::uint64_t bytes_per_sample() const override {
    if (files_->size() == 0 || files_->bytes(0) == FileTable::kSizeUnknown) return 0;
    return files_->bytes_total() / files_->size();
  }

  [[nodiscard]] bool has_reads() const override { return true; }
  void reads(std::uint64_t number, std::vector<Read>& reads) const override {
    reads.push_back({.object = files_->path(number),
                     .length = files_->bytes(number),
                     .whole = true,
                     .bytes_max = bytes_max_,
                     .within = within_});
  }
  Result<void> decode(std::span<const std::uint64_t> numbers, std::span<Bytes> bytes,
                      const BlockView& out, const Context&) const override {
    if (bytes[0].empty())
      return Failure{fmt::format("{} is empty", printable(file_of(numbers[0])))};
    const auto owner = std::make_shared<const Bytes>(std::move(bytes[0]));
    out.columns[0].tensors[0] = Tensor::view(Dtype::bytes, {}, *owner, owner);
    std::size_t column = 1;
    if (label_) {
      const std::int64_t label = label_of(numbers[0]);
      std::memcpy(out.columns[column++].data, &label, sizeof label);
    }
    if (path_)
      out.columns[column].tensors[0] = Tensor::bytes(files_->name(numbers[0]), Dtype::string);
    return {};
  }

 protected:
  [[nodiscard]] virtual std::int64_t label_of(std::uint64_t number) const = 0;
  [[nodiscard]] const FileKind& kind() const { return kind_; }
  [[nodiscard]] const FileTable& files() const { return *files_; }
  [[nodiscard]] bool has_label() const { return label_; }
  [[nodiscard]] bool has_path() const { return path_; }
  void set_reading(std::uint64_t bytes_max, std::shared_ptr<const FileRoot> within) {
    bytes_max_ = bytes_max;
    within_ = std::move(within);
  }

 private:
  const FileKind& kind_;
  std::shared_ptr<const FileTable> files_;
  ElementSpec spec_;
  bool label_;
  bool path_;
  std::string digest_;  // computed once: states and plans need it often
  std::uint64_t bytes_max_ = kFileBytesMax;
  std::shared_ptr<const FileRoot> within_;
};

/// The folder that an opened file must be in; null if links may lead anywhere.
std::shared_ptr<const FileRoot> root_of(const FolderListing& listing) {
  if (listing.options.follow_links == FollowLinks::anywhere) return nullptr;
  const std::string& root = listing.files.root();
  const auto real = Io::real().real_path(root);
  return std::make_shared<const FileRoot>(
      FileRoot{.given = root,
               .real = real ? *real : "",  // an index may exist before its files
               .links = listing.options.follow_links == FollowLinks::inside});
}

class FileFolder final : public EncodedFiles {
 public:
  FileFolder(const FileKind& file_kind, std::shared_ptr<const FolderListing> listing,
             bool with_path)
      : EncodedFiles(file_kind, {listing, &listing->files}, listing->options.labels, with_path),
        listing_(std::move(listing)) {
    set_reading(listing_->options.bytes_max, root_of(*listing_));
  }

  [[nodiscard]] std::string word() const override { return std::string(kind().folder_word); }
  [[nodiscard]] std::string describe() const override {
    const std::string classes =
        has_label() ? fmt::format(", {} classes", listing_->class_names.size()) : "";
    return fmt::format("{}({}, {} files{})", kind().folder_word, printable(files().root()),
                       files().size(), classes);
  }
  [[nodiscard]] Json arguments() const override {
    const FolderOptions& options = listing_->options;
    return {{"root", files().root()},
            {"extensions", options.extensions},
            {"follow_links", static_cast<int>(options.follow_links)},
            {"labels", options.labels},
            {"with_path", has_path()},
            {"bytes_max", options.bytes_max}};
  }
  [[nodiscard]] std::vector<std::string> class_names() const override {
    return listing_->class_names;
  }

 protected:
  [[nodiscard]] std::int64_t label_of(std::uint64_t number) const override {
    return files().label(number);
  }

 private:
  std::shared_ptr<const FolderListing> listing_;
};

class FromPaths final : public EncodedFiles {
 public:
  /// There are as many labels as files, or none.
  FromPaths(const FileKind& file_kind, std::shared_ptr<const FileTable> files,
            std::vector<std::int64_t> labels)
      : EncodedFiles(file_kind, std::move(files), !labels.empty(), false),
        labels_(std::move(labels)) {}

  [[nodiscard]] std::string word() const override { return std::string(kind().paths_word); }
  [[nodiscard]] std::string describe() const override {
    return fmt::format("{}({} files)", kind().paths_word, files().size());
  }
  void identify_values(Digest& digest) const override {
    for (const std::int64_t label : labels_) digest.add(static_cast<std::uint64_t>(label));
  }
  [[nodiscard]] Json arguments() const override {
    Json paths = Json::array();
    for (std::size_t file = 0; file < files().size(); ++file) paths.push_back(files().path(file));
    return {{"paths", paths}, {"labels", labels_}};
  }

 protected:
  [[nodiscard]] std::int64_t label_of(std::uint64_t number) const override {
    return labels_[number];
  }

 private:
  std::vector<std::int64_t> labels_;
};

class ListFiles final : public Source {
 public:
  ListFiles(std::string pattern, const ListOptions& options, FileTable files)
      : pattern_(std::move(pattern)),
        options_(options),
        files_(std::move(files)),
        spec_(ElementSpec::single(Dtype::string)),
        digest_(digest_of(files_)) {}

  [[nodiscard]] std::string word() const override { return "list_files"; }
  [[nodiscard]] std::uint64_t size() const override { return files_.size(); }
  [[nodiscard]] const ElementSpec& spec() const override { return spec_; }
  [[nodiscard]] std::string describe() const override {
    return fmt::format("list_files({}, {} files)", printable(pattern_), files_.size());
  }
  void identify(Digest& digest) const override { digest.add(digest_); }
  [[nodiscard]] Json arguments() const override {
    return {{"pattern", pattern_}, {"hidden", options_.hidden}};
  }
  [[nodiscard]] std::string file_of(std::uint64_t number) const override {
    return number < files_.size() ? files_.path(number) : "";
  }
  Result<void> decode(std::span<const std::uint64_t> numbers, std::span<Bytes>,
                      const BlockView& out, const Context&) const override {
    for (std::size_t row = 0; row < numbers.size(); ++row)
      out.columns[0].tensors[row] = Tensor::bytes(files_.path(numbers[row]), Dtype::string);
    return {};
  }

 private:
  std::string pattern_;
  ListOptions options_;
  FileTable files_;
  ElementSpec spec_;
  std::string digest_;
};

}  // namespace

std::shared_ptr<const Source> make_file_folder(const FileKind& kind,
                                               std::shared_ptr<const FolderListing> listing,
                                               bool with_path) {
  return std::make_shared<FileFolder>(kind, std::move(listing), with_path);
}

std::shared_ptr<const Source> make_from_paths(const FileKind& kind, Io& io,
                                              const std::vector<std::string>& paths,
                                              const std::vector<std::int64_t>& labels) {
  if (paths.empty()) throw ConfigError(fmt::format("{}: there are no paths", kind.paths_word));
  if (!labels.empty() && labels.size() != paths.size())
    throw ConfigError(
        fmt::format("{}: {} paths and {} labels", kind.paths_word, paths.size(), labels.size()), {},
        "pass one label per path, or none");
  const std::string folder = shared_folder(paths);
  auto files = std::make_shared<FileTable>(folder);
  for (std::size_t i = 0; i < paths.size(); ++i) {
    if (paths[i].empty() || paths[i].find('\0') != std::string::npos)
      throw ConfigError(
          fmt::format("{}: path {} is \"{}\"", kind.paths_word, i, printable(paths[i])));
    // A missing file fails when it is read, and `on_error` decides what happens.
    const auto entry = io.look(paths[i]);
    const bool is_file = entry && (*entry).kind == FolderEntry::Kind::file;
    files->add(std::string_view(paths[i]).substr(folder.size()),
               is_file ? (*entry).bytes : FileTable::kSizeUnknown);
  }
  return std::make_shared<FromPaths>(kind, std::move(files), labels);
}

std::shared_ptr<const Source> make_list_files(Io& io, const std::string& pattern,
                                              const ListOptions& options) {
  if (pattern.empty() || pattern.find('\0') != std::string::npos)
    throw ConfigError(fmt::format("list_files: \"{}\" is not a pattern", printable(pattern)), {},
                      "write it as \"folder/*.png\"");
  FileTable files = list_matching(io, pattern, options.hidden);
  if (files.size() == 0)
    throw ConfigError(
        fmt::format("list_files: no file matches \"{}\"", printable(pattern)), {},
        options.hidden ? ""
                       : "wildcards leave out names that begin with a dot unless the option hidden "
                         "is set");
  return std::make_shared<ListFiles>(pattern, options, std::move(files));
}

}  // namespace penstock
