// tested in src/record/jsonl_test.cc
#include "record/json_parse.h"

#include <fmt/format.h>

#include <vector>

#include "base/json.h"
#include "base/utf8.h"

namespace penstock {
namespace {

/// Follows a parser through the objects whose fields are read.
class Watch {
 public:
  explicit Watch(const JsonNode* root) : next_(root) {}

  void event(int depth, Json::parse_event_t event, const Json& parsed) {
    switch (event) {
      case Json::parse_event_t::object_start:
      case Json::parse_event_t::array_start: {
        if (depth >= kJsonDepthMax) too_deep = true;
        const bool read =
            event == Json::parse_event_t::object_start && next_ != nullptr && next_->object();
        levels_.push_back({read ? next_ : nullptr, {}});
        if (read) levels_.back().seen.resize(next_->children.size());
        next_ = nullptr;
        break;
      }
      case Json::parse_event_t::object_end:
      case Json::parse_event_t::array_end:
        levels_.pop_back();
        next_ = nullptr;
        break;
      case Json::parse_event_t::key:
        key(parsed.get_ref<const std::string&>());
        break;
      case Json::parse_event_t::value:
        next_ = nullptr;
        break;
    }
  }
  bool too_deep = false;
  const JsonNode* twice = nullptr;

 private:
  struct Level {
    const JsonNode* object;  // null if nothing of it is read
    std::vector<bool> seen;
  };
  void key(const std::string& name) {
    Level& level = levels_.back();
    next_ = nullptr;
    if (level.object == nullptr) return;
    std::size_t hint = 0;
    const std::size_t child = level.object->find(name, hint);
    if (child == level.object->children.size()) return;
    next_ = &level.object->children[child];
    if (level.seen[child]) twice = next_;
    level.seen[child] = true;
  }

  const JsonNode* next_;  // what the next value is, if it is read
  std::vector<Level> levels_;
};

Failure not_json(std::string why) {
  return {std::move(why), {}, "each line is one JSON object; repair the file, or skip errors"};
}

}  // namespace

const char* json_type_word(const Json& value) {
  switch (value.type()) {
    case Json::value_t::object:
      return "an object";
    case Json::value_t::array:
      return "a list";
    case Json::value_t::string:
      return "text";
    case Json::value_t::boolean:
      return "a boolean";
    case Json::value_t::null:
      return "null";
    default:
      return "a number";
  }
}

Result<Json> parse_json_record(std::string_view record, const JsonNode* root) {
  if (const std::size_t good = utf8_prefix(record); good < record.size())
    return not_json(fmt::format("the record is not UTF-8 from its byte {} on", good));
  Watch watch(root);
  const auto callback = [&watch](int depth, Json::parse_event_t event, Json& parsed) {
    watch.event(depth, event, parsed);
    if (watch.too_deep) throw std::length_error("too deep");
    return true;
  };
  try {
    Json json = Json::parse(record.begin(), record.end(), callback);
    if (watch.twice != nullptr)
      return not_json(fmt::format("the key {} comes twice", excerpt(watch.twice->spec.path)));
    if (json.is_object()) return json;
    Failure failure =
        not_json(fmt::format("the record is {} rather than an object", json_type_word(json)));
    if (json.is_array())
      failure.remedy =
          "each line must be a JSON object; a file that holds one list is not a JSON lines file";
    return failure;
  } catch (const std::length_error&) {
    return not_json(fmt::format("the record nests deeper than {}", kJsonDepthMax));
  } catch (const Json::parse_error& error) {
    if (error.byte > record.size())
      return not_json(fmt::format("the record ends within its JSON, after byte {}", record.size()));
    // The library counts from 1, and names the last byte that it read.
    return not_json(fmt::format("the record is not JSON at its byte {}: {}", error.byte - 1,
                                excerpt(record.substr(error.byte - 1))));
  } catch (const Json::out_of_range&) {
    return not_json("a number in the record is too large for f64");
  }
}

}  // namespace penstock
