/*
 * temp_db.h: the path of a database in a new folder, in memory if the machine has such a file
 * system. A call that fails aborts the process.
 */
#ifndef TESTS_LIB_TEMP_DB_H
#define TESTS_LIB_TEMP_DB_H

extern char temp_db_path[128];

void temp_db_begin(void);

/* Removes the database and all files beside it. */
void temp_db_remove(void);

/* The same, and the folder. */
void temp_db_end(void);

#endif
