/*
 * faults_flood.c: strangers crowd ports of the job (tests/attack/flood.c) while a process is killed
 * and replaced. Invariant: the flood is a child outside of the arena, and ends in relent or with
 * this program. The condition: the job is whole again while the crowd is still there.
 */
#include "base/mem.h"
#include "base/time.h"
#include "os/clock.h"
#include "tests/chaos/strike.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PORTS_MAX  128
#define PORT_TEXT  32
#define INODES_MAX 1024
#define STANDS_US  (300 * TIME_MS) /* from the start of the flood to the kill */
#define LISTENS    0x0a            /* the state of a socket that listens, in /proc/net/tcp */

struct crowd {
    pid_t flood; /* 0: none */
    int64_t begun_us;
    uint64_t inodes[INODES_MAX]; /* sockets of the processes whose ports are crowded */
    size_t inode_count;
    char ports[PORTS_MAX][PORT_TEXT];
    size_t port_count;
};

static const char *flood_not_here(const struct chaos *chaos)
{
    return chaos->arena.networks ? "the flood dials ports of the loopback only" : NULL;
}

/* Adds the sockets of a process, by their inodes. */
static void crowd_add_sockets(struct crowd *crowd, pid_t pid)
{
    const struct dirent *entry;
    char path[64], target[64];
    DIR *folder;

    snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    folder = opendir(path);
    while (folder && (entry = readdir(folder)) != NULL && crowd->inode_count < INODES_MAX) {
        ssize_t length = readlinkat(dirfd(folder), entry->d_name, target, sizeof(target) - 1);

        target[length > 0 ? length : 0] = '\0';
        if (!strncmp(target, "socket:[", 8))
            crowd->inodes[crowd->inode_count++] = strtoull(target + 8, NULL, 10);
    }
    if (folder)
        closedir(folder);
}

/* Finds the TCP ports at which these sockets listen. */
static void crowd_find_ports(struct crowd *crowd)
{
    FILE *file = fopen("/proc/net/tcp", "re");
    char line[256];

    while (file && fgets(line, sizeof(line), file) && crowd->port_count < PORTS_MAX) {
        struct in_addr address;
        char shown[INET_ADDRSTRLEN];
        unsigned long host, port, state;
        uint64_t inode = 0;
        char *at = strchr(line, ':');
        bool ours = false;

        if (!at)
            continue;
        host = strtoul(at + 1, &at, 16);
        port = strtoul(*at ? at + 1 : at, &at, 16);
        at = *at ? strchr(at + 1, ' ') : NULL; /* past the address of the other side */
        state = at ? strtoul(at, &at, 16) : 0;
        for (int i = 0; at && i < 5; i++) /* queues, timer, retransmissions, user, timeout, inode */
            at = strchr(at + strspn(at, " "), ' ');
        inode = at ? strtoull(at, NULL, 10) : 0;
        for (size_t i = 0; i < crowd->inode_count; i++)
            ours |= crowd->inodes[i] == inode;
        if (state != LISTENS || !ours)
            continue;
        address.s_addr = (in_addr_t)host;
        if (inet_ntop(AF_INET, &address, shown, sizeof(shown)))
            snprintf(crowd->ports[crowd->port_count++], PORT_TEXT, "%s:%lu", shown, port);
    }
    if (file)
        fclose(file);
}

/* Starts the flood against all ports of the processes of this kind. It gets an empty environment,
 * so that it is no process of the arena. HVD_DONE: they listen nowhere. */
static int crowd_begin(struct chaos *chaos, enum proc_kind kind, struct hvd_err *err)
{
    struct crowd *crowd = mem_zalloc(sizeof(*crowd));
    char *words[2 * PORTS_MAX + 8] = { (char *)(uintptr_t)CHAOS_FLOOD,
                                       (char *)(uintptr_t) "--connections",
                                       (char *)(uintptr_t) "400" };
    char *nothing[] = { NULL };
    size_t count = 3;

    chaos->own = crowd;
    if (!crowd)
        return err_set(err, HVD_E_NOMEM, "no memory for a flood");
    for (uint32_t i = 0; i < chaos->scan.count; i++) {
        if (chaos->scan.processes[i].kind == kind)
            crowd_add_sockets(crowd, chaos->scan.processes[i].pid);
    }
    crowd_find_ports(crowd);
    if (!crowd->port_count)
        return HVD_DONE;
    for (size_t i = 0; i < crowd->port_count; i++) {
        words[count++] = (char *)(uintptr_t) "--port";
        words[count++] = crowd->ports[i];
    }
    crowd->flood = fork();
    if (crowd->flood < 0)
        return err_set(err, HVD_E_LIMIT, "a flood: %s", strerror(errno));
    if (crowd->flood == 0) {
        int null = open("/dev/null", O_RDWR);

        if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0)
            _exit(1);
        execve(CHAOS_FLOOD, words, nothing);
        _exit(1);
    }
    fault_say(chaos, "%zu ports crowded", crowd->port_count);
    strike_wait(STANDS_US);
    crowd->begun_us = clock_now_us();
    return 0;
}

/* Repairs what was killed, demands the service, and ends the flood. */
static int crowd_end(struct chaos *chaos, struct hvd_err *err)
{
    struct crowd *crowd = chaos->own;
    int rc = 0;

    if (crowd && crowd->flood > 0) {
        if (err)
            rc = strike_await_whole(chaos, "while strangers crowd its ports", err);
        kill(crowd->flood, SIGTERM);
        while (waitpid(crowd->flood, NULL, 0) < 0 && errno == EINTR)
            continue;
    }
    mem_free(crowd);
    chaos->own = NULL;
    return rc;
}

FAULT(flood_driver, "flood-driver", .names = "the driver (pid {driver}) died of signal 9",
      .what = "strangers crowd the driver's port; it is killed and resumed meanwhile",
      .cost = FAULT_COSTS_NOTHING, .weight = 1, .missing = flood_not_here, .relent = crowd_end)
{
    const struct proc_info *driver = proc_scan_pick(&chaos->scan, PROC_DRIVER, -1, &chaos->rng);
    int rc = crowd_begin(chaos, PROC_DRIVER, err);

    if (!rc && !strike_signal(chaos, driver, SIGKILL))
        rc = HVD_DONE;
    return strike_whole(chaos, rc, crowd_end, err);
}

FAULT(flood_state, "flood-state", .names = "{worker}: killed by signal 9",
      .what = "strangers crowd the agents' ports; a worker is killed, and its successor fetches",
      .weight = 1, .missing = flood_not_here, .relent = crowd_end)
{
    int rc = crowd_begin(chaos, PROC_AGENT, err);

    if (!rc)
        rc = strike_kill(chaos, PROC_WORKER, -1);
    return strike_whole(chaos, rc, crowd_end, err);
}

FAULT(flood_meet, "flood-meet", .names = "{worker}: killed by signal 9",
      .what = "strangers crowd the workers' ports; a worker is killed, and the others meet anew",
      .weight = 1, .missing = flood_not_here, .relent = crowd_end)
{
    int rc = crowd_begin(chaos, PROC_WORKER, err);

    if (!rc)
        rc = strike_kill(chaos, PROC_WORKER, -1);
    return strike_whole(chaos, rc, crowd_end, err);
}
