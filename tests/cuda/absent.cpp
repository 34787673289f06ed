// A library that the test of a missing library takes away.
extern "C" int weft_absent() { return 0; }
