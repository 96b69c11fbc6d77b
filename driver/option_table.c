/*
 * option_table.c: the rows of the options of a job: name, field, default, range, help. options.c
 * reads and checks the options by this table. docs/cli.md also describes each option, and
 * scripts/check-options compares that page with this table.
 */
#include "driver/options.h"

#include "base/limits.h"
#include "base/time.h"

#define ROW(field, ...) OPT(struct driver_options, field, __VA_ARGS__)

const char *const options_operations[] = { "auto", "gloo", "tcp", NULL };
const char *const options_data_security[] = { "auto", "encrypted", "authenticated", "none", NULL };
const char *const options_gpu_operations[] = { "auto", "nccl", "cpu", NULL };
const char *const options_commit_to[] = { "both", "host", "device", NULL };
const char *const options_discovery[] = { "source", "join", NULL };
const char *const options_host_keys[] = { "config", "yes", "accept-new", "no", NULL };
const char *const options_log_time[] = { "short", "full", "utc", NULL };
const char *const options_colours[] = { "auto", "always", "never", NULL };
static const char *const stops[] = { "no", "checkpoint", "now", NULL };
static const char *const scopes[] = { [SCOPE_SLOT] = "slot", [SCOPE_HOST] = "host", NULL };

/* clang-format off */
const struct opt driver_option_table[] = {
    /* Job: the numbers go to the core (options_to_core), names and --takeover to job_folder.c,
     * restart and detach to driver/front. */
    ROW(np, .name = "np", .alias = "num-proc", .key = 'n', .arg = "N", .min = 1, .max = LIMIT_WORKERS,
        .group = "Job",
        .help = "slots that must exist before the first round begins. Default: --min-np"),
    ROW(min_np, .name = "min-np", .alias = "min-num-proc", .arg = "N", .min = 1,
        .max = LIMIT_WORKERS, .group = "Job",
        .help = "workers that each round after the first needs; with fewer workers the job waits. Default: -np"),
    ROW(max_np, .name = "max-np", .alias = "max-num-proc", .arg = "N", .min = 1,
        .max = LIMIT_WORKERS, .flags = OPT_UNLIMITED, .group = "Job",
        .help = "workers that a round may have at most. Default: -np"),
    ROW(reset_limit, .name = "reset-limit", .arg = "N", .max = UINT32_MAX - 1, .group = "Job",
        .help = "rounds after the first, for any reason; one more ends the job. Default: no limit"),
    ROW(progress_restarts, .name = "progress-restarts", .arg = "N", .preset = "3", .min = 1,
        .max = UINT32_MAX - 1, .flags = OPT_UNLIMITED, .group = "Job",
        .help = "how many failures of one slot are allowed without progress in between; one more ends the job"),
    ROW(progress_restarts_job, .name = "progress-restarts-job", .arg = "N", .min = 1,
        .max = UINT32_MAX - 1, .flags = OPT_UNLIMITED, .group = "Job",
        .help = "how many rounds and starts may fail without progress in between; one more ends the job. Default: 10, or --progress-restarts if that is more"),
    ROW(job, .name = "job", .arg = "NAME", .min = 1, .flags = OPT_NO_ENV, .group = "Job",
        .help = "the job's name. Default: made of the date"),
    ROW(state_dir, .name = "state-dir", .arg = "DIR", .min = 1, .group = "Job",
        .help = "where the job keeps its journal and its key; a job there that has not ended is "
                "taken over. Default: a folder of the job's name in $XDG_STATE_HOME/hvd-elastic, "
                "or in ~/.local/state/hvd-elastic"),
    ROW(resume, .name = "resume", .arg = "JOB", .min = 1, .flags = OPT_ARGV_ONLY, .group = "Job",
        .help = "take over the job whose driver has died. Default command and options: those that "
                "the job was started with"),
    ROW(stop, .name = "stop", .arg = "no|checkpoint|now", .preset = "no", .choices = stops,
        .flags = OPT_ARGV_ONLY, .group = "Job",
        .help = "with --resume: take the job over only to end it, after a checkpoint if it has "
                "--checkpoint-dir, or now; nothing is discovered"),
    ROW(takeover, .name = "takeover", .flags = OPT_ARGV_ONLY, .group = "Job",
        .help = "take the job over even from a driver that lives; that driver ends with code 5"),
    ROW(restart, .name = "restart", .preset = "true", .group = "Job",
        .help = "stay in front of the driver, and start the next driver when it dies; --no-restart is for use under a program that starts the next driver itself, such as systemd"),
    ROW(detach, .name = "detach", .flags = OPT_ARGV_ONLY, .group = "Job",
        .help = "print the job's name and return when the driver runs; the job goes on in the background"),
    ROW(standby, .name = "standby", .arg = "JOB", .min = 1, .flags = OPT_ARGV_ONLY, .group = "Job",
        .help = "wait until the job has no driver, then take it over with the command and options "
                "that it was started with; for other machines, with --store"),

    /* Store: options_to_store hands these options to the store in etcd. */
    ROW(store, .name = "store", .arg = "URL", .min = 1, .group = "Store",
        .help = "keep the journal and the key of the job in etcd, etcd://HOST:PORT,.../PREFIX, or "
                "etcds:// with TLS. Default: in the state directory"),
    ROW(store_ca, .name = "store-ca", .arg = "FILE", .min = 1, .group = "Store",
        .help = "the certificate authorities that sign etcd's certificates. Default: those of the "
                "system"),
    ROW(store_cert, .name = "store-cert", .arg = "FILE", .min = 1, .group = "Store",
        .help = "the certificate by which etcd knows this driver"),
    ROW(store_key, .name = "store-key", .arg = "FILE", .min = 1, .group = "Store",
        .help = "the key of that certificate. Default: it is in the same file"),
    ROW(store_user, .name = "store-user", .arg = "NAME", .min = 1, .group = "Store",
        .help = "the user by which etcd knows this driver; --store USER@HOST names one too"),
    ROW(store_password_file, .name = "store-password-file", .arg = "FILE", .min = 1,
        .group = "Store", .help = "a file with the password of that user"),
    ROW(store_insecure, .name = "store-insecure", .group = "Store",
        .help = "talk to etcd on other machines without TLS; the job's key can be read on the way"),
    ROW(store_lease_us, .name = "store-lease", .arg = "TIME", .preset = "2s", .min = 1 * TIME_S,
        .max = TIME_HOUR, .group = "Store",
        .help = "a driver that is silent towards etcd for so long can be replaced by a standby"),

    /* Hosts: options_to_discover hands these options to discovery. */
    ROW(hosts_from[DISCOVER_LIST], .name = "hosts", .key = 'H', .arg = "LIST", .min = 1, .group = "Hosts",
        .help = "hosts with their slots, \"a:2,b:2\". Default, if no option names hosts: localhost "
                "with -np slots"),
    ROW(hosts_from[DISCOVER_FILE], .name = "hostfile", .arg = "FILE", .min = 1, .group = "Hosts",
        .help = "hosts from lines of \"a slots=2\" or \"a:2\"; the file is read again each "
                "--discovery-interval"),
    ROW(hosts_from[DISCOVER_SCRIPT], .name = "host-discovery-script", .arg = "PROGRAM", .min = 1,
        .group = "Hosts",
        .help = "a program that prints the hosts of this moment, a line each, \"a:2\", and ends"),
    ROW(hosts_from[DISCOVER_WATCH], .name = "discovery-watch", .arg = "PROGRAM", .min = 1, .group = "Hosts",
        .help = "a program that goes on running, and prints all hosts at each change, with a blank "
                "line after them"),
    ROW(hosts_from[DISCOVER_BATCH], .name = "batch-system", .arg = "SYSTEM", .min = 1, .group = "Hosts",
        .help = "the hosts of the batch job in which the driver runs: lsf, pbs, sge or cobalt; auto: "
                "the one of them whose variables are set"),
    ROW(discovery, .name = "discovery", .arg = "WORD", .preset = "source", .choices = options_discovery,
        .group = "Hosts",
        .help = "source: the hosts of the option above; join: hosts that join by themselves (hvd-agent "
                "--join), and if an option above names hosts, only those of them"),
    ROW(token_file, .name = "token-file", .arg = "FILE", .min = 1, .group = "Hosts",
        .help = "with --discovery join: hosts may join with the token in FILE; more are made with "
                "'hvd-elastic token create'"),
    ROW(listen, .name = "listen", .arg = "ADDRESS", .preset = "0.0.0.0", .min = 1, .group = "Hosts",
        .help = "with --discovery join: the address of this machine at which the driver listens for "
                "hosts, on --port"),
    ROW(slots_per_host, .name = "slots-per-host", .arg = "N", .preset = "1", .min = 1,
        .max = LIMIT_SLOTS_PER_HOST, .group = "Hosts",
        .help = "slots of a host that is written without a number"),
    ROW(discovery_interval_us, .name = "discovery-interval", .arg = "TIME", .preset = "1s",
        .min = 10 * TIME_MS, .max = TIME_DAY, .group = "Hosts",
        .help = "the time from the end of one discovery of hosts to the next; SIGUSR1 starts a discovery at once"),
    ROW(discovery_timeout_us, .name = "discovery-timeout", .arg = "TIME", .preset = "1m",
        .min = 100 * TIME_MS, .max = TIME_DAY, .group = "Hosts",
        .help = "a discovery script that runs longer is ended with all its processes, and has failed"),
    ROW(discovery_retry_first, .name = "discovery-retry-first", .group = "Hosts",
        .help = "try the first discovery again if it fails, for --elastic-timeout; without this "
                "option its failure ends the job"),

    /* Checkpoints: the interval goes to the core, the other options to the catalog, the thread that
     * has the directory of checkpoints (driver/checkpoints.c). */
    ROW(checkpoint_dir, .name = "checkpoint-dir", .arg = "DIR|s3://BUCKET/PREFIX", .min = 1, .group = "Checkpoints",
        .help = "write commits to DIR, which all hosts and the driver share, or to s3://BUCKET/PREFIX, "
                "beside the training; when no process has a newer commit, the job goes on from the newest one there"),
    ROW(checkpoint_command, .name = "checkpoint-command", .arg = "PROGRAM", .min = 1,
        .group = "Checkpoints",
        .help = "in place of --checkpoint-dir: PROGRAM, with its words, puts, gets, lists and deletes "
                "the files of checkpoints in a store of yours; it is on all hosts"),
    ROW(checkpoint_interval, .name = "checkpoint-interval", .arg = "TIME|Nc", .preset = "5m",
        .min = 1, .group = "Checkpoints",
        .help = "the time from one checkpoint to the next, or \"100c\": each 100th commit"),
    ROW(checkpoint_keep, .name = "checkpoint-keep", .arg = "N", .preset = "3", .min = 1,
        .max = UINT32_MAX, .group = "Checkpoints",
        .help = "the newest N checkpoints are kept, older checkpoints are removed"),
    ROW(from_checkpoint, .name = "from-checkpoint", .arg = "PATH", .min = 1, .group = "Checkpoints",
        .help = "if --checkpoint-dir has no checkpoint, begin with this one, or with the newest one in this directory; the number of workers may differ"),

    /* Time limits: options_to_core hands these options to the core; agents also get
     * stall_warning_us and stall_shutdown_us (driver/io/agent_input.c). */
    ROW(elastic_timeout_us, .name = "elastic-timeout", .arg = "TIME", .preset = "10m",
        .min = TIME_MS, .flags = OPT_NEVER, .group = "Time limits",
        .help = "how long the job may wait for the workers that it needs; then it ends with code 3"),
    ROW(start_timeout_us, .name = "start-timeout", .arg = "TIME", .preset = "10m", .min = TIME_MS,
        .flags = OPT_NEVER, .group = "Time limits",
        .help = "how long a worker may take from its launch until it is ready; a slower worker counts as failed. Also how long discovery may take to name the first hosts; else the job ends"),
    ROW(agent_timeout_us, .name = "agent-timeout", .arg = "TIME", .preset = "1m", .min = TIME_S,
        .max = TIME_DAY, .group = "Time limits",
        .help = "how long an agent may take from its start until it is connected; else its host counts as failed"),
    ROW(prepare_timeout_us, .name = "prepare-timeout", .arg = "TIME", .preset = "30s",
        .min = 100 * TIME_MS, .max = TIME_DAY, .group = "Time limits",
        .help = "how long the members of a new round may take to connect; a round that needs longer is tried again later"),
    ROW(gather_us, .name = "gather", .arg = "TIME", .preset = "3s", .max = TIME_HOUR,
        .group = "Time limits",
        .help = "how long workers that are ready wait for workers that still start, so that all "
                "of them join in one round"),
    ROW(beat_us, .name = "beat", .arg = "TIME", .preset = "1s", .min = 10 * TIME_MS,
        .max = TIME_HOUR, .group = "Time limits",
        .help = "how often driver, agents and workers send a heartbeat"),
    ROW(lease_us, .name = "lease", .arg = "TIME", .preset = "10s", .min = 20 * TIME_MS,
        .max = TIME_DAY, .group = "Time limits",
        .help = "a host or worker that is silent for so long counts as dead; at least twice --beat"),
    ROW(driver_grace_us, .name = "driver-grace", .arg = "TIME", .preset = "10m", .min = TIME_MS,
        .flags = OPT_NEVER, .group = "Time limits",
        .help = "how long agents and workers go on without a driver; after this time they end"),
    ROW(kill_grace_us, .name = "kill-grace", .arg = "TIME", .preset = "5s", .max = TIME_HOUR,
        .group = "Time limits", .help = "the time from SIGTERM to SIGKILL for a worker that has to end"),
    ROW(preemption, .name = "preemption", .arg = "GIVERS", .preset = "auto", .min = 1,
        .group = "Time limits",
        .help = "who tells an agent that its machine will go away: auto, none, or a list of aws, "
                "gcp, azure, slurm, file:PATH and command:CMD"),
    ROW(stall_check, .name = "stall-check", .preset = "true", .group = "Time limits",
        .help = "look for workers that other workers wait for; --no-stall-check sets the next two "
                "options to \"never\""),
    ROW(stall_warning_us, .name = "stall-warning", .alias = "stall-check-warning-time-seconds",
        .arg = "TIME", .preset = "1m", .flags = OPT_NEVER, .group = "Time limits",
        .help = "the driver warns when an operation waits longer than this for a worker; 0: never"),
    ROW(stall_shutdown_us, .name = "stall-shutdown", .alias = "stall-check-shutdown-time-seconds",
        .arg = "TIME", .preset = "30m", .flags = OPT_NEVER, .group = "Time limits",
        .help = "a worker is killed, and counts as failed, when other workers wait for it longer than this; 0: never"),

    /* Blacklist: these options are the policy of the blacklist in the core (options_to_core). */
    ROW(cooldown, .name = "blacklist-cooldown-range", .arg = "LOW HIGH", .preset = "10s 10m",
        .group = "Blacklist",
        .help = "the first failure keeps a slot unused for LOW, each further one for twice as "
                "long, up to HIGH; a random part of LOW is added, never past HIGH"),
    ROW(blacklist_forever, .name = "blacklist-forever", .group = "Blacklist",
        .help = "a slot that has failed is not used again until an operator clears its failure"),
    ROW(blacklist_scope, .name = "blacklist-scope", .arg = "slot|host", .preset = "slot",
        .choices = scopes, .group = "Blacklist",
        .help = "whether a failure of a slot counts for the slot, or for its whole host"),
    ROW(blacklist_decay_us, .name = "blacklist-decay", .arg = "TIME", .preset = "10m",
        .min = TIME_S, .flags = OPT_NEVER, .group = "Blacklist",
        .help = "a worker that runs for so long without a failure removes one failure of its slot"),
    ROW(slot_restarts, .name = "slot-restarts", .arg = "N", .preset = "0", .max = 31,
        .group = "Blacklist",
        .help = "failures of one slot within --slot-restarts-window after which it is barred "
                "until cleared; 0: no such budget"),
    ROW(slot_restarts_window_us, .name = "slot-restarts-window", .arg = "TIME", .preset = "1h",
        .min = TIME_S, .group = "Blacklist", .help = "the window of --slot-restarts"),

    /* Launching: configure in run.c uses these options; driver/io/starter.c uses the interface and
     * the port. */
    ROW(ssh_port, .name = "ssh-port", .key = 'p', .arg = "PORT", .min = 1, .max = 65535,
        .group = "Launching", .help = "the port of sshd. Default: as ssh is configured"),
    ROW(ssh_identity_file, .name = "ssh-identity-file", .key = 'i', .arg = "FILE", .min = 1,
        .group = "Launching", .help = "the private key for ssh"),
    ROW(ssh_args, .name = "ssh-args", .arg = "WORDS", .min = 1, .group = "Launching",
        .help = "further words for ssh, \"-o ProxyJump=gate\", split at blanks; may be repeated"),
    ROW(launcher, .name = "launcher", .arg = "WAY", .preset = "ssh", .min = 1,
        .group = "Launching",
        .help = "how agents are started on other machines: ssh, or the words of a command that is "
                "called as COMMAND... HOST AGENT-COMMAND-LINE, and passes on its standard input and "
                "the exit code, \"./kubexec.sh\""),
    ROW(agent_path, .name = "agent-path", .arg = "FILE", .min = 1, .group = "Launching",
        .help = "hvd-agent on the other machines. Default: the path that it has here, or else the "
                "PATH there"),
    ROW(launch_parallel, .name = "launch-parallel", .arg = "N", .preset = "32", .min = 1,
        .max = 1024, .group = "Launching", .help = "how many agents are started at the same time"),
    ROW(ssh_host_keys, .name = "ssh-host-key-checking", .arg = "WORD", .preset = "config",
        .choices = options_host_keys, .group = "Launching",
        .help = "ssh's StrictHostKeyChecking. accept-new: the key of a host that was never seen is "
                "trusted; config: as ssh is configured"),
    ROW(network_interfaces, .name = "network-interface", .alias = "network-interfaces",
        .arg = "NAMES", .min = 1, .group = "Launching",
        .help = "agents dial the driver at an address of these interfaces, \"eth0,eth1\", or of all "
                "but these, \"^lo,docker0\". Default: at the address from which the driver reaches "
                "their host"),
    ROW(port, .name = "port", .arg = "PORT", .min = 1, .max = 65535, .group = "Launching",
        .help = "the port on which the driver listens for agents. Default: a free port, and the "
                "same port again after a restart"),
    ROW(env, .name = "env", .arg = "NAME[=VALUE]", .min = 1, .group = "Launching",
        .help = "give workers this variable; without a value, the driver's value; may be repeated"),
    ROW(env_secret, .name = "env-secret", .arg = "NAME", .min = 1, .group = "Launching",
        .help = "give workers the driver's value of this variable, and write it into no file: "
                "--resume needs the variable again; may be repeated"),
    ROW(torch_env, .name = "torch-env", .group = "Launching",
        .help = "give PyTorch programs that keep their own backend what torchrun gives: RANK, "
                "WORLD_SIZE, MASTER_ADDR and so on; all start again when one is lost"),
    ROW(gloo, .name = "gloo", .flags = OPT_ARGV_ONLY, .group = "Launching",
        .help = "changes nothing; for command lines that were written elsewhere"),

    /* mpirun: -x is treated as --env (configure in run.c); horovod_mpirun reads -bind-to,
     * -map-by and -mca. */
    ROW(exports, .name = "export", .key = 'x', .arg = "NAME[=VALUE]", .min = 1, .group = "mpirun",
        .help = "as --env, but a variable that does not exist is a warning; may be repeated"),
    ROW(bind_to, .name = "bind-to", .arg = "none", .min = 1, .flags = OPT_ARGV_ONLY,
        .group = "mpirun", .help = "workers are not bound; anything but \"none\" is refused"),
    ROW(map_by, .name = "map-by", .arg = "slot", .min = 1, .flags = OPT_ARGV_ONLY,
        .group = "mpirun", .help = "the slots of a host are filled before those of the next; "
                                   "anything but \"slot\" is refused"),
    ROW(mca, .name = "mca", .arg = "NAME VALUE", .min = 1, .flags = OPT_ARGV_ONLY | OPT_TWO_WORDS,
        .group = "mpirun",
        .help = "parameters with a meaning here: btl_tcp_if_include and _exclude, plm_rsh_agent, "
                "plm_rsh_args; others are refused, unless they hold in any case (pml ob1, btl "
                "^openib)"),
    ROW(allow_run_as_root, .name = "allow-run-as-root", .flags = OPT_ARGV_ONLY, .group = "mpirun",
        .help = "changes nothing: root may run jobs"),

    /* Collectives and GPUs: these options become variables of the workers (set_worker_variables in
     * run.c). */
    ROW(cpu_operations, .name = "cpu-operations", .arg = "auto|gloo|tcp", .preset = "auto",
        .choices = options_operations, .group = "Collectives",
        .help = "what carries collectives. auto: shared memory inside a host and TCP between hosts; "
                "gloo, tcp: Gloo or TCP between all workers"),
    ROW(data_security, .name = "data-security", .arg = "auto|encrypted|authenticated|none",
        .preset = "auto", .choices = options_data_security, .group = "Collectives",
        .help = "how numbers travel between hosts. encrypted: AES-256-GCM; authenticated: "
                "AES-256-GMAC, a change is noticed, and a listener can read; auto: authenticated, and "
                "encrypted where that costs little; loopback and none: in clear"),
    ROW(fixed_order, .name = "fixed-order", .group = "Collectives",
        .help = "sum in the order of ranks, on any hosts: the bits of a result depend on the "
                "number of workers alone; slower"),
    ROW(fusion_threshold_mb, .name = "fusion-threshold-mb", .arg = "N", .preset = "64",
        .max = LIMIT_FUSION_MB, .group = "Collectives",
        .help = "buffers of one call travel together, up to this size, between workers that share "
                "no memory; small requests are joined to operations of up to a 64th of this size; "
                "0: each buffer and request is reduced alone"),

    ROW(thread_affinity, .name = "thread-affinity", .arg = "CORES", .min = 1,
        .group = "Collectives",
        .help = "the core on which the library's service thread runs; or one for each slot of a "
                "host, \"0,8\". Default: the kernel chooses"),

    ROW(gpu_operations, .name = "gpu-operations", .arg = "auto|nccl|cpu", .preset = "auto",
        .choices = options_gpu_operations, .group = "GPUs",
        .help = "what carries collectives on memory of a GPU. auto: NCCL if all members have it, "
                "else the host, also until NCCL is ready; nccl: a member without NCCL is an error; "
                "cpu: always through the host"),
    ROW(gpu_timeout_us, .name = "gpu-timeout", .arg = "TIME", .preset = "10s",
        .min = 100 * TIME_MS, .max = TIME_HOUR, .group = "GPUs",
        .help = "how long a GPU may take to end an operation of a revoked round; after this time the worker that uses the GPU is replaced"),
    ROW(commit_to, .name = "commit-to", .arg = "both|host|device", .preset = "both",
        .choices = options_commit_to, .group = "GPUs",
        .help = "where commits of state in GPU memory go. The three values: to a copy in GPU memory, and from there to the host beside the training; straight to the host; to the host only when a round ends"),

    /* Output: driver/io/output.c, worker/timeline_events.c and the log (options_check) use these
     * options. */
    ROW(output_dir, .name = "output-filename", .arg = "DIR", .min = 1, .group = "Output",
        .help = "append what each worker prints to DIR/HOST/SLOT/INCARNATION.out and .err"),
    ROW(output_limit, .name = "output-limit", .arg = "SIZE", .preset = "1G",
        .min = LIMIT_OUTPUT_FILE_LEAST_BYTES, .flags = OPT_SIZE | OPT_UNLIMITED, .max = UINT64_C(1) << 50,
        .group = "Output",
        .help = "bytes that the files of one worker take: a file with a quarter of that becomes "
                "NAME.1, and an older one is removed; suffixes K, M, G, T"),
    ROW(timeline, .name = "timeline-filename", .alias = "timeline", .arg = "FILE", .min = 1,
        .group = "Output",
        .help = "workers write what they do and when to FILE, for chrome://tracing and Perfetto; "
                "hosts that do not share FILE have one each"),
    ROW(disable_nvtx_ranges, .name = "disable-nvtx-ranges", .group = "Output",
        .help = "a profiler that runs with the workers (Nsight Systems) is not shown their rounds, "
                "steps, commits and collectives"),
    ROW(prefix_timestamp, .name = "prefix-output-with-timestamp", .alias = "prefix-timestamp",
        .group = "Output", .help = "begin each line of a worker's output with the time"),
    ROW(log_level, .name = "log-level", .arg = "LEVEL[,PART:LEVEL...]", .preset = "info",
        .min = 1, .group = "Output",
        .help = "the levels of the driver's log: error, warning, info or debug, and exceptions, "
                "\"info,net:debug\"; parts are job, hosts, launch, net, store, agent, worker, "
                "state, coll. TRACE is debug, FATAL is error"),
    ROW(verbose, .name = "verbose", .group = "Output",
        .help = "the same as --log-level debug, unless that is given"),
    ROW(log_time, .name = "log-time", .arg = "short|full|utc", .preset = "short",
        .choices = options_log_time, .group = "Output",
        .help = "the time before lines of the log: the local time without a date, with date and "
                "zone, or UTC with the date"),
    ROW(metrics, .name = "metrics", .arg = "[ADDRESS:]PORT", .min = 1, .group = "Output",
        .help = "serve metrics of the job for Prometheus at http://ADDRESS:PORT/metrics, and "
                "/healthz; without ADDRESS only on this machine"),
    ROW(metrics_textfile, .name = "metrics-textfile", .arg = "FILE", .min = 1, .group = "Output",
        .help = "write the metrics of the job to FILE, NAME.prom, anew every 15 s, for the textfile "
                "collector of node_exporter"),
    ROW(page, .name = "page", .arg = "[ADDRESS:]PORT", .min = 1, .group = "Output",
        .help = "serve a page that shows the job in a browser, at http://ADDRESS:PORT/; without "
                "ADDRESS only on this machine; another address asks for a token, which is in the "
                "log"),
    ROW(page_control, .name = "page-control", .group = "Output",
        .help = "the page can drain and undrain hosts and stop the job; it asks for its token at "
                "each address"),
    ROW(on_event, .name = "on-event", .arg = "COMMAND", .min = 1, .group = "Output",
        .help = "run this program, with its arguments if it has some, for each event of the job, "
                "with the event as a line of JSON on its standard input"),
    ROW(on_event_url, .name = "on-event-url", .arg = "URL", .min = 1, .flags = OPT_SECRET,
        .group = "Output",
        .help = "post each event of the job to this web server, as a line of JSON; http:// or "
                "https://"),
    ROW(on_event_url_header_file, .name = "on-event-url-header-file", .arg = "FILE", .min = 1,
        .group = "Output",
        .help = "a file with headers for --on-event-url, lines of \"Name: value\", such as "
                "\"Authorization: Bearer TOKEN\"; other users must not be able to read it"),
    ROW(on_event_url_ca, .name = "on-event-url-ca", .arg = "FILE", .min = 1, .group = "Output",
        .help = "the certificate authorities that sign the certificate of an https:// server of "
                "--on-event-url. Default: those of the system"),
    ROW(on_event_filter, .name = "on-event-filter", .arg = "SEVERITY|KIND[,...]",
        .preset = "info,job_over", .min = 1, .group = "Output",
        .help = "the events for --on-event and --on-event-url: those at least as grave as a severity (error, warning, "
                "info, debug), and those of a kind, \"warning,round_trains\""),
    ROW(on_event_timeout_us, .name = "on-event-timeout", .arg = "TIME", .preset = "10s",
        .min = 100 * TIME_MS, .max = TIME_HOUR, .group = "Output",
        .help = "a run of --on-event that takes longer is killed, and a request to --on-event-url "
                "is broken off"),
    ROW(colours, .name = "color", .arg = "auto|always|never", .preset = "auto",
        .choices = options_colours, .group = "Output",
        .help = "warnings and errors of the log in colours; auto: on a terminal, unless NO_COLOR "
                "is set"),
    ROW(log_with_timestamp, .name = "log-with-timestamp", .preset = "true", .group = "Output",
        .help = "begin each line of the log with the time"),
    ROW(log_without_timestamp, .name = "log-without-timestamp", .alias = "log-hide-timestamp",
        .group = "Output", .help = "the opposite"),

    /* An option in OPT_ACCEPT has no field and no effect. It is accepted because what it asks for
     * happens in any case, or because a user cannot see a difference. */
    OPT_ACCEPT(.name = "autotune", .group = "Tuning",
               .help = "each round measures the algorithms of its collectives and takes the "
                       "fastest"),
    ROW(autotune_log_file, .name = "autotune-log-file", .arg = "FILE", .min = 1, .group = "Tuning",
        .help = "rank 0 appends which algorithms were tried for a size of an allreduce, their "
                "times, and which one was chosen, to FILE on its host"),
    OPT_ACCEPT(.name = "autotune-warmup-samples", .arg = "N", .group = "Tuning",
               .help = "no measurement is thrown away: the shortest time of each algorithm counts"),
    OPT_ACCEPT(.name = "autotune-steps-per-sample", .arg = "N", .group = "Tuning",
               .help = "each measurement is one operation of the training"),
    OPT_ACCEPT(.name = "autotune-bayes-opt-max-samples", .arg = "N", .group = "Tuning",
               .help = "each algorithm is measured four times, without a search"),
    OPT_ACCEPT(.name = "autotune-gaussian-process-noise", .arg = "X", .group = "Tuning",
               .help = "the measured times are compared as they are, without a model of noise"),
    OPT_ACCEPT(.name = "hierarchical-allgather", .group = "Tuning",
               .help = "an allgather goes through shared memory inside a host, and then between "
                       "hosts; nothing tunes it"),

    /* General: options_read and options_answer use these options. */
    ROW(config_file, .name = "config-file", .arg = "FILE", .min = 1, .flags = OPT_ARGV_ONLY,
        .group = "General",
        .help = "read options from lines of \"name = value\", or from Horovod's YAML"),
    ROW(print_config, .name = "print-config", .flags = OPT_ARGV_ONLY, .group = "General",
        .help = "show each option's value and its origin, as a config file, and end"),
    ROW(list_options, .name = "list-options", .flags = OPT_ARGV_ONLY, .group = "General",
        .help = "list the options for other programs: name, group, default"),
    ROW(check_build, .name = "check-build", .alias = "cb", .flags = OPT_ARGV_ONLY,
        .group = "General", .help = "show what this build supports, and end"),
    ROW(help, .name = "help", .key = 'h', .flags = OPT_ARGV_ONLY, .group = "General",
        .help = "show this help, and end"),
    ROW(version, .name = "version", .key = 'v', .flags = OPT_ARGV_ONLY, .group = "General",
        .help = "show the version, and end"),

/* Options of other launchers are refused, and the text says why and what to do instead. */
#define NOT_HERE(name_, why_) OPT_REFUSE(.name = name_, .help = why_)
#define NO_MPI     "agents start the workers, without MPI; leave it out"
#define NO_CYCLE   "operations are not collected before they run; leave it out"
#define NO_TORCHRUN \
    "write how many workers, --min-np and --max-np, and where they run: -H a:8,b:8, or " \
    "--host-discovery-script"
#define PER_NODE      "write the slots with each host, -H a:8,b:8, or --slots-per-host"
#define NO_RENDEZVOUS "one command, on one machine, starts the workers of all hosts; leave it out"
#define NO_NCCL    "set NCCL's own variables with --env"
    /* HVD_HOST does not set this option, because HVD_HOST is a variable of workers. */
    OPT_REFUSE(.name = "host", .flags = OPT_NO_ENV,
               .help = "write the hosts with their slots: -H a:2,b:2"),
    NOT_HERE("machinefile", "write --hostfile"),
    NOT_HERE("oversubscribe", "write as many slots as wanted with the host: -H a:8"),
    NOT_HERE("tag-output", "each line of output begins with rank and host; leave it out"),
    NOT_HERE("mpi", NO_MPI),
    NOT_HERE("jsrun", NO_MPI),
    NOT_HERE("mpi-args", NO_MPI),
    OPT_REFUSE(.name = "mpi-threads-disable", .flags = OPT_OFF_HOLDS, .help = NO_MPI),
    NOT_HERE("binding-args", "bind in the command itself, with taskset or numactl"),
    NOT_HERE("disable-cache", "workers negotiate nothing, so there is no cache; leave it out"),
    NOT_HERE("cycle-time-ms", NO_CYCLE),
    NOT_HERE("cache-capacity", NO_CYCLE),
    OPT_REFUSE(.name = "hierarchical-allreduce", .flags = OPT_ON_HOLDS,
               .help = "the workers of a host reduce through shared memory first; "
                       "--cpu-operations tcp takes that away"),
    OPT_REFUSE(.name = "torus-allreduce", .flags = OPT_OFF_HOLDS,
               .help = "each round measures its algorithms and takes the fastest; leave it out"),
    OPT_REFUSE(.name = "timeline-mark-cycles", .flags = OPT_OFF_HOLDS, .help = NO_CYCLE),
    NOT_HERE("tcp", NO_NCCL ": --env NCCL_IB_DISABLE=1"),
    NOT_HERE("num-nccl-streams", NO_NCCL),
    NOT_HERE("nnodes", NO_TORCHRUN),
    NOT_HERE("nproc-per-node", PER_NODE),
    NOT_HERE("ppn", PER_NODE),
    NOT_HERE("node-rank", NO_RENDEZVOUS),
    NOT_HERE("master-addr", NO_RENDEZVOUS),
    NOT_HERE("master-port", NO_RENDEZVOUS),
    NOT_HERE("rdzv-backend", NO_RENDEZVOUS),
    NOT_HERE("rdzv-endpoint", NO_RENDEZVOUS),
    NOT_HERE("rdzv-id", NO_RENDEZVOUS "; --job names the job"),
    NOT_HERE("rdzv-conf", NO_RENDEZVOUS),
    NOT_HERE("standalone", "without hosts the workers run on this machine: -np 4"),
    NOT_HERE("max-restarts", "write --progress-restarts, which counts failures without progress"),
    NOT_HERE("gloo-timeout-seconds",
             "the death of a worker is noticed without it; --lease and --stall-shutdown bound "
             "silence"),
};
/* clang-format on */

const size_t driver_option_count = ARRAY_SIZE(driver_option_table);
