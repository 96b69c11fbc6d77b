#include "agent/io/state_fetch.h"

void sources_begin(struct fetch *fetch)
{
    fetch_end(fetch, HVD_E_UNSUPPORTED, "not from other hosts yet");
}

void sources_tick(struct fetch *fetch)
{
    (void)fetch;
}

void sources_end(struct fetch *fetch)
{
    (void)fetch;
}
