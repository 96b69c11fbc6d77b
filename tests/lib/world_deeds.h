/*
 * world_deeds.h: what can be done to a world: world_at(w, 9 * TIME_S, kill_worker("a", 1)).
 */
#ifndef TESTS_LIB_WORLD_DEEDS_H
#define TESTS_LIB_WORLD_DEEDS_H

#include "base/base.h"

struct world;

#define DEEDS(D)                                 \
    D(KILL_WORKER, "kill worker")                \
    D(FREEZE_WORKER, "freeze worker")            \
    D(THAW_WORKER, "thaw worker")                \
    D(EXIT_WORKER, "worker exits")               \
    D(STALL_WORKER, "worker computes")           \
    D(HANG_WORKER, "worker's callback computes") \
    D(USELESS_WORKER, "worker is useless")       \
    D(BOOT_NEXT, "next boot")                    \
    D(SPAWN_FAILS, "next spawn fails")           \
    D(KILL_AGENT, "kill agent")                  \
    D(FREEZE_AGENT, "freeze agent")              \
    D(THAW_AGENT, "thaw agent")                  \
    D(POWER_OFF, "power off")                    \
    D(POWER_ON, "power on")                      \
    D(CUT, "cut off")                            \
    D(HEAL, "heal")                              \
    D(LEAD_ASTRAY, "lead astray")                \
    D(BREAK_LINK, "break link")                  \
    D(REPEAT_FRAMES, "frames again")             \
    D(KILL_DRIVER, "kill driver")                \
    D(FREEZE_DRIVER, "freeze driver")            \
    D(THAW_DRIVER, "thaw driver")                \
    D(START_DRIVER, "start driver")              \
    D(SLOW_DISK, "slow disk")                    \
    D(FAIL_DISK, "disk fails")                   \
    D(LIST_HOST, "list host")                    \
    D(UNLIST_HOST, "unlist host")                \
    D(DISCOVERY_FAILS, "discovery fails")        \
    D(DISCOVERY_HANGS, "discovery hangs")        \
    D(DRAIN, "operator drains")                  \
    D(UNDRAIN, "operator undrains")              \
    D(CLEAR, "operator clears")                  \
    D(STOP, "operator stops")                    \
    D(STATUS, "operator asks")                   \
    D(NOTICE, "notice")

enum world_deed_kind {
#define DEED_ENUM(name, text) DEED_##name,
    DEEDS(DEED_ENUM)
#undef DEED_ENUM
        DEED_COUNT
};

#define DEED_HOST_MAX   24
#define DEED_WHOLE_HOST UINT32_MAX

/* What a process does instead of joining in the usual way. */
enum world_boot { BOOT_USUAL, BOOT_EXITS, BOOT_SIGNAL, BOOT_SLOW, BOOT_OTHER_STATE };

struct world_deed {
    enum world_deed_kind kind;
    char host[DEED_HOST_MAX];
    uint32_t slot;
    int value;
    int64_t us;
};

const char *deed_name(enum world_deed_kind kind);
void world_do(struct world *world, const struct world_deed *deed); /* now; to nobody: nothing */
struct world_deed kill_worker(const char *host, uint32_t slot);
struct world_deed freeze_worker(const char *host, uint32_t slot);
struct world_deed thaw_worker(const char *host, uint32_t slot);
struct world_deed useless_worker(const char *host,
                                 uint32_t slot); /* its loop hangs, and it knows */
struct world_deed list_host(const char *host, uint32_t slot);
struct world_deed undrain(const char *host, uint32_t slot);
struct world_deed clear_slot(const char *host, uint32_t slot);
struct world_deed kill_agent(const char *host);
struct world_deed freeze_agent(const char *host);
struct world_deed thaw_agent(const char *host);
struct world_deed power_off(const char *host);
struct world_deed power_on(const char *host);
struct world_deed cut_off(const char *host);
struct world_deed heal(const char *host);
struct world_deed lead_astray(const char *host); /* its agent dials nobody, until it is healed */
struct world_deed break_link(const char *host);
struct world_deed repeat_frames(const char *host);
struct world_deed unlist_host(const char *host);
struct world_deed spawn_fails(const char *host);
struct world_deed stop_job(const char *host);
struct world_deed kill_driver(void);
struct world_deed freeze_driver(void);
struct world_deed thaw_driver(void);
struct world_deed start_driver(void);
struct world_deed discovery_fails(void);
struct world_deed discovery_hangs(void);
struct world_deed ask_status(void);
struct world_deed exit_worker(const char *host, uint32_t slot, int code);
struct world_deed stall_worker(const char *host, uint32_t slot, int64_t us);
struct world_deed hang_worker(const char *host, uint32_t slot, int64_t us); /* as it enters */
struct world_deed next_boot(const char *host, enum world_boot boot, int value, int64_t us);
struct world_deed discovery_prints_rubbish(void);
struct world_deed deafen(const char *host); /* nothing gets to it; what it says arrives */
struct world_deed mute(const char *host);   /* nothing of it arrives; it hears everything */
struct world_deed kill_driver_after(unsigned actions);
struct world_deed slow_disk(int64_t us);
struct world_deed fail_disk(int64_t us); /* TIME_NEVER: for good, and the driver gives up */
struct world_deed drain(const char *host, uint32_t slot, int64_t left_us);
struct world_deed notice(const char *host, int64_t left_us);

#endif
