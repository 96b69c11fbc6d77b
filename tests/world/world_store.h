/*
 * world_store.h: the directory of checkpoints that all hosts share. It outlives every process. A
 * file counts when it is durable; a checkpoint counts when its manifest is written too.
 */
#ifndef TESTS_WORLD_WORLD_STORE_H
#define TESTS_WORLD_WORLD_STORE_H

#include "base/vec.h"
#include "driver/core/action.h"
#include "driver/core/config.h"
#include "tests/world/world_app.h"

struct world;
struct world_driver;
struct world_host;

#define STORE_DIR        "/c"
#define STORE_NAME_MAX   96
#define STORE_FOLDER_MAX 48

/* The entries of the program's state in a world with checkpoints: two that are replicated, and one
 * of each rank. */
extern const struct msg_entry store_entries[];
#define STORE_ENTRIES 3

/* A file that an agent writes. */
struct store_file {
    char name[STORE_NAME_MAX];
    const struct world_host *host;
    uint32_t slot;
    unsigned entries; /* bit i: the file has store_entries[i] */
    uint64_t commit;  /* the commit that the driver has asked for */
    struct world_model model;
    bool durable;
};

enum store_damage { DAMAGE_NONE, DAMAGE_ALL, DAMAGE_SOME };

struct store_checkpoint {
    const struct world_driver
        *driver;     /* the driver that writes the manifest; NULL: an earlier job */
    uint64_t number; /* of the attempt */
    uint64_t commit;
    struct world_model model;
    char folder[STORE_FOLDER_MAX]; /* its whole path */
    bool complete;
    bool rejected; /* a driver has found it damaged */
    /* DAMAGE_SOME: the workers with an odd incarnation cannot read it */
    enum store_damage damage;
};

struct world_store {
    struct VEC(struct store_file) files;
    struct VEC(struct store_checkpoint *) checkpoints;
    int64_t fails_until_us;
};

void store_release(struct world_store *store);

/* true: a checkpoint of this commit was completed. */
bool store_has(const struct world *world, uint64_t commit);

/* Adds a complete checkpoint, as an earlier job would have left it. */
void store_earlier(struct world *world, uint64_t round, uint32_t place, uint64_t step);
/* The newest complete checkpoint is damaged, or (how many UINT_MAX) every one. */
void store_damage(struct world *world, enum store_damage damage, unsigned how_many);
/* True: a complete checkpoint can be read by every worker. */
bool store_is_readable(const struct world *world);

/* The side of agents: a file is asked for (its index is returned), and is durable. */
size_t store_write_file(struct world *world, const struct store_file *file);
void store_set_durable(struct world *world, size_t index);
/* Reads the checkpoint at this address, "checkpoint=...". 0, HVD_E_BUSY, HVD_E_CORRUPT or
 * HVD_E_NOTFOUND. */
int store_read(const struct world *world, const struct world_worker *worker, const char *address,
               struct world_model *ret_model);

/* The side of drivers: what a new one finds, a manifest to write, a checkpoint that is damaged. */
void store_find(const struct world *world, struct world_driver *driver, struct core_config *config);
void store_complete(struct world *world, struct world_driver *driver,
                    const struct checkpoint_done *done);
void store_reject(struct world *world, struct world_driver *driver, uint64_t commit);
void store_abandon(struct world *world, const struct world_driver *driver);

/* Checks that the commit is what workers have under its number. */
void check_saved_commit(struct world *world, const struct store_checkpoint *checkpoint);
/* Checks a round that begins with a checkpoint, or goes back behind the commit with which the last
 * round began, when the driver decides on it. */
void check_fall_back(struct world *world, const struct world_driver *driver,
                     const struct journal_record *record);
/* Checks the sources of a ROUND: a checkpoint that is named must be complete. True: one is. */
bool check_checkpoint_source(struct world *world, const struct msg *msg);

#endif
