// The C face of a compiled core, for native.py. `dut.h` is made by the engine and defines
//   class Dut { void settle(const Inputs &, bool reset);  // drive, and let logic settle
//               void sample(Outputs &) const;             // read the outputs
//               void probe(uint64_t *) const;             // read the N_PROBES further outputs
//               uint64_t activity() const;                // the bits of the output `activity`
//               static const char *probe_names();         // their names, with commas between
//               void clock();                             // the rising edge
//               void trace(const char *path); };          // write a waveform, if it can
#include "dut.h"
#include "harness.h"

#include <memory>

using namespace mxu;

namespace {

struct Engine {
    Dut dut;
    std::unique_ptr<Session> session;
    bool probing = false;
    std::vector<uint64_t> probes;

    void idle_cycle(bool reset) {
        Inputs inputs{};
        idle_host(inputs);
        dut.settle(inputs, reset);
        dut.clock();
    }
};

} // namespace

extern "C" {

void *mxu_open() { return new Engine; }

const char *mxu_probe_names() { return Dut::probe_names(); }

void mxu_close(void *handle) { delete static_cast<Engine *>(handle); }

void mxu_trace(void *handle, const char *path) { static_cast<Engine *>(handle)->dut.trace(path); }

// One idle cycle, as before every job of the Python engine, then the reset.
void mxu_reset(void *handle, int64_t cycles) {
    Engine &engine = *static_cast<Engine *>(handle);
    engine.idle_cycle(false);
    for (int64_t i = 0; i < cycles; i++)
        engine.idle_cycle(true);
}

// Begin a run with one idle cycle. What the arguments point to must outlive the run.
void mxu_begin(void *handle, const RunArguments *arguments) {
    Engine &engine = *static_cast<Engine *>(handle);
    engine.idle_cycle(false);
    engine.session.reset(new Session(*arguments));
    engine.probing = arguments->probing;
    engine.probes.clear();
}

// Go on for at most so many cycles and report where the run stands.
int64_t mxu_step(void *handle, int64_t cycles, RunReport *report) {
    Engine &engine = *static_cast<Engine *>(handle);
    Session &session = *engine.session;
    Status status = Status::RUNNING;
    Outputs outputs{};
    for (int64_t i = 0; i < cycles && status == Status::RUNNING; i++) {
        engine.dut.settle(session.inputs, false);
        engine.dut.sample(outputs);
        if (engine.probing) {
            size_t at = engine.probes.size();
            engine.probes.resize(at + N_PROBES);
            engine.dut.probe(engine.probes.data() + at);
        }
        uint64_t activity = engine.dut.activity();
        status = session.step(outputs);
        session.count(activity);
        engine.dut.clock();
    }
    report->cycle = session.cycle;
    report->n_taken = session.n_taken;
    report->n_answered = session.n_answered;
    report->traffic = session.traffic;
    report->snapshot = session.snapshot;
    report->rule = session.violation.rule;
    report->channel = session.violation.channel;
    report->violation_cycle = session.violation.cycle;
    std::copy(std::begin(session.violation.numbers), std::end(session.violation.numbers),
              report->numbers);
    std::copy(std::begin(session.activity), std::end(session.activity), report->activity);
    report->n_probed = int64_t(engine.probes.size());
    report->probes = engine.probes.data();
    return int64_t(status);
}

} // extern "C"
