/*
 * crash_db.c: a process brings a database to a newer schema and dies at the k-th point at which a
 * file changes, for every k: by a kill, and by a power failure. The next process must open the
 * database and finish the migration. crash_journal.c does the same with the records of a job.
 */
#include "tests/lib/fault_vfs.h"
#include "tests/lib/life.h"
#include "tests/lib/testdb.h"

#include <stdio.h>
#include <stdlib.h>

/* The life that dies: opens the database, which migrates the database to version 3. 0, or 1 for an
 * error. */
static int move_on(const struct life *life, int ack_fd)
{
    const struct db_options options = { .vfs = FAULT_VFS,
                                        .checkpoint_pages = life->checkpoint_pages };
    struct db *db;

    if (db_open(temp_db_path, &testdb_version_3, &options, &db, NULL))
        return 1;
    life_acknowledge(ack_fd);
    db_close(db);
    return 0;
}

/* true: after a death the database opens with version 3, and its rows are still there. */
static bool found_moved_on(const struct life *life, size_t acknowledged)
{
    struct db *db;
    bool same;

    (void)life;
    (void)acknowledged;
    if (db_open(temp_db_path, &testdb_version_3, &db_options_usual, &db, NULL))
        return false;
    same = testdb_count(db) == 1;
    db_close(db);
    return same;
}

static unsigned migrate_and_die(void)
{
    static struct file_bytes start;
    struct life life = { .name = "migration", .run = move_on, .holds = found_moved_on };

    temp_db_remove();
    snprintf(testdb_path, sizeof(testdb_path), "%s", temp_db_path);
    fault_vfs_use();
    if (testdb_make(NULL))
        abort();
    files_read(temp_db_path, &start);
    life.start = &start;
    life.checkpoint_pages = 2;
    return life_die_everywhere(&life);
}

int main(void)
{
    unsigned deaths;

    temp_db_begin();
    deaths = migrate_and_die();
    temp_db_end();
    printf("%u deaths, nothing was lost\n", deaths);
    return deaths >= 20 ? 0 : 1;
}
