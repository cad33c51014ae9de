#pragma once
// The whole trainer.

#include <penstock/penstock.h>
#include <penstock/train/callback.h>
#include <penstock/train/checkpoint.h>
#include <penstock/train/layers.h>
#include <penstock/train/loss.h>
#include <penstock/train/metric.h>
#include <penstock/train/mirrored.h>
#include <penstock/train/model.h>
#include <penstock/train/models.h>
#include <penstock/train/network.h>
#include <penstock/train/optimizer.h>
#include <penstock/train/process_group.h>
#include <penstock/train/tensors.h>
