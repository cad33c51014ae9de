#pragma once
// A text read as a format of records, without files.

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "record/record_kind.h"
#include "record/scan_for_tests.h"
#include "sample/rows.h"

namespace penstock {

inline FirstRecords first_records(const RecordKind& kind, const Scanned& scanned,
                                  const std::string& file = "first.txt") {
  FirstRecords first{file, scanned.preface, scanned.records, true};
  if (first.records.size() > kind.infer_records) {
    first.records.resize(kind.infer_records);
    first.whole_file = false;
  }
  return first;
}

/// All records of a text that is also the first file.
class TextRecords {
 public:
  TextRecords(const RecordKind& kind, std::string_view text)
      : scanned_(scan_all(*kind.scanner(), text, text.size() + 1)),
        decoder_(kind.decoder(first_records(kind, scanned_))) {}

  [[nodiscard]] const RecordDecoder& decoder() const { return *decoder_; }
  [[nodiscard]] std::string spec() const { return decoder_->spec().text(); }
  [[nodiscard]] std::size_t size() const { return scanned_.records.size(); }
  [[nodiscard]] Result<Sample> decode(std::size_t number) const {
    Scratch scratch;
    const ScratchBlock block(decoder_->spec(), 2, scratch);
    // Exactly as many bytes, so that a sanitizer notices one too many.
    const std::string& record = scanned_.records.at(number);
    const auto owner = std::make_shared<std::vector<char>>(record.begin(), record.end());
    auto done = decoder_->decode({{owner->data(), owner->size()}, owner}, block.view(), 1, scratch);
    if (!done) return std::move(done.failure());
    const Sample sample = read_row(block.view(), 1);
    std::vector<Tensor> leaves;
    for (const Tensor& leaf : sample.leaves()) leaves.push_back(leaf.kept());
    return Sample::assemble(sample.structure(), std::move(leaves));
  }
  /// Throws SampleError.
  [[nodiscard]] Sample operator[](std::size_t number) const {
    auto sample = decode(number);
    if (!sample) sample.failure().raise();
    return std::move(*sample);
  }
  /// The message of a record that must fail, and its remedy.
  [[nodiscard]] std::string failure(std::size_t number) const {
    auto sample = decode(number);
    return sample ? "no failure" : sample.failure().message + "; " + sample.failure().remedy;
  }
  template <typename T>
  [[nodiscard]] std::vector<T> column(std::string_view path) const {
    std::vector<T> values;
    for (std::size_t i = 0; i < size(); ++i) values.push_back((*this)[i][path].template item<T>());
    return values;
  }
  [[nodiscard]] std::vector<std::string> texts(std::string_view path) const {
    std::vector<std::string> values;
    for (std::size_t i = 0; i < size(); ++i) values.emplace_back((*this)[i][path].text());
    return values;
  }

 private:
  Scanned scanned_;
  std::shared_ptr<const RecordDecoder> decoder_;
};

}  // namespace penstock
