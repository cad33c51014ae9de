// Must not compile, and the message must name distribute: a batch that was not distributed would be
// computed once per replica. (tests/CMakeLists.txt checks the message.)

#include <penstock/penstock.h>

void train(penstock::Strategy& strategy, const penstock::Batch& batch) {
  strategy.run([](penstock::Replica&, const penstock::Batch&) {}, batch);
}
