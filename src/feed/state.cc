#include "penstock/state.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/digest.h"
#include "base/json.h"
#include "graph/tail.h"
#include "penstock/error.h"

namespace penstock {
namespace {

constexpr int kFormat = 1;
constexpr std::uint64_t kCountMax = 1ULL << 62;
constexpr std::size_t kTextMax = 512 * 1024;  // escaping lengthens cursors
constexpr std::size_t kOrderCharsMax = 360;   // keeps a state under 1 KB

std::string check_of(const Json& fields) {
  Digest digest;
  digest.add(fields.dump());
  return digest.text();
}

/// The first parts that fit, then the number of the others.
std::vector<std::string> shortened(const std::vector<std::string>& parts) {
  std::vector<std::string> kept;
  std::size_t chars = 0;
  for (const std::string& part : parts) {
    if (chars + part.size() > kOrderCharsMax) {
      kept.push_back(fmt::format("and {} more", parts.size() - kept.size()));
      break;
    }
    chars += part.size() + 3;
    kept.push_back(part);
  }
  return kept;
}

[[noreturn]] void garbled(const std::string& why) {
  throw StateError(fmt::format("this is not a complete penstock state: {}", why), {},
                   "restore from an older one");
}

template <typename T>
T field(const Json& fields, const char* name) {
  try {
    return fields.at(name).get<T>();
  } catch (const std::exception&) {
    garbled(fmt::format("\"{}\" is missing or of another type", name));
  }
}

std::uint64_t number(const Json& fields, const char* name) {
  if (!fields.contains(name) || !fields[name].is_number_unsigned())
    garbled(fmt::format("\"{}\" is missing or not a number", name));
  return whole_number<std::uint64_t>(fields[name]);
}

/// Numbers that are whole, not negative and within the engine's range.
std::vector<std::uint64_t> numbers_in(const Json& list, const char* name) {
  if (!list.is_array()) garbled(fmt::format("\"{}\" is not a list", name));
  std::vector<std::uint64_t> numbers;
  for (const Json& entry : list) {
    if (!entry.is_number_unsigned()) garbled(fmt::format("\"{}\" has a wrong number", name));
    numbers.push_back(entry.get<std::uint64_t>());
  }
  return numbers;
}

/// A number of epochs, steps or samples.
std::uint64_t count_in(const Json& fields, const char* name) {
  const std::uint64_t count = number(fields, name);
  if (count > kCountMax) garbled(fmt::format("\"{}\" is {}, which is impossible", name, count));
  return count;
}

std::vector<State::Size> sizes_in(const Json& fields) {
  std::vector<State::Size> sizes;
  for (const Json& list : field<Json>(fields, "sizes")) {
    const std::vector<std::uint64_t> entry = numbers_in(list, "sizes");
    if (entry.size() != 3 || entry[2] == 0 || std::ranges::max(entry) > kCountMax)
      garbled("\"sizes\" has a wrong entry");
    const State::Size size{entry[0], entry[1], entry[2]};
    if (!sizes.empty() && (size.step <= sizes.back().step || size.position < sizes.back().position))
      garbled("\"sizes\" are not ascending");
    sizes.push_back(size);
  }
  // States of short batches do not contain tails.
  if (!fields.contains("tails")) return sizes;
  const auto tails = field<std::vector<std::string>>(fields, "tails");
  if (tails.size() != sizes.size()) garbled("\"tails\" are not as many as \"sizes\"");
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const auto tail = tail_named(tails[i]);
    if (!tail) garbled(fmt::format("\"{}\" is not a tail policy", tails[i]));
    sizes[i].tail = *tail;
  }
  return sizes;
}

/// A cursor consists of arbitrary user bytes: written unchanged after a "t", or in hexadecimal
/// after an "x".
std::string cursor_text(const std::string& bytes) {
  const auto plain = [](char c) { return c >= ' ' && c <= '~'; };
  if (std::ranges::all_of(bytes, plain)) return "t" + bytes;
  std::string hex = "x";
  for (const char byte : bytes) hex += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return hex;
}

std::string cursor_bytes(const std::string& hex) {
  const auto value = [](char digit) {
    if (digit >= '0' && digit <= '9') return digit - '0';
    if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
    garbled("a cursor is not in hexadecimal");
  };
  if (hex.starts_with("t")) return hex.substr(1);
  if (hex.size() % 2 != 1 || hex[0] != 'x') garbled("a cursor is truncated");
  std::string bytes;
  for (std::size_t i = 1; i < hex.size(); i += 2)
    bytes += static_cast<char>(value(hex[i]) * 16 + value(hex[i + 1]));
  return bytes;
}

State::Stream stream_in(const Json& fields) {
  State::Stream stream;
  stream.numbers = numbers_in(field<Json>(fields, "numbers"), "numbers");
  for (const std::string& text : field<std::vector<std::string>>(fields, "texts"))
    stream.texts.push_back(cursor_bytes(text));
  stream.next = field<std::string>(fields, "next");
  stream.batch = number(fields, "batch");
  return stream;
}

}  // namespace

