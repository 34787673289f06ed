// The MNIST program as a whole, on a small set of made-up digits: what it refuses, writes, prints and repeats.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <nlohmann/json.hpp>
#include <random>

#include "tensor/backend.h"
#include "tests/apps/shell.h"

namespace weft {
namespace {

using namespace testing_files;
using testing_apps::Ended;

/// Each class is a bright square in a place of its own, over noise.
void write_digits(const std::string& folder) {
  fs::create_directories(folder);
  std::mt19937 random(5);
  for (const auto& [part, count] : {std::pair("/train", 300u), std::pair("/t10k", 100u)}) {
    std::string pixels, labels;
    for (unsigned i = 0; i < count; ++i) {
      const unsigned label = i * 7 % 10, row = label / 4 * 9, column = label % 4 * 7;
      labels += static_cast<char>(label);
      for (unsigned p = 0; p < 28 * 28; ++p) {
        const bool bright = p / 28 - row < 7 && p % 28 - column < 7;
        pixels += static_cast<char>(random() % 100 + (bright ? 150 : 0));
      }
    }
    write(folder + part + "-images-idx3-ubyte", idx({count, 28, 28}, pixels));
    write(folder + part + "-labels-idx1-ubyte", idx({count}, labels));
  }
}

class MnistApp : public testing::Test {
 protected:
  MnistApp() { write_digits(at("digits")); }

  std::string at(const std::string& name) const { return folder_ / name; }
  std::string digits() const { return " --data " + at("digits"); }

  /// A command of the shell, with `mnist` for the program and the test's folder as the working one.
  Ended shell(const std::string& command) const {
    return testing_apps::run_script("mnist() { " MNIST_PROGRAM " \"$@\"; }\n" + command, folder_, logs_);
  }
  Ended mnist(const std::string& options) const { return shell("mnist " + options); }
  /// A quick training run.
  Ended train(const std::string& options) const {
    return mnist("--model mlp --epochs 2 --batch 32" + digits() + options);
  }

  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(folder_.path())) names.push_back(entry.path().string());
    std::ranges::sort(names);
    return names;
  }

  /// Exit code 2, nothing on standard output, `part` in the message, and no file more or fewer than before.
  void refuses(const std::string& options, const std::string& part, bool one_line = true) const {
    const auto before = files();
    const Ended run = mnist(options);
    EXPECT_EQ(run.code, 2) << options << ": " << run.err;
    EXPECT_EQ(run.out, "") << options;
    EXPECT_NE(run.err.find(part), std::string::npos) << options << ": " << run.err;
    EXPECT_TRUE(!one_line || std::ranges::count(run.err, '\n') == 1) << options << ": " << run.err;
    EXPECT_EQ(files(), before) << options;
  }

  const Folder folder_, logs_;
};

TEST_F(MnistApp, RefusesWrongOptions) {
  const std::string whole = "--epochs: wants a whole number from 0 to 100000, got ";
  for (const char* value : {"x", "-1", "100001", "1.5", "0x10", "1e3", "''", "99999999999999999999"})
    refuses(std::string("--epochs ") + value + digits(), whole);
  for (const char* value : {"0", "-4", "60001", "many"})
    refuses(std::string("--batch ") + value + digits(), "--batch: wants a whole number from 1 to 60000");
  for (const char* value : {"0", "-1", "4097", "all"})
    refuses(std::string("--threads ") + value + digits(), "--threads: wants a whole number from 1 to 4096");
  for (const char* value : {"-1", "65"})
    refuses(std::string("--workers ") + value + digits(), "--workers: wants a whole number from 0 to 64");
  for (const char* value : {"-1", "18446744073709551616", "x"})
    refuses(std::string("--seed ") + value + digits(), "--seed: wants a whole number from 0 to 18446744073709551615");
  for (const char* value : {"nan", "inf", "-inf", "-0.1", "0", "1e999", "1,5", "x"})
    refuses(std::string("--lr ") + value + digits(), "--lr: wants a number above 0, got '" + std::string(value));
  for (const char* value : {"bf8", "f16", "BF16", "off", "''"})
    refuses(std::string("--amp ") + value + digits(), "--amp: wants bf16 or fp16, got '");
  refuses("--amp" + digits(), "--amp");
  refuses("--speed 3" + digits(), "--speed");
  refuses("digits" + digits(), "digits");
  refuses("--model resnet" + digits(), "no model is called 'resnet'; there are mnist, lenet5, alexnet, mlp");
  refuses("--optimizer lion" + digits(), "no optimizer is called 'lion'; there are adamw, adam, sgd");
  refuses("--device gpu" + digits(), "no device is called 'gpu'");
  refuses("--device cuda:60" + digits(), "[--device] " + why_unavailable({DeviceType::cuda, 60}));
  refuses("--eval-only" + digits(), "--eval-only requires --load");
  for (const char* option : {"--data", "--load", "--save", "--result"}) {
    refuses(std::string(option), option);
    refuses(std::string(option) + " ''", std::string(option) + ": wants a path, got ''");
    refuses(std::string(option) + " --epochs 1", std::string(option) + ": wants a path, got '--epochs'");
  }
}

