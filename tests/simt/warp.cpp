// Operations of a warp: what each lane gets, and what a mask must hold.
#include <algorithm>
#include <string>

#include "tests/simt/machine.h"
#include "tests/simt/sanitizer.h"

namespace simt {

Thread& thread_at(unsigned warp, unsigned lane) { return machine.threads[warp * kWarp + lane]; }
unsigned lanes_of(unsigned warp) { return std::min(kWarp, machine.size - warp * kWarp); }

bool arrived(const Thread& t, const Thread& self) {
  return t.state == State::at_warp_op && t.op == self.op && t.mask == self.mask && same(t.where, self.where);
}

const char* text(WarpOp op) {
  constexpr const char* kNames[] = {"__syncwarp",       "__shfl_sync",     "__shfl_up_sync",
                                    "__shfl_down_sync", "__shfl_xor_sync", "__ballot_sync",
                                    "__all_sync",       "__any_sync",      "__match_any_sync"};
  return kNames[static_cast<int>(op)];
}

namespace {

/// The lane that `t` reads in a shuffle.
unsigned source_lane(const Thread& t) {
  const int lane = static_cast<int>(t.lane), inside = lane & (t.width - 1), begin = lane - inside;
  int source = inside;
  switch (t.op) {
    case WarpOp::shfl:
      source = t.argument & (t.width - 1);
      break;
    case WarpOp::shfl_up:
      source = inside - t.argument;
      break;
    case WarpOp::shfl_down:
      source = inside + t.argument;
      break;
    default:
      source = inside ^ t.argument;
      break;
  }
  return static_cast<unsigned>(source < 0 || source >= t.width ? lane : begin + source);
}

/// The lanes of self's mask that vote yes, or gave the same value.
unsigned agreeing_lanes(const Thread& self) {
  unsigned lanes = 0;
  for (unsigned l = 0; l < lanes_of(self.warp); ++l) {
    if (!(self.mask >> l & 1)) continue;
    const Value& other = thread_at(self.warp, l).given;
    const bool equal = other.words[0] == self.given.words[0] && other.words[1] == self.given.words[1];
    lanes |= static_cast<unsigned>(self.op == WarpOp::match ? equal : other.words[0] != 0) << l;
  }
  return lanes;
}

/// Gives every lane its result and lets it go on; self is the last to arrive.
void complete_warp_op(Thread& self) {
  for (unsigned l = 0; l < lanes_of(self.warp); ++l) {
    if (!(self.mask >> l & 1)) continue;
    Thread& t = thread_at(self.warp, l);
    if (self.op == WarpOp::sync) {
      acquire(order_of.lane[t.warp][l]);
    } else if (self.op >= WarpOp::ballot) {
      const unsigned lanes = agreeing_lanes(t);
      t.got = {{self.op == WarpOp::all ? lanes == t.mask : self.op == WarpOp::any ? lanes != 0 : lanes, 0}};
    } else {
      const unsigned source = source_lane(t);
      if (source >= lanes_of(t.warp) || !(t.mask >> source & 1)) {
        give_up(text(t) + " reads lane " + std::to_string(source) + " by " + text(t.op) + ", " + text(t.where) +
                ", but that lane is not in the mask: the value is undefined");
      }
      t.got = thread_at(t.warp, source).given;
    }
  }
  if (self.op == WarpOp::sync) release(order_of.warp[self.warp][self.warp_syncs % 2]);
  const unsigned syncs = self.warp_syncs + (self.op == WarpOp::sync);
  for (unsigned l = 0; l < lanes_of(self.warp); ++l) {
    if (!(self.mask >> l & 1)) continue;
    thread_at(self.warp, l).state = State::ready;
    thread_at(self.warp, l).warp_syncs = syncs;
  }
}

}  // namespace

Value warp_operation(WarpOp op, unsigned mask, const Value& value, int argument, int width, const Location& where) {
  Thread& self = *machine.running;
  ++statistics().warp_operations;
  const auto refuse = [&](const std::string& what) {
    give_up(text(self) + " calls " + text(op) + ", " + text(where) + ", " + what);
  };
  if (width < 1 || width > 32 || (width & (width - 1)) != 0) refuse("with a width of " + std::to_string(width));
  if (!(mask >> self.lane & 1)) refuse("but is lane " + std::to_string(self.lane) + ", which is not in the mask");
  for (unsigned l = 0; l < kWarp; ++l) {
    if (!(mask >> l & 1)) continue;
    const auto refuse_lane = [&](const char* why) {
      refuse("with lane " + std::to_string(l) + " in the mask, which " + why);
    };
    if (l >= lanes_of(self.warp)) refuse_lane("the block does not have");
    if (thread_at(self.warp, l).state == State::done) refuse_lane("has returned");
  }
  self.op = op;
  self.mask = mask;
  self.given = value;
  self.argument = argument;
  self.width = width;
  self.where = where;
  self.state = State::at_warp_op;
  const bool orders = op == WarpOp::sync;  // a shuffle or a vote is no fence
  if (orders) release(order_of.lane[self.warp][self.lane]);
  bool last = true;
  for (unsigned l = 0; l < lanes_of(self.warp); ++l) {
    if (mask >> l & 1 && !arrived(thread_at(self.warp, l), self)) last = false;
  }
  if (last) {
    complete_warp_op(self);
  } else {
    leave(false);
    if (orders) acquire(order_of.warp[self.warp][(self.warp_syncs + 1) % 2]);  // the last one counted on
  }
  return self.got;
}

unsigned active_lanes() {
  unsigned lanes = 0;
  const unsigned warp = machine.running->warp;
  for (unsigned l = 0; l < lanes_of(warp); ++l)
    lanes |= static_cast<unsigned>(thread_at(warp, l).state != State::done) << l;
  return lanes;
}

}  // namespace simt
