// A state is text from a file that anybody may have written: any text is a State or a StateError,
// and a State that fits a dataset leads somewhere in it, or is refused.
#include <penstock/penstock.h>

#include <cstdlib>
#include <string>

#include "base/digest.h"
#include "base/json.h"

namespace penstock {
namespace {

/// The text with its check sum made right, so that what lies behind it is tried too.
std::string checked(const std::string& text) {
  auto fields = parse_json(text);
  if (!fields || !fields->is_object()) return text;
  fields->erase("check");
  try {
    Digest digest;
    digest.add(fields->dump());
    (*fields)["check"] = digest.text();
    return fields->dump();
  } catch (const Json::exception&) {
    return text;
  }
}

/// Restores it as a state of this loader's own dataset, and takes a step.
void restore(Loader& loader, State state) {
  state.digests = loader.plan().digests();
  state.drawn_seed.reset();
  try {
    loader.restore(state);
    if (loader.state().epoch < state.epoch) std::abort();
    if (auto batch = loader.next(); batch && batch->rows() == 0) std::abort();
  } catch (const InternalError&) {
    std::abort();
  } catch (const Error&) {
  }
}

void try_text(const std::string& text) {
  static const LoaderOptions inline_only{.threads = 0};
  static Loader elastic(Dataset::range(100).shuffle({.seed = 7}).batch(8).repeat(3), inline_only);
  static Loader counted(Dataset::range(100).batch(8).take(9), inline_only);
  static Loader stream(Dataset::range(60)
                           .filter([](std::int64_t x) { return x % 3 != 0; })
                           .interleave([](std::int64_t x) { return Dataset::range(x % 4); })
                           .batch(8)
                           .repeat(2),
                       inline_only);
  for (const std::string& each : {text, checked(text)}) {
    try {
      const State state = State::parse(each);
      // What is accepted says the same when written and read again.
      if (State::parse(state.to_json()) != state) std::abort();
      for (Loader* const loader : {&elastic, &counted, &stream}) restore(*loader, state);
    } catch (const StateError&) {
    }
  }
}

}  // namespace
}  // namespace penstock

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  penstock::try_text({reinterpret_cast<const char*>(data), size});
  return 0;
}
