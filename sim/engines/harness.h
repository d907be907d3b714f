// One run of a program on a compiled core: the host, the L2 memory and every check.
//
// This is sim/driver.py and sim/l2_model.py again, step by step and draw by draw, so that a run
// takes the same cycles on every engine; tests compare them. `glue.h` is made by glue.py from the
// Python tables: sizes, ports, Traffic, Timing and the enumerations.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "glue.h"

namespace mxu {

// -- random numbers (sim/rng.py) -----------------------------------------------------------------

class Rng {
public:
    Rng(uint64_t seed, uint64_t stream) : state(seed + (stream + 1) * 0xD1342543DE82EF95u) {
        state = next();
    }

    uint64_t next() {
        uint64_t z = state += 0x9E3779B97F4A7C15u;
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
        return z ^ (z >> 31);
    }

    uint64_t below(uint64_t count) { return ((next() >> 32) * count) >> 32; }

    bool chance(int64_t units) { return units != 0 && int64_t(next() >> 48) < units; }

private:
    uint64_t state;
};

class Stall {
public:
    Stall(uint64_t seed, uint64_t stream, int64_t units, int64_t length)
        : rng(seed, stream), units(units), length(length) {}

    bool draw() {
        if (left) {
            left--;
            return true;
        }
        if (!rng.chance(units))
            return false;
        if (length > 1)
            left = int64_t(rng.below(uint64_t(length)));
        return true;
    }

private:
    Rng rng;
    int64_t units, length, left = 0;
};

// -- errors (sim/protocol.py) --------------------------------------------------------------------

struct Violation {
    int64_t rule, channel, cycle;
    uint64_t numbers[3];
};

[[noreturn]] inline void broken(Rule rule, Channel channel, int64_t cycle, uint64_t a = 0,
                                uint64_t b = 0, uint64_t c = 0) {
    throw Violation{int64_t(rule), int64_t(channel), cycle, {a, b, c}};
}

// Watches one channel for what must hold while it waits.
template <typename Payload> class Held {
public:
    explicit Held(Channel channel) : channel(channel) {}

    void step(int64_t cycle, bool valid, bool ready, const Payload &payload) {
        if (waiting) {
            if (!valid)
                broken(Rule::VALID_DROPPED, channel, cycle);
            if (std::memcmp(&payload, &last, sizeof(Payload)) != 0)
                broken(Rule::PAYLOAD_CHANGED, channel, cycle);
        }
        waiting = valid && !ready;
        last = payload;
    }

private:
    Channel channel;
    bool waiting = false;
    Payload last{};
};

// -- memory (sim/memory.py) ----------------------------------------------------------------------

struct Region {
    uint64_t base, size;
    uint8_t *data, *perms;
};

struct Beat {
    uint8_t bytes[BUS_BYTES];
};

class Memory {
public:
    Memory(const Region *regions, int64_t count) : regions(regions, regions + count) {}

    // All permission bits of a beat's bytes, and the bytes.
    uint8_t read(uint64_t addr, Beat &beat) const {
        uint8_t perms = 0;
        const Region *region = find(addr);
        if (region && addr - region->base + BUS_BYTES <= region->size) {
            uint64_t at = addr - region->base;
            std::memcpy(beat.bytes, region->data + at, BUS_BYTES);
            for (unsigned i = 0; i < BUS_BYTES; i++)
                perms |= region->perms[at + i];
            return perms;
        }
        for (unsigned i = 0; i < BUS_BYTES; i++) {
            uint64_t at = (addr + i) & ADDR_MASK;
            beat.bytes[i] = FILL;
            if ((region = find(at))) {
                beat.bytes[i] = region->data[at - region->base];
                perms |= region->perms[at - region->base];
            }
        }
        return perms;
    }

