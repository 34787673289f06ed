// Stands in for cuDNN on the emulated device: there is never a plan, so the fallback runs.
#include "tensor/cuda/cudnn.h"

namespace weft::cudnn {

bool convolution(const ConvKey&, const Addresses&, const Workspace&, CUstream_st*) { return false; }
PlanStatistics plan_statistics() { return {}; }
std::string device_description() { fail("cudnn", "is not part of the emulated device"); }

}  // namespace weft::cudnn
