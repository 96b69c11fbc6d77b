#include "agent/io/state_inside.h"

void serve_accepted(void *arg, struct conn *conn)
{
    (void)arg;
    conn_drop(conn);
}

void serve_end(struct state_thread *thread)
{
    (void)thread;
}