std::string State::to_json() const {
  Json fields{{"penstock", "state"},
              {"format", kFormat},
              {"epoch", epoch},
              {"step", step},
              {"position", position},
              {"unit", counts_samples ? "samples" : "steps"},
              {"order", digests.order},
              {"values", digests.values},
              {"parts", shortened(order)},
              {"sizes", Json::array()}};
  Json tails = Json::array();
  bool all_short = true;
  for (const Size& size : sizes) {
    fields["sizes"].push_back({size.step, size.position, size.batch});
    tails.push_back(tail_name(size.tail));
    all_short = all_short && size.tail == Tail::short_;
  }
  if (!all_short) fields["tails"] = tails;
  if (drawn_seed) fields["seed"] = *drawn_seed;
  if (stream) {
    Json texts = Json::array();
    for (const std::string& text : stream->texts) texts.push_back(cursor_text(text));
    fields["stream"] = {{"numbers", stream->numbers},
                        {"texts", texts},
                        {"next", stream->next},
                        {"batch", stream->batch}};
  }
  if (epochs) fields["epochs"] = {epochs->epoch, epochs->step};
  fields["check"] = check_of(fields);
  return fields.dump();
}

State State::parse(const std::string& text) {
  if (text.size() > kTextMax) garbled(fmt::format("{} bytes are too long", text.size()));
  const auto parsed = parse_json(text);
  if (!parsed || !parsed->is_object()) garbled("it is truncated, or not JSON");
  Json fields = *parsed;
  if (!fields.contains("penstock") || fields["penstock"] != "state")
    garbled("another kind of JSON");
  if (const std::uint64_t format = number(fields, "format"); format > kFormat)
    throw StateError(
        fmt::format("the state has format {}, this version knows up to {}", format, kFormat), {},
        "update penstock");
  const auto check = field<std::string>(fields, "check");
  fields.erase("check");
  if (check != check_of(fields)) garbled("its content does not match its checksum");
  State state;
  state.epoch = count_in(fields, "epoch");
  state.step = count_in(fields, "step");
  state.position = count_in(fields, "position");
  const auto unit = field<std::string>(fields, "unit");
  if (unit != "samples" && unit != "steps") garbled(fmt::format("\"{}\" is not a unit", unit));
  state.counts_samples = unit == "samples";
  state.digests = {field<std::string>(fields, "order"), field<std::string>(fields, "values")};
  state.order = field<std::vector<std::string>>(fields, "parts");
  state.sizes = sizes_in(fields);
  if (fields.contains("seed")) state.drawn_seed = number(fields, "seed");
  if (fields.contains("stream")) state.stream = stream_in(fields["stream"]);
  if (fields.contains("epochs")) {
    const auto epochs = numbers_in(fields["epochs"], "epochs");
    if (epochs.size() != 2 || std::ranges::max(epochs) > kCountMax)
      garbled("\"epochs\" is not a pair of possible numbers");
    state.epochs = {epochs[0], epochs[1]};
  }
  return state;
}

}  // namespace penstock
