#!/usr/bin/env bash
# Installs the release build into a folder of its own, builds the outside project tests/consumer against it, and runs it.
set -euo pipefail
cd "$(dirname "$0")/.."

./weft build release
prefix=$PWD/build/installed
rm -rf "$prefix" build/consumer
cmake --install build/release --prefix "$prefix" >/dev/null
cmake -S tests/consumer -B build/consumer -G Ninja -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_BUILD_TYPE=Release >/dev/null
ninja -C build/consumer
build/consumer/consumer
