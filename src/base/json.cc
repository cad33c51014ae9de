#include "base/json.h"

namespace penstock {

std::optional<Json> parse_json(std::string_view text) {
  constexpr int kDepthMax = 64;
  const auto shallow = [](int depth, Json::parse_event_t event, Json&) {
    const bool opens =
        event == Json::parse_event_t::object_start || event == Json::parse_event_t::array_start;
    if (opens && depth >= kDepthMax) throw std::length_error("too deep");
    return true;
  };
  try {
    return Json::parse(text.begin(), text.end(), shallow);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

}  // namespace penstock
