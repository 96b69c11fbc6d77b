/*
 * fuzz_trace.c: availability traces with any contents. A trace that is accepted can be replayed:
 * time does not go back, no node is added that is present, and no node is removed that is absent.
 */
#include "base/mem.h"
#include "base/panic.h"
#include "tests/chaos/trace.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hvd_err err = { .text = "" };
    struct trace trace;
    int rc = trace_parse(&trace, (const char *)data, size, &err);

    ASSERT(rc == 0 || ((rc == HVD_E_INVAL || rc == HVD_E_LIMIT) && err.text[0]));
    if (!rc) {
        bool *there = mem_zalloc_array(trace.node_count, sizeof(*there));

        ASSERT(there && trace.count > 0);
        for (size_t i = 0; i < trace.count; i++) {
            const struct trace_event *event = &trace.events[i];

            ASSERT(event->at_us >= (i ? event[-1].at_us : 0));
            ASSERT(event->node < trace.node_count && there[event->node] != event->add);
            there[event->node] = event->add;
        }
        for (size_t i = 0; i < trace.node_count; i++)
            ASSERT(trace.nodes[i][0] && strlen(trace.nodes[i]) < sizeof(*trace.nodes));
        mem_free(there);
    }
    trace_release(&trace);
    return 0;
}
