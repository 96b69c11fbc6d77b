/*
 * networks.h: the hosts of an arena as machines of their own: a network namespace each, with a real
 * sshd in it. This side is the machine of the driver, and the router between them.
 *
 *     host 1  10.79.1.2 peer1 ──── veth1 10.79.1.1 ┐
 *     host 2  10.79.2.2 peer2 ──── veth2 10.79.2.1 ┼ this side forwards
 *     host 3  10.79.3.2 peer3 ──── veth3 10.79.3.1 ┘
 *
 * All of it is in namespaces of this process, which are gone with the last process in them; the
 * sshds end with the thread that has opened the networks, however that ends. In FOLDER/networks are
 * the keys, and for each host what its sshd and its agents have said.
 *
 * Routing rules are looked up in the order of their numbers. What is this side's own is looked up
 * by rule 10 here, and so on each host: so a rule below that makes vanish what one wants, and
 * nobody is told.
 */
#ifndef TESTS_CHAOS_NETWORKS_H
#define TESTS_CHAOS_NETWORKS_H

#include "tests/chaos/arena.h"

#define NETWORKS_NET   "10.79"
#define NETWORKS_WORDS 16

struct networks {
    char folder[ARENA_PATH];      /* FOLDER/networks */
    char arena[ARENA_PATH];       /* FOLDER */
    char identity[ARENA_PATH];    /* -i */
    char ssh_args[ARENA_PATH];    /* --ssh-args */
    pid_t sshds[ARENA_HOSTS + 1]; /* by the number of the host, from 1; 0: none runs */
    uint32_t count;
};

/*
 * From here on this process is in a network of its own, with a /run of its own; only root can, and
 * only before there is any thread or child. HVD_E_UNSUPPORTED: it cannot be done here, with the
 * reason; nothing was changed, or what was changed hurts nobody.
 */
int networks_enter(struct hvd_err *err) MUST_CHECK;

/* Hosts 1 to count, for the arena in that folder (which is there). */
int networks_open(struct networks *networks, const char *folder, uint32_t count,
                  struct hvd_err *err) MUST_CHECK;

/* Of half of them too, or a zeroed one. Agents and workers over there are the arena's to end. */
void networks_close(struct networks *networks);

/* The name by which host number N is listed: its address. */
const char *networks_name(uint32_t number, char name[ARENA_NAME]);

/* Options that hvd-elastic needs to reach them; words is ended by NULL. Borrowed from networks. */
void networks_words(const struct networks *networks, const char *words[NETWORKS_WORDS]);

/* From now on nobody can come in by ssh; who is there stays. */
void networks_shut(struct networks *networks, uint32_t number);

/* The sshd that networks_shut has ended. One that runs: nothing. */
int networks_admit(struct networks *networks, uint32_t number, struct hvd_err *err) MUST_CHECK;

/* Runs ip with these words, which blanks separate: "link set veth1 down", "-n host1 rule ...". */
int networks_ip(struct hvd_err *err, const char *format, ...) PRINTF_LIKE(2, 3);

/* The same for each line of text, which all take effect at the same moment, or nearly. */
int networks_ip_all(const struct networks *networks, const char *text,
                    struct hvd_err *err) MUST_CHECK;

/* Links are up, and rules of the numbers 1 and 2 gone, here and on each host; somebody listens for
 * ssh. What cannot be mended in *err; the rest is. */
int networks_mend(struct networks *networks, struct hvd_err *err) MUST_CHECK;

/* A number for the kernel: text into that file of /proc/sys/net. */
int networks_set(const char *name, const char *text, struct hvd_err *err) MUST_CHECK;

#endif
