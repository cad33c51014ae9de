#pragma once
// All of penstock.

#include <penstock/batch.h>
#include <penstock/block.h>
#include <penstock/dataset.h>
#include <penstock/epoch_iterator.h>
#include <penstock/error.h>
#include <penstock/function.h>
#include <penstock/image.h>
#include <penstock/loader.h>
#include <penstock/plan.h>
#include <penstock/rng.h>
#include <penstock/sample.h>
#include <penstock/sequence.h>
#include <penstock/spec.h>
#include <penstock/state.h>
#include <penstock/strategy.h>
#include <penstock/tail.h>
#include <penstock/tensor.h>