    // True, and where, when a byte that the strobes name may not be written.
    bool forbidden(uint64_t addr, uint64_t strobe, uint64_t &where) const {
        for (unsigned i = 0; i < BUS_BYTES; i++)
            if (strobe >> i & 1) {
                where = (addr + i) & ADDR_MASK;
                const Region *region = find(where);
                if (!region || !(region->perms[where - region->base] & PERM_WRITE))
                    return true;
            }
        return false;
    }

    bool write(uint64_t addr, const Beat &beat, uint64_t strobe) const {
        bool failed = false;
        for (unsigned i = 0; i < BUS_BYTES; i++)
            if (strobe >> i & 1) {
                uint64_t at = (addr + i) & ADDR_MASK;
                const Region *region = find(at);
                if (region->perms[at - region->base] & PERM_WRITE_ERROR)
                    failed = true;
                else
                    region->data[at - region->base] = beat.bytes[i];
            }
        return failed;
    }

private:
    std::vector<Region> regions; // ascending
    mutable size_t recent = 0;

    const Region *find(uint64_t addr) const {
        if (recent < regions.size() && addr - regions[recent].base < regions[recent].size)
            return &regions[recent];
        size_t low = 0, high = regions.size();
        while (low < high) {
            size_t middle = (low + high) / 2;
            if (addr < regions[middle].base)
                high = middle;
            else
                low = middle + 1;
        }
        if (low == 0 || addr - regions[low - 1].base >= regions[low - 1].size)
            return nullptr;
        recent = low - 1;
        return &regions[recent];
    }
};

// -- L2 channels (sim/l2_model.py) ---------------------------------------------------------------

struct Burst {
    uint64_t addr;
    unsigned beats, id;
    bool fullline;
    int64_t due;
    unsigned done = 0;
    bool failed = false;
};

// What the read and the write side share: address rules and ids.
class Ids {
public:
    explicit Ids(Channel channel) : channel(channel) { std::fill(since, since + N_SLOTS, -1); }

    void check(int64_t cycle, uint64_t addr, unsigned beats, uint64_t id) const {
        if (addr % BUS_BYTES)
            broken(Rule::UNALIGNED, channel, cycle, addr, BUS_BYTES);
        if (addr % LINE_BYTES + beats * BUS_BYTES > LINE_BYTES)
            broken(Rule::LINE_CROSSED, channel, cycle, addr, beats, LINE_BYTES);
        if (id >= L2_IDS)
            broken(Rule::ID_UNKNOWN, channel, cycle, id, L2_IDS);
        if (since[id] >= 0)
            broken(Rule::ID_IN_USE, channel, cycle, id, uint64_t(since[id]));
    }

    void take(int64_t cycle, unsigned id) {
        since[id] = cycle;
        count++;
    }

    void free(unsigned id) {
        since[id] = -1;
        count--;
    }

    // Ids in flight, oldest first, up to the space given.
    void list(uint64_t *ids, int64_t &n) const {
        std::vector<std::pair<int64_t, unsigned>> found;
        for (unsigned id = 0; id < N_SLOTS; id++)
            if (since[id] >= 0)
                found.push_back({since[id], id});
        std::sort(found.begin(), found.end());
        n = int64_t(found.size());
        for (size_t i = 0; i < found.size(); i++)
            ids[i] = found[i].second;
    }

    int64_t in_flight() const { return count; }

private:
    static constexpr unsigned N_SLOTS = 1u << ID_BITS;
    Channel channel;
    int64_t since[N_SLOTS];
    int64_t count = 0;
};

class ReadSide {
public:
    ReadSide(const Memory &memory, const Timing &timing, uint64_t seed, Traffic &traffic)
        : ids(Channel::READ_REQUEST), memory(memory), timing(timing), traffic(traffic),
          held(Channel::READ_REQUEST),
          stall(seed, Draw::READ_REQUEST_STALL, timing.read_request_stall, timing.stall_length),
          gap(seed, Draw::READ_RESPONSE_GAP, timing.read_response_gap, timing.stall_length),
          latency_rng(seed, Draw::READ_LATENCY), pick_rng(seed, Draw::READ_PICK),
          error_rng(seed, Draw::READ_ERROR) {}