TEST_F(MnistApp, RefusesWrongData) {
  refuses("--data nowhere", "neither nowhere nor nowhere/mnist has the four files");
  const auto damaged = [&](const std::string& name, const std::string& bytes, const std::string& part) {
    write_digits(at("damaged"));
    fs::remove(at("damaged/train-images-idx3-ubyte"));
    write(at("damaged/" + name), bytes);
    refuses("--data damaged", part);
    fs::remove_all(at("damaged"));
  };
  const std::string images = read(at("digits/train-images-idx3-ubyte"));
  const std::string labels = read(at("digits/train-labels-idx1-ubyte")), packed = gzip(images);
  const std::string plain = "train-images-idx3-ubyte", gz = plain + ".gz";
  damaged(gz, packed.substr(0, packed.size() / 2), "the gzip stream is cut off");
  damaged(gz, images, "is not gzip, though its name ends in .gz");
  damaged(plain, packed, "is gzip, not IDX");
  damaged(plain, labels, "is a file of labels [300], expected images");
  damaged(plain, images.substr(0, 5000), "the header claims");
  damaged(plain, idx({2, 28, 28}, std::string(2 * 784, 'x')), "2 images in");
  damaged(plain, "", "is too short for an IDX header");
  fs::create_directory(at("small"));
  write_mnist(at("small"));
  refuses("--data small", "has images of 2 × 2, the model wants 28 × 28");
}

TEST_F(MnistApp, RefusesWrongWeights) {
  write(at("text"), "no weights at all");
  ASSERT_EQ(mnist("--model mlp --epochs 0 --save mlp.safetensors" + digits()).code, 0);
  write(at("cut"), read(at("mlp.safetensors")).substr(0, 100000));
  refuses("--load nowhere" + digits(), "nowhere: cannot be opened");
  refuses("--load digits" + digits(), "digits: is not a file");
  refuses("--load text" + digits(), "claims a header");
  refuses("--model mlp --load cut" + digits(), "the file has");
  const std::string options = "--model lenet5 --eval-only --load mlp.safetensors" + digits();
  for (const char* part :
       {"conv1.weight is missing", "conv2.bias is missing", "fc1.weight is [120, 400] here, [256, 784]"})
    refuses(options, part, false);
}

TEST_F(MnistApp, RefusesOutputsThatCannotBeWritten) {
  write(at("good"), "old");
  fs::create_symlink("good", at("link"));
  for (const std::string option : {"--save", "--result"}) {
    refuses(option + " nowhere/file" + digits(), "[" + option + "] the folder ");
    refuses(option + " digits" + digits(), "[" + option + "] digits is a folder, not a file");
    refuses(option + " /dev/null" + digits(), "/dev/null: is not a file");
    refuses(option + " /proc/file" + digits(), "/proc/file: cannot be created");
  }
  refuses("--save good --result good" + digits(), "--save and --result name the same file");
  refuses("--save good --result ./link" + digits(), "--save and --result name the same file");
  refuses("--save good --data nowhere", "nowhere");
  EXPECT_EQ(read(at("good")), "old");
}

TEST_F(MnistApp, NoDataHasAnExitCodeOfItsOwn) {
  const Ended run = shell("export WEFT_CACHE=$PWD/cache https_proxy=http://127.0.0.1:9; mnist --model mlp --epochs 0");
  if (run.code == 0) {  // Debian's package is installed
    EXPECT_TRUE(run.out.starts_with("fashion-mnist   ")) << run.out;
    EXPECT_NE(run.err.find("this is Fashion-MNIST"), std::string::npos) << run.err;
  } else {
    EXPECT_EQ(run.code, 3);
    EXPECT_NE(run.err.find("apt-get install dataset-fashion-mnist"), std::string::npos) << run.err;
  }
}

TEST_F(MnistApp, TheFirstLineNamesTheData) {
  EXPECT_TRUE(mnist("--model mlp --epochs 0" + digits()).out.starts_with("mnist   300 train, 100 test images"));
  fs::rename(at("digits"), at("fashion-mnist"));
  EXPECT_TRUE(mnist("--model mlp --epochs 0 --data fashion-mnist").out.starts_with("fashion-mnist   300 train"));
}

