/*
 * codec.h: converts between struct msg and the bytes on the wire. codec.c is the only file that
 * uses protobuf-c and the generated code.
 *
 * Both directions check every field against its limit in hvd.proto, so no process sends a value
 * that its peer would refuse. A body is decoded into an arena whose size is bounded by the body's
 * length: a small frame cannot cost much memory. The arena is zero-filled, because protobuf-c 1.4.1
 * reads memory that it never wrote when a body is malformed. No oneof and no singular sub-message
 * is used, because the other known defects of protobuf-c are in the merging of those.
 */
#ifndef PROTO_CODEC_H
#define PROTO_CODEC_H

#include "base/buf.h"
#include "proto/frame.h"
#include "proto/msg.h"

/* Encodes msg and appends the whole frame to out. HVD_E_LIMIT, HVD_E_INVAL (a required key is 0, or
 * a field is out of range; the err names the field), HVD_E_NOMEM. `out` is unchanged on failure. */
int msg_encode(const struct msg *msg, struct buf *out, struct hvd_err *err);

/* Decodes a frame's body. ret_msg owns its memory (msg_release), and is untouched on failure.
 * HVD_E_PROTO (not a message, or a field out of range), HVD_E_LIMIT, HVD_E_NOMEM. */
int msg_decode(const struct frame *frame, struct msg *ret_msg, struct hvd_err *err);

/* Encode and decode a CHUNK (a part of a commit) without copying its data, which are most of the
 * message. msg_encode_before_data appends the bytes that go before msg->u.chunk.data. After
 * msg_decode_in_place the data of a CHUNK point into the frame; other messages are decoded as by
 * msg_decode. */
int msg_encode_before_data(const struct msg *msg, struct buf *out, struct hvd_err *err);
int msg_decode_in_place(const struct frame *frame, struct msg *ret_msg, struct hvd_err *err);

/* Writes one line for traces: "EXITED incarnation=7 slot=2 value=137", cut at size bytes. Returns
 * text. */
const char *msg_describe(const struct msg *msg, char *text, size_t size);

#endif