    void start(Inputs &in) {
        in.pad_dsa_req_rready = !stall.draw();
        nothing(in);
    }

    void step(int64_t cycle, Inputs &in, const Outputs &out) {
        request(cycle, in, out);
        response(cycle, in, out);
        in.pad_dsa_req_rready = !stall.draw();
    }

    Ids ids;

private:
    struct Payload {
        uint64_t addr, len, id;
    };

    const Memory &memory;
    const Timing &timing;
    Traffic &traffic;
    Held<Payload> held;
    Stall stall, gap;
    Rng latency_rng, pick_rng, error_rng;
    std::vector<Burst> bursts; // oldest first
    bool shown = false;
    unsigned shown_id = 0;
    int previous = -1; // the burst of the last beat, if it is not over

    static void nothing(Inputs &in) {
        in.pad_dsa_resp_rvalid = 0;
        in.pad_dsa_resp_rid = (uint64_t(1) << ID_BITS) - 1;
        std::memset(in.pad_dsa_resp_rdata, 0xFF, sizeof in.pad_dsa_resp_rdata);
        in.pad_dsa_resp_rlast = 1;
        in.pad_dsa_resp_rerr = 1;
    }

    void request(int64_t cycle, const Inputs &in, const Outputs &out) {
        bool valid = out.dsa_pad_req_rvalid, ready = in.pad_dsa_req_rready;
        uint64_t addr = out.dsa_pad_req_raddr, id = out.dsa_pad_req_rid;
        held.step(cycle, valid, ready, {addr, out.dsa_pad_req_rlen, id});
        if (!valid)
            return;
        unsigned beats = unsigned(out.dsa_pad_req_rlen) + 1;
        ids.check(cycle, addr, beats, id);
        for (unsigned i = 0; i < beats; i++) {
            Beat beat;
            uint64_t at = (addr + i * BUS_BYTES) & ADDR_MASK;
            if (!(memory.read(at, beat) & PERM_READ))
                broken(Rule::READ_FORBIDDEN, Channel::READ_REQUEST, cycle, at);
        }
        if (!ready) {
            traffic.read_request_stalls++;
            return;
        }
        int64_t due = cycle + timing.latency;
        if (timing.jitter)
            due += int64_t(latency_rng.below(uint64_t(timing.jitter) + 1));
        bursts.push_back(Burst{addr, beats, unsigned(id), false, due});
        ids.take(cycle, unsigned(id));
        if (traffic.first_read_request < 0)
            traffic.first_read_request = cycle;
        traffic.read_requests++;
        traffic.max_reads_in_flight = std::max(traffic.max_reads_in_flight, ids.in_flight());
    }

    void response(int64_t cycle, Inputs &in, const Outputs &out) {
        if (shown) {
            if (!out.dsa_pad_resp_rready) {
                traffic.read_response_stalls++;
                return;
            }
            if (traffic.first_read_beat < 0)
                traffic.first_read_beat = cycle;
            traffic.last_read_beat = cycle;
            traffic.read_beats++;
            traffic.read_errors += int64_t(in.pad_dsa_resp_rerr);
            if (in.pad_dsa_resp_rlast)
                ids.free(shown_id);
        }
        int picked = pick(cycle + 1);
        shown = picked >= 0;
        if (!shown) {
            nothing(in);
            return;
        }
        Burst &burst = bursts[size_t(picked)];
        if (burst.done == 0)
            for (int i = 0; i < picked; i++)
                if (bursts[size_t(i)].done == 0) {
                    traffic.read_reorders++;
                    break;
                }
        if (previous >= 0 && previous != picked)
            traffic.read_interleaves++;
        Beat beat;
        uint8_t perms = memory.read((burst.addr + burst.done * BUS_BYTES) & ADDR_MASK, beat);
        bool failed = perms & PERM_READ_ERROR;
        failed |= error_rng.chance(timing.read_error);
        if (failed)
            for (uint8_t &byte : beat.bytes)
                byte = uint8_t(~byte);
        burst.done++;
        bool last = burst.done == burst.beats;
        shown_id = burst.id;
        in.pad_dsa_resp_rvalid = 1;
        in.pad_dsa_resp_rid = burst.id;
        std::memcpy(in.pad_dsa_resp_rdata, beat.bytes, BUS_BYTES);
        in.pad_dsa_resp_rlast = last;
        in.pad_dsa_resp_rerr = failed;
        previous = last ? -1 : picked;
        if (last)
            bursts.erase(bursts.begin() + picked);
    }

