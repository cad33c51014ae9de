// tested in src/feed/write_records_test.cc
#include "record/shard_encoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/printable.h"
#include "codec/codec.h"
#include "codec/npy_write.h"
#include "penstock/error.h"
#include "record/arrow_file_encoder.h"
#include "record/example_encode.h"
#include "record/tar.h"
#include "record/tfrecord.h"

namespace penstock {
namespace {

class TfrecordEncoder final : public ShardEncoder {
 public:
  void append(std::string& out, const Sample& sample, std::uint64_t) override {
    append_tfrecord(out, encode_example(sample));
  }
};

/// WebDataset's readers decode a member by its last extension.
class TarEncoder final : public ShardEncoder {
 public:
  void append(std::string& out, const Sample& sample, std::uint64_t number) override {
    const std::vector<std::string> paths = sample.structure().paths();
    const std::string key = fmt::format("{:09}", number);
    std::set<std::string> names;
    for (std::size_t i = 0; i < paths.size(); ++i) {
      const Tensor& leaf = sample.leaves()[i];
      const std::string name = member_name(paths[i], leaf);
      if (!names.insert(lower(name)).second)
        throw ConfigError(fmt::format("write_records: two fields would be the member \"{}\" of a "
                                      "tar file",
                                      printable(name)),
                          {}, "rename one of them with map");
      append_tar_member(out, fmt::format("{}.{}", key, name), content_of(leaf));
    }
  }
  void finish(std::string& out) override { append_tar_end(out); }

 private:
  /// Readers ignore case.
  static std::string lower(std::string name) {
    for (char& letter : name)
      if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
    return name;
  }
  static bool is_class(const Tensor& leaf) {
    return leaf.dtype() == Dtype::i64 && leaf.shape().empty();
  }

  /// What is after the dot: the field, or just the kind of its content where the two are known to
  /// belong together.
  static std::string member_name(const std::string& path, const Tensor& leaf) {
    const std::string field = path.empty() ? "value" : path;
    if (field.find_first_of("/.") != std::string::npos)
      throw ConfigError(fmt::format("write_records: field \"{}\" cannot be the name of a member of "
                                    "a tar file",
                                    printable(field)),
                        {}, "rename it with map");
    if (is_class(leaf)) return named(field, "label", "cls", {"cls", "index", "id", "count"}, "id");
    if (leaf.dtype() == Dtype::string)
      return named(field, "text", "txt", {"txt", "json", "transcript"}, "txt");
    if (leaf.dtype() != Dtype::bytes) return field + ".npy";
    const auto info = probe_image(leaf.raw());
    if (!info) return field + ".bin";
    const std::string kind(image_extensions((*info).format).front());
    return named(field, "image", kind, {}, kind);
  }

  /// The extension alone for the field `usual`, the field itself if it is one of `extensions`, and
  /// otherwise both.
  static std::string named(const std::string& field, std::string_view usual,
                           const std::string& extension,
                           std::initializer_list<std::string_view> extensions,
                           const std::string& kind) {
    if (field == usual) return extension;
    const auto images = image_extensions();
    const bool is_image = std::ranges::find(images, field) != images.end() && kind == extension;
    if (is_image) return extension;
    const bool is_extension = std::ranges::find(extensions, field) != extensions.end();
    return is_extension ? field : field + "." + kind;
  }

  static std::string content_of(const Tensor& leaf) {
    if (is_class(leaf)) return fmt::format("{}", leaf.item<std::int64_t>());
    if (is_variable(leaf.dtype())) return std::string(leaf.text());
    return encode_npy(leaf);
  }
};

}  // namespace

std::unique_ptr<ShardEncoder> make_shard_encoder(const std::string& format) {
  if (format == "tfrecord") return std::make_unique<TfrecordEncoder>();
  if (format == "tar") return std::make_unique<TarEncoder>();
  if (format == "arrow") return std::make_unique<ArrowFileEncoder>();
  throw ConfigError(fmt::format("write_records: the format \"{}\" is not known", printable(format)),
                    {}, "use tfrecord, tar or arrow");
}

}  // namespace penstock
