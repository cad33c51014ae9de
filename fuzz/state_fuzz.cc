// A state is text from a file that anybody may have written: any text is a State or a StateError.
#include <penstock/state.h>

#include <cstdlib>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    const penstock::State state = penstock::State::parse(text);
    // What is accepted says the same when written and read again.
    if (penstock::State::parse(state.to_json()) != state) std::abort();
  } catch (const penstock::StateError&) {
  }
  return 0;
}
