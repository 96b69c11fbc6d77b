/* api_misuse_worlds.c: environments that make no sense, and machines that lack a resource. */
#include "tests/workers/api_misuse.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define GIB ((size_t)1 << 30)

static void set(const char *name, const char *value)
{
    EXPECT((value ? setenv(name, value, 1) : unsetenv(name)) == 0);
}

/* ---- the environment ------------------------------------------------------------------------- */

static void no_agent(void)
{
    set("HVD_AGENT", "@there-is-no-such-agent");
    set("HVD_INCARNATION", "7");
}

static void no_folder(void)
{
    set("HVD_AGENT", "/no/such/folder/agent");
    set("HVD_INCARNATION", "7");
}

static void long_agent(void)
{
    char name[4096];

    memset(name, 'a', sizeof(name) - 1);
    name[0] = '@';
    name[sizeof(name) - 1] = '\0';
    set("HVD_AGENT", name);
    set("HVD_INCARNATION", "7");
}

static void no_incarnation(void)
{
    set("HVD_AGENT", "@there-is-no-such-agent");
    set("HVD_INCARNATION", NULL);
}

static void zero_incarnation(void)
{
    no_agent();
    set("HVD_INCARNATION", "0");
}

static void text_incarnation(void)
{
    no_agent();
    set("HVD_INCARNATION", "seven");
}

static void large_incarnation(void)
{
    no_agent();
    set("HVD_INCARNATION", "18446744073709551616");
}

static void incarnation_alone(void)
{
    set("HVD_AGENT", NULL);
    set("HVD_INCARNATION", "7");
}

/* The incarnation of a worker that never existed; only for workers of a job. */
static void others_incarnation(void)
{
    set("HVD_INCARNATION", "987654321");
}

/* Runs the same program once more, as a worker with the same incarnation. The second process must
 * be refused, and the first one continues. */
static void say_hello(void *arg)
{
    (void)arg;
    execl("/proc/self/exe", "api_misuse", "is-second", (char *)NULL);
    _exit(1);
}

static int second_process(hvd_state *state)
{
    (void)state;
    api_misuse_in_child(say_hello, NULL);
    return 0;
}

/* ---- resources of the machine ---------------------------------------------------------------- */

static void limit(int resource, rlim_t most)
{
    struct rlimit old;

    EXPECT(getrlimit((__rlimit_resource_t)resource, &old) == 0);
    old.rlim_cur = most;
    EXPECT(setrlimit((__rlimit_resource_t)resource, &old) == 0);
}

static uint64_t pages_mapped(void)
{
    char text[64] = "";
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);

    EXPECT(fd >= 0 && read(fd, text, sizeof(text) - 1) > 0);
    close(fd);
    return strtoull(text, NULL, 10);
}

static void *untouched(size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    EXPECT(at != MAP_FAILED);
    return at;
}

static void add_large(hvd_state *state, size_t bytes)
{
    EXPECT(hvd_state_add(state, "large", untouched(bytes), bytes) == 0);
}

static void add_64_mib(hvd_state *state)
{
    add_large(state, 64 << 20);
}

static void no_address_space(hvd_state *state)
{
    (void)state;
    limit(RLIMIT_AS, pages_mapped() * (rlim_t)sysconf(_SC_PAGESIZE) + (32 << 20));
}

static void small_files(hvd_state *state)
{
    (void)state;
    limit(RLIMIT_FSIZE, 1 << 20);
}

static void no_descriptor(void)
{
    limit(RLIMIT_NOFILE, 3);
}

/* The leak checker at the end needs some descriptors. */
static void give_descriptors_back(hvd_state *state)
{
    (void)state;
    limit(RLIMIT_NOFILE, 256);
}

static void none_for_commits(hvd_state *state)
{
    (void)state;
    no_descriptor();
}

/* A size that is larger than the memory of any machine. */
static void more_than_all(hvd_state *state)
{
    uint64_t pages = (uint64_t)sysconf(_SC_PHYS_PAGES);

    add_large(state, (size_t)pages * (size_t)sysconf(_SC_PAGESIZE) / GIB * GIB + GIB);
}

