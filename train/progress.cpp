// The progress line.
#include "train/progress.h"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string_view>

namespace weft::train {
namespace {

constexpr int kBarWidth = 26;
constexpr double kRedrawSeconds = 0.1;  // on a terminal
constexpr double kLogLineSeconds = 30;  // in a file

std::string bar(double done, int width) {
  const auto full = static_cast<int>(std::lround(done * width));
  std::string text;
  for (int i = 0; i < width; ++i) text += i < full ? "━" : i == full ? "╸" : " ";
  return text;
}

bool redraws(std::FILE* out) {
  const char* kind = std::getenv("TERM");
  return isatty(fileno(out)) == 1 && (!kind || std::string_view(kind) != "dumb");
}

int columns(std::FILE* out) {
  winsize size{};
  return ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

std::string with_commas(int64_t n) {
  std::string digits = fmt::format("{}", n < 0 ? -n : n);
  for (auto at = static_cast<int64_t>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<size_t>(at), 1, ',');
  return n < 0 ? fmt::format("-{}", digits) : digits;
}

std::string clock_time(double seconds) {
  const auto s = static_cast<int64_t>(std::llround(std::fmax(seconds, 0)));
  if (s >= 3600) return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
  return fmt::format("{}:{:02}", s / 60, s % 60);
}

Progress::Progress(std::FILE* out, int64_t epochs) : out_(out), terminal_(redraws(out)), epochs_(epochs) {}

Progress::~Progress() {
  if (open_) fmt::print(out_, "\n");
}

void Progress::begin_epoch(int64_t epoch, int64_t steps) {
  epoch_ = epoch;
  steps_ = steps;
  step_ = samples_ = 0;
  started_ = last_shown_ = last_step_ = Clock::now();
}

void Progress::step(int64_t step, int64_t samples, double loss) {
  step_ = step;
  samples_ += samples;
  last_step_ = Clock::now();
  const double quiet = seconds_since(last_shown_);
  if (quiet < (terminal_ ? kRedrawSeconds : kLogLineSeconds) || step == steps_) return;
  const double left = seconds_since(started_) / static_cast<double>(step) * static_cast<double>(steps_ - step);
  show(line(loss, fmt::format("{}, {} left", clock_time(seconds_since(started_)), clock_time(left))), false);
}

void Progress::end_epoch(double loss, const std::string& test) {
  show(line(loss, fmt::format("{}   {}", test, clock_time(seconds_since(started_)))), true);
}

double Progress::seconds(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

std::string Progress::line(double loss, const std::string& tail) const {
  const std::string total = fmt::format("{}", steps_);
  const auto rate = static_cast<double>(samples_) / std::fmax(training_seconds(), 1e-9);
  const std::string epoch = fmt::format("epoch {}/{}  ", epoch_, epochs_);
  std::string facts = fmt::format("{:>{}}/{}   {:>7} samples/s   loss {:.4f}   {}", step_, total.size(), total,
                                  with_commas(std::llround(rate)), loss, tail);
  if (!terminal_) return epoch + facts;
  const int room = columns(out_) - 1 - static_cast<int>(epoch.size());  // a full line would wrap
  const int width = std::min(kBarWidth, room - static_cast<int>(facts.size()) - 2);
  const double done = static_cast<double>(step_) / static_cast<double>(std::max<int64_t>(steps_, 1));
  if (width > 2) return epoch + bar(done, width) + "  " + facts;
  facts.resize(std::min(facts.size(), static_cast<size_t>(std::max(room, 0))));
  return epoch + facts;
}

void Progress::show(const std::string& text, bool last) {
  if (terminal_)
    fmt::print(out_, "\r{}\x1b[K{}", text, last ? "\n" : "");
  else
    fmt::print(out_, "{}\n", text);
  open_ = terminal_ && !last;
  std::fflush(out_);
  last_shown_ = Clock::now();
}

}  // namespace weft::train
