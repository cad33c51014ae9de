// tested in src/record/example_test.cc
#include "record/example_wire.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <type_traits>
#include <utility>

#include "sample/with_type.h"

namespace penstock {
namespace {

using Type = WireField::Type;

static_assert(std::endian::native == std::endian::little);

template <typename T>
void store(T value, std::size_t index, std::byte* to) {
  std::memcpy(to + index * sizeof value, &value, sizeof value);
}

/// Calls `chunk(bytes)` for packed values and `one(field)` for single ones, of wire type `single`,
/// until one of them returns false.
template <typename Chunk, typename One>
bool visit_values(std::string_view body, Type single, Chunk chunk, One one) {
  WireReader reader(body);
  WireField field;
  while (reader.next(field)) {
    if (field.number != 1) continue;
    const bool going = field.type == Type::bytes ? chunk(field.bytes)
                       : field.type == single    ? one(field)
                                                 : false;
    if (!going) return false;
  }
  return reader.ok();
}

template <typename T>
class FloatCopy {
 public:
  FloatCopy(std::size_t count, std::byte* to) : count_(count), to_(to) {}

  CopyOutcome run(std::string_view body) {
    const bool good = visit_values(
        body, Type::fixed32, [&](std::string_view bytes) { return copy(bytes); },
        [&](const WireField& field) { return copy(field.bytes); });
    if (!good) return {outcome_};
    return {done_ == count_ ? Copied::all : Copied::other_count};
  }

 private:
  bool copy(std::string_view bytes) {
    const std::size_t values = bytes.size() / sizeof(float);
    if (values * sizeof(float) != bytes.size()) return false;
    if (values > count_ - done_) {
      outcome_ = Copied::other_count;
      return false;
    }
    if constexpr (std::is_same_v<T, float>) {
      if (values > 0) std::memcpy(to_ + done_ * sizeof(float), bytes.data(), bytes.size());
    } else {
      for (std::size_t i = 0; i < values; ++i) {
        float value = 0;
        std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
        store(T(value), done_ + i, to_);
      }
    }
    done_ += values;
    return true;
  }

  const std::size_t count_;
  std::byte* const to_;
  std::size_t done_ = 0;
  Copied outcome_ = Copied::malformed;  // if the list cannot be followed
};

template <typename T>
class IntCopy {
  using Held = std::conditional_t<std::is_same_v<T, bool>, std::int64_t, T>;

 public:
  IntCopy(std::size_t count, std::byte* to) : count_(count), to_(to) {}

  CopyOutcome run(std::string_view body) {
    const bool good = visit_values(
        body, Type::varint, [&](std::string_view bytes) { return copy(bytes); },
        [&](const WireField& field) { return put(field.value); });
    if (!good) return outcome_;
    return {done_ == count_ ? Copied::all : Copied::other_count};
  }

 private:
  bool copy(std::string_view bytes) {
    const char* at = bytes.data();
    const char* const end = at + bytes.size();
    std::size_t done = done_;  // in a register
    std::uint64_t bits = 0;
    while (at < end && done < count_) {
      if (!read_varint(at, end, bits)) return false;
      if (!fits(bits)) return refuse(bits);
      store(static_cast<T>(bits), done++, to_);
    }
    done_ = done;
    return at == end || refuse_more();
  }

  bool put(std::uint64_t bits) {
    if (done_ == count_) return refuse_more();
    if (!fits(bits)) return refuse(bits);
    store(static_cast<T>(bits), done_++, to_);
    return true;
  }
  static bool fits(std::uint64_t bits) {
    if constexpr (std::is_same_v<T, bool>) return bits <= 1;
    return std::in_range<Held>(static_cast<std::int64_t>(bits));
  }
  bool refuse(std::uint64_t bits) {
    outcome_ = {Copied::misfit, static_cast<std::int64_t>(bits)};
    return false;
  }
  bool refuse_more() {
    outcome_ = {Copied::other_count};
    return false;
  }