static void eight_gib(hvd_state *state)
{
    add_large(state, 8 * GIB);
}

static void too_many_entries(hvd_state *state)
{
    static char here[70000];
    char name[32];
    int rc = 0;
    int i = 0;

    for (; !rc && i < (int)sizeof(here); i++) {
        snprintf(name, sizeof(name), "entry %d", i);
        rc = hvd_state_add(state, name, &here[i], 1);
    }
    EXPECT(rc == HVD_E_LIMIT && i == 65536 && strstr(hvd_last_error(), "65536"));
}

const struct api_misuse api_misuse_worlds[] = {
    {.name = "no-agent",
     .what = "HVD_AGENT of no agent",
     .before = no_agent,
     .init = HVD_E_LOST,
     .says = "@there-is-no-such-agent" },
    { .name = "no-folder",
     .what = "HVD_AGENT is a file that is not there",
     .before = no_folder,
     .init = HVD_E_LOST,
     .says = "/no/such/folder/agent" },
    { .name = "long-agent",
     .what = "HVD_AGENT is longer than a socket's name",
     .before = long_agent,
     .init = HVD_E_INVAL,
     .says = "too long for the name of a socket" },
    { .name = "no-incarnation",
     .what = "HVD_AGENT without HVD_INCARNATION",
     .before = no_incarnation,
     .init = HVD_E_INVAL,
     .says = "HVD_INCARNATION is not" },
    { .name = "zero-incarnation",
     .what = "HVD_INCARNATION is 0",
     .before = zero_incarnation,
     .init = HVD_E_INVAL,
     .says = "HVD_INCARNATION" },
    { .name = "text-incarnation",
     .what = "HVD_INCARNATION is a word",
     .before = text_incarnation,
     .init = HVD_E_INVAL,
     .says = "HVD_INCARNATION" },
    { .name = "large-incarnation",
     .what = "HVD_INCARNATION is beyond 64 bits",
     .before = large_incarnation,
     .init = HVD_E_INVAL,
     .says = "HVD_INCARNATION" },
    { .name = "incarnation-alone",
     .what = "HVD_INCARNATION without HVD_AGENT",
     .before = incarnation_alone,
     .init = HVD_E_INVAL,
     .says = "HVD_AGENT is not" },
    { .name = "others-incarnation",
     .what = "HVD_INCARNATION of another worker",
     .before = others_incarnation,
     .init = HVD_E_DENIED,
     .says = "refuses" },
    { .name = "is-second",
     .what = "started by second-process",
     .init = HVD_E_BUSY,
     .says = "has a connection" },
    { .name = "second-process",                    .what = "the worker starts itself again", .step = second_process },
    { .name = "no-address-space",
     .what = "a commit that cannot be mapped",
     .add = add_64_mib,
     .ready = no_address_space,
     .run = HVD_E_NOMEM,
     .says = "ulimit -v" },
    { .name = "small-files",
     .what = "a commit that is too large a file",
     .add = add_64_mib,
     .ready = small_files,
     .run = HVD_E_LIMIT,
     .says = "ulimit -f" },
    { .name = "no-descriptor",
     .what = "not one descriptor left",
     .before = no_descriptor,
     .after = give_descriptors_back,
     .init = HVD_E_LIMIT,
     .says = "ulimit -n" },
    { .name = "none-for-commits",
     .what = "not one descriptor left for commits",
     .ready = none_for_commits,
     .after = give_descriptors_back,
     .run = HVD_E_LIMIT,
     .says = "ulimit -n" },
    { .name = "more-than-all",
     .what = "more state than memory",
     .add = more_than_all,
     .run = HVD_E_NOMEM,
     .says = "memory" },
    { .name = "eight-gib",                  .what = "8 GiB of state", .add = eight_gib, .steps = 1 },
    { .name = "too-many-entries",                   .what = "65537 entries", .ready = too_many_entries },
    { .name = NULL               },
};