TEST_F(MnistApp, TrainsSavesLoadsAndTests) {
  const Ended run = mnist("--epochs 3 --batch 32 --model lenet5 --seed 7 --save w --result r" + digits());
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(run.err, "");
  const auto result = nlohmann::json::parse(read(at("r")));
  std::vector<std::string> keys;
  for (const auto& [key, value] : result.items()) {
    keys.push_back(key);
    EXPECT_TRUE(value.is_number()) << key;
  }
  EXPECT_EQ(keys, (std::vector<std::string>{"epochs", "peak_memory_bytes", "samples_per_second", "seconds", "seed",
                                            "steps", "test_accuracy", "test_loss", "train_loss"}));
  EXPECT_EQ(result["epochs"], 3);
  EXPECT_EQ(result["steps"], 30);
  EXPECT_EQ(result["seed"], 7);
  EXPECT_GT(result["test_accuracy"], 90);
  EXPECT_GT(result["samples_per_second"], 0);

  ASSERT_EQ(mnist("--eval-only --model lenet5 --load w --result e" + digits()).code, 0);
  const auto again = nlohmann::json::parse(read(at("e")));
  EXPECT_EQ(again["test_accuracy"], result["test_accuracy"]);
  EXPECT_EQ(again["test_loss"], result["test_loss"]);
  EXPECT_EQ(again["steps"], 0);
  EXPECT_EQ(again["epochs"], 0);
  EXPECT_TRUE(again["train_loss"].is_null());
  EXPECT_TRUE(again["samples_per_second"].is_null());
}

TEST_F(MnistApp, MixedPrecisionLearnsAsWell) {
  struct Learned {
    Ended run;
    double accuracy, loss;
  };
  const auto learn = [&](const std::string& amp) {
    const Ended run = mnist("--epochs 2 --batch 16 --model lenet5 --threads 1 --save w --result r" + amp + digits());
    EXPECT_EQ(run.code, 0) << run.err;
    const auto result = nlohmann::json::parse(read(at("r")));
    return Learned{run, result["test_accuracy"], result["test_loss"]};
  };
  const Learned single = learn("");
  EXPECT_GT(single.accuracy, 90);
  EXPECT_EQ(single.run.out.find(" amp "), std::string::npos);
  for (const std::string amp : {"bf16", "fp16"}) {
    SCOPED_TRACE(amp);
    const Learned mixed = learn(" --amp " + amp);
    EXPECT_GE(mixed.accuracy, single.accuracy - 5);
    EXPECT_NEAR(mixed.loss, single.loss, 0.1);
    EXPECT_NE(mixed.loss, single.loss) << "it ran in single precision";
    EXPECT_NE(mixed.run.out.find("   amp " + amp + "   batch 16"), std::string::npos) << mixed.run.out;
    const Ended again = mnist("--eval-only --model lenet5 --threads 1 --load w --result e --amp " + amp + digits());
    ASSERT_EQ(again.code, 0) << again.err;
    EXPECT_EQ(nlohmann::json::parse(read(at("e")))["test_loss"], mixed.loss) << "tested in another precision";
    EXPECT_EQ(again.out.find("skipped"), std::string::npos) << again.out;
  }
}

TEST_F(MnistApp, SkippedStepsArePrinted) {
  const Ended run = mnist("--epochs 1 --batch 1 --model mlp --threads 1 --amp fp16" + digits());
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_NE(run.out.find(" of 300 steps skipped\n"), std::string::npos) << run.out;
}

TEST_F(MnistApp, EveryOptimizerLearns) {
  for (const std::string name : {"adamw", "adam", "sgd", "rmsprop", "adagrad", "adadelta"}) {
    ASSERT_EQ(train(" --result r --optimizer " + name).code, 0) << name;
    EXPECT_LT(nlohmann::json::parse(read(at("r")))["test_loss"], 2.2) << name;  // ln 10 = 2.303 knows nothing
  }
}

TEST_F(MnistApp, EqualSeedsGiveEqualBits) {
  const auto weights = [&](const std::string& options) {
    const Ended run = mnist("--model lenet5 --epochs 2 --threads 2 --save w --result r" + digits() + options);
    EXPECT_EQ(run.code, 0) << run.err;
    const auto result = nlohmann::json::parse(read(at("r")));
    return read(at("w")) + result["train_loss"].dump() + result["test_loss"].dump();
  };
  const std::string first = weights(" --seed 3");
  EXPECT_TRUE(first == weights(" --seed 3")) << "two runs differ";
  EXPECT_TRUE(first == weights(" --seed 3 --workers 0")) << "no workers differ from one";
  EXPECT_TRUE(first == weights(" --seed 3 --workers 3")) << "three workers differ from one";
  EXPECT_FALSE(first == weights(" --seed 4")) << "another seed has the same weights";
}

