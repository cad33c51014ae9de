// Every named op, one line each.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>
#include <map>

#include "base/json.h"
#include "op/op.h"
#include "penstock/error.h"

namespace penstock {
namespace {

using Make = std::function<std::shared_ptr<const Op>(const Json&)>;

const std::map<std::string, Make>& catalogue() {
  static const std::map<std::string, Make> ops{
      {"audio_decode", make_audio_decode},
      {"cast", make_cast},
      {"cutmix", make_cutmix},
      {"encode_image", make_encode_image},
      {"image", make_image_chain},
      {"mixup", make_mixup},
      {"one_hot", make_one_hot},
      {"read_file", make_read_file},
      {"truncate", make_truncate},
  };
  return ops;
}

}  // namespace

std::vector<std::string> catalogue_words() {
  std::vector<std::string> words;
  for (const auto& [word, make] : catalogue()) words.push_back(word);
  return words;
}

std::shared_ptr<const Op> make_catalogued_op(const std::string& word, const Json& arguments) {
  const auto found = catalogue().find(word);
  if (found == catalogue().end())
    throw ConfigError(
        fmt::format("no op \"{}\"; there are: {}", word, fmt::join(catalogue_words(), ", ")));
  return found->second(arguments);
}

}  // namespace penstock
