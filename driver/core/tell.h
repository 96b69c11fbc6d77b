/*
 * tell.h: how the other files of the core make actions. No function here reports a failure: when
 * no memory is left, the list remembers it, and the step fails.
 */
#ifndef DRIVER_CORE_TELL_H
#define DRIVER_CORE_TELL_H

#include "driver/core/core_internal.h"

/* Both functions return memory that lives as long as the actions of this step. When no memory is
 * left, tell_alloc returns NULL, and tell_text "". */
void *tell_alloc(struct core *core, size_t count, size_t size);
const char *tell_text(struct core *core, const char *format, ...) PRINTF_LIKE(2, 3);

/* Returns a message with the core's term; the caller fills it in and sends it. Never NULL. */
struct msg *tell_msg(struct core *core, enum msg_type type, uint64_t incarnation, uint64_t round);

/* Returns the answer to the first message of an agent, or of the process of a host that joins. */
const struct msg *tell_welcome(struct core *core);

/* Sends the message to one host, if its agent is connected. */
void tell_host(struct core *core, struct core_host *host, const struct msg *msg);

/* Sends the message once to each host that has a member of one of the two rounds. A round may be
 * NULL. */
void tell_rounds(struct core *core, const struct round *one, const struct round *other,
                 const struct msg *msg);

/* Each of these functions sends a message about one worker to the worker's agent. */
void tell_kill(struct core *core, const struct worker *worker, int64_t grace_us,
               const char *reason);
void tell_drain(struct core *core, const struct worker *worker, int64_t left_us,
                const char *reason);
void tell_forget(struct core *core, struct core_host *host, uint64_t incarnation);

/* Returns a copy of the ids for a message; an empty list when no memory is left. */
struct msg_ids tell_ids(struct core *core, const uint64_t *ids, size_t count);

void tell_close(struct core *core, struct core_host *host, const char *text);
/* tell_join_peer and tell_join_close are for the connection of the process `hvd-agent --join` of a
 * host (joins.c). `host` is only for a START. */
void tell_join_peer(struct core *core, uint32_t peer, const char *host, const struct msg *msg);
void tell_join_close(struct core *core, uint32_t peer, const char *text);
void tell_token(struct core *core, const char *token);
/* Asks for the start of an agent. On a host that has joined by itself the process that has joined
 * starts it; if that process is not connected, its next JOIN makes joins.c ask again. */
void tell_start_agent(struct core *core, struct core_host *host);
void tell_key(struct core *core, const struct core_host *host, uint32_t version, bool admitted);
void tell_discover(struct core *core);
void tell_check_owner(struct core *core);
void tell_checkpoint(struct core *core, const struct checkpoint_done *checkpoint);
void tell_checkpoint_reject(struct core *core, const char *folder, uint64_t commit);
void tell_reply(struct core *core, uint64_t ask, int code, const char *text);
void tell_rekeying(struct core *core, const char *text, bool over);
void tell_exit(struct core *core, int code, const char *text);

/* Appends a record that becomes durable before any later action is done. The caller fills the
 * record in. tell_record never returns NULL. */
struct journal_record *tell_record(struct core *core, enum journal_kind kind);
void tell_blacklist(struct core *core, const struct blacklist_change *change);

#endif
