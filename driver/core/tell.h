/*
 * tell.h: how the rest of the core makes actions. None of these can fail at once: when memory is
 * out the list says so, and the step with it.
 */
#ifndef DRIVER_CORE_TELL_H
#define DRIVER_CORE_TELL_H

#include "driver/core/state.h"

/* Memory that lives as long as the actions of this step; NULL when there is none. */
void *tell_alloc(struct core *core, size_t count, size_t size);
const char *tell_text(struct core *core, const char *format, ...) PRINTF_LIKE(2, 3);

/* A message with the core's term, to be filled in and told. Never NULL. */
struct msg *tell_msg(struct core *core, enum msg_type type, uint64_t incarnation, uint64_t round);

/* To one host, if its agent is there: whoever is not is told when it comes back (resume.c). */
void tell_host(struct core *core, struct core_host *host, const struct msg *msg);

/* To each host that has a member of either round (NULL: none), once. */
void tell_rounds(struct core *core, const struct round *one, const struct round *other,
                 const struct msg *msg);

/* To one worker, by way of its agent. */
void tell_kill(struct core *core, const struct worker *worker, int64_t grace_us,
               const char *reason);
void tell_drain(struct core *core, const struct worker *worker, int64_t left_us,
                const char *reason);
void tell_forget(struct core *core, struct core_host *host, uint64_t incarnation);

/* The members of the round as a list for messages; empty when memory is out. */
struct msg_member_list tell_members(struct core *core, const struct round *round);
struct msg_ids tell_ids(struct core *core, const uint64_t *ids, size_t count);

void tell_close(struct core *core, struct core_host *host, const char *text);
void tell_start_agent(struct core *core, const struct core_host *host);
void tell_discover(struct core *core);
void tell_reply(struct core *core, uint64_t ask, int code, const char *text);
void tell_exit(struct core *core, int code, const char *text);

/* To be durable before what follows. The record is filled in by the caller. Never NULL. */
struct journal_record *tell_record(struct core *core, enum journal_kind kind);
void tell_blacklist(struct core *core, const struct blacklist_change *change);

#endif
