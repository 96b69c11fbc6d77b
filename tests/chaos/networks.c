/*
 * networks.c: makes a network namespace with an sshd for each host, a router between them, and the
 * rules that drop packets. It runs every `ip` command, and undoes everything at the end.
 */
#include "tests/chaos/networks.h"

#include "base/buf.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/process.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define COMMAND_MAX   512 /* bytes of a command line */
#define COMMAND_WORDS 32
#define SAID_MAX      400 /* bytes that are kept of a command's output */
#define PATIENCE_US   (180 * INT64_C(1000000))
/* ms between two looks at a port, because no event tells that it listens */
#define LOOK_MS 10

/* ---- programs ----------------------------------------------------------------------------------
 */

/* Finds a program, also in folders that are often not in PATH. sshd must be started by its full
 * path. */
static bool find_program(const char *name, char path[ARENA_PATH])
{
    static const char *const folders[] = { "/usr/sbin", "/usr/bin",       "/sbin",
                                           "/bin",      "/usr/local/bin", "/usr/local/sbin" };

    for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
        snprintf(path, ARENA_PATH, "%s/%s", folders[i], name);
        if (!access(path, X_OK))
            return true;
    }
    return false;
}

static int need_program(const char *name, const char *package, char path[ARENA_PATH],
                        struct hvd_err *err)
{
    if (find_program(name, path))
        return 0;
    return err_set(err, HVD_E_UNSUPPORTED, "there is no %s; install %s", name, package);
}

/* Runs a command to its end. An error has what the command wrote on standard error. */
static int run(const char *const *argv, struct hvd_err *err)
{
    struct process_spec spec = {
        .argv = argv, .in = -1, .out = -1, .err = -1, .dies_with_us = SIGKILL
    };
    char said[SAID_MAX + 1];
    int fds[2];
    int status = 0;
    pid_t pid;
    int rc;

    if (pipe2(fds, O_CLOEXEC))
        return err_set(err, HVD_E_IO, "%s: no pipe: %s", argv[0], strerror(errno));
    spec.err = fds[1];
    rc = process_spawn(&spec, &pid, err);
    close(fds[1]);
    if (!rc) {
        struct pollfd readable = { .fd = fds[0], .events = POLLIN };
        size_t length = 0;
        char part[256];
        ssize_t got;

        /* Reads a command's output until it ends, or until it is silent for too long. */
        while (poll(&readable, 1, (int)(PATIENCE_US / 1000)) == 1) {
            got = read(fds[0], part, sizeof(part));
            if (got <= 0)
                break;
            if ((size_t)got > SAID_MAX - length)
                got = (ssize_t)(SAID_MAX - length);
            memcpy(said + length, part, (size_t)got);
            length += (size_t)got;
        }
        said[length] = '\0';
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            ;
        if (status)
            rc = err_set(err, HVD_E_IO, "%s: %s", argv[0], said);
    }
    close(fds[0]);
    return rc;
}

int networks_ip(struct hvd_err *err, const char *format, ...)
{
    const char *words[COMMAND_WORDS + 1] = { 0 };
    char path[ARENA_PATH];
    char text[COMMAND_MAX];
    char line[COMMAND_MAX];
    uint32_t count = 0;
    va_list args;
    int rc = need_program("ip", "iproute2", path, err);

    if (rc)
        return rc;
    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    memcpy(text, line, sizeof(text));
    words[count++] = path;
    for (char *at = text; at && count < COMMAND_WORDS; count++) {
        words[count] = at;
        at = strchr(at, ' ');
        if (at)
            *at++ = '\0';
    }
    rc = run(words, err);
    return rc ? err_prefix(err, rc, "ip %s", line) : 0;
}

/* ---- files -------------------------------------------------------------------------------------
 */

PRINTF_LIKE(4, 5)
static int put(const char *path, const char *mode, struct hvd_err *err, const char *format, ...)
{
    FILE *file = fopen(path, mode);
    bool ok = file != NULL;
    va_list args;

    if (file) {
        va_start(args, format);
        ok = vfprintf(file, format, args) >= 0;
        va_end(args);
        ok = !fclose(file) && ok;
    }
    return ok ? 0 : err_set(err, HVD_E_IO, "%s: cannot be written: %s", path, strerror(errno));
}

int networks_ip_all(const struct networks *networks, const char *text, struct hvd_err *err)
{
    char path[ARENA_PATH + 32];
    int rc;

    snprintf(path, sizeof(path), "%s/batch", networks->folder);
    rc = put(path, "w", err, "%s", text);
    return rc ? rc : networks_ip(err, "-batch %s", path);
}

