#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "kernel/gather.h"
#include "penstock/error.h"
#include "sample/rows.h"
#include "source/identify.h"
#include "source/source.h"

namespace penstock {
namespace {

/// Shape, dtype and some rows of each tensor: enough to recognize other data without reading all of
/// it.
void identify_tensors(const Sample& sample, Digest& digest) {
  digest.add(ElementSpec::of(sample).text());
  for (const Tensor& tensor : sample.leaves()) identify_bytes(tensor.text(), digest);
}

bool lacks_bytes(const Sample& sample) {
  return sample.leaves().empty() || std::ranges::any_of(sample.leaves(), &Tensor::empty);
}

/// One element, or the rows of the first dimension.
class Tensors final : public Source {
 public:
  Tensors(Sample tensors, bool slices, std::string name)
      : tensors_(std::move(tensors)), slices_(slices), name_(std::move(name)) {
    spec_ = ElementSpec::of(tensors_);
    if (!slices_) return;
    for (FieldSpec& field : spec_.fields) {
      if (field.shape.empty())
        throw ConfigError(fmt::format("from_tensor_slices: field \"{}\" is a scalar", field.path),
                          {}, "give it a first dimension, or use from_tensors");
      const auto rows = static_cast<std::uint64_t>(field.shape.front());
      if (&field == spec_.fields.data()) size_ = rows;
      if (rows != size_)
        throw ConfigError(
            fmt::format("from_tensor_slices: field \"{}\" has {} rows, field \"{}\" has {}",
                        field.path, rows, spec_.fields.front().path, size_));
      field.shape.erase(field.shape.begin());
    }
  }

  [[nodiscard]] std::string word() const override {
    return slices_ ? "from_tensor_slices" : "from_tensors";
  }
  [[nodiscard]] std::uint64_t size() const override { return size_; }
  [[nodiscard]] const ElementSpec& spec() const override { return spec_; }
  [[nodiscard]] std::string describe() const override {
    return fmt::format("{}({} x {})", word(), size_, spec_.text());
  }
  [[nodiscard]] std::string name() const override { return name_; }
  void identify(Digest& digest) const override { identify_tensors(tensors_, digest); }

  Result<void> decode(std::span<const std::uint64_t> numbers, std::span<Bytes>,
                      const BlockView& out, const Context&) const override {
    for (std::size_t i = 0; i < out.columns.size(); ++i) {
      const Column& column = out.columns[i];
      const Tensor& tensor = tensors_.leaves()[i];
      if (column.dense()) {
        gather_rows(tensor.raw().data(), column.row_bytes, numbers, column.data);
      } else {
        for (std::size_t row = 0; row < numbers.size(); ++row) column.tensors[row] = tensor;
      }
    }
    return {};
  }

 private:
  Sample tensors_;
  bool slices_;
  std::string name_;
  ElementSpec spec_;
  std::uint64_t size_ = 1;
};

}  // namespace

std::shared_ptr<const Source> make_tensors(Sample sample, std::string name) {
  if (lacks_bytes(sample)) throw ConfigError("from_tensors: the sample has no tensors");
  return std::make_shared<Tensors>(std::move(sample), false, std::move(name));
}

std::shared_ptr<const Source> make_tensor_slices(Sample tensors, std::string name) {
  if (lacks_bytes(tensors)) throw ConfigError("from_tensor_slices: there are no tensors");
  return std::make_shared<Tensors>(std::move(tensors), true, std::move(name));
}

}  // namespace penstock
