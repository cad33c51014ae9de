#pragma once
// The metadata of Arrow's IPC format, version V5: schemas, record batches and the footer of a file.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/spec.h"
#include "record/flat_table.h"

namespace penstock {

/// What begins and ends an Arrow file.
inline constexpr std::string_view kArrowMagic = "ARROW1";
/// Buffers and the data of record batches begin at multiples of this, in their file too.
inline constexpr std::size_t kArrowAlignment = 64;

/// Bytes up to the next multiple of kArrowAlignment.
std::size_t arrow_padded(std::size_t bytes);

/// The buffers of a record batch, collected column by column. No value is null.
class ArrowBuffers {
 public:
  /// A column, or the items of one that are values of their own; its buffers follow.
  void begin_column(std::uint64_t values);
  /// `bytes` must stay until they are written.
  void add(std::string_view bytes);

  /// The bytes of all buffers, padded.
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  void append_to(std::string& out) const;
  /// The table that says where they are.
  [[nodiscard]] FlatTable record_batch(std::uint64_t rows) const;

 private:
  std::string columns_;  // structs of the format
  std::string places_;
  std::vector<std::string_view> parts_;
  std::uint64_t bytes_ = 0;
};

/// The schema of rows with this spec: a struct for each nested dict or tuple, lists of one size
/// where a size is known, and lists of any size where it is not. A sample that is one tensor is the
/// column "value"; the parts of a tuple are "0", "1" and so on. Throws ConfigError for a name or a
/// size that Arrow cannot hold.
FlatTable arrow_schema(const ElementSpec& spec);

enum class ArrowHeader : std::uint8_t { schema = 1, record_batch = 3 };

/// Appends a message without what follows it, which `body_bytes` counts. `at` is where it begins in
/// its file: its end is then aligned.
void append_arrow_message(std::string& out, std::uint64_t at, ArrowHeader kind, FlatTable header,
                          std::uint64_t body_bytes);

/// Where a record batch is in its file.
struct ArrowBlock {
  std::uint64_t offset = 0;
  std::uint64_t message_bytes = 0;
  std::uint64_t body_bytes = 0;
};

/// Appends all that is behind the last record batch of a file.
void append_arrow_footer(std::string& out, const ElementSpec& spec,
                         const std::vector<ArrowBlock>& blocks);

}  // namespace penstock
