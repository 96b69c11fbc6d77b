/*
 * board.h: a board: shared memory where a group's members on one host work together. A member's
 * index at its board is its local index (group.h). All members make the same steps (a step is a
 * barrier):
 *
 *     write to the own stage, the own part of the result ──► board_step ──► read the other members'
 *
 * A step publishes all that was written before it, and returns when every member has made as many
 * steps. There are two copies of each stage and result, for even and odd chunks of the numbers, so
 * that one can be written while the other is read.
 * Rule: no member reads memory between the same two steps in which another member writes it.
 */
#ifndef COLLECTIVES_SHM_BOARD_H
#define COLLECTIVES_SHM_BOARD_H

#include "collectives/shm/segment.h"

#define BOARD_STAGE_BYTES   ((size_t)512 * 1024)
#define BOARD_RESULT_BYTES  ((size_t)512 * 1024)
#define BOARD_OPENING_BYTES 192

struct board;

/* Returns the board that has this index in the spec from which the segment was made. The board
 * belongs to the segment. NULL: this process is not a member at that board. */
struct board *segment_board(struct segment *segment, size_t index);

uint32_t board_local(const struct board *board); /* index of this process at its board */
uint32_t board_count(const struct board *board);

/* Return the memory for one chunk, 64-byte aligned: the opening of a member (its fingerprint), the
 * stage of a member (its data), or the result. `turn`: the number of the chunk; even and odd chunks
 * have different memory. */
uint8_t *board_opening(struct board *board, uint32_t local, uint64_t turn);
uint8_t *board_stage(struct board *board, uint32_t local, uint64_t turn);
uint8_t *board_result(struct board *board, uint64_t turn);

/* Makes a step. 0: all members have made it; HVD_E_REVOKED: the segment failed before that. A
 * waiting member first spins, if each member has a core; then it yields; then it sleeps. */
int board_step(struct board *board) MUST_CHECK;

/* The two halves of a step: board_arrive counts the step of this process, board_await waits for the
 * other members. Work that this process does between the halves overlaps with theirs. */
void board_arrive(struct board *board);
int board_await(struct board *board) MUST_CHECK;

/* Writes to ret_locals the local indices of members that have made fewer steps than this process,
 * at most `max`, and returns how many. *ret_progress: how many steps the slowest member has made.
 * Any thread may call this function. */
size_t board_behind(const struct board *board, uint32_t *ret_locals, size_t max,
                    uint64_t *ret_progress);

#endif
