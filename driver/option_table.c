#include "driver/option_table.h"

#include "base/limits.h"
#include "base/time.h"

#define ROW(field, ...) OPT(struct driver_options, field, __VA_ARGS__)

const char *const options_operations[] = { "auto", "gloo", "tcp", NULL };
const char *const options_gpu_operations[] = { "auto", "nccl", "cpu", NULL };
const char *const options_commit_to[] = { "both", "host", "device", NULL };
static const char *const scopes[] = { [SCOPE_SLOT] = "slot", [SCOPE_HOST] = "host", NULL };

/* clang-format off */
const struct opt driver_option_table[] = {
    ROW(np, .name = "np", .alias = "num-proc", .arg = "N", .min = 1, .max = LIMIT_WORKERS,
        .group = "Job",
        .help = "slots that must be there before the first round begins; --min-np when only that "
                "is said"),
    ROW(min_np, .name = "min-np", .alias = "min-num-proc", .arg = "N", .min = 1,
        .max = LIMIT_WORKERS, .group = "Job",
        .help = "workers that a later round needs, or the job waits; -np when it is not said"),
    ROW(max_np, .name = "max-np", .alias = "max-num-proc", .arg = "N", .min = 1,
        .max = LIMIT_WORKERS, .group = "Job",
        .help = "workers that a round may have, however many slots there are; no limit when it is "
                "not said"),
    ROW(reset_limit, .name = "reset-limit", .arg = "N", .max = UINT32_MAX - 1, .group = "Job",
        .help = "rounds after the first, whatever their reason; one more ends the job. No limit "
                "when it is not said"),
    ROW(job, .name = "job", .arg = "NAME", .min = 1, .flags = OPT_NO_ENV, .group = "Job",
        .help = "the job's name; made up when it is not said"),
    ROW(state_dir, .name = "state-dir", .arg = "DIR", .min = 1, .group = "Job",
        .help = "where the job keeps what must outlive its driver; a job that has not ended there "
                "is taken over. A folder of the job's name in $XDG_STATE_HOME/hvd-elastic, or in "
                "~/.local/state/hvd-elastic, when it is not said"),
    ROW(resume, .name = "resume", .arg = "JOB", .min = 1, .flags = OPT_ARGV_ONLY, .group = "Job",
        .help = "take over the job whose driver has died; without a command and options those "
                "that it was started with"),
    ROW(takeover, .name = "takeover", .flags = OPT_ARGV_ONLY, .group = "Job",
        .help = "take the job over even from a driver that lives; that one ends with code 5"),

    ROW(hosts, .name = "hosts", .key = 'H', .arg = "LIST", .min = 1, .group = "Hosts",
        .help = "hosts with their slots, \"a:2,b:2\"; localhost with -np slots when no hosts are "
                "said"),
    ROW(hostfile, .name = "hostfile", .arg = "FILE", .min = 1, .group = "Hosts",
        .help = "hosts from lines of \"a slots=2\" or \"a:2\"; the file is read again each "
                "--discovery-interval"),
    ROW(discovery_script, .name = "host-discovery-script", .arg = "PROGRAM", .min = 1,
        .group = "Hosts",
        .help = "a program that prints the hosts there are now, a line each, \"a:2\", and ends"),
    ROW(discovery_watch, .name = "discovery-watch", .arg = "PROGRAM", .min = 1, .group = "Hosts",
        .help = "a program that goes on running, and prints the hosts whenever they change, each "
                "time with a blank line after them"),
    ROW(slots_per_host, .name = "slots-per-host", .arg = "N", .preset = "1", .min = 1,
        .max = LIMIT_SLOTS_PER_HOST, .group = "Hosts",
        .help = "slots of a host that is written without a number"),
    ROW(discovery_interval_us, .name = "discovery-interval", .arg = "TIME", .preset = "1s",
        .min = 10 * TIME_MS, .max = TIME_DAY, .group = "Hosts",
        .help = "from the end of one look for hosts to the next; SIGUSR1 makes the driver look at "
                "once"),
    ROW(discovery_timeout_us, .name = "discovery-timeout", .arg = "TIME", .preset = "1m",
        .min = 100 * TIME_MS, .max = TIME_DAY, .group = "Hosts",
        .help = "a script that runs longer is ended with all that it started, and has failed"),

    ROW(elastic_timeout_us, .name = "elastic-timeout", .arg = "TIME", .preset = "10m",
        .min = TIME_MS, .flags = OPT_NEVER, .group = "Time limits",
        .help = "how long the job may stand without the workers it needs; then it ends with code "
                "3"),
    ROW(start_timeout_us, .name = "start-timeout", .arg = "TIME", .preset = "10m", .min = TIME_MS,
        .flags = OPT_NEVER, .group = "Time limits",
        .help = "from the launch of a worker until it is ready to train; then it has failed"),
    ROW(agent_timeout_us, .name = "agent-timeout", .arg = "TIME", .preset = "1m", .min = TIME_S,
        .max = TIME_DAY, .group = "Time limits",
        .help = "from the start of a host's agent until it is connected; then the host has failed"),
    ROW(prepare_timeout_us, .name = "prepare-timeout", .arg = "TIME", .preset = "30s",
        .min = 100 * TIME_MS, .max = TIME_DAY, .group = "Time limits",
        .help = "for the new connections of a round; then it is put off"),
    ROW(gather_us, .name = "gather", .arg = "TIME", .preset = "3s", .max = TIME_HOUR,
        .group = "Time limits",
        .help = "how long workers that are ready wait for others that are about to be, so that "
                "they come in one round"),
    ROW(beat_us, .name = "beat", .arg = "TIME", .preset = "1s", .min = 10 * TIME_MS,
        .max = TIME_HOUR, .group = "Time limits",
        .help = "how often driver, agents and workers say that they are alive"),
    ROW(lease_us, .name = "lease", .arg = "TIME", .preset = "10s", .min = 20 * TIME_MS,
        .max = TIME_DAY, .group = "Time limits",
        .help = "silence that is taken for a death; at least twice --beat"),
    ROW(driver_grace_us, .name = "driver-grace", .arg = "TIME", .preset = "10m", .min = TIME_MS,
        .flags = OPT_NEVER, .group = "Time limits",
        .help = "how long agents and workers go on without a driver; then they end"),
    ROW(kill_grace_us, .name = "kill-grace", .arg = "TIME", .preset = "5s", .max = TIME_HOUR,
        .group = "Time limits", .help = "from SIGTERM to SIGKILL for a worker that has to end"),
    ROW(stall_check, .name = "stall-check", .preset = "true", .group = "Time limits",
        .help = "look for workers that others wait for; --no-stall-check is the same as \"never\" "
                "for both of the next two"),
    ROW(stall_warning_us, .name = "stall-warning", .alias = "stall-check-warning-time-seconds",
        .arg = "TIME", .preset = "1m", .flags = OPT_NEVER, .group = "Time limits",
        .help = "an operation that waits longer for somebody is warned of; 0: never"),
    ROW(stall_shutdown_us, .name = "stall-shutdown", .alias = "stall-check-shutdown-time-seconds",
        .arg = "TIME", .preset = "30m", .flags = OPT_NEVER, .group = "Time limits",
        .help = "a worker that others wait for longer is killed, and has failed; 0: never"),

    ROW(cooldown, .name = "blacklist-cooldown-range", .arg = "LOW HIGH", .preset = "10s 10m",
        .group = "Blacklist",
        .help = "the first failure keeps a slot unused for LOW, each further one for twice as "
                "long, up to HIGH; a random part of LOW is added, never past HIGH"),
    ROW(blacklist_forever, .name = "blacklist-forever", .group = "Blacklist",
        .help = "the first failure counts until it is cleared"),
    ROW(blacklist_scope, .name = "blacklist-scope", .arg = "slot|host", .preset = "slot",
        .choices = scopes, .group = "Blacklist",
        .help = "what a failure of a slot counts for: the slot, or its whole host"),
    ROW(blacklist_decay_us, .name = "blacklist-decay", .arg = "TIME", .preset = "10m",
        .min = TIME_S, .flags = OPT_NEVER, .group = "Blacklist",
        .help = "running for so long without a failure forgives one"),
    ROW(slot_restarts, .name = "slot-restarts", .arg = "N", .preset = "0", .max = 31,
        .group = "Blacklist",
        .help = "failures of one slot within --slot-restarts-window after which it is barred "
                "until cleared; 0: no such budget"),
    ROW(slot_restarts_window_us, .name = "slot-restarts-window", .arg = "TIME", .preset = "1h",
        .min = TIME_S, .group = "Blacklist", .help = "the window of --slot-restarts"),

    ROW(ssh_port, .name = "ssh-port", .key = 'p', .arg = "PORT", .min = 1, .max = 65535,
        .group = "Launching", .help = "where sshd listens; as ssh is configured when not said"),
    ROW(ssh_identity_file, .name = "ssh-identity-file", .key = 'i', .arg = "FILE", .min = 1,
        .group = "Launching", .help = "the private key for ssh"),
    ROW(ssh_args, .name = "ssh-args", .arg = "WORDS", .min = 1, .group = "Launching",
        .help = "further words for ssh, \"-o ProxyJump=gate\", split at blanks; may be repeated"),
    ROW(agent_path, .name = "agent-path", .arg = "FILE", .min = 1, .group = "Launching",
        .help = "hvd-agent on the other machines; when it is not said, where ours is, or else in "
                "the PATH there"),
    ROW(launch_parallel, .name = "launch-parallel", .arg = "N", .preset = "32", .min = 1,
        .max = 1024, .group = "Launching", .help = "agents that are started at the same time"),
    ROW(network_interface, .name = "network-interface", .alias = "network-interfaces",
        .arg = "NAME", .min = 1, .group = "Launching",
        .help = "agents dial the driver at this interface's address; when it is not said, at the "
                "address from which their host is reached"),
    ROW(port, .name = "port", .arg = "PORT", .min = 1, .max = 65535, .group = "Launching",
        .help = "where the driver listens for agents; any free port when it is not said, and the "
                "same one again after a restart"),
    ROW(env, .name = "env", .arg = "NAME[=VALUE]", .min = 1, .group = "Launching",
        .help = "give workers this variable; without a value, the driver's; may be repeated"),
    ROW(gloo, .name = "gloo", .flags = OPT_ARGV_ONLY, .group = "Launching",
        .help = "changes nothing; for command lines that were written elsewhere"),

    ROW(cpu_operations, .name = "cpu-operations", .arg = "auto|gloo|tcp", .preset = "auto",
        .choices = options_operations, .group = "Collectives",
        .help = "what carries them: shared memory inside a host and TCP between hosts; or, between "
                "all workers, Gloo or TCP connections of our own"),
    ROW(fixed_order, .name = "fixed-order", .group = "Collectives",
        .help = "sum in the order of ranks, whatever hosts they are on: the bits of a result "
                "depend on the number of workers alone; slower"),
    ROW(fusion_threshold_mb, .name = "fusion-threshold-mb", .arg = "N", .preset = "64",
        .max = LIMIT_FUSION_MB, .group = "Collectives",
        .help = "how much of several buffers that one call reduces travels as one where no memory "
                "is shared; 0: as little as pays"),

    ROW(gpu_operations, .name = "gpu-operations", .arg = "auto|nccl|cpu", .preset = "auto",
        .choices = options_gpu_operations, .group = "GPUs",
        .help = "what carries collectives on memory of a GPU: NCCL where all have it, and through "
                "the host until it is ready and where it is not; nccl: it is an error not to have "
                "it; cpu: always through the host"),
    ROW(gpu_timeout_us, .name = "gpu-timeout", .arg = "TIME", .preset = "10s",
        .min = 100 * TIME_MS, .max = TIME_HOUR, .group = "GPUs",
        .help = "so soon a GPU ends what was begun on it in a round that is dead; then its worker "
                "is replaced"),
    ROW(commit_to, .name = "commit-to", .arg = "both|host|device", .preset = "both",
        .choices = options_commit_to, .group = "GPUs",
        .help = "where commits of state in GPU memory go: to a copy there, and from that to the "
                "host beside the training; straight to the host; or to the host only when a round "
                "ends"),

    ROW(output_dir, .name = "output-filename", .arg = "DIR", .min = 1, .group = "Output",
        .help = "append what each worker prints to DIR/HOST/SLOT/INCARNATION.out and .err"),
    ROW(timeline, .name = "timeline-filename", .alias = "timeline", .arg = "FILE", .min = 1,
        .group = "Output",
        .help = "workers show what they do when in FILE, for chrome://tracing and Perfetto; on hosts "
                "that do not share it each has its own"),
    ROW(prefix_timestamp, .name = "prefix-output-with-timestamp", .alias = "prefix-timestamp",
        .group = "Output", .help = "begin each line of a worker's output with the time"),
    ROW(log_level, .name = "log-level", .arg = "LEVEL[,PART:LEVEL...]", .preset = "info",
        .min = 1, .group = "Output",
        .help = "what the driver says of itself: error, warning, info or debug, and exceptions, "
                "\"info,net:debug\"; parts are job, hosts, launch, net, store, agent, worker, "
                "state, coll. TRACE is debug, FATAL is error"),
    ROW(verbose, .name = "verbose", .group = "Output",
        .help = "the same as --log-level debug, unless that is given"),
    ROW(log_with_timestamp, .name = "log-with-timestamp", .preset = "true", .group = "Output",
        .help = "begin each line of the log with the time"),
    ROW(log_without_timestamp, .name = "log-without-timestamp", .alias = "log-hide-timestamp",
        .group = "Output", .help = "the opposite"),

    ROW(config_file, .name = "config-file", .arg = "FILE", .min = 1, .flags = OPT_ARGV_ONLY,
        .group = "General", .help = "read options from lines of \"name = value\""),
    ROW(print_config, .name = "print-config", .flags = OPT_ARGV_ONLY, .group = "General",
        .help = "show each option's value and where it is from, as a config file, and end"),
    ROW(list_options, .name = "list-options", .flags = OPT_ARGV_ONLY, .group = "General",
        .help = "list the options for other programs: name, group, default"),
    ROW(check_build, .name = "check-build", .alias = "cb", .flags = OPT_ARGV_ONLY,
        .group = "General", .help = "show what this build can do, and end"),
    ROW(help, .name = "help", .key = 'h', .flags = OPT_ARGV_ONLY, .group = "General",
        .help = "show this, and end"),
    ROW(version, .name = "version", .key = 'v', .flags = OPT_ARGV_ONLY, .group = "General",
        .help = "show the version, and end"),

#define NOT_HERE(name_, why_) OPT_REFUSE(.name = name_, .help = why_)
#define NO_MPI     "agents start the workers, without MPI; leave it out"
#define NO_TUNING  "collectives choose by size and place; leave it out"
#define NO_CYCLE   "operations are not collected before they run; leave it out"
#define NO_NCCL    "set NCCL's own variables with --env"
    NOT_HERE("mpi", NO_MPI),
    NOT_HERE("jsrun", NO_MPI),
    NOT_HERE("mpi-args", NO_MPI),
    NOT_HERE("mpi-threads-disable", NO_MPI),
    NOT_HERE("binding-args", "bind in the command itself, with taskset or numactl"),
    NOT_HERE("thread-affinity", "bind in the command itself, with taskset or numactl"),
    NOT_HERE("disable-cache", "nothing that was checked is remembered; leave it out"),
    NOT_HERE("cycle-time-ms", NO_CYCLE),
    NOT_HERE("cache-capacity", NO_CYCLE),
    NOT_HERE("hierarchical-allreduce", NO_TUNING),
    NOT_HERE("hierarchical-allgather", NO_TUNING),
    NOT_HERE("torus-allreduce", NO_TUNING),
    NOT_HERE("autotune", NO_TUNING),
    NOT_HERE("autotune-log-file", NO_TUNING),
    NOT_HERE("autotune-warmup-samples", NO_TUNING),
    NOT_HERE("autotune-steps-per-sample", NO_TUNING),
    NOT_HERE("autotune-bayes-opt-max-samples", NO_TUNING),
    NOT_HERE("autotune-gaussian-process-noise", NO_TUNING),
    NOT_HERE("timeline-mark-cycles", NO_CYCLE),
    NOT_HERE("tcp", NO_NCCL ": --env NCCL_IB_DISABLE=1"),
    NOT_HERE("num-nccl-streams", NO_NCCL),
    NOT_HERE("gloo-timeout-seconds",
             "a dead worker is noticed without it; --lease and --stall-shutdown bound silence"),
};
/* clang-format on */

const size_t driver_option_count = ARRAY_SIZE(driver_option_table);
