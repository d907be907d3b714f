// A board's top in CXXRTL with the other end of its serial line, for boards/simulate.py.
#include "top.h"

#include <cstdint>
#include <cstring>
#include <deque>

namespace {

template <size_t N> bool bit(const cxxrtl::value<N> &v) { return v.data[0] & 1; }
template <size_t N> bool bit(const cxxrtl::wire<N> &w) { return w.curr.data[0] & 1; }

struct Board {
    cxxrtl_design::p_top top;
    uint32_t divisor;
    uint64_t cycles = 0;
    // What goes to the board: bits still to send of the byte under way, lowest first.
    uint32_t frame = 0, frame_bits = 0, frame_left = 0;
    // What comes from it: bits still to come, cycles to the middle of the next.
    uint32_t byte = 0, byte_bits = 0, byte_left = 0;
};

}  // namespace

extern "C" {

void *board_open(uint32_t divisor) {
    auto *board = new Board;
    board->divisor = divisor;
    board->top.p_rx.set<bool>(true);
    board->top.p_rst.set<bool>(false);
    board->top.p_reset.set<bool>(false);
    return board;
}

void board_close(void *handle) { delete static_cast<Board *>(handle); }

// Send n bytes and run until all are sent and the board is idle, for max_cycles at most or until
// `capacity` bytes have come. Returns the number of bytes that came; *taken says how many were sent,
// *idle whether nothing is left to do.
uint32_t board_run(void *handle, uint64_t max_cycles, const uint8_t *in, uint32_t n, uint32_t *taken,
                   uint8_t *out, uint32_t capacity, uint32_t *idle, uint64_t *cycles) {
    auto &b = *static_cast<Board *>(handle);
    uint32_t sent = 0, came = 0;
    *idle = 0;
    for (uint64_t cycle = 0; cycle < max_cycles && came < capacity; cycle++) {
        if (b.frame_left) b.frame_left--;
        if (!b.frame_left) {
            if (!b.frame_bits && sent < n) {
                b.frame = uint32_t(in[sent++]) << 1 | 1u << 9;
                b.frame_bits = 10;
            }
            if (b.frame_bits) {
                b.top.p_rx.set<bool>(b.frame & 1);
                b.frame >>= 1;
                b.frame_bits--;
                b.frame_left = b.divisor;
            }
        }
        b.top.p_clk.set<bool>(false);
        b.top.step();
        bool tx = bit(b.top.p_tx);
        if (!b.byte_bits) {
            if (!tx) {
                b.byte_bits = 9;
                b.byte_left = b.divisor + b.divisor / 2;
            }
        } else if (!--b.byte_left) {
            b.byte_left = b.divisor;
            if (--b.byte_bits) {
                b.byte = b.byte >> 1 | uint32_t(tx) << 7;
            } else {
                out[came++] = uint8_t(b.byte);
            }
        }
        bool done = bit(b.top.p_idle) && sent == n && !b.frame_bits && !b.frame_left && !b.byte_bits;
        b.top.p_clk.set<bool>(true);
        b.top.eval();  // once: everything before the registers has settled
        b.top.commit();
        b.cycles++;
        if (done) {
            *idle = 1;
            break;
        }
    }
    *taken = sent;
    *cycles = b.cycles;
    return came;
}

}