int networks_set(const char *name, const char *text, struct hvd_err *err)
{
    char path[ARENA_PATH];

    snprintf(path, sizeof(path), "/proc/sys/net/%s", name);
    return put(path, "w", err, "%s\n", text);
}

static int make_folder(const char *path, struct hvd_err *err)
{
    if (!mkdir(path, 0755))
        return 0;
    return err_set(err, HVD_E_IO, "%s: the folder could not be made: %s", path, strerror(errno));
}

static int make_key(const char *path, struct hvd_err *err)
{
    char keygen[ARENA_PATH];
    const char *const words[] = { keygen, "-q", "-t", "ed25519", "-N", "", "-f", path, NULL };
    int rc = need_program("ssh-keygen", "openssh-client", keygen, err);

    return rc ? rc : run(words, err);
}

/* ---- this side ---------------------------------------------------------------------------------
 */

/* Mounts an empty /run: ip keeps the names of networks in /run/netns, and sshd needs /run/sshd. No
 * other process sees either, and nothing stays. */
static int own_run(struct hvd_err *err)
{
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
        mount("tmpfs", "/run", "tmpfs", MS_NOSUID | MS_NODEV, "mode=755"))
        return err_set(err, HVD_E_UNSUPPORTED, "nothing can be mounted here: %s", strerror(errno));
    if (mkdir("/run/netns", 0755) || mkdir("/run/sshd", 0755))
        return err_set(err, HVD_E_IO, "/run/sshd: the folder could not be made: %s",
                       strerror(errno));
    return 0;
}

/* Moves the rule that finds local addresses to number 10, so that other rules can come before it.
 */
static int rules_first(const char *where, struct hvd_err *err)
{
    int rc = networks_ip(err, "%srule add pref 10 lookup local", where);

    return rc ? rc : networks_ip(err, "%srule del pref 0", where);
}

int networks_enter(struct hvd_err *err)
{
    char path[ARENA_PATH];
    int rc;

    if (geteuid() != 0)
        return err_set(err, HVD_E_UNSUPPORTED, "only root can make network namespaces");
    rc = need_program("sshd", "openssh-server", path, err);
    rc = rc ? rc : need_program("ssh", "openssh-client", path, err);
    rc = rc ? rc : need_program("ip", "iproute2", path, err);
    if (rc)
        return rc;
    if (unshare(CLONE_NEWNET | CLONE_NEWNS))
        return err_set(err, HVD_E_UNSUPPORTED, "no namespaces can be made here: %s",
                       strerror(errno));
    rc = own_run(err);
    rc = rc ? rc : networks_ip(err, "link set lo up");
    rc = rc ? rc : networks_set("ipv4/ip_forward", "1", err);
    rc = rc ? rc : rules_first("", err);
    return rc ? err_prefix(err, HVD_E_UNSUPPORTED, "no network can be made here") : 0;
}

/* ---- a host ------------------------------------------------------------------------------------
 */

const char *networks_name(uint32_t number, char name[ARENA_NAME])
{
    snprintf(name, ARENA_NAME, NETWORKS_NET ".%u.2", number);
    return name;
}

/* Makes the network namespace of host n, and the veth link that joins the namespace to this
 * side. */
static int make_link(uint32_t n, struct hvd_err *err)
{
    char where[ARENA_NAME];
    int rc = networks_ip(err, "netns add host%u", n);

    snprintf(where, sizeof(where), "-n host%u ", n);
    rc = rc ? rc : networks_ip(err, "link add veth%u type veth peer name peer%u", n, n);
    rc = rc ? rc : networks_ip(err, "link set peer%u netns host%u", n, n);
    rc = rc ? rc : networks_ip(err, "addr add " NETWORKS_NET ".%u.1/24 dev veth%u", n, n);
    rc = rc ? rc : networks_ip(err, "link set veth%u up", n);
    rc = rc ? rc : networks_ip(err, "%saddr add " NETWORKS_NET ".%u.2/24 dev peer%u", where, n, n);
    rc = rc ? rc : networks_ip(err, "%slink set peer%u up", where, n);
    rc = rc ? rc : networks_ip(err, "%slink set lo up", where);
    rc = rc ? rc : networks_ip(err, "%sroute add default via " NETWORKS_NET ".%u.1", where, n);
    return rc ? rc : rules_first(where, err);
}

/* Writes the configuration of the sshd. An agent on the host gets its environment from sshd, so the
 * arena's mark has to be there. */
