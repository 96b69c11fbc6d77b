/*
 * board.h: a group's members on one host, side by side in a segment: each has a seat, and all go in
 * step.
 *
 *     write to the own stage, the own part of the result ──► board_step ──► read those of others
 *
 * A step publishes all that was written before it, and returns when everybody has made as many
 * steps. There are two of each memory, even and odd, so that one is written while the other is
 * read: what is written between two steps must not be what another may read between the same two.
 */
#ifndef COLLECTIVES_SHM_BOARD_H
#define COLLECTIVES_SHM_BOARD_H

#include "collectives/shm/segment.h"

#define BOARD_STAGE_BYTES  ((size_t)512 * 1024)
#define BOARD_RESULT_BYTES ((size_t)512 * 1024)
#define BOARD_SAID_BYTES   192

struct board;

/* Belongs to the segment. index: in its spec; NULL: this process has no place in it. */
struct board *segment_board(struct segment *segment, size_t index);

uint32_t board_seat(const struct board *board); /* ours */
uint32_t board_count(const struct board *board);

/* 64-byte aligned. turn: even or odd counts. */
uint8_t *board_said(struct board *board, uint32_t seat, uint64_t turn);
uint8_t *board_stage(struct board *board, uint32_t seat, uint64_t turn);
uint8_t *board_result(struct board *board, uint64_t turn);

/* 0; HVD_E_REVOKED: the segment has failed before all had come. It spins as long as there are cores
 * for all, then gives way, then sleeps. */
int board_step(struct board *board) MUST_CHECK;

/* In two halves: what is done in between overlaps with what others still do. */
void board_arrive(struct board *board);
int board_await(struct board *board) MUST_CHECK;

/* Any thread: the seats that are behind ours, and how many steps all have made together. */
size_t board_behind(const struct board *board, uint32_t *ret_seats, size_t max,
                    uint64_t *ret_progress);

#endif
