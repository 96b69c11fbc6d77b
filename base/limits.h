/*
 * limits.h: every maximum of hvd-elastic.
 *
 * A number that arrives from a user, a script, a file or the wire is compared with its limit before
 * memory is allocated for it. An error about a limit names that limit as it is named here.
 */
#ifndef BASE_LIMITS_H
#define BASE_LIMITS_H

/* A job */
#define LIMIT_HOSTS            16384
#define LIMIT_DRAINS_KEPT      4096 /* drained hosts that discovery no longer lists */
#define LIMIT_SLOTS_PER_HOST   1024
#define LIMIT_SLOTS            131072 /* slots of all hosts that one source lists */
#define LIMIT_WORKERS          131072
#define LIMIT_INCARNATIONS     (16 * 1024 * 1024) /* launches during one job */
#define LIMIT_KEY_EPOCHS       INT32_MAX          /* keys of hosts that a job makes */
#define LIMIT_PEERS            65536              /* open connections of a driver */
#define LIMIT_TOKEN_TEXT_BYTES 73   /* the id of a token, a blank, the digits of its key */
#define LIMIT_TOKENS           256  /* tokens with which hosts may join a job */
#define LIMIT_HOST_NAME_BYTES  253  /* the longest DNS name */
#define LIMIT_JOB_NAME_BYTES   128  /* the name is part of paths */
#define LIMIT_LOCAL_PEERS      4096 /* open connections of workers to an agent */
#define LIMIT_DRIVER_RESTARTS  30   /* drivers that a parent starts in a minute */
/* A plain command that has run for this long before it fails has made progress. */
#define LIMIT_COMMAND_RUN_US (600 * INT64_C(1000000))

/* Input that operators and scripts write */
#define LIMIT_HOST_TEXT_BYTES   (1024 * 1024) /* one output of a discovery script, one host file */
#define LIMIT_HOST_LINE_BYTES   1024
#define LIMIT_STDERR_TAIL_BYTES 4096 /* the last bytes of a program's standard error are kept */
#define LIMIT_CONFIG_TEXT_BYTES (256 * 1024)
#define LIMIT_CONFIG_LINE_BYTES (72 * 1024) /* a text with every byte escaped, and its origin */
#define LIMIT_OPTION_TEXT_BYTES (16 * 1024)
#define LIMIT_OPTION_ITEMS      1024 /* mentions of an option that may be repeated */
#define LIMIT_MCA_ITEMS         64   /* parameters of mpirun on a command line */
#define LIMIT_UNUSED_TEXT_BYTES 2048 /* names of variables and keys that have no effect */
#define LIMIT_REASON_BYTES      256
#define LIMIT_DURATION_US       (INT64_C(10) * 365 * 24 * 3600 * 1000000) /* ten years */

/* The wire: see proto/PROTOCOL.md for the limit of each message */
#define LIMIT_FRAME_BODY_BYTES    (16 * 1024 * 1024)
#define LIMIT_GREETING_BODY_BYTES (4 * 1024 * 1024)      /* for frames of a stranger */
#define LIMIT_TLS_KEYS            (2 * LIMIT_HOSTS + 16) /* keys that a process accepts */
#define LIMIT_STRANGERS           256 /* connections of peers that have not proved their identity */
/* how many strangers (LIMIT_STRANGERS) may come from one address (IPv6: one /64 network) */
#define LIMIT_STRANGERS_EACH 128
/* bytes that a stranger may send; a handshake takes about 700 */
#define LIMIT_HANDSHAKE_BYTES (16 * 1024)
#define LIMIT_GREETING_US     (10 * INT64_C(1000000))
/* how long an agent waits for its first driver */
#define LIMIT_FIRST_DRIVER_US       (30 * INT64_C(1000000))
#define LIMIT_UNSENT_BYTES          (64 * 1024 * 1024) /* bytes for a peer that does not read */
#define LIMIT_DECODE_BYTES_PER_BYTE 64 /* memory for decoding a message, per byte of its body */
#define LIMIT_DECODE_BYTES_MIN      (64 * 1024)
#define LIMIT_DECODE_BYTES_MAX      (64 * 1024 * 1024)
#define LIMIT_TEXT_BYTES            1024
#define LIMIT_PATH_BYTES            4096
#define LIMIT_ADDRESSES             16
/* workers that are running, or have ended and are not yet forgotten */
#define LIMIT_SLOT_REPORTS          16384
#define LIMIT_BEAT_PULSES           256 /* workers in one heartbeat of an agent */
#define LIMIT_REPORTS               32  /* names of values that a program reports */
#define LIMIT_REPORT_NAME_BYTES     63
#define LIMIT_REPORT_POINTS         120 /* values over time that a driver keeps of each name */
#define LIMIT_ARGV_ENTRIES          4096
#define LIMIT_ENV_ENTRIES           4096
#define LIMIT_ARG_BYTES             (128 * 1024)
#define LIMIT_MANIFEST_ENTRIES      65536
#define LIMIT_MANIFEST_NAME_BYTES   255
#define LIMIT_COMMITS_HELD          4
#define LIMIT_OUTPUT_CHUNK_BYTES    (64 * 1024)
#define LIMIT_OUTPUT_KEPT_BYTES     (64 * 1024) /* output of one stream, for the next driver */
#define LIMIT_OUTPUT_ALL_KEPT_BYTES (32 * 1024 * 1024) /* output of all workers of an agent */
/* the text of one TELL (a message to an operator); a long answer has several TELLs */
#define LIMIT_TELL_TEXT_BYTES (8 * 1024 * 1024)
#define LIMIT_ANSWER_BYTES    (64 * 1024 * 1024) /* bytes of one answer, all its TELLs */
#define LIMIT_JOBS_LISTED     65536              /* jobs that "jobs" and "prune" look at */
#define LIMIT_CLIENTS         32                 /* operators that ask at the same time */
#define LIMIT_SCRAPES         16                 /* connections to --metrics at the same time */
#define LIMIT_WEB_HEAD_BYTES  8192               /* the head of a request to --metrics or --page */
#define LIMIT_WEB_US          (10 * INT64_C(1000000)) /* lifetime of one HTTP connection */
#define LIMIT_METRICS_BYTES   (1024 * 1024)
#define LIMIT_VIEWERS         32                /* streams of --page at the same time */
#define LIMIT_VIEWER_REQUESTS 64                /* connections to --page beside the streams */
#define LIMIT_LIVE_BYTES      (4 * 1024 * 1024) /* bytes of one message to viewers */
#define LIMIT_OWNED_PROCESSES 64 /* programs that the threads of an agent run at a time */
/* unsent bytes after which a client of `events --follow` is disconnected */
#define LIMIT_CLIENT_UNSENT_BYTES (1024 * 1024)

