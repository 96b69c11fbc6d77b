/*
 * farewell.h: a process that a driver leaves behind when its job has ended while some agents had no
 * connection. Such an agent and its workers would wait for a driver until --driver-grace. The
 * process keeps the driver's ports open for that time, and tells each of these agents that the job
 * is over.
 */
#ifndef DRIVER_IO_FAREWELL_H
#define DRIVER_IO_FAREWELL_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct core;
struct farewell;
struct job_facts;
struct server;

/* Notes which agents are missing, and where they dial. Returns NULL when none is missing, or memory
 * is out: then the agents end by themselves after --driver-grace. `core`, `facts` and `server` are
 * borrowed during the call. */
struct farewell *farewell_create(const struct core *core, const struct job_facts *facts,
                                 const struct server *server, int64_t now_us);
void farewell_free(struct farewell *farewell);

/* Tells each missing agent that the job is over, as soon as it connects. Returns when all were
 * told, or when --driver-grace is over. */
void farewell_run(struct farewell *farewell);

/* Starts the process, which calls farewell_run, and logs that it runs. The parts of the event loop
 * must be freed and no other thread may run. The process holds no file of the job: neither its lock
 * nor its streams. */
void farewell_start(struct farewell *farewell);

#endif
