#include "feed/own_shares.h"

#include "base/world.h"
#include "plan/plan_data.h"

namespace penstock {

Plan plan_for(const Dataset& dataset, const LoaderOptions& options) {
  if (options.shares)
    return Plan(dataset.resolve(options.while_waiting),
                {.shares = *options.shares, .tail = options.tail});
  const World world = find_world();
  Plan plan(dataset.resolve(options.while_waiting),
            {.shares = {world.data_size, world.data_rank, 1},
             .tail = options.tail,
             .world = world.text()});
  if (world.data_size > 1) refuse_drawn_seed(*plan.data(), world.data_size);
  return plan;
}

LoaderOptions without_plan(LoaderOptions options) {
  // A launcher's processes run loops that are not ours: none can leave out a collective.
  if (!options.empty) options.empty = options.shares ? Empty::deliver : Empty::refuse;
  options.shares.reset();
  options.tail.reset();
  return options;
}

}  // namespace penstock