static int make_sshd(const struct networks *networks, uint32_t n, struct hvd_err *err)
{
    struct buf line;
    char path[ARENA_PATH + 32];
    char key[ARENA_PATH + 32];
    int rc;

    snprintf(path, sizeof(path), "%s/%u", networks->folder, n);
    rc = make_folder(path, err);
    snprintf(path, sizeof(path), "%s/%u/state", networks->folder, n);
    rc = rc ? rc : make_folder(path, err);
    snprintf(key, sizeof(key), "%s/%u/host_key", networks->folder, n);
    rc = rc ? rc : make_key(key, err);
    snprintf(path, sizeof(path), "%s/%u/sshd_config", networks->folder, n);
    /* SHLVL is set, because a bash started by sshd would otherwise read .bashrc, which may take
     * long */
    rc = rc ? rc
            : put(path, "w", err,
                  "ListenAddress " NETWORKS_NET ".%u.2\nPort %d\nHostKey %s\nPidFile none\n"
                  "AuthorizedKeysFile %s.pub\nPermitRootLogin yes\nStrictModes no\nUsePAM no\n"
                  "PasswordAuthentication no\n"
                  "SetEnv SHLVL=1 CHAOS_ARENA=%s XDG_STATE_HOME=%s/%u/state LD_PRELOAD=%s "
                  "CHAOS_FOLDER_FAULTS=%s/folder_faults ASAN_OPTIONS=verify_asan_link_order=0\n",
                  n, NETWORKS_SSH_PORT, key, networks->identity, networks->arena, networks->folder,
                  n, CHAOS_DISK_FAULTS_LIBRARY, networks->arena);
    if (rc)
        return rc;
    buf_init(&line, COMMAND_MAX);
    snprintf(path, sizeof(path), "%s/%u/host_key.pub", networks->folder, n);
    rc = file_read(path, &line, err);
    snprintf(path, sizeof(path), "%s/known_hosts", networks->folder);
    rc = rc ? rc
            : put(path, "a", err, "[" NETWORKS_NET ".%u.2]:%d %s", n, NETWORKS_SSH_PORT,
                  buf_text(&line));
    buf_release(&line);
    return rc;
}

/* true: a process listens on the ssh port of host n. */
static bool answers(uint32_t n)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(NETWORKS_SSH_PORT) };
    char name[ARENA_NAME];
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct pollfd done = { .fd = fd, .events = POLLOUT };
    int number = ECONNREFUSED;
    socklen_t size = sizeof(number);

    if (fd < 0)
        return false;
    (void)inet_pton(AF_INET, networks_name(n, name), &address.sin_addr);
    if (!connect(fd, (const struct sockaddr *)(const void *)&address, sizeof(address)))
        number = 0;
    else if (errno == EINPROGRESS && poll(&done, 1, 1000) == 1)
        (void)getsockopt(fd, SOL_SOCKET, SO_ERROR, &number, &size);
    close(fd);
    return number == 0;
}

static int await_sshd(const struct networks *networks, uint32_t n, struct hvd_err *err)
{
    int64_t deadline_us = clock_now_us() + PATIENCE_US;

    while (clock_now_us() < deadline_us) {
        if (answers(n))
            return 0;
        (void)poll(NULL, 0, LOOK_MS);
    }
    return err_set(err, HVD_E_TIMEOUT, "the sshd of host %u does not answer; see %s/%u/sshd.log", n,
                   networks->folder, n);
}