    int pick(int64_t now) {
        int found[1 << ID_BITS], n = 0;
        if (previous >= 0 && !timing.interleave) {
            found[n++] = previous;
        } else if (timing.reorder) {
            for (size_t i = 0; i < bursts.size(); i++)
                if (bursts[i].due <= now)
                    found[n++] = int(i);
        } else {
            int fresh = -1;
            for (size_t i = 0; i < bursts.size(); i++) {
                if (bursts[i].done)
                    found[n++] = int(i);
                else if (fresh < 0)
                    fresh = int(i);
            }
            if (fresh >= 0 && bursts[size_t(fresh)].due <= now)
                found[n++] = fresh;
        }
        if (!n)
            return -1;
        if (gap.draw()) {
            traffic.read_response_gaps++;
            return -1;
        }
        return n > 1 ? found[pick_rng.below(uint64_t(n))] : found[0];
    }
};

class WriteSide {
public:
    WriteSide(const Memory &memory, const Timing &timing, uint64_t seed, Traffic &traffic)
        : ids(Channel::WRITE_REQUEST), memory(memory), timing(timing), traffic(traffic),
          held(Channel::WRITE_REQUEST), data_held(Channel::WRITE_DATA),
          stall(seed, Draw::WRITE_REQUEST_STALL, timing.write_request_stall, timing.stall_length),
          data_stall(seed, Draw::WRITE_DATA_STALL, timing.write_data_stall, timing.stall_length),
          gap(seed, Draw::WRITE_RESPONSE_GAP, timing.write_response_gap, timing.stall_length),
          latency_rng(seed, Draw::WRITE_LATENCY), pick_rng(seed, Draw::WRITE_PICK),
          error_rng(seed, Draw::WRITE_ERROR) {}

    void start(Inputs &in) {
        in.pad_dsa_req_wready = !stall.draw();
        in.pad_dsa_req_wdready = !data_stall.draw();
        nothing(in);
    }

    void step(int64_t cycle, Inputs &in, const Outputs &out) {
        request(cycle, in, out);
        data(cycle, in, out);
        response(cycle, in, out);
        in.pad_dsa_req_wready = !stall.draw();
        in.pad_dsa_req_wdready = !data_stall.draw();
    }

    Ids ids;

private:
    struct Payload {
        uint64_t addr, len, id, fullline;
    };
    struct DataPayload {
        Beat beat;
        uint64_t strobe, last;
    };

    const Memory &memory;
    const Timing &timing;
    Traffic &traffic;
    Held<Payload> held;
    Held<DataPayload> data_held;
    Stall stall, data_stall, gap;
    Rng latency_rng, pick_rng, error_rng;
    std::vector<Burst> owed, answers; // oldest first
    bool shown = false;
    unsigned shown_id = 0;

    static void nothing(Inputs &in) {
        in.pad_dsa_resp_wvalid = 0;
        in.pad_dsa_resp_wid = (uint64_t(1) << ID_BITS) - 1;
        in.pad_dsa_resp_werr = 1;
    }

