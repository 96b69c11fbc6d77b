/*
 * service.h: tells the state of this process to the service manager that has started it, systemd.
 * The protocol is that of sd_notify(3): one datagram to the socket that NOTIFY_SOCKET names.
 */
#ifndef OS_SERVICE_H
#define OS_SERVICE_H

#define SERVICE_SOCKET "NOTIFY_SOCKET"

/* Sends `state`: assignments in lines of their own, as "READY=1\nSTATUS=text". The call does
 * nothing without NOTIFY_SOCKET, and never waits: a service manager that does not read is no reason
 * for a job to stand still. */
void service_tell(const char *state);

#endif
