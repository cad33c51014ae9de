#pragma once
// Files of Arrow's IPC format (Feather version 2), not compressed: a schema, record batches, and a
// footer that says where they are.

#include <cstdint>
#include <string>
#include <vector>

#include "record/arrow_column_builder.h"
#include "record/arrow_metadata.h"
#include "record/shard_encoder.h"

namespace penstock {

/// A record batch ends after this many rows, or the row with which its values reach so many bytes.
/// Readers read whole batches.
inline constexpr std::uint64_t kArrowBatchRows = 1024;
inline constexpr std::uint64_t kArrowBatchBytes = std::uint64_t{8} << 20;

/// Each dtype has its type in Arrow, but bf16, which becomes float; bytes, texts and lists have
/// offsets of 64 bits, so that a row may be of any size.
class ArrowFileEncoder final : public ShardEncoder {
 public:
  [[nodiscard]] bool needs_spec() const override { return true; }
  /// Throws ConfigError for samples without fields, and for what arrow_schema refuses.
  void set_spec(const ElementSpec& spec) override;
  /// Throws SampleError for a sample that does not fit the spec.
  void append(std::string& out, const Sample& sample, std::uint64_t number) override;
  [[nodiscard]] std::uint64_t pending_bytes() const override;
  void finish(std::string& out) override;

 private:
  void append_begin(std::string& out);
  void append_batch(std::string& out);
  void add_columns(const Structure& structure, std::size_t& next, ArrowBuffers& buffers) const;

  ElementSpec spec_;
  std::vector<ArrowColumnBuilder> columns_;
  std::uint64_t rows_ = 0;        // in the columns
  std::uint64_t file_bytes_ = 0;  // appended so far
  std::vector<ArrowBlock> blocks_;
};

}  // namespace penstock