    void request(int64_t cycle, const Inputs &in, const Outputs &out) {
        bool valid = out.dsa_pad_req_wvalid, ready = in.pad_dsa_req_wready;
        uint64_t addr = out.dsa_pad_req_waddr, id = out.dsa_pad_req_wid;
        uint64_t fullline = out.dsa_pad_req_fullline;
        held.step(cycle, valid, ready, {addr, out.dsa_pad_req_wlen, id, fullline});
        if (!valid)
            return;
        unsigned beats = unsigned(out.dsa_pad_req_wlen) + 1;
        ids.check(cycle, addr, beats, id);
        if (fullline && beats != BEATS_PER_LINE)
            broken(Rule::FULLLINE_LENGTH, Channel::WRITE_REQUEST, cycle, beats, BEATS_PER_LINE);
        if (!ready) {
            traffic.write_request_stalls++;
            return;
        }
        owed.push_back(Burst{addr, beats, unsigned(id), fullline != 0, 0});
        ids.take(cycle, unsigned(id));
        if (traffic.first_write_request < 0)
            traffic.first_write_request = cycle;
        traffic.write_requests++;
        traffic.fullline_requests += int64_t(fullline);
        traffic.max_writes_in_flight = std::max(traffic.max_writes_in_flight, ids.in_flight());
    }

    void data(int64_t cycle, const Inputs &in, const Outputs &out) {
        constexpr Channel channel = Channel::WRITE_DATA;
        bool valid = out.dsa_pad_req_wdvalid, ready = in.pad_dsa_req_wdready;
        DataPayload payload{};
        std::memcpy(payload.beat.bytes, out.dsa_pad_req_wdata, BUS_BYTES);
        payload.strobe = out.dsa_pad_req_wstrb;
        payload.last = out.dsa_pad_req_wlast;
        data_held.step(cycle, valid, ready, payload);
        if (!valid)
            return;
        if (owed.empty())
            broken(Rule::DATA_WITHOUT_REQUEST, channel, cycle);
        Burst &burst = owed.front();
        bool final = burst.done + 1 == burst.beats;
        if (payload.last && !final)
            broken(Rule::LAST_EARLY, channel, cycle, burst.done + 1, burst.beats);
        if (final && !payload.last)
            broken(Rule::LAST_MISSING, channel, cycle, burst.beats);
        if (burst.fullline && payload.strobe != ALL_STROBES)
            broken(Rule::FULLLINE_STROBE, channel, cycle, payload.strobe);
        uint64_t addr = (burst.addr + burst.done * BUS_BYTES) & ADDR_MASK, where;
        if (memory.forbidden(addr, payload.strobe, where))
            broken(Rule::WRITE_FORBIDDEN, channel, cycle, where);
        if (!ready) {
            traffic.write_data_stalls++;
            return;
        }
        burst.failed |= memory.write(addr, payload.beat, payload.strobe);
        burst.done++;
        if (traffic.first_write_beat < 0)
            traffic.first_write_beat = cycle;
        traffic.last_write_beat = cycle;
        traffic.write_beats++;
        if (final) {
            Burst answer = burst;
            owed.erase(owed.begin());
            answer.due = cycle + timing.response_latency;
            if (timing.jitter)
                answer.due += int64_t(latency_rng.below(uint64_t(timing.jitter) + 1));
            answer.failed |= error_rng.chance(timing.write_error);
            answers.push_back(answer);
        }
    }

