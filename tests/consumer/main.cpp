#include <weft.h>
int main() { weft::Tensor x = weft::randn({2,3}); return x.numel() == 6 ? 0 : 1; }
