/*
 * world_commands.h: the commands that change a world: world_at(w, 9 * TIME_S, kill_worker("a", 1)).
 */
#ifndef TESTS_WORLD_WORLD_COMMANDS_H
#define TESTS_WORLD_WORLD_COMMANDS_H

#include "base/base.h"

struct world;

#define DEEDS(D)                                 \
    D(KILL_WORKER, "kill worker")                \
    D(FREEZE_WORKER, "freeze worker")            \
    D(THAW_WORKER, "thaw worker")                \
    D(EXIT_WORKER, "worker exits")               \
    D(STALL_WORKER, "worker computes")           \
    D(HANG_WORKER, "worker's callback computes") \
    D(UNUSABLE_WORKER, "worker is unusable")     \
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
    D(KILL_STANDBY, "kill standby")              \
    D(LOSE_LEADER, "etcd loses its leader")      \
    D(CUT_STORE, "driver is cut off from etcd")  \
    D(KILL_ALL, "kill all agents")               \
    D(FAIL_STORE, "checkpoint disk fails")       \
    D(DAMAGE, "checkpoint is damaged")           \
    D(CHECKPOINT, "operator wants checkpoint")   \
    D(LIST_HOST, "list host")                    \
    D(UNLIST_HOST, "unlist host")                \
    D(DISCOVERY_FAILS, "discovery fails")        \
    D(DISCOVERY_HANGS, "discovery hangs")        \
    D(DRAIN, "operator drains")                  \
    D(UNDRAIN, "operator undrains")              \
    D(CLEAR, "operator clears")                  \
    D(REKEY, "operator rekeys")                  \
    D(STOP, "operator stops")                    \
    D(STATUS, "operator asks")                   \
    D(NOTICE, "notice")                          \
    D(LIE, "agent lies")                         \
    D(CROWD, "strangers crowd the port")

enum world_command_kind {
#define COMMAND_ENUM(name, text) COMMAND_##name,
    DEEDS(COMMAND_ENUM)
#undef COMMAND_ENUM
        COMMAND_COUNT
};

#define COMMAND_HOST_MAX   24
#define COMMAND_WHOLE_HOST UINT32_MAX

/* How the next process starts: as usual, or with one of these failures. */
enum world_boot { BOOT_USUAL, BOOT_EXITS, BOOT_SIGNAL, BOOT_SLOW, BOOT_OTHER_STATE };

struct world_command {
    enum world_command_kind kind;
    char host[COMMAND_HOST_MAX];
    uint32_t slot;
    int value;
    int64_t us;
};

const char *command_name(enum world_command_kind kind);
/* Runs the command now; a command without a target does nothing. */
void world_do(struct world *world, const struct world_command *command);
struct world_command kill_worker(const char *host, uint32_t slot);
struct world_command freeze_worker(const char *host, uint32_t slot);
struct world_command thaw_worker(const char *host, uint32_t slot);
struct world_command unusable_worker(const char *host,
                                     /* the loop hangs, and the library reports the hang */
                                     uint32_t slot);
struct world_command list_host(const char *host, uint32_t slot);
struct world_command undrain(const char *host, uint32_t slot);
struct world_command clear_slot(const char *host, uint32_t slot);
struct world_command kill_agent(const char *host), freeze_agent(const char *host);
struct world_command thaw_agent(const char *host), unlist_host(const char *host);
struct world_command power_off(const char *host), power_on(const char *host);
struct world_command cut_off(const char *host), heal(const char *host);
struct world_command lead_astray(const char *host); /* the agent dials no driver until heal */
struct world_command break_link(const char *host), repeat_frames(const char *host);
struct world_command spawn_fails(const char *host), stop_job(const char *host);
struct world_command kill_driver(void), start_driver(void);
struct world_command freeze_driver(void), thaw_driver(void);
struct world_command discovery_fails(void), discovery_hangs(void);
struct world_command ask_status(void), crowd_port(void), rekey(void);
struct world_command exit_worker(const char *host, uint32_t slot, int code);
struct world_command stall_worker(const char *host, uint32_t slot, int64_t us);
/* while the worker enters a round */
struct world_command hang_worker(const char *host, uint32_t slot, int64_t us);
struct world_command next_boot(const char *host, enum world_boot boot, int value, int64_t us);
struct world_command discovery_prints_rubbish(void);
/* nothing arrives at the host; what it sends arrives */
struct world_command deafen(const char *host);
/* nothing that the host sends arrives; it receives everything */
struct world_command mute(const char *host);
struct world_command kill_driver_after(unsigned actions);
struct world_command slow_disk(int64_t us);
struct world_command fail_disk(int64_t us); /* TIME_NEVER: for ever, and the driver gives up */
struct world_command drain(const char *host, uint32_t slot, int64_t left_us);
struct world_command notice(const char *host, int64_t left_us);

#endif
