// A program as a user runs it: a command of the shell, its exit code and what it prints.
#pragma once

#include <sys/wait.h>

#include <cstdlib>
#include <string>

#include "tests/data/files.h"

namespace weft::testing_apps {

struct Ended {
  int code;
  std::string out, err;
};

/// Runs `script` in `folder`; its own text and what it prints lie in `logs` meanwhile.
inline Ended run_script(const std::string& script, const testing_files::Folder& folder,
                        const testing_files::Folder& logs) {
  testing_files::write(logs / "script", "cd " + folder.path() + "; unset WEFT_DATA\n" + script);
  const int status =
      std::system(("bash " + (logs / "script") + " >" + (logs / "out") + " 2>" + (logs / "err")).c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, testing_files::read(logs / "out"),
          testing_files::read(logs / "err")};
}

}  // namespace weft::testing_apps
