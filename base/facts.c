/*
 * facts.c: the names of the kinds of events. The log of events, the hook of --on-event and its
 * filter call this file. Invariant: the names and the kinds are one list, FACTS_KINDS.
 */
#include "base/facts.h"

#include "base/panic.h"

/* Returns the name under which programs know this kind of event. */
const char *facts_kind_name(enum facts_kind kind)
{
#define FACTS_KIND_NAME(number, name) name,
    static const char *const names[] = { FACTS_KINDS(FACTS_KIND_NAME) };
#undef FACTS_KIND_NAME

    ASSERT(kind < KIND_COUNT);
    return names[kind];
}
