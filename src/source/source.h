#pragma once
// A source of numbered samples. Const and stateless: any thread may request any block, any number
// of times, and gets the same bytes.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/digest.h"
#include "base/json_fwd.h"
#include "penstock/block.h"
#include "penstock/dataset.h"
#include "penstock/io.h"
#include "penstock/result.h"
#include "source/context.h"

namespace penstock {

struct FileKind;

class Source {
 public:
  virtual ~Source() = default;
  /// The name of the function that users call: "range", "from_index".
  [[nodiscard]] virtual std::string word() const = 0;
  [[nodiscard]] virtual std::uint64_t size() const = 0;
  [[nodiscard]] virtual const ElementSpec& spec() const = 0;
  /// One short line: "range(0, 10, 1)".
  [[nodiscard]] virtual std::string describe() const = 0;
  /// What else to tell users about its fields; may be empty.
  [[nodiscard]] virtual std::string notes() const { return {}; }
  /// Identifies the data; part of the order digest.
  virtual void identify(Digest& digest) const = 0;
  /// Other data that its values depend on, such as labels; part of the values digest.
  virtual void identify_values(Digest& /*digest*/) const {}
  /// Arguments to create it again on another machine; nullopt if data or a function must already
  /// exist under a name.
  [[nodiscard]] virtual Json arguments() const;
  [[nodiscard]] virtual std::string name() const { return {}; }

  /// The file of sample `number`, or nullopt if there is none; for errors.
  [[nodiscard]] virtual std::string file_of(std::uint64_t /*number*/) const { return {}; }
  /// How many bytes of a file a sample is on average; 0 if that is not known, or there is no file.
  [[nodiscard]] virtual std::uint64_t bytes_per_sample() const { return 0; }
  /// The class names, if it has labels.
  [[nodiscard]] virtual std::vector<std::string> class_names() const { return {}; }

  /// What a plan warns of if samples are requested in random order over all of them.
  [[nodiscard]] virtual std::optional<std::string> random_order_warning() const {
    return std::nullopt;
  }

  /// False for data in memory: `decode` then needs no bytes and computes any number of samples.
  [[nodiscard]] virtual bool has_reads() const { return false; }
  /// First half: the bytes to read for sample `number`.
  virtual void reads(std::uint64_t /*number*/, std::vector<Read>&) const {}
  /// True if `decode` reads by itself, through the context's reader, and so computes any number of
  /// samples. `reads` then only says what it will read.
  [[nodiscard]] virtual bool reads_in_decode() const { return false; }
  /// Second half: writes sample numbers[i] to row i. `bytes` are the results of `reads`; there is
  /// then one number, and the bytes may be moved from.
  virtual Result<void> decode(std::span<const std::uint64_t> numbers, std::span<Bytes> bytes,
                              const BlockView& out, const Context& context) const = 0;
};

std::shared_ptr<const Source> make_range(std::int64_t start, std::int64_t stop, std::int64_t step);
std::shared_ptr<const Source> make_tensors(Sample sample, std::string name);
std::shared_ptr<const Source> make_tensor_slices(Sample tensors, std::string name);
std::shared_ptr<const Source> make_index(std::uint64_t size, IndexFn fn, std::string name);

/// {image, label}, optionally with {path}; {image} if the listing has no labels. The first field is
/// that of `kind`.
std::shared_ptr<const Source> make_file_folder(const FileKind& kind,
                                               std::shared_ptr<const FolderListing> listing,
                                               bool with_path);
/// {image, label}, or {image} without labels. The first field is that of `kind`.
std::shared_ptr<const Source> make_from_paths(const FileKind& kind, Io& io,
                                              const std::vector<std::string>& paths,
                                              const std::vector<std::int64_t>& labels);
/// Paths.
std::shared_ptr<const Source> make_list_files(Io& io, const std::string& pattern,
                                              const ListOptions& options);

}  // namespace penstock
