// tested in src/verb/serialize_test.cc
#include "source/source.h"

#include "base/json.h"

namespace penstock {

Json Source::arguments() const {
  return Json::object();
}

}  // namespace penstock
