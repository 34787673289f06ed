// Initialisers: each fills a tensor in place, outside of the graph, from the default generator of this thread, in any
// floating dtype. For weights of layers, [out, in, kernel…]: fan in = in · kernel, fan out = out · kernel.
#pragma once

#include "tensor/tensor.h"

namespace weft::nn::init {

enum class Fan { in, out };
/// What follows the layer, for its gain.
enum class Nonlinearity { linear, sigmoid, tanh, relu, leaky_relu, selu };

/// The factor that keeps the variance of a signal through the nonlinearity: 1 for linear and sigmoid, 5/3 for tanh, √2
/// for relu, √(2 / (1 + slope²)) for leaky_relu, 3/4 for selu.
double gain(Nonlinearity nonlinearity, double slope = 0.01);

struct Fans {
  int64_t in, out;
};
/// Throws for a tensor of fewer than two dimensions.
Fans fans(const Tensor& weight);

void constant(Tensor x, double value);
void zeros(Tensor x);
void ones(Tensor x);
/// Uniform in [low, high).
void uniform(Tensor x, double low = 0, double high = 1);
void normal(Tensor x, double mean = 0, double deviation = 1);
/// A normal distribution without its tails outside of [low, high]; `deviation` is that of the whole distribution. By
/// the inverse of the distribution function.
void truncated_normal(Tensor x, double mean = 0, double deviation = 1, double low = -2, double high = 2);

/// Uniform in ±gain · √(6 / (fan in + fan out)): Glorot and Bengio, "Understanding the difficulty of training deep
/// feedforward neural networks", AISTATS 2010, equation 16.
void xavier_uniform(Tensor weight, double gain = 1);
/// Normal with the same variance, gain² · 2 / (fan in + fan out).
void xavier_normal(Tensor weight, double gain = 1);

struct KaimingOptions {
  Fan fan = Fan::in;
  Nonlinearity nonlinearity = Nonlinearity::relu;
  double slope = 0.01;  ///< of leaky_relu below 0
};
/// Uniform in ±gain · √(3 / fan): He, Zhang, Ren and Sun, "Delving deep into rectifiers", ICCV 2015, equations 10
/// and 14.
void kaiming_uniform(Tensor weight, KaimingOptions options = {});
/// Normal with the same variance, gain² / fan.
void kaiming_normal(Tensor weight, KaimingOptions options = {});

/// gain times a random matrix with orthonormal rows or columns, whichever are fewer (dimensions after the first count
/// as one); uniform over all such matrices. Saxe, McClelland and Ganguli, "Exact solutions to the nonlinear dynamics of
/// learning in deep linear neural networks", ICLR 2014.
void orthogonal(Tensor weight, double gain = 1);

/// The default of Linear and Conv layers: weight and bias, where there is one, uniform in ±1 / √(fan in): LeCun,
/// Bottou, Orr and Müller, "Efficient backprop", 1998, section 4.6, up to a constant.
void fan_in_uniform(Tensor weight, Tensor bias = {});

}  // namespace weft::nn::init
