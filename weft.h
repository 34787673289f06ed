// All of Weft's public interface: what programs include.
#pragma once

#include "autograd/autograd.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/reduce.h"
#include "autograd/record.h"
#include "tensor/random.h"
#include "tensor/tensor.h"
#include "tensor/threads.h"
