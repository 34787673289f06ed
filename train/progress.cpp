// The progress line.
#include "train/progress.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cmath>

namespace weft::train {
namespace {

constexpr int kBarWidth = 26;
constexpr double kRedrawSeconds = 0.1;  // on a terminal
constexpr double kLogLineSeconds = 30;  // in a file

std::string bar(double done) {
  const auto full = static_cast<int>(std::lround(done * kBarWidth));
  std::string text;
  for (int i = 0; i < kBarWidth; ++i) text += i < full ? "━" : i == full ? "╸" : " ";
  return text;
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

Progress::Progress(std::FILE* out, int64_t epochs) : out_(out), terminal_(isatty(fileno(out)) == 1), epochs_(epochs) {}

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

double Progress::samples_per_second() const {
  const double seconds = std::chrono::duration<double>(last_step_ - started_).count();
  return seconds > 0 ? static_cast<double>(samples_) / seconds : 0;
}

double Progress::seconds_since(Clock::time_point start) const {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::string Progress::line(double loss, const std::string& tail) const {
  const double done = steps_ > 0 ? static_cast<double>(step_) / static_cast<double>(steps_) : 1;
  const std::string total = fmt::format("{}", steps_);
  return fmt::format("epoch {}/{}  {}{:>{}}/{}   {:>7} samples/s   loss {:.4f}   {}", epoch_, epochs_,
                     terminal_ ? bar(done) + "  " : std::string(), step_, total.size(), total,
                     with_commas(std::llround(samples_per_second())), loss, tail);
}

void Progress::show(const std::string& text, bool last) {
  if (terminal_)
    fmt::print(out_, "\r{}\x1b[K{}", text, last ? "\n" : "");
  else
    fmt::print(out_, "{}\n", text);
  std::fflush(out_);
  last_shown_ = Clock::now();
}

}  // namespace weft::train
