// Must not compile: a feed is already distributed. (tests/CMakeLists.txt checks the message.)

#include <penstock/penstock.h>

void train(penstock::Strategy& strategy, const penstock::Feed& feed) {
  strategy.distribute(feed);
}