    void response(int64_t, Inputs &in, const Outputs &out);
    int pick(int64_t now);
};

inline void WriteSide::response(int64_t cycle, Inputs &in, const Outputs &out) {
    if (shown) {
        if (!out.dsa_pad_resp_wready) {
            traffic.write_response_stalls++;
            return;
        }
        traffic.write_responses++;
        traffic.write_errors += int64_t(in.pad_dsa_resp_werr);
        ids.free(shown_id);
    }
    int picked = pick(cycle + 1);
    shown = picked >= 0;
    if (!shown) {
        nothing(in);
        return;
    }
    if (picked > 0)
        traffic.write_reorders++;
    Burst burst = answers[size_t(picked)];
    answers.erase(answers.begin() + picked);
    shown_id = burst.id;
    in.pad_dsa_resp_wvalid = 1;
    in.pad_dsa_resp_wid = burst.id;
    in.pad_dsa_resp_werr = burst.failed;
}

inline int WriteSide::pick(int64_t now) {
    int found[1 << ID_BITS], n = 0;
    size_t limit = timing.reorder ? answers.size() : std::min<size_t>(1, answers.size());
    for (size_t i = 0; i < limit; i++)
        if (answers[i].due <= now)
            found[n++] = int(i);
    if (!n)
        return -1;
    if (gap.draw()) {
        traffic.write_response_gaps++;
        return -1;
    }
    return n > 1 ? found[pick_rng.below(uint64_t(n))] : found[0];
}

// -- a run (sim/driver.py) -----------------------------------------------------------------------

enum class Status : int64_t { RUNNING, DONE, STOPPED, BROKEN, TIMEOUT };

inline void idle_host(Inputs &in) {
    in.host_req_valid = 0;
    in.host_req_inst = 0xFFFFFFFFu;
    in.host_req_rs1 = ~uint64_t(0);
    in.host_req_rs2 = ~uint64_t(0);
    in.host_req_tag = TAG_MASK;
}

class Session {
public:
    Session(const RunArguments &arguments)
        : args(arguments), timing(args.timing),
          memory(static_cast<const Region *>(arguments.regions), arguments.n_regions),
          reads(memory, timing, args.seed, traffic), writes(memory, timing, args.seed, traffic),
          held(Channel::HOST_RESPONSE),
          gap(args.seed, Draw::HOST_REQUEST_GAP, timing.host_request_gap, timing.stall_length),
          stall(args.seed, Draw::HOST_RESPONSE_STALL, timing.host_response_stall,
                timing.stall_length) {
        reads.start(inputs);
        writes.start(inputs);
        idle_host(inputs);
        offer();
        inputs.host_resp_ready = !stall.draw();
    }

    Inputs inputs{};
    Traffic traffic{};
    Violation violation{};
    Snapshot snapshot{};
    int64_t cycle = 0, n_taken = 0, n_answered = 0;
    int64_t activity[N_ACTIVITY] = {};

    // After step(): the core's activity in the cycle that it ended, counted while the run does.
    void count(uint64_t bits) {
        if (counts)
            for (; bits; bits &= bits - 1)
                activity[__builtin_ctzll(bits)]++;
    }

    Status step(const Outputs &out) {
        try {
            return checked_step(out);
        } catch (const Violation &found) {
            violation = found;
            return Status::BROKEN;
        }
    }

private:
    struct Payload {
        uint64_t tag, wb, rd, data, error;
    };

    const RunArguments args;
    const Timing &timing;
    const Memory memory;
    ReadSide reads;
    WriteSide writes;
    Held<Payload> held;
    Stall gap, stall;
    int64_t last_progress = 0, progress = 0, quiet_left = -1;
    bool counts = false; // the cycle lies between the first request and the last response

    bool in_flight() const { return reads.ids.in_flight() || writes.ids.in_flight(); }

    void offer() {
        if (n_taken == args.n_requests) {
            idle_host(inputs);
        } else if (gap.draw()) {
            traffic.host_request_gaps++;
            idle_host(inputs);
        } else {
            inputs.host_req_valid = 1;
            inputs.host_req_inst = args.inst[n_taken];
            inputs.host_req_rs1 = args.rs1[n_taken];
            inputs.host_req_rs2 = args.rs2[n_taken];
            inputs.host_req_tag = uint64_t(n_taken) & TAG_MASK;
        }
    }

    bool at_limit() const {
        return cycle - last_progress >= args.patience || cycle >= args.max_cycles;
    }

