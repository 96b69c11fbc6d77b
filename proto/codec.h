/*
 * codec.h: between struct msg and the bytes on the wire. codec.c is the only file that sees
 * protobuf-c and the generated code.
 *
 * Both directions hold every field against fields.h, so nothing is sent that the other side would
 * refuse. A body unfolds into an arena whose size is bounded by the body's length: a small frame
 * cannot cost much memory. The arena is zero-filled (protobuf-c 1.4.1 reads memory that it never
 * wrote when a body is malformed), and no oneof or singular sub-message is used (merging them is
 * where its other known defects are).
 */
#ifndef PROTO_CODEC_H
#define PROTO_CODEC_H

#include "base/buf.h"
#include "proto/frame.h"
#include "proto/msg.h"

/* Appends a whole frame. HVD_E_LIMIT, HVD_E_INVAL (a required key is 0, a field is out of range;
 * the err names it), HVD_E_NOMEM; out is as it was then. */
int msg_encode(const struct msg *msg, struct buf *out, struct hvd_err *err);

/* Reads a frame's body. ret_msg owns its memory (msg_release); untouched on failure.
 * HVD_E_PROTO (not a message, or a field out of range), HVD_E_LIMIT, HVD_E_NOMEM. */
int msg_decode(const struct frame *frame, struct msg *ret_msg, struct hvd_err *err);

/* The same of a CHUNK, whose data is by far the most of it, without copying that: what is encoded
 * goes before msg->u.chunk.data; what is decoded may point into the frame (other messages are
 * decoded as ever). */
int msg_encode_before_data(const struct msg *msg, struct buf *out, struct hvd_err *err);
int msg_decode_in_place(const struct frame *frame, struct msg *ret_msg, struct hvd_err *err);

/* One line for traces: "EXITED incarnation=7 slot=2 value=137". Cut at size. Returns text. */
const char *msg_describe(const struct msg *msg, char *text, size_t size);

#endif
