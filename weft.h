// All of Weft's public interface: what programs include.
#pragma once

#include "autograd/autograd.h"
#include "autograd/ops/conv.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/matmul.h"
#include "autograd/ops/reduce.h"
#include "autograd/record.h"
#include "autograd/work.h"
#include "nn/activation.h"
#include "nn/conv.h"
#include "nn/init.h"
#include "nn/linear.h"
#include "nn/module.h"
#include "nn/sequential.h"
#include "tensor/random.h"
#include "tensor/tensor.h"
#include "tensor/threads.h"