    Status checked_step(const Outputs &out) {
        if (!out.busy && in_flight())
            broken(Rule::BUSY_LOW, Channel::BUSY, cycle, uint64_t(reads.ids.in_flight()),
                   uint64_t(writes.ids.in_flight()));
        if (quiet_left >= 0)
            check_quiet(out);
        snapshot.handshakes = handshakes(inputs, out);
        host(out);
        counts = n_taken && n_answered < args.n_requests;
        reads.step(cycle, inputs, out);
        writes.step(cycle, inputs, out);
        if (quiet_left >= 0) {
            quiet_left--;
        } else if (n_answered == args.n_requests && !out.busy && !in_flight()) {
            quiet_left = QUIET_CYCLES;
        }
        cycle++;
        if (quiet_left == 0)
            return Status::DONE;
        if (cycle == args.stop_after)
            return Status::STOPPED;
        int64_t now = n_taken + n_answered + traffic.read_requests + traffic.read_beats +
                      traffic.write_requests + traffic.write_beats + traffic.write_responses;
        if (now != progress) {
            progress = now;
            last_progress = cycle;
        }
        if (at_limit()) {
            snapshot.cycle = cycle;
            snapshot.last_progress = last_progress;
            snapshot.next_request = n_taken;
            snapshot.n_responses = n_answered;
            snapshot.busy = int64_t(out.busy);
            reads.ids.list(snapshot.reads, snapshot.n_reads);
            writes.ids.list(snapshot.writes, snapshot.n_writes);
            return Status::TIMEOUT;
        }
        return Status::RUNNING;
    }

    void host(const Outputs &out) {
        if (!inputs.host_req_valid) {
            offer();
        } else if (out.host_req_ready) {
            args.request_cycles[n_taken++] = cycle;
            offer();
        } else {
            traffic.host_request_stalls++;
        }
        bool valid = out.host_resp_valid, ready = inputs.host_resp_ready;
        uint64_t tag = out.host_resp_tag;
        held.step(cycle, valid, ready,
                  {tag, out.host_resp_wb, out.host_resp_rd, out.host_resp_data,
                   out.host_resp_error});
        if (valid) {
            constexpr Channel channel = Channel::HOST_RESPONSE;
            if (n_answered >= n_taken)
                broken(Rule::RESPONSE_UNASKED, channel, cycle);
            uint64_t due = uint64_t(n_answered) & TAG_MASK;
            if (tag != due)
                broken(Rule::RESPONSE_TAG, channel, cycle, tag, due, uint64_t(n_answered));
            if (ready)
                args.responses[n_answered++] = {tag,
                                                out.host_resp_wb,
                                                out.host_resp_rd,
                                                out.host_resp_data,
                                                out.host_resp_error,
                                                uint64_t(cycle)};
            else
                traffic.host_response_stalls++;
        }
        inputs.host_resp_ready = !stall.draw();
    }

    void check_quiet(const Outputs &out) const {
        const std::pair<uint64_t, Channel> valids[] = {
            {out.host_resp_valid, Channel::HOST_RESPONSE},
            {out.dsa_pad_req_rvalid, Channel::READ_REQUEST},
            {out.dsa_pad_req_wvalid, Channel::WRITE_REQUEST},
            {out.dsa_pad_req_wdvalid, Channel::WRITE_DATA},
        };
        for (const auto &[valid, channel] : valids)
            if (valid)
                broken(Rule::TRAFFIC_WHEN_IDLE, channel, cycle);
        if (out.busy)
            broken(Rule::BUSY_ROSE, Channel::BUSY, cycle);
    }

    static uint64_t handshakes(const Inputs &in, const Outputs &out) {
        return in.host_req_valid << 0 | out.host_req_ready << 1 | out.host_resp_valid << 2 |
               in.host_resp_ready << 3 | out.dsa_pad_req_rvalid << 4 |
               in.pad_dsa_req_rready << 5 | in.pad_dsa_resp_rvalid << 6 |
               out.dsa_pad_resp_rready << 7 | out.dsa_pad_req_wvalid << 8 |
               in.pad_dsa_req_wready << 9 | out.dsa_pad_req_wdvalid << 10 |
               in.pad_dsa_req_wdready << 11 | in.pad_dsa_resp_wvalid << 12 |
               out.dsa_pad_resp_wready << 13;
    }
};

} // namespace mxu
