/*
 * action.h: the actions that the core wants done, in order.
 *
 * Durable before visible: the actions of all steps form one queue. An action that stands behind a
 * RECORD or a BLACKLIST waits until that record is durable. Nothing else delays an action. So no
 * agent is ever told a thing that a restarted driver could forget, and the core need not wait for a
 * disk.
 *
 * The exception is an action whose `overtakes` is true: its contents depend on nothing but the
 * driver's term. Once the first record, the TERM, is durable, such an action is done at once.
 * Otherwise a slow disk would look like a dead driver to the agents.
 *
 * While an action waits, the caller says so in each event (`held_us` in event.h). The deadlines of
 * what agents and workers have to do then stand still: an order has its whole time after it was
 * sent, however long it waited.
 *
 * Until the first record is durable the caller accepts no connection and makes no further step.
 * That time counts as the driver's own silence, so no lease of an agent runs out during that time.
 */
#ifndef DRIVER_CORE_ACTION_H
#define DRIVER_CORE_ACTION_H

#include "base/actions.h"
#include "base/buf.h"
#include "blacklist/blacklist.h"
#include "driver/core/journal.h"
#include "proto/msg.h"

enum action_kind {
    ACTION_RECORD, /* append `record` to the journal */
    /* store `change` of the blacklist: its record, and its event in the history */
    ACTION_BLACKLIST,
    /* Send `msg` over the connection `peer`. The caller adds argv, env and cwd to a LAUNCH, the key
     * of `host` to a REKEY, the settings of the agent of `host` to a START, and the secret of the
     * round if `secret` is true. */
    ACTION_SEND,
    ACTION_CLOSE, /* close the connection `peer`; `text` says why */
    /* From now on the agent of `host` may use version `number` of the host's key (`code` 1), or
     * must not use this version (`code` 0). */
    ACTION_KEY,
    /* From now on a connection may prove the token in `text`, "ID KEY"; it is then TOKEN_PEER "ID".
     */
    ACTION_TOKEN,
    /* Make sure that an agent of this job runs on `host` and dials this driver. */
    ACTION_START_AGENT,
    /* Run one discovery; its result comes as EVENT_HOSTS or EVENT_HOSTS_FAILED. */
    ACTION_DISCOVER,
    /* Read at once in the job's file whether this driver still owns the job; if not, the driver
     * ends. */
    ACTION_CHECK_OWNER,
    /* Make `checkpoint` complete: write its manifest. The result comes as EVENT_CHECKPOINT. */
    ACTION_CHECKPOINT,
    /* The checkpoint in the folder `text` is damaged, and is never used again. Look for the newest
     * one before `number`, the commit of the damaged one; the result comes as EVENT_CHECKPOINT. */
    ACTION_CHECKPOINT_REJECT,
    ACTION_REPLY, /* answer the operator's question `ask` with `code` and `text` */
    /* Send `text` to the operators that wait for new keys: it says how many hosts have their new
     * key. `code` 1: the change of keys is complete. */
    ACTION_REKEYING,
    /* The last action: the driver ends with exit status `code`; `text` says why. */
    ACTION_EXIT,
    ACTION_COUNT
};

/* A file of a checkpoint: the part of the state that one agent has written. */
struct saved_file {
    const char *name;      /* the name of the file in the folder of the checkpoint */
    int64_t rank;          /* whose per-rank entries the file has; -1: replicated entries */
    uint32_t slot;         /* the slot of the host for which the agent keeps the commit */
    uint64_t bytes;        /* size of the file */
    struct msg_bytes sums; /* checksums: 8 bytes, little-endian, for each chunk of the file */
};

/* A checkpoint whose files are durable. The memory lives until EVENT_CHECKPOINT has come. */
struct checkpoint_done {
    uint64_t number; /* number of the attempt that made this checkpoint */
    uint64_t commit;
    uint32_t ranks;
    uint64_t digest; /* the digest of the manifest of the state */
    struct msg_entry_list entries;
    const struct saved_file *files;
    size_t file_count;
    const char *folder; /* the name of the checkpoint's folder below --checkpoint-dir */
};

struct action {
    enum action_kind kind;
    bool overtakes; /* true only for BEAT and WELCOME_AGENT: no record delays the action */
    /* Only for ACTION_SEND of a ROUND or PREPARE. True: the host has a member of that round, so the
     * caller adds the secret of the round to the message. */
    bool secret;
    uint32_t peer;
    int code;
    uint64_t ask;
    uint64_t number; /* the version of a key, or a commit */
    const char *host;
    const char *text;
    const struct msg *msg; /* several actions may share one message */
    const struct journal_record *record;
    const struct blacklist_change *change;
    const struct checkpoint_done *checkpoint;
};

/* Memory that the actions point to lives until the list is cleared. Names and addresses of hosts
 * and workers live only until the next step of the core. */
/* The last argument is the most memory of one list, in bytes (4 GiB): a ROUND for LIMIT_HOSTS hosts
 * fits. */
ACTION_LIST(action_list, struct action, (size_t)1 << 32)

/* Appends the action to `out` as bytes: a line of text, and the frame of its message. Equal actions
 * give equal bytes. Returns 0, HVD_E_NOMEM, or HVD_E_LIMIT when `out` would exceed its maximum. */
int action_write(const struct action *action, struct buf *out) MUST_CHECK;

/* Writes one line for a reader of a log, "send 3 ROUND round=2 ...", into `text`. The line is cut
 * after `size` - 1 bytes. Returns `text`. */
const char *action_describe(const struct action *action, char *text, size_t size);

#endif
