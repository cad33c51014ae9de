// A plan travels between processes: any text is a Plan or a ConfigError.
#include <penstock/plan.h>

#include <cstdlib>
#include <string>

#include "base/digest.h"
#include "base/json.h"

namespace {

/// The text with its check sum made right, so that what lies behind it is tried too.
std::string checked(const std::string& text) {
  auto fields = penstock::parse_json(text);
  if (!fields || !fields->is_object()) return text;
  fields->erase("check");
  try {
    penstock::Digest digest;
    digest.add(fields->dump());
    (*fields)["check"] = digest.text();
    return fields->dump();
  } catch (const penstock::Json::exception&) {
    return text;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  for (const std::string& each : {text, checked(text)}) {
    try {
      const penstock::Plan plan = penstock::Plan::parse(each);
      if (plan.explain().empty()) std::abort();
    } catch (const penstock::ConfigError&) {
    }
  }
  return 0;
}
