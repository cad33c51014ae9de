#include "sample/spec_of_samples.h"

#include <fmt/format.h>

#include "base/printable.h"
#include "penstock/error.h"

namespace penstock {

ElementSpec spec_of_samples(std::span<const Sample> samples) {
  ElementSpec spec = ElementSpec::of(samples.front());
  for (const Sample& sample : samples.subspan(1)) {
    const ElementSpec other = ElementSpec::of(sample);
    if (other.structure != spec.structure)
      throw ConfigError(
          fmt::format("samples have different fields: {} and {}", spec.text(), other.text()));
    for (std::size_t i = 0; i < spec.fields.size(); ++i) {
      FieldSpec& field = spec.fields[i];
      const FieldSpec& found = other.fields[i];
      if (found.dtype != field.dtype || found.shape.size() != field.shape.size())
        throw ConfigError(fmt::format("field \"{}\" is {} in one sample and {} in another",
                                      printable(field.path), field.text(), found.text()));
      for (std::size_t at = 0; at < field.shape.size(); ++at)
        if (found.shape[at] != field.shape[at]) field.shape[at] = kUnknown;
    }
  }
  return spec;
}

}  // namespace penstock
