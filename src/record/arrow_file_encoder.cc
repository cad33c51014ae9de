#include "record/arrow_file_encoder.h"

#include <fmt/format.h>

#include "penstock/error.h"

namespace penstock {

void ArrowFileEncoder::set_spec(const ElementSpec& spec) {
  static_cast<void>(arrow_schema(spec));  // refuses what cannot be written
  spec_ = spec;
  columns_.clear();
  for (const FieldSpec& field : spec_.fields) columns_.emplace_back(field);
}

void ArrowFileEncoder::append(std::string& out, const Sample& sample, std::uint64_t number) {
  if (sample.leaves().empty())
    throw ConfigError("the samples have no fields, so an Arrow file would have no columns");
  if (const auto difference = spec_.difference(sample))
    throw SampleError(
        fmt::format("sample {} does not fit the columns of the Arrow files: {}", number,
                    *difference),
        {}, "declare what the samples are, as in map(fn, spec=...), with None for sizes that vary");
  if (file_bytes_ == 0) append_begin(out);
  for (std::size_t i = 0; i < columns_.size(); ++i) columns_[i].append(sample.leaves()[i], number);
  ++rows_;
  if (rows_ == kArrowBatchRows || pending_bytes() >= kArrowBatchBytes) append_batch(out);
}

std::uint64_t ArrowFileEncoder::pending_bytes() const {
  std::uint64_t bytes = 0;
  for (const ArrowColumnBuilder& column : columns_) bytes += column.bytes();
  return bytes;
}

void ArrowFileEncoder::finish(std::string& out) {
  if (file_bytes_ == 0) append_begin(out);
  if (rows_ > 0) append_batch(out);
  append_arrow_footer(out, spec_, blocks_);
  file_bytes_ = 0;
  blocks_.clear();
}

void ArrowFileEncoder::append_begin(std::string& out) {
  const std::size_t before = out.size();
  out += kArrowMagic;
  out.append(2, '\0');
  append_arrow_message(out, out.size() - before, ArrowHeader::schema, arrow_schema(spec_), 0);
  file_bytes_ = out.size() - before;
}

void ArrowFileEncoder::append_batch(std::string& out) {
  ArrowBuffers buffers;
  std::size_t next = 0;
  if (spec_.structure.kind == Structure::Kind::leaf) {
    columns_.front().add_to(buffers);
  } else {
    add_columns(spec_.structure, next, buffers);
  }
  const std::size_t before = out.size();
  append_arrow_message(out, file_bytes_, ArrowHeader::record_batch, buffers.record_batch(rows_),
                       buffers.bytes());
  blocks_.push_back({file_bytes_, out.size() - before, buffers.bytes()});
  buffers.append_to(out);
  file_bytes_ += out.size() - before;
  for (ArrowColumnBuilder& column : columns_) column.clear();
  rows_ = 0;
}

void ArrowFileEncoder::add_columns(const Structure& structure, std::size_t& next,
                                   ArrowBuffers& buffers) const {
  for (const auto& [key, child] : structure.children) {
    if (child.kind == Structure::Kind::leaf) {
      columns_[next++].add_to(buffers);
      continue;
    }
    buffers.begin_column(rows_);
    add_columns(child, next, buffers);
  }
}

}  // namespace penstock
