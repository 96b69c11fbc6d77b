/*
 * address.h: where a driver listens, as a text: "10.0.0.7:4321", "[fd00::7]:4321".
 */
#ifndef AGENT_IO_ADDRESS_H
#define AGENT_IO_ADDRESS_H

#include "base/err.h"

/* 0, or HVD_E_INVAL naming it. */
int address_check(const char *text, struct hvd_err *err) MUST_CHECK;

#endif
