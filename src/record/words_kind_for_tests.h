#pragma once
// For tests: records that end with a semicolon. "!" is damage. A record "bad" cannot be decoded.
// What is before a "|" is the preface.

#include <memory>
#include <string>
#include <vector>

#include "record/record_kind.h"

namespace penstock {

class WordScanner final : public RecordScanner {
 public:
  std::uint64_t scan(std::uint64_t offset, std::string_view piece,
                     std::vector<std::uint64_t>& starts) override {
    for (std::size_t i = 0; i < piece.size(); ++i) {
      if (in_preface_) {
        in_preface_ = piece[i] != '|';
        continue;
      }
      if (at_start_) starts.push_back(offset + i);
      at_start_ = piece[i] == ';';
      if (piece[i] != '!') continue;
      damage_ = "an exclamation mark";
      return kRest;
    }
    return 0;
  }
  ScanEnd finish(std::uint64_t file_bytes, std::vector<std::uint64_t>&) override {
    return {file_bytes, damage_};
  }

 private:
  bool in_preface_ = true;
  bool at_start_ = true;
  std::string damage_;
};

/// The record without its semicolon.
class WordDecoder final : public RecordDecoder {
 public:
  explicit WordDecoder(std::string preface = "") : preface_(std::move(preface)) {}
  [[nodiscard]] const ElementSpec& spec() const override { return spec_; }
  [[nodiscard]] bool lends() const override { return true; }
  Result<void> decode(const RecordBytes& record, const BlockView& out, std::size_t row,
                      Scratch&) const override {
    std::string_view word = record.bytes;
    if (word.find('!') != std::string_view::npos) return Failure{"an exclamation mark"};
    if (word.ends_with(';')) word.remove_suffix(1);
    if (word == "bad") return Failure{"a bad word"};
    out.columns[0].tensors[row] =
        Tensor::view(Dtype::bytes, {}, std::as_bytes(std::span(word)), record.owner);
    return {};
  }
  [[nodiscard]] Result<void> accept(std::string_view preface) const override {
    if (preface == preface_) return {};
    return Failure{"the preface is \"" + std::string(preface) + "\", not \"" + preface_ + "\""};
  }
  void identify(Digest& digest) const override { digest.add(preface_); }

 private:
  const std::string preface_;
  const ElementSpec spec_ = ElementSpec::single(Dtype::bytes);
};

inline RecordKind words_kind() {
  return {
      "from_words",
      "words",
      [] { return std::make_unique<WordScanner>(); },
      true,
      4,
      [](const FirstRecords& first) { return std::make_shared<const WordDecoder>(first.preface); }};
}

}  // namespace penstock