TEST_F(MnistApp, ADivergingRunWritesNothing) {
  write(at("w"), "old");
  const Ended run = train(" --optimizer sgd --lr 1e30 --save w --result r");
  EXPECT_EQ(run.code, 2);
  EXPECT_NE(run.err.find("try a lower --lr"), std::string::npos) << run.err;
  EXPECT_EQ(read(at("w")), "old");
  EXPECT_FALSE(fs::exists(at("r")));
}

TEST_F(MnistApp, AFullDiskLeavesTheOldFile) {
  write(at("w"), "old");
  const auto before = files();
  const Ended run = shell("trap '' XFSZ; ulimit -f 100; mnist --model mlp --epochs 0 --save w" + digits());
  EXPECT_EQ(run.code, 2);
  EXPECT_NE(run.err.find("w: cannot be written"), std::string::npos) << run.err;
  EXPECT_EQ(read(at("w")), "old");
  EXPECT_EQ(files(), before);
}

TEST_F(MnistApp, AKilledRunLeavesTheOldFile) {
  write(at("w"), "old");
  const Ended run = shell(MNIST_PROGRAM " --epochs 100000 --save w" + digits() + "& sleep 0.5; kill -TERM $!; wait $!");
  EXPECT_EQ(run.code, 128 + SIGTERM) << run.err;
  EXPECT_EQ(read(at("w")), "old");
}

TEST_F(MnistApp, KilledAtAnyMomentTheFileIsOldOrNew) {
  ASSERT_EQ(mnist("--model mlp --epochs 0 --save new" + digits()).code, 0);
  const Ended run = shell(
      "echo old >old; cp old w\n"
      "for i in {1..40}; do\n"
      "  " MNIST_PROGRAM " --model mlp --epochs 0 --save w" +
      digits() +
      " >/dev/null & \n"
      "  sleep 0.0$((10 + i)); kill -KILL $!; wait $!\n"
      "  cmp -s w old || cmp -s w new || { echo torn; exit 1; }\n"
      "  if cmp -s w new; then echo new; cp old w; else echo old; fi\n"
      "done 2>/dev/null");
  EXPECT_EQ(run.code, 0) << run.out;
  EXPECT_NE(run.out.find("old"), std::string::npos);
}

TEST_F(MnistApp, AFileGetsPlainLines) {
  const Ended run = train("");
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(run.out.find_first_of("\r\x1b"), std::string::npos) << run.out;
  EXPECT_EQ(std::ranges::count(run.out, '\n'), 4) << run.out;
  EXPECT_NE(run.out.find("\nepoch 2/2  10/10 "), std::string::npos) << run.out;
}

TEST_F(MnistApp, ATerminalSeesOneLineAnEpoch) {
  if (std::system("command -v script >/dev/null")) GTEST_SKIP() << "skipped: there is no program `script`";
  const auto on_terminal = [&](const std::string& columns, const std::string& options) {
    const std::string command =
        "stty cols " + columns + "; " MNIST_PROGRAM " --model mlp --epochs 2" + digits() + options;
    return shell("TERM=xterm script -qec '" + command + "' /dev/null </dev/null");
  };
  const Ended wide = on_terminal("120", "");
  EXPECT_EQ(wide.code, 0) << wide.out;
  EXPECT_NE(wide.out.find("\repoch 2/2  ━━━━━━━━━━━━━━━━━━━━━━━━━━  5/5 "), std::string::npos) << wide.out;
  EXPECT_EQ(std::ranges::count(wide.out, '\n'), 4) << wide.out;
  const Ended narrow = on_terminal("40", "");
  const size_t line = narrow.out.find("\repoch 2/2  ");
  ASSERT_NE(line, std::string::npos) << narrow.out;
  EXPECT_LT(narrow.out.find('\x1b', line) - line, 41u) << narrow.out;
  const Ended diverging = on_terminal("120", " --optimizer sgd --lr 1e30");
  EXPECT_EQ(diverging.code, 2);
  EXPECT_NE(diverging.out.find("\nmnist: "), std::string::npos) << diverging.out;
}

TEST_F(MnistApp, HelpListsEveryModelAndOptimizer) {
  const Ended run = mnist("--help");
  EXPECT_EQ(run.code, 0);
  for (const char* part :
       {"lenet5: ", "alexnet: ", "adagrad 0.01", "[3]", "./weft mnist --epochs 1", "--amp DTYPE", "Exit codes"})
    EXPECT_NE(run.out.find(part), std::string::npos) << part << " is not in\n" << run.out;
}

}  // namespace
}  // namespace weft