/* Connections between workers before a round */
#define LIMIT_ROUND_SECRET_BYTES 32 /* the secret of a round has this many bytes, or none */
/* connections that wait until this worker enters their round; at most a quarter of the worker's
 * descriptors */
#define LIMIT_MEET_PARKED    4096
#define LIMIT_MEET_PARKED_US (INT64_C(600) * 1000000) /* a parked connection's longest wait */
/* how long a member waits for the other members' bye after a round that ended well */
#define LIMIT_MEET_BYE_US 1000000

/* Checks of one round: the highest number, and how far apart the members of a round may be. A
 * switch waits until all members have reached the same check. */
#define LIMIT_CHECKS       (UINT64_C(1) << 48)
#define LIMIT_CHECKS_APART (1024 * 1024)

/* Collectives */
#define LIMIT_GROUPS 1024 /* groups that a program may create */
#define LIMIT_OPENED 128  /* groups that are opened during one round, the closed ones too */
/* channels for sends to and receives from other ranks, in one round */
#define LIMIT_CHANNELS     256
#define LIMIT_REQUESTS     16384 /* requests that are started and not yet waited for */
#define LIMIT_FUSION_MB    4096  /* MiB of small buffers that one operation fuses */
#define LIMIT_CORES        1024  /* numbers of cores begin at 0: CPU_SETSIZE of the C library */
#define LIMIT_RAGGED_BYTES (UINT64_C(1) << 40) /* bytes that a rank may give in one ragged call */

/* State */
#define STATE_CHUNK_BYTES  (1024 * 1024)        /* unit of checksums and of transfers */
#define LIMIT_STATE_BYTES  (UINT64_C(16) << 40) /* bytes of one commit of one worker */
#define LIMIT_STATE_CHUNKS (LIMIT_STATE_BYTES / STATE_CHUNK_BYTES)
/* length of the key with which agents fetch commits from each other */
#define STATE_KEY_BYTES 32
#define HOST_KEY_BYTES  32 /* bytes of the key with which the agent of a host dials the driver */
/* how long an agent accepts the key of the previous round */
#define LIMIT_STATE_KEY_US (10 * INT64_C(1000000))
#define LIMIT_PULL_CHUNKS  64 /* chunks that one PULL may ask for */
#define LIMIT_GPUS         64 /* GPUs that one process may use */
/* threads that copy for one commit or restore; more threads get no more memory bandwidth */
#define LIMIT_COPY_THREADS 16
#define LIMIT_ENTRY_TYPE   64 /* the highest number of a type of an entry */