static int start_sshd(struct networks *networks, uint32_t n, struct hvd_err *err)
{
    char ip[ARENA_PATH], sshd[ARENA_PATH], host[ARENA_NAME], config[ARENA_PATH + 32];
    char log[ARENA_PATH + 32];
    const char *const words[] = { ip, "netns", "exec", host, sshd, "-f", config, "-D", "-e", NULL };
    /* an sshd does not have the arena's mark: it does not belong to the job */
    const char *const envp[] = { "PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL };
    struct process_spec spec = {
        .argv = words, .envp = envp, .in = -1, .out = -1, .dies_with_us = SIGKILL
    };
    int rc = need_program("ip", "iproute2", ip, err);

    rc = rc ? rc : need_program("sshd", "openssh-server", sshd, err);
    if (rc)
        return rc;
    snprintf(host, sizeof(host), "host%u", n);
    snprintf(config, sizeof(config), "%s/%u/sshd_config", networks->folder, n);
    snprintf(log, sizeof(log), "%s/%u/sshd.log", networks->folder, n);
    spec.err = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (spec.err < 0)
        return err_set(err, HVD_E_IO, "%s: cannot be opened: %s", log, strerror(errno));
    rc = process_spawn(&spec, &networks->sshds[n], err);
    close(spec.err);
    return rc;
}

void networks_shut(struct networks *networks, uint32_t number)
{
    pid_t pid = networks->sshds[number];

    networks->sshds[number] = 0;
    if (pid <= 0)
        return;
    (void)kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

int networks_admit(struct networks *networks, uint32_t number, struct hvd_err *err)
{
    int rc = networks->sshds[number] ? 0 : start_sshd(networks, number, err);

    return rc ? rc : await_sshd(networks, number, err);
}

/* ---- all of them -------------------------------------------------------------------------------
 */

static int make_shared(struct networks *networks, struct hvd_err *err)
{
    char path[ARENA_PATH + 32];
    int rc = make_folder(networks->folder, err);

    rc = rc ? rc : make_key(networks->identity, err);
    snprintf(path, sizeof(path), "%s/ssh_config", networks->folder);
    return rc ? rc
              : put(path, "w", err,
                    "Host *\n  UserKnownHostsFile %s/known_hosts\n  StrictHostKeyChecking yes\n"
                    "  User root\n",
                    networks->folder);
}

static int make_hosts(struct networks *networks, uint32_t count, struct hvd_err *err)
{
    int rc = 0;

    for (uint32_t n = 1; n <= count && !rc; n++) {
        rc = make_link(n, err);
        networks->count = n;
        rc = rc ? rc : make_sshd(networks, n, err);
        rc = rc ? rc : start_sshd(networks, n, err);
    }
    for (uint32_t n = 1; n <= count && !rc; n++)
        rc = await_sshd(networks, n, err);
    return rc;
}

int networks_open(struct networks *networks, const char *folder, uint32_t count,
                  struct hvd_err *err)
{
    int rc;

    *networks = (struct networks){ 0 };
    if (count > ARENA_HOSTS)
        return err_set(err, HVD_E_LIMIT, "%u hosts are more than ARENA_HOSTS (%d)", count,
                       ARENA_HOSTS);
    if (strchr(folder, ' ') || strlen(folder) + sizeof("-F /networks/ssh_config") > ARENA_PATH)
        return err_set(err, HVD_E_INVAL, "%s: has a blank or is too long for --ssh-args", folder);
    snprintf(networks->arena, sizeof(networks->arena), "%s", folder);
    snprintf(networks->folder, sizeof(networks->folder), "%s/networks", folder);
    snprintf(networks->identity, sizeof(networks->identity), "%s/networks/user_key", folder);
    snprintf(networks->ssh_args, sizeof(networks->ssh_args), "-F %s/networks/ssh_config", folder);
    rc = make_shared(networks, err);
    rc = rc ? rc : make_hosts(networks, count, err);
    if (rc)
        networks_close(networks);
    return rc;
}

void networks_close(struct networks *networks)
{
    for (uint32_t n = 1; n <= networks->count; n++) {
        networks_shut(networks, n);
        /* otherwise the link stays until the last process of the host ends */
        (void)networks_ip(NULL, "link del veth%u", n);
        (void)networks_ip(NULL, "netns del host%u", n);
    }
    networks->count = 0;
}

/* Removes rules of this number until none is left, which is when ip fails. */
static void drop_rules(const char *where, int number)
{
    while (!networks_ip(NULL, "%srule del pref %d", where, number))
        ;
}

int networks_mend(struct networks *networks, struct hvd_err *err)
{
    char where[ARENA_NAME];
    int first = 0;

    drop_rules("", 1);
    drop_rules("", 2);
    for (uint32_t n = 1; n <= networks->count; n++) {
        int rc = networks_ip(first ? NULL : err, "link set veth%u up", n);

        snprintf(where, sizeof(where), "-n host%u ", n);
        drop_rules(where, 1);
        rc = rc ? rc : networks_admit(networks, n, first ? NULL : err);
        first = first ? first : rc;
    }
    return first;
}

/* Workers on other hosts get the driver's variables only by options. ssh gets a long timeout,
 * because all hosts are one busy machine. */
void networks_words(const struct networks *networks, const char *words[NETWORKS_WORDS])
{
    const char *const all[] = { "-i",
                                networks->identity,
                                "-p",
                                "2222",
                                "--ssh-args",
                                networks->ssh_args,
                                "--env",
                                "HVD_CHAOS_STEPS",
                                "--env",
                                "HVD_SAMPLE_LOG",
                                "--agent-timeout",
                                "20s",
                                NULL };

    memcpy(words, all, sizeof(all));
}
