#include "replica/exchange.h"

#include <fmt/format.h>

#include <cstring>

namespace penstock {
namespace {

/// Numbers and byte strings in sequence; read back by a process of the same job.
class Writer {
 public:
  void number(std::uint64_t value) { bytes(&value, sizeof value); }
  void run(std::span<const std::byte> data) {
    number(data.size());
    bytes(data.data(), data.size());
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  void bytes(const void* data, std::size_t count) {
    if (count > 0) text_.append(static_cast<const char*>(data), count);
  }
  std::string text_;
};

class PartReader {
 public:
  PartReader(const std::string& text, std::size_t rank) : text_(text), rank_(rank) {}
  std::uint64_t number() {
    std::uint64_t value = 0;
    std::memcpy(&value, take(sizeof value), sizeof value);
    return value;
  }
  std::span<const std::byte> run() {
    const std::uint64_t count = number();
    return {reinterpret_cast<const std::byte*>(take(count)), count};
  }
  [[nodiscard]] bool at_end() const { return at_ == text_.size(); }

 private:
  const char* take(std::uint64_t count) {
    if (count > text_.size() - at_)
      throw ConfigError(fmt::format("the message of rank {} is truncated", rank_), {},
                        "run the same version of penstock on every rank");
    const char* const found = text_.data() + at_;
    at_ += count;
    return found;
  }
  const std::string& text_;
  std::size_t rank_;
  std::size_t at_ = 0;
};

void write(Writer& out, const detail::Part& part) {
  out.number(part.count);
  out.number(part.is_sum ? 1 : 0);
  out.number(part.value ? 1 : 0);
  if (part.value) {
    out.number(static_cast<std::uint64_t>(part.value->dtype()));
    out.run(std::as_bytes(std::span(part.value->shape())));
    out.run(part.value->raw());
  }
  out.number(part.share != nullptr ? 1 : 0);
  if (part.share == nullptr) return;
  out.number(part.share->rows);
  out.number(part.share->valid);
  out.run(std::as_bytes(std::span(part.share->mask)));
}

void read(PartReader& in, AllParts& all) {
  detail::Part part;
  part.count = in.number();
  part.is_sum = in.number() != 0;
  if (in.number() != 0) {
    const auto dtype = static_cast<Dtype>(in.number());
    const auto sizes = in.run();
    Shape shape(sizes.size() / sizeof(std::int64_t));
    if (!shape.empty()) std::memcpy(shape.data(), sizes.data(), shape.size() * sizeof shape[0]);
    part.value = Tensor::copy(dtype, std::move(shape), in.run());
  }
  if (in.number() != 0) {
    detail::ShareCount share{in.number(), in.number(), {}};
    for (const std::byte one : in.run()) share.mask.push_back(static_cast<std::uint8_t>(one));
    part.share = &all.shares.emplace_back(std::move(share));
  }
  all.parts.push_back(std::move(part));
}

}  // namespace

AllParts exchange_parts(Coordinator& coordinator, const std::string& word,
                        std::span<const detail::Part> parts) {
  Writer out;
  for (const detail::Part& part : parts) write(out, part);
  const auto texts = coordinator.gather(word, out.text());
  AllParts all;
  for (std::size_t rank = 0; rank < texts.size(); ++rank)
    for (PartReader in(texts[rank], rank); !in.at_end();) read(in, all);
  return all;
}

}  // namespace penstock
