/*
 * Checks of a request as it came, before anything reads it: texts must be
 * UTF-8 without control characters, and enum numbers known. It works on the
 * bytes, because an unpacked text ends at its first NUL, and it works from the
 * descriptors, so that no field can be forgotten.
 *
 * Threads: any.
 */
#ifndef TOC_SCHEDULER_ACCESS_WIRE_H
#define TOC_SCHEDULER_ACCESS_WIRE_H

#include "scheduler/access/check.h"

#include <protobuf-c/protobuf-c.h>

/* bytes must be a well-formed message of the type (it was unpacked already). */
void sched_wire_check(struct sched_check *check, struct toc_str bytes,
                      const ProtobufCMessageDescriptor *type);

/* One field of a message: false at the end, or when malformed. */
struct sched_wire_field {
    uint32_t number;
    int wire_type;
    struct toc_str bytes; /* of a length-delimited field */
    uint64_t value;       /* of a varint */
};
bool sched_wire_next(struct toc_str *rest, struct sched_wire_field *ret_field);

#endif
