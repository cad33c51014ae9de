// Must not compile: a feed is distributed already. (tests/CMakeLists.txt looks for the words.)

#include <penstock/penstock.h>

void train(penstock::Strategy& strategy, const penstock::Feed& feed) {
  strategy.distribute(feed);
}
