// Files from the network, whole and checked: into NAME.part, resumed where it was cut, checked, then renamed.
#pragma once

#include <string>

#include "tensor/error.h"

namespace weft::data {

struct DownloadOptions {
  std::string sha256 = {};   ///< 64 hexadecimal digits; empty: not checked
  bool progress = true;      ///< one line on standard error; a terminal sees it move
  int attempts = 3;          ///< connections, each going on where the one before was cut
  long silent_seconds = 20;  ///< how long a server may take to answer, or pause
};

/// Fetches `url` (http, https or file) to `path`, making its folder; nothing to do where a good file is already there.
/// Several processes may ask for the same file: one loads it, the others wait. Throws where the server cannot be
/// reached (what came so far stays in `path`.part for the next try) and where the checksum is wrong (nothing is kept).
void download(const std::string& url, const std::string& path, const DownloadOptions& options = {});

/// Thrown where no folder was given and none of the usual places has the data.
class NoData : public Error {
 public:
  using Error::Error;
};

/// $WEFT_CACHE, else $XDG_CACHE_HOME/weft, else ~/.cache/weft; not necessarily there yet.
std::string cache_folder();

}  // namespace weft::data
