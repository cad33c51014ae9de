#include "record/null_fill.h"

#include <fmt/format.h>

#include "base/digest.h"
#include "base/printable.h"
#include "base/utf8.h"
#include "penstock/error.h"
#include "sample/packed_field.h"

namespace penstock {

void NullFill::identify(Digest& digest) const {
  digest.add(filled ? 1 : 0);
  digest.add({reinterpret_cast<const char*>(number.data()), number.size()});
  digest.add(text);
}

NullFill null_fill(std::string_view word, const FieldSpec& field, const NullValue& value) {
  const auto refuse = [&](const char* remedy) {
    throw ConfigError(fmt::format("{}: missing values of \"{}\" ({}) cannot become this value",
                                  word, printable(field.path), field.text()),
                      {}, remedy);
  };
  NullFill fill;
  fill.filled = true;
  if (is_variable(field.dtype)) {
    if (!std::holds_alternative<std::string>(value)) refuse("name a text");
    fill.text = std::get<std::string>(value);
    return fill;
  }
  const bool list = !field.shape.empty() && field.shape.front() == kUnknown;
  if (list && std::holds_alternative<std::monostate>(value)) return fill;
  if (!std::holds_alternative<double>(value))
    refuse(list ? "name a number, or the empty list" : "name a number");
  auto bytes = value_bytes(std::get<double>(value), field.dtype);
  if (bytes) {
    fill.number = std::move(*bytes);
  } else {
    refuse("name a number of the field's type, or give the field another type");
  }
  return fill;
}

std::string excerpt(std::string_view text) {
  constexpr std::size_t kBytesMax = 48;
  if (text.size() <= kBytesMax) return fmt::format("\"{}\"", printable(text));
  std::string_view start = text.substr(0, kBytesMax);
  // Not through a character.
  if (const std::size_t good = utf8_prefix(start); good + 4 > kBytesMax)
    start = start.substr(0, good);
  return fmt::format("\"{}...\" ({} bytes)", printable(start), text.size());
}

}  // namespace penstock