  const std::size_t count_;
  std::byte* const to_;
  std::size_t done_ = 0;
  CopyOutcome outcome_{Copied::malformed};  // if the list cannot be followed
};

/// The number of bytes without the upper bit: those that end a varint.
std::size_t count_ends(std::string_view bytes) {
  constexpr std::uint64_t kOnes = 0x0101010101010101ULL;
  std::size_t count = 0;
  for (; bytes.size() >= sizeof(std::uint64_t); bytes.remove_prefix(sizeof(std::uint64_t))) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), sizeof word);
    count += ((~word >> 7 & kOnes) * kOnes) >> 56;
  }
  for (const char byte : bytes) count += static_cast<signed char>(byte) >= 0 ? 1U : 0U;
  return count;
}

bool is_float(Dtype dtype) {
  return dtype == Dtype::f16 || dtype == Dtype::bf16 || dtype == Dtype::f32 || dtype == Dtype::f64;
}

}  // namespace

std::string_view plural(ListKind kind) {
  switch (kind) {
    case ListKind::bytes:
      return "texts";
    case ListKind::floats:
      return "floats";
    case ListKind::ints:
      return "integers";
    case ListKind::none:
      break;
  }
  return "values";
}

std::string counted(std::size_t count, ListKind kind) {
  std::string_view word = plural(kind);
  if (count == 1) word.remove_suffix(1);
  return fmt::format("{} {}", count, word);
}

std::optional<ValueList> read_feature(std::string_view feature) {
  WireReader reader(feature);
  WireField field;
  ValueList list;
  while (reader.next(field)) {
    if (field.number > 3) continue;
    if (field.type != Type::bytes || list.kind != ListKind::none) return std::nullopt;
    list = {static_cast<ListKind>(field.number), field.bytes};
  }
  if (!reader.ok()) return std::nullopt;
  return list;
}

std::optional<std::size_t> count_values(const ValueList& list) {
  std::size_t count = 0;
  bool good = true;
  switch (list.kind) {
    case ListKind::none:
      break;
    case ListKind::bytes: {
      const auto texts = read_texts(list);
      good = texts.has_value();
      if (good) count = texts->count;
      break;
    }
    case ListKind::floats:
      good = visit_values(
          list.body, Type::fixed32,
          [&](std::string_view bytes) {
            count += bytes.size() / sizeof(float);
            return bytes.size() % sizeof(float) == 0;
          },
          [&](const WireField&) { return ++count > 0; });
      break;
    case ListKind::ints:
      good = visit_values(
          list.body, Type::varint,
          [&](std::string_view bytes) {
            count += count_ends(bytes);
            return bytes.empty() || static_cast<signed char>(bytes.back()) >= 0;
          },
          [&](const WireField&) { return ++count > 0; });
      break;
  }
  if (!good) return std::nullopt;
  return count;
}

std::optional<Texts> read_texts(const ValueList& list) {
  WireReader reader(list.body);
  WireField field;
  Texts texts;
  while (reader.next(field)) {
    if (field.number != 1) continue;
    if (field.type != Type::bytes) return std::nullopt;
    if (texts.count++ == 0) texts.first = field.bytes;
  }
  if (!reader.ok()) return std::nullopt;
  return texts;
}

bool holds(ListKind kind, Dtype dtype) {
  return kind == (is_float(dtype) ? ListKind::floats : ListKind::ints);
}

CopyOutcome copy_values(const ValueList& list, Dtype dtype, std::size_t count, std::byte* to) {
  return with_type(dtype, [&](auto example) -> CopyOutcome {
    using T = decltype(example);
    if constexpr (std::is_same_v<T, NoType>) {
      return {Copied::malformed};
    } else if constexpr (std::is_integral_v<T>) {
      return IntCopy<T>(count, to).run(list.body);
    } else {
      return FloatCopy<T>(count, to).run(list.body);
    }
  });
}

}  // namespace penstock
