/*
 * networks.h: the hosts of an arena as separate machines: each has a network namespace with a real
 * sshd. This process is the driver's machine, and the router between the hosts.
 *
 *     host 1  10.79.1.2 peer1 ──── veth1 10.79.1.1 ┐
 *     host 2  10.79.2.2 peer2 ──── veth2 10.79.2.1 ┼ this side forwards
 *     host 3  10.79.3.2 peer3 ──── veth3 10.79.3.1 ┘
 *
 * All of this is in namespaces of this process, which disappear with the last process in them. The
 * sshds end with the thread that has opened the networks, however it ends. FOLDER/networks has the
 * keys, and for each host the output of its sshd and of its agents.
 *
 * The kernel tries routing rules in the order of their numbers. Addresses of this side are found by
 * rule 10, here and on each host. So a rule with a lower number can drop packets without an error
 * to either side.
 */
#ifndef TESTS_CHAOS_NETWORKS_H
#define TESTS_CHAOS_NETWORKS_H

#include "tests/chaos/arena.h"

#define NETWORKS_NET   "10.79"
#define NETWORKS_WORDS 16
/* where the sshd of each host listens */
#define NETWORKS_SSH_PORT 2222

struct networks {
    char folder[ARENA_PATH];      /* FOLDER/networks */
    char arena[ARENA_PATH];       /* FOLDER */
    char identity[ARENA_PATH];    /* the file for -i */
    char ssh_args[ARENA_PATH];    /* --ssh-args */
    pid_t sshds[ARENA_HOSTS + 1]; /* by host number, from 1; 0: none runs */
    uint32_t count;
};

/*
 * Gives this process a network namespace of its own, and a /run of its own. Only root can do this,
 * and only while the process has no other thread and no child. HVD_E_UNSUPPORTED: it is not
 * possible here, with the reason; what was changed until then harms no process.
 */
int networks_enter(struct hvd_err *err) MUST_CHECK;

/* Makes hosts 1 to count, for the arena in this folder, which must exist. */
int networks_open(struct networks *networks, const char *folder, uint32_t count,
                  struct hvd_err *err) MUST_CHECK;

/* Also for networks that were opened in part, or are all zero. The arena ends the agents and
 * workers on the hosts. */
void networks_close(struct networks *networks);

/* The address of host number N, which is its name in the host list. */
const char *networks_name(uint32_t number, char name[ARENA_NAME]);

/* The options with which hvd-elastic reaches the hosts. words ends in NULL; its texts are borrowed
 * from networks. */
void networks_words(const struct networks *networks, const char *words[NETWORKS_WORDS]);

/* From now on ssh accepts no new session; open sessions stay. */
void networks_shut(struct networks *networks, uint32_t number);

/* Starts the sshd again that networks_shut has ended; does nothing if the sshd runs. */
int networks_admit(struct networks *networks, uint32_t number, struct hvd_err *err) MUST_CHECK;

/* Runs ip with these words, separated by blanks: "link set veth1 down", "-n host1 rule ...". */
int networks_ip(struct hvd_err *err, const char *format, ...) PRINTF_LIKE(2, 3);

/* Runs ip for each line of text; all of them take effect at nearly the same moment. */
int networks_ip_all(const struct networks *networks, const char *text,
                    struct hvd_err *err) MUST_CHECK;

/* Repairs everything: links are set up, rules 1 and 2 are removed, here and on each host, and each
 * sshd listens. *err names a rule that cannot be removed. */
int networks_mend(struct networks *networks, struct hvd_err *err) MUST_CHECK;

/* Writes a kernel setting: text into the file of this name below /proc/sys/net. */
int networks_set(const char *name, const char *text, struct hvd_err *err) MUST_CHECK;

#endif