/* Checkpoints */
/* checksums of the chunks of one file: 2 Mi chunks, so a file has at most 2 TiB */
#define LIMIT_SAVED_SUMS_BYTES (15 * 1024 * 1024)
/* length of the name of an object in a store of checkpoints: FOLDER/NAME */
#define LIMIT_CHECKPOINT_NAME_BYTES 255
/* the header of one file; readers of the format take up to 100 MB */
#define LIMIT_PART_HEADER_BYTES (64 * 1024 * 1024)
/* manifest.json: 16 bytes for each MiB of the checkpoint, so a checkpoint has at most 16 TiB */
#define LIMIT_CHECKPOINT_MANIFEST_BYTES (300 * 1024 * 1024)
#define LIMIT_CHECKPOINT_FILES          (2 * LIMIT_WORKERS) /* files of one checkpoint */
#define LIMIT_CHECKPOINTS               65536               /* folders of one directory */
/* messages HOLD and SAVE that wait for the thread of an agent's checkpoints */
#define LIMIT_CHECKPOINT_TASKS (4 * LIMIT_SLOTS_PER_HOST)

/* Values of the job (proto/value_table.h) */
#define LIMIT_STORE_KEY_BYTES   255
#define LIMIT_STORE_VALUE_BYTES (8 * 1024)
#define LIMIT_STORE_BYTES       (1024 * 1024) /* all values together, with their keys */
#define LIMIT_STORE_CALLS       8             /* calls of one worker at the same time */

/* Notices that a machine will go away */
#define LIMIT_NOTICE_BYTES (64 * 1024) /* one answer of a metadata service, a file or a command */

/* Samples */
#define LIMIT_SAMPLES (UINT64_C(1) << 48) /* samples of one epoch */
/* samples of one step of all ranks; of one rank, if the batch size is per rank */
#define LIMIT_BATCH_SAMPLES (UINT64_C(1) << 32)
/* longest line of a sample log: one rank's share of a step */
#define LIMIT_SAMPLE_LINE_BYTES (16 * 1024 * 1024)
#define LIMIT_TIMELINE_CALLS    (8 << 20) /* calls of all ranks that hvd-timeline compares */
#define LIMIT_AUDIT_BYTES       (UINT64_C(8) << 30) /* memory of hvd-audit */

/* hvd-bench */
#define LIMIT_BENCH_BYTES    (UINT64_C(16) << 30) /* bytes of one allreduce */
#define LIMIT_BENCH_REPEATS  100000               /* allreduces of one size */
#define LIMIT_BENCH_MODEL_MB 65536
#define LIMIT_BENCH_LAYERS   1024
#define LIMIT_BENCH_BATCH    65536  /* samples of a step of one worker */
#define LIMIT_BENCH_WAIT_MS  600000 /* milliseconds that one step computes */
#define LIMIT_BENCH_STEPS    10000  /* steps of an iteration; iterations of a run */
#define LIMIT_BENCH_ROUNDS   256    /* rounds whose rows hvd-bench keeps */

/* Output of workers, and hooks of events, in the driver */
#define LIMIT_OUTPUT_LINE_BYTES (64 * 1024) /* a longer line is cut into several lines */
/* the least --output-limit: a quarter of it holds the longest piece that is written at once */
#define LIMIT_OUTPUT_FILE_LEAST_BYTES (1024 * 1024)
#define LIMIT_OUTPUT_WAITING_BYTES    (16 * 1024 * 1024) /* for a slow terminal or file */
/* how long a finished job waits for a slow terminal or file, or a slow hook of events */
#define LIMIT_OUTPUT_LINGER_US (5 * INT64_C(1000000))
#define LIMIT_SAME_SIGNAL_US   (500 * INT64_C(1000)) /* SIGTERMs within it are one (timeout) */
#define LIMIT_HOOK_EVENTS      256 /* events that wait for a hook; older ones are dropped */
#define LIMIT_HOOK_WORDS       64  /* words of the command of --on-event */
#define LIMIT_HOOK_HEADERS     32  /* headers in the file of --on-event-url-header-file */

/* The processes of a host */
#define LIMIT_PROCESSES (4 * 1024 * 1024) /* processes of a machine, as many as Linux allows */

/* Kept in memory and on disk */
#define LIMIT_EVENTS_KEPT            4096 /* event lines that a driver keeps in memory */
#define LIMIT_EVENTS_LOG_BYTES       (16 * 1024 * 1024) /* a longer log becomes events.log.1 */
#define LIMIT_BLACKLIST_ENTRIES      65536
#define LIMIT_BLACKLIST_HISTORY_ROWS 100 /* rows per host or slot; older ones are dropped */
/* incarnations, and failure times, kept per host or slot */
#define LIMIT_BLACKLIST_REMEMBERED  32
#define LIMIT_JOURNAL_BATCH         1024  /* writes in one transaction */
#define LIMIT_JOURNAL_COMPACT       10000 /* records, after which the journal is compacted */
#define LIMIT_JOURNAL_BATCH_BYTES   (16 * 1024 * 1024)
#define LIMIT_JOURNAL_WAITING_BYTES (256 * 1024 * 1024) /* bytes that wait to be written */
#define LIMIT_DB_PATH_BYTES         480 /* SQLite takes 512 with a suffix such as -wal */

#endif
