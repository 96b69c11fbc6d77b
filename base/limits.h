/*
 * limits.h: every maximum of hvd-elastic, on one page.
 *
 * A number that arrives from a person, a script, a file or the wire is held against its limit
 * before anything is allocated for it. An error that reports one names it as it is named here.
 */
#ifndef BASE_LIMITS_H
#define BASE_LIMITS_H

/* A job */
#define LIMIT_HOSTS           16384
#define LIMIT_SLOTS_PER_HOST  1024
#define LIMIT_WORKERS         131072
#define LIMIT_INCARNATIONS    (16 * 1024 * 1024) /* launches in the life of a job */
#define LIMIT_PEERS           65536              /* connections of a driver at a time */
#define LIMIT_HOST_NAME_BYTES 253                /* the longest DNS name */
#define LIMIT_JOB_NAME_BYTES  128                /* it is part of paths */
#define LIMIT_LOCAL_PEERS     4096               /* connections of an agent's workers at a time */

/* What people and scripts write */
#define LIMIT_HOST_TEXT_BYTES   (1024 * 1024) /* one output of a discovery script, one host file */
#define LIMIT_HOST_LINE_BYTES   1024
#define LIMIT_COMPLAINT_BYTES   4096 /* of a program's standard error: the last ones are kept */
#define LIMIT_CONFIG_TEXT_BYTES (256 * 1024)
#define LIMIT_CONFIG_LINE_BYTES (72 * 1024) /* a text with every byte escaped, and its origin */
#define LIMIT_OPTION_TEXT_BYTES (16 * 1024)
#define LIMIT_OPTION_ITEMS      1024 /* mentions of an option that may be repeated */
#define LIMIT_REASON_BYTES      256
#define LIMIT_DURATION_US       (INT64_C(10) * 365 * 24 * 3600 * 1000000) /* ten years */

/* The wire: see proto/PROTOCOL.md for the limit of each message */
#define LIMIT_FRAME_BODY_BYTES      (16 * 1024 * 1024)
#define LIMIT_GREETING_BODY_BYTES   (4 * 1024 * 1024) /* before the other side is known */
#define LIMIT_STRANGERS             256 /* connections that have not proved who they are */
#define LIMIT_GREETING_US           (10 * INT64_C(1000000))
#define LIMIT_FIRST_DRIVER_US       (30 * INT64_C(1000000)) /* an agent's, that never met one */
#define LIMIT_UNSENT_BYTES          (64 * 1024 * 1024)      /* to a peer that does not read */
#define LIMIT_DECODE_BYTES_PER_BYTE 64 /* memory a body may unfold to, per byte */
#define LIMIT_DECODE_BYTES_MIN      (64 * 1024)
#define LIMIT_DECODE_BYTES_MAX      (64 * 1024 * 1024)
#define LIMIT_TEXT_BYTES            1024
#define LIMIT_PATH_BYTES            4096
#define LIMIT_ADDRESSES             16
#define LIMIT_SLOT_REPORTS          16384 /* running, or ended and not yet forgotten */
#define LIMIT_ARGV_ENTRIES          4096
#define LIMIT_ENV_ENTRIES           4096
#define LIMIT_ARG_BYTES             (128 * 1024)
#define LIMIT_MANIFEST_ENTRIES      65536
#define LIMIT_MANIFEST_NAME_BYTES   255
#define LIMIT_COMMITS_HELD          4
#define LIMIT_OUTPUT_CHUNK_BYTES    (64 * 1024)
#define LIMIT_OUTPUT_KEPT_BYTES     (64 * 1024) /* of a stream of a worker, for a driver to come */
#define LIMIT_OUTPUT_ALL_KEPT_BYTES (32 * 1024 * 1024) /* by an agent: all goes out at once */
#define LIMIT_STATUS_BYTES          (8 * 1024 * 1024)  /* one frame of an answer */
#define LIMIT_ANSWER_BYTES          (64 * 1024 * 1024) /* all of it */
#define LIMIT_CLIENTS               32                 /* operators that ask at a time */
#define LIMIT_CLIENT_UNSENT_BYTES   (1024 * 1024) /* a follower that reads no faster is cut off */

/* Where workers meet */
#define LIMIT_MEET_PARKED    4096 /* peers that wait for us to come to their round, */
#define LIMIT_MEET_PARKED_US (INT64_C(600) * 1000000) /* and for how long */
#define LIMIT_MEET_BYE_US    1000000 /* a round that has ended well waits for the others' bye */

/* Collectives */
#define LIMIT_GROUPS    1024  /* that a program makes */
#define LIMIT_REQUESTS  16384 /* started, and not waited for */
#define LIMIT_FUSION_MB 4096  /* of small buffers that travel as one */

/* State */
#define STATE_CHUNK_BYTES  (1024 * 1024)        /* what has a checksum, and travels */
#define LIMIT_STATE_BYTES  (UINT64_C(16) << 40) /* of one commit of one worker */
#define LIMIT_STATE_CHUNKS (LIMIT_STATE_BYTES / STATE_CHUNK_BYTES)
#define LIMIT_PULL_CHUNKS  64 /* that one PULL may ask for */
#define LIMIT_GPUS         64 /* that a process can use */
#define LIMIT_COPY_THREADS 16 /* of one commit or restore: memory has no more bandwidth to give */

/* Samples */
#define LIMIT_SAMPLES           (UINT64_C(1) << 48) /* of an epoch */
#define LIMIT_BATCH_SAMPLES     (UINT64_C(1) << 32) /* of a step; of each rank, if it is local */
#define LIMIT_SAMPLE_LINE_BYTES (16 * 1024 * 1024)  /* a share of a step, as it is written down */
#define LIMIT_AUDIT_BYTES       (UINT64_C(8) << 30) /* memory of hvd-audit */

/* What workers print, in the driver */
#define LIMIT_OUTPUT_LINE_BYTES    (64 * 1024)        /* a longer line is cut into several */
#define LIMIT_OUTPUT_WAITING_BYTES (16 * 1024 * 1024) /* for a terminal or a file that is slow */
#define LIMIT_OUTPUT_LINGER_US     (5 * INT64_C(1000000)) /* for it, once the job is over */

/* A host */
#define LIMIT_PROCESSES (4 * 1024 * 1024) /* what Linux itself allows */

/* What is kept */
#define LIMIT_EVENTS_KEPT            4096               /* lines, in a driver's memory */
#define LIMIT_EVENTS_LOG_BYTES       (16 * 1024 * 1024) /* then it becomes events.log.1 */
#define LIMIT_BLACKLIST_ENTRIES      65536
#define LIMIT_BLACKLIST_HISTORY_ROWS 100 /* per host or slot; older rows are dropped */
#define LIMIT_BLACKLIST_REMEMBERED   32  /* incarnations, and times of failures, per host or slot */
#define LIMIT_JOURNAL_BATCH          1024 /* writes in one transaction */
#define LIMIT_JOURNAL_BATCH_BYTES    (16 * 1024 * 1024)
#define LIMIT_JOURNAL_WAITING_BYTES  (256 * 1024 * 1024) /* put, and not written yet */
#define LIMIT_DB_PATH_BYTES          480 /* SQLite stops at 512, and appends to the name */

#endif
