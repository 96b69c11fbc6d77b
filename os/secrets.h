/*
 * secrets.h: protects a process that holds keys. Each program that holds keys calls this first.
 */
#ifndef OS_SECRETS_H
#define OS_SECRETS_H

/*
 * Closes the memory of this process to other processes of its user: no debugger, no
 * /proc/PID/mem, environ or fd, no core dump. Programs that it starts are open again. A user who
 * wants to debug the process sets HVD_TRACEABLE=1 before it starts.
 */
void secrets_seal(void);

#endif
